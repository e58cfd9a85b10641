//! What a person heard of a reply: whole segments by their end, the one that was cut by its words.

use crate::kernel::contracts::Heard;

/// The two texts of a segment and when its words sound.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// For the eye.
    pub display: &'a str,
    /// For the ear.
    pub spoken: &'a str,
    /// When each word of `spoken` begins, as (byte offset, ms); empty when unknown.
    pub words: &'a [(usize, f64)],
    /// Length of the sound, ms.
    pub duration_ms: f64,
}

/// Adds up the display text of what was heard.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    text: String,
}

impl Ledger {
    /// A segment was heard (or shown) to its end.
    pub fn whole(&mut self, display: &str) {
        join(&mut self.text, display);
    }

    /// A segment was stopped after `played_ms` of it; the words whose time had passed count.
    pub fn cut(&mut self, script: Script<'_>, played_ms: f64) {
        let heard = spoken_until(script, played_ms);
        join(&mut self.text, display_until(script.display, script.spoken, heard));
    }

    /// The sum.
    pub fn heard(self, complete: bool) -> Heard {
        Heard { text: self.text.trim().to_owned(), complete }
    }
}

/// Appends a segment to the ones before it, with a space where both sides need one.
fn join(text: &mut String, next: &str) {
    let needs_space = match (text.chars().next_back(), next.chars().next()) {
        (Some(before), Some(after)) => {
            !before.is_whitespace() && !after.is_whitespace() && !is_wide(before) && !is_wide(after)
        }
        _ => false,
    };
    if needs_space {
        text.push(' ');
    }
    text.push_str(next);
}

/// Bytes of the spoken text whose sound was over after `played_ms`, ending with a word (CJK: with a
/// character).
fn spoken_until(script: Script<'_>, played_ms: f64) -> usize {
    let Script { spoken, words, duration_ms, .. } = script;
    if played_ms >= duration_ms {
        return spoken.len();
    }
    if words.is_empty() {
        let share = (played_ms / duration_ms).clamp(0.0, 1.0);
        let passed = (spoken.chars().count() as f64 * share) as usize;
        let passed = spoken.char_indices().nth(passed).map_or(spoken.len(), |(at, _)| at);
        return units(spoken).take_while(|unit| unit.end <= passed).last().map_or(0, |u| u.end);
    }
    // A word is over when the next one begins; the last one ends with the sound.
    let next = words.iter().find(|(_, begins)| *begins > played_ms);
    let over = words.iter().take_while(|(_, begins)| *begins <= played_ms).count();
    match (over, next) {
        // Not even the first word has begun, or the first one sounds.
        (0 | 1, _) => 0,
        // The word that sounds began at its own offset; all before it is over.
        _ => words.get(over - 1).map_or(0, |(offset, _)| (*offset).min(spoken.len())),
    }
}

/// The beginning of the display text that says what the first `heard` bytes of the spoken text say.
/// Words of the display that the spoken text says in other words (figures, symbols) count when a
/// common word after them was heard.
fn display_until<'a>(display: &'a str, spoken: &str, heard: usize) -> &'a str {
    if heard >= spoken.len() {
        return display;
    }
    let shown: Vec<Unit<'_>> = units(display).collect();
    let said: Vec<Unit<'_>> = units(spoken).collect();
    let end = common(&said, &shown)
        .into_iter()
        .take_while(|(said_at, _)| said.get(*said_at).is_some_and(|unit| unit.end <= heard))
        .last()
        .and_then(|(_, shown_at)| shown.get(shown_at))
        .map_or(0, |unit| unit.end);
    if end == 0 {
        return "";
    }
    // What closes the word (marks, emphasis, brackets) belongs to it.
    let rest = display.get(end..).unwrap_or_default();
    let closing: usize = rest.chars().take_while(|c| closes(*c)).map(char::len_utf8).sum();
    display.get(..end + closing).unwrap_or(display)
}

/// A word, or one character of a script that has no spaces.
#[derive(Clone, Copy, Debug)]
struct Unit<'a> {
    text: &'a str,
    end: usize,
}

fn units(text: &str) -> impl Iterator<Item = Unit<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let (skip, first) = rest.char_indices().find(|(_, c)| c.is_alphanumeric())?;
        let rest = rest.get(skip..)?;
        let length = if is_wide(first) {
            first.len_utf8()
        } else {
            rest.char_indices()
                .find(|(_, c)| is_wide(*c) || !(c.is_alphanumeric() || "'’".contains(*c)))
                .map_or(rest.len(), |(length, _)| length)
        };
        at += skip + length;
        Some(Unit { text: rest.get(..length)?, end: at })
    })
}

/// Pairs of equal units in order: the longest common subsequence.
fn common(said: &[Unit<'_>], shown: &[Unit<'_>]) -> Vec<(usize, usize)> {
    let same = |a: &Unit<'_>, b: &Unit<'_>| a.text.to_lowercase() == b.text.to_lowercase();
    let width = shown.len() + 1;
    let mut longest = vec![0_u32; (said.len() + 1) * width];
    let cell =
        |longest: &[u32], a: usize, b: usize| longest.get(a * width + b).copied().unwrap_or(0);
    for (a, one) in said.iter().enumerate().rev() {
        for (b, other) in shown.iter().enumerate().rev() {
            let best = if same(one, other) {
                cell(&longest, a + 1, b + 1) + 1
            } else {
                cell(&longest, a + 1, b).max(cell(&longest, a, b + 1))
            };
            if let Some(cell) = longest.get_mut(a * width + b) {
                *cell = best;
            }
        }
    }
    let (mut a, mut b) = (0, 0);
    let mut pairs = Vec::new();
    while let (Some(one), Some(other)) = (said.get(a), shown.get(b)) {
        if same(one, other) {
            pairs.push((a, b));
            a += 1;
            b += 1;
        } else if cell(&longest, a + 1, b) >= cell(&longest, a, b + 1) {
            a += 1;
        } else {
            b += 1;
        }
    }
    pairs
}

/// Chinese and Japanese characters and their marks, which are written without spaces.
fn is_wide(c: char) -> bool {
    matches!(u32::from(c),
        0x3000..=0x30FF | 0x31F0..=0x31FF | 0x3400..=0x9FFF | 0xF900..=0xFAFF
        | 0xFF01..=0xFF9F | 0x2_0000..=0x3_FFFF)
}

fn closes(c: char) -> bool {
    "*_~`'\"”’)]}».,!?;:…%。，、！？；：」』）】》".contains(c)
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
