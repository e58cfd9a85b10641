//! What Alice feels while she says a sentence: from the model's tag where the model is good at them,
//! and from the words of both sides.
//!
//! The words are looked up in a small lexicon of English and Chinese; rules handle negation,
//! strength, exclamations, echoing questions, and what the user said (nobody smiles at bad news). The
//! labelled table beside this file says how well that works.

use crate::kernel::contracts::{Emotion, Feeling};
use crate::kernel::ports::Feels;

use super::lexicon;

/// Below this score a sentence shows nothing in particular.
const FLOOR: f32 = 0.4;

/// From this score on, words that contradict a tag win over it.
const CERTAIN: f32 = 0.7;

/// Finds the feeling of a sentence.
pub struct Feelings {
    trusts_tags: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Feelings {
    /// `trusts_tags` says whether the model that writes now is good at tags; it is asked for each
    /// sentence, because a fallback may have taken over.
    pub fn new(trusts_tags: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { trusts_tags: Box::new(trusts_tags) }
    }

    /// From words alone.
    pub fn from_words() -> Self {
        Self::new(|| false)
    }
}

impl Feels for Feelings {
    fn feel(&self, user_text: &str, sentence: &str, tag: Option<Feeling>) -> Feeling {
        let words = read(user_text, sentence);
        match tag {
            Some(tag) if (self.trusts_tags)() => weigh(tag, words),
            _ => words,
        }
    }
}

/// A believed tag, checked against the words: they win when they are sure of the opposite (a smile
/// with condolences), and lend their strength when they agree.
fn weigh(tag: Feeling, words: Feeling) -> Feeling {
    let opposite = pleasant(tag.emotion) * pleasant(words.emotion) < 0;
    if opposite && words.intensity >= CERTAIN {
        words
    } else if tag.emotion == words.emotion {
        Feeling { emotion: tag.emotion, intensity: tag.intensity.max(words.intensity) }
    } else {
        tag
    }
}

/// 1 for a pleasant feeling, −1 for an unpleasant one, 0 for those that are neither.
fn pleasant(emotion: Emotion) -> i8 {
    match emotion {
        Emotion::Happy | Emotion::Excited | Emotion::Loving | Emotion::Relaxed | Emotion::Shy => 1,
        Emotion::Sad | Emotion::Angry | Emotion::Fearful | Emotion::Disgusted => -1,
        Emotion::Neutral | Emotion::Surprised | Emotion::Thinking | Emotion::Confused => 0,
    }
}

/// The feeling of `sentence`, an answer to `user_text`, from their words.
fn read(user_text: &str, sentence: &str) -> Feeling {
    let user = Scores::of(user_text);
    let mut own = Scores::of(sentence);

    let shouts = sentence.contains(['!', '！']);
    let asks = sentence.trim_end().ends_with(['?', '？']);
    if (shouts && asks) || echoes(user_text, sentence) {
        own.add(Emotion::Surprised, 0.9);
    }
    if shouts && own.get(Emotion::Excited) > 0.0 {
        own.add(Emotion::Excited, 0.2);
    }

    // Nobody smiles at bad news: what is pleasant about such an answer is care.
    let bad_news = user.get(Emotion::Sad).max(user.get(Emotion::Fearful));
    if bad_news >= FLOOR && bad_news > user.get(Emotion::Happy) {
        for glad in [Emotion::Happy, Emotion::Excited] {
            let care = own.take(glad);
            own.add(Emotion::Loving, care * 0.6);
        }
        if own.top().1 < FLOOR {
            own.add(Emotion::Sad, FLOOR + 0.1);
        }
    } else if own.top().1 < FLOOR && says(user_text, lexicon::THANKS) {
        own.add(Emotion::Happy, FLOOR + 0.1);
    } else if own.top().1 < FLOOR && says(user_text, lexicon::GREETINGS) {
        own.add(Emotion::Happy, FLOOR);
    }

    let (emotion, score) = own.top();
    if score < FLOOR {
        return Feeling::default();
    }
    let loudness = if shouts { 1.15 } else { 1.0 };
    Feeling { emotion, intensity: (score * 0.8 * loudness).clamp(0.0, 1.0) }
}

/// `true` for a sentence that begins by asking back a word or two of the user's ("Nine, really?").
fn echoes(user_text: &str, sentence: &str) -> bool {
    let Some(end) = sentence.find(['?', '？', '.', '!', '。', '！']) else { return false };
    let (question, mark) = sentence.split_at(end);
    if !mark.starts_with(['?', '？']) {
        return false;
    }
    let theirs = words(user_text);
    let asked = words(question);
    if asked.iter().any(|word| word == "really") {
        return true;
    }
    let short = !asked.is_empty() && asked.len() <= 3;
    let question = question.trim();
    let characters = question.chars().count();
    let echoed = question.chars().all(is_cjk) && (2..=4).contains(&characters);
    (short && asked.iter().all(|word| theirs.contains(word)))
        || (echoed && user_text.contains(question))
}

fn says(text: &str, phrases: &[&str]) -> bool {
    let lower = text.to_lowercase();
    let spaced = format!(" {} ", words(text).join(" "));
    phrases.iter().any(|phrase| {
        if phrase.is_ascii() {
            spaced.contains(&format!(" {phrase} "))
        } else {
            lower.contains(phrase)
        }
    })
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Latin words in lower case, with their apostrophes.
fn words(text: &str) -> Vec<String> {
    text.replace('’', "'")
        .to_lowercase()
        .split(|c: char| !(c.is_alphanumeric() || c == '\'') || is_cjk(c))
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// How much each feeling is in a text.
#[derive(Default)]
struct Scores([f32; Emotion::ALL.len()]);

impl Scores {
    fn of(text: &str) -> Self {
        let mut scores = Self::default();
        scores.read_english(text);
        scores.read_chinese(text);
        scores
    }

    fn get(&self, emotion: Emotion) -> f32 {
        self.0.get(emotion as usize).copied().unwrap_or_default()
    }

    fn add(&mut self, emotion: Emotion, score: f32) {
        if let Some(sum) = self.0.get_mut(emotion as usize) {
            *sum += score;
        }
    }

    fn take(&mut self, emotion: Emotion) -> f32 {
        self.0.get_mut(emotion as usize).map(std::mem::take).unwrap_or_default()
    }

    /// The strongest feeling; of equals the one that stands first in [`Emotion::ALL`].
    fn top(&self) -> (Emotion, f32) {
        let mut top = (Emotion::Neutral, 0.0);
        for emotion in Emotion::ALL {
            if self.get(emotion) > top.1 {
                top = (emotion, self.get(emotion));
            }
        }
        top
    }

    /// Counts an entry, turned round when it is negated.
    fn count(&mut self, emotion: Emotion, weight: f32, negated: bool, strength: f32) {
        match (negated, pleasant(emotion)) {
            (false, _) => self.add(emotion, weight * strength),
            (true, 1) => self.add(Emotion::Sad, weight * 0.6),
            (true, -1) => self.add(Emotion::Relaxed, weight * 0.6),
            (true, _) => {}
        }
    }

    fn read_english(&mut self, text: &str) {
        // A negation does not reach over a comma.
        for clause in text.split([',', '.', '!', '?', ';', ':', '\n']) {
            let words = words(clause);
            let mut rest = words.as_slice();
            let mut before: Vec<&str> = Vec::new();
            while let Some((first, after)) = rest.split_first() {
                let found = longest(lexicon::ENGLISH, |entry| matches_words(entry, rest));
                let Some((emotion, weight, used)) = found else {
                    before.push(first);
                    rest = after;
                    continue;
                };
                let near = || before.iter().rev().take(3);
                let negated = near().any(|word| lexicon::ENGLISH_NOT.contains(word));
                let more = near().take(2).any(|word| lexicon::ENGLISH_MORE.contains(word));
                let less = near().take(2).any(|word| lexicon::ENGLISH_LESS.contains(word));
                self.count(emotion, weight, negated, strength(more, less));
                let (matched, after) = rest.split_at_checked(used).unwrap_or((rest, &[]));
                before.extend(matched.iter().map(String::as_str));
                rest = after;
            }
        }
    }

    fn read_chinese(&mut self, text: &str) {
        let mut rest = text;
        let mut before = String::new();
        while let Some(first) = rest.chars().next() {
            let found = longest(lexicon::CHINESE, |entry| {
                rest.starts_with(entry).then(|| entry.chars().count())
            });
            let used = found.map_or(1, |(_, _, used)| used);
            let bytes = rest.chars().take(used).map(char::len_utf8).sum();
            let (matched, after) = rest.split_at_checked(bytes).unwrap_or((rest, ""));
            if let Some((emotion, weight, _)) = found {
                let ends = |list: &[&str]| list.iter().any(|word| before.ends_with(word));
                let (more, less) = (ends(lexicon::CHINESE_MORE), ends(lexicon::CHINESE_LESS));
                let negated = ends(lexicon::CHINESE_NOT);
                self.count(emotion, weight, negated, strength(more, less));
            }
            before.push_str(matched);
            rest = after;
            debug_assert!(first.len_utf8() <= bytes);
        }
    }
}

fn strength(more: bool, less: bool) -> f32 {
    match (more, less) {
        (true, false) => 1.25,
        (false, true) => 0.7,
        _ => 1.0,
    }
}

/// The longest entry that `matches` here: its feeling, weight and length.
fn longest(
    lexicon: &[lexicon::Entries],
    matches: impl Fn(&str) -> Option<usize>,
) -> Option<(Emotion, f32, usize)> {
    lexicon
        .iter()
        .flat_map(|(emotion, weight, entries)| {
            entries.iter().filter_map(|entry| Some((*emotion, *weight, matches(entry)?)))
        })
        .max_by_key(|(_, _, used)| *used)
}

/// How many of `words` the entry takes, when they begin with it.
fn matches_words(entry: &str, words: &[String]) -> Option<usize> {
    let mut used = 0;
    let mut words = words.iter();
    for part in entry.split(' ') {
        let word = words.next()?;
        let fits = match part.strip_suffix('*') {
            Some(stem) => word.starts_with(stem),
            None => word == part,
        };
        if !fits {
            return None;
        }
        used += 1;
    }
    Some(used)
}

#[cfg(test)]
#[path = "feelings_tests.rs"]
mod tests;
