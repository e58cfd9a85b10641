//! The second line against Alice hearing herself: a transcript of what she has just said is no turn.

use std::collections::VecDeque;

use crate::kernel::ids::SegmentId;

/// Sentences that are remembered.
const REMEMBERED: usize = 12;
/// The echo of a sentence may be heard so long after its last sample, ms (room, device buffers).
const TAIL_MS: f64 = 1_500.0;
/// Share of the transcript's words that must be Alice's, in her order.
const OVERLAP: f64 = 0.75;
/// One word proves nothing: people answer with words of the question.
const FEWEST_WORDS: usize = 2;
/// Two words this alike are one word heard wrong.
const ALIKE: f64 = 0.75;

#[derive(Debug)]
struct Sentence {
    segment: SegmentId,
    words: Vec<String>,
    /// From when to when it was heard; `None` until it starts.
    heard_ms: Option<(f64, f64)>,
}

/// What Alice said lately. Times are ms of the process clock.
#[derive(Debug, Default)]
pub struct SelfEcho(VecDeque<Sentence>);

impl SelfEcho {
    /// A sentence is ready to be spoken.
    pub fn ready(&mut self, segment: SegmentId, spoken: &str) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Sentence { segment, words: words(spoken), heard_ms: None });
    }

    /// A sentence is being heard at this time.
    pub fn heard(&mut self, segment: SegmentId, at_ms: f64) {
        for sentence in self.0.iter_mut().filter(|sentence| sentence.segment == segment) {
            let since = sentence.heard_ms.map_or(at_ms, |(since, _)| since);
            sentence.heard_ms = Some((since, at_ms));
        }
    }

    /// Whether words that were heard from `from_ms` on are Alice's own.
    pub fn is_own(&self, text: &str, from_ms: f64) -> bool {
        let transcript = words(text);
        if transcript.len() < FEWEST_WORDS {
            return false;
        }
        let spoken: Vec<&String> = self
            .0
            .iter()
            .filter(|s| s.heard_ms.is_some_and(|(_, until)| from_ms <= until + TAIL_MS))
            .flat_map(|sentence| &sentence.words)
            .collect();
        common(&transcript, &spoken) as f64 >= OVERLAP * transcript.len() as f64
    }
}

/// Words in lower case; characters where a script does not part words.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in text.to_lowercase().chars() {
        let ideograph = matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}');
        if ideograph {
            words.push(c.into());
            words.push(String::new());
        } else if c.is_alphanumeric() {
            if let Some(word) = words.last_mut() {
                word.push(c);
            }
        } else if c != '\'' && c != '’' {
            words.push(String::new());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn alike(a: &str, b: &str) -> bool {
    a == b || a.len() > 3 && strsim::normalized_levenshtein(a, b) >= ALIKE
}

/// Length of the longest common subsequence.
fn common(a: &[String], b: &[&String]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for word in a {
        let mut diagonal = 0;
        let mut left = 0;
        for (place, other) in row.iter_mut().skip(1).zip(b) {
            let above = *place;
            *place = if alike(word, other) { diagonal + 1 } else { above.max(left) };
            diagonal = above;
            left = *place;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::ids::TurnId;

    fn said(sentences: &[&str]) -> SelfEcho {
        let mut echo = SelfEcho::default();
        for (index, text) in (0..).zip(sentences) {
            let segment = SegmentId { turn: TurnId(1), index };
            echo.ready(segment, text);
            echo.heard(segment, 1_000.0 * f64::from(index));
            echo.heard(segment, 1_000.0 * f64::from(index + 1));
        }
        echo
    }

    #[test]
    fn her_own_words_are_known_even_when_heard_wrong() {
        let echo = said(&["Once upon a time there was a fox.", "It lived in a green forest."]);
        let cases = [
            ("Once upon a time there was a fox", true),
            ("upon a time there was a box", true),
            ("was a fox it lived", true),
            ("lived in a green florist", true),
            ("What did the fox eat?", false),
            ("please stop now", false),
            ("fox", false),
            ("", false),
        ];
        for (text, own) in cases {
            assert_eq!(echo.is_own(text, 500.0), own, "{text}");
        }
    }

    #[test]
    fn chinese_is_compared_by_character() {
        let echo = said(&["今天天气很好。"]);
        assert!(echo.is_own("天气很好", 500.0));
        assert!(!echo.is_own("你叫什么名字", 500.0));
    }

    #[test]
    fn repeating_her_words_later_is_a_turn() {
        let echo = said(&["Do you want tea or coffee?"]);
        assert!(echo.is_own("tea or coffee", 2_000.0));
        assert!(!echo.is_own("tea or coffee", 2_600.0));
    }

    #[test]
    fn a_sentence_that_was_not_heard_yet_has_no_echo() {
        let mut echo = SelfEcho::default();
        echo.ready(SegmentId { turn: TurnId(1), index: 0 }, "good morning to you");
        assert!(!echo.is_own("good morning to you", 0.0));
    }
}
