//! Phonemes of English, each with the written word it belongs to.

use super::espeak::Espeak;
use super::numbers::Said;

/// One phoneme symbol, or a space or mark between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Phone {
    /// The IPA character.
    pub(super) symbol: char,
    /// Byte offset in the text of the word it belongs to.
    pub(super) at: usize,
}

/// A phoneme as it was spoken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TimedPhone {
    /// The phoneme.
    pub(super) phone: Phone,
    /// When it begins, ms of the sound.
    pub(super) start_ms: f64,
    /// When it ends.
    pub(super) end_ms: f64,
}

/// Whether a symbol stands between words.
pub(super) fn is_pause(symbol: char) -> bool {
    symbol.is_whitespace() || ",.;:!?—…\"“”()，。".contains(symbol)
}

/// When each word begins, from its phonemes.
pub(super) fn word_times(timed: &[TimedPhone]) -> Vec<(usize, f64)> {
    let mut out: Vec<(usize, f64)> = Vec::new();
    for timed in timed.iter().filter(|timed| !is_pause(timed.phone.symbol)) {
        if out.last().is_none_or(|(at, _)| *at < timed.phone.at) {
            out.push((timed.phone.at, timed.start_ms));
        }
    }
    out
}

/// Sentences of a text in espeak-ng's IPA: clauses end with their mark, and a space stands between
/// two.
///
/// # Errors
/// When espeak-ng fails.
pub(super) fn with_espeak(espeak: &Espeak, said: &[Said]) -> anyhow::Result<Vec<Vec<Phone>>> {
    struct Clause {
        words: Vec<(usize, String)>,
        mark: char,
    }
    let mut clauses: Vec<Clause> = Vec::new();
    let mut words = Vec::new();
    for said in said {
        match said {
            Said::Word { at, text } => {
                words.extend(text.split(' ').map(|word| (*at, word.to_owned())));
            }
            Said::Mark(mark) => {
                if !words.is_empty() {
                    clauses.push(Clause { words: std::mem::take(&mut words), mark: *mark });
                }
            }
        }
    }
    if !words.is_empty() {
        clauses.push(Clause { words, mark: '.' });
    }
    let lines: Vec<String> = clauses
        .iter()
        .map(|clause| {
            clause.words.iter().map(|(_, word)| word.as_str()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let mut sentences = Vec::new();
    let mut sentence: Vec<Phone> = Vec::new();
    for (clause, ipa) in clauses.iter().zip(espeak.lines(&lines)?) {
        if !sentence.is_empty() {
            let at = sentence.last().map_or(0, |phone| phone.at);
            sentence.push(Phone { symbol: ' ', at });
        }
        align(&clause.words, &ipa, &mut sentence);
        let at = clause.words.last().map_or(0, |(at, _)| *at);
        sentence.push(Phone { symbol: clause.mark, at });
        if matches!(clause.mark, '.' | '!' | '?') {
            sentences.push(std::mem::take(&mut sentence));
        }
    }
    if !sentence.is_empty() {
        sentences.push(sentence);
    }
    Ok(sentences)
}

/// Gives each phoneme of a clause its word. espeak-ng joins some words ("of the"), so where the
/// counts differ the phonemes are shared out by the length of the words.
fn align(words: &[(usize, String)], ipa: &str, out: &mut Vec<Phone>) {
    let spoken: Vec<&str> = ipa.split_whitespace().collect();
    if spoken.len() == words.len() {
        for (index, (spoken, (at, _))) in spoken.iter().zip(words).enumerate() {
            if index > 0 {
                out.push(Phone { symbol: ' ', at: *at });
            }
            out.extend(spoken.chars().map(|symbol| Phone { symbol, at: *at }));
        }
        return;
    }
    let letters: usize = words.iter().map(|(_, word)| word.chars().count()).sum();
    let total = ipa.chars().filter(|c| !c.is_whitespace()).count().max(1);
    let mut ends = Vec::new();
    let mut sum = 0;
    for (at, word) in words {
        sum += word.chars().count();
        ends.push((*at, sum * total / letters.max(1)));
    }
    let mut seen = 0;
    for symbol in spoken.join(" ").chars() {
        let at = ends.iter().find(|(_, end)| seen < *end).or(ends.last()).map_or(0, |(at, _)| *at);
        out.push(Phone { symbol, at });
        seen += usize::from(symbol != ' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_words_share_their_phonemes() {
        let words = [(0, "of".to_owned()), (3, "the".to_owned()), (7, "people".to_owned())];
        let mut out = Vec::new();
        align(&words, "ʌvðə pˈiːpəl", &mut out);
        let text: String = out.iter().map(|phone| phone.symbol).collect();
        assert_eq!(text, "ʌvðə pˈiːpəl");
        assert!(out.is_sorted_by_key(|phone| phone.at));
        let ats: std::collections::BTreeSet<usize> = out.iter().map(|phone| phone.at).collect();
        assert_eq!(ats.into_iter().collect::<Vec<_>>(), [0, 3, 7]);
    }

    #[test]
    fn clauses_become_sentences() {
        let Ok(espeak) = Espeak::start("en-us") else {
            eprintln!("skipped: espeak-ng is not installed");
            return;
        };
        let said = super::super::numbers::say("Hello, you. It is 5 km!");
        let sentences: Vec<String> = with_espeak(&espeak, &said)
            .unwrap()
            .iter()
            .map(|phones| phones.iter().map(|phone| phone.symbol).collect())
            .collect();
        // How a phoneme is written differs between its versions; words and marks do not.
        let [first, second] = sentences.as_slice() else { panic!("{sentences:?}") };
        assert_eq!((first.split(' ').count(), second.split(' ').count()), (2, 4), "{sentences:?}");
        assert!(first.starts_with("həlˈoʊ, j") && first.ends_with("."));
        assert!(second.contains("fˈaɪv") && second.ends_with("!"));
    }

    #[test]
    fn words_begin_with_their_first_phoneme() {
        let timed = |symbol, at, start_ms: f64| TimedPhone {
            phone: Phone { symbol, at },
            start_ms,
            end_ms: start_ms + 10.0,
        };
        assert_eq!(
            word_times(&[
                timed('a', 0, 5.0),
                timed(' ', 0, 15.0),
                timed('b', 2, 25.0),
                timed('c', 2, 35.0)
            ]),
            [(0, 5.0), (2, 25.0)]
        );
    }
}
