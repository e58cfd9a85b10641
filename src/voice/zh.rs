//! Mandarin phonemes for Kokoro's `z` voices.
//!
//! jieba finds the words, a table gives the reading of each (single readings by the crate `pinyin`,
//! words that differ from them from phrase-pinyin-data), sandhi changes tones, and each syllable is
//! written as misaki 0.9 writes it: IPA with an arrow for the tone behind the nucleus.

use std::collections::HashMap;

use jieba_rs::Jieba;
use pinyin::ToPinyin;

use super::misaki::English;
use super::phonemes::Phone;
use super::script::{self, Script};
use super::zh_numbers;

/// Words whose reading is not that of their characters one by one: word, tab, syllables.
const READINGS: &str = include_str!("zh_readings.tsv");

/// Tones are 1 to 4, and 5 for the neutral one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Syllable {
    /// Pinyin without tone, `ü` as such.
    plain: String,
    tone: u8,
    /// The character.
    han: char,
    /// Byte offset of what it stands for in the text.
    at: usize,
}

/// The Mandarin front end.
pub(super) struct Chinese {
    jieba: Jieba,
    readings: HashMap<&'static str, Vec<&'static str>>,
}

impl Chinese {
    /// Loads the dictionaries (about a third of a second).
    pub(super) fn new() -> Self {
        let readings = READINGS
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(word, syllables)| (word, syllables.split(' ').collect()))
            .collect();
        Self { jieba: Jieba::new(), readings }
    }

    /// Phonemes of a text of Chinese with English in it, in Kokoro's symbols.
    ///
    /// # Errors
    /// When the English part can't be read.
    pub(super) fn phones(&self, text: &str, english: &English) -> anyhow::Result<Vec<Phone>> {
        let mut out: Vec<Phone> = Vec::new();
        for run in runs(text) {
            match run {
                Run::Han(characters) => self.han(&characters, &mut out),
                Run::Latin(at, words) => {
                    space(&mut out, at);
                    let phones = english.phones(words)?;
                    out.extend(
                        phones.into_iter().map(|phone| Phone { at: phone.at + at, ..phone }),
                    );
                    space(&mut out, at);
                }
                Run::Mark(at, mark) => {
                    while out.last().is_some_and(|phone| phone.symbol == ' ') {
                        out.pop();
                    }
                    if out.last().is_some_and(|phone| !",.;:!?".contains(phone.symbol)) {
                        out.extend([Phone { symbol: mark, at }, Phone { symbol: ' ', at }]);
                    }
                }
            }
        }
        while out.last().is_some_and(|phone| phone.symbol == ' ') {
            out.pop();
        }
        Ok(out)
    }

    /// The words of a stretch of characters, as they are spoken next to each other.
    fn words(&self, characters: &[(usize, char)]) -> Vec<Vec<Syllable>> {
        let text: String = characters.iter().map(|(_, c)| *c).collect();
        let mut rest = characters.iter();
        let mut words = Vec::new();
        for token in self.jieba.cut(&text, true) {
            let word = token.word;
            let places: Vec<(usize, char)> =
                rest.by_ref().take(word.chars().count()).copied().collect();
            words.push(self.read(word, &places));
        }
        lone(&mut words);
        sandhi(&mut words);
        words
    }

    fn han(&self, characters: &[(usize, char)], out: &mut Vec<Phone>) {
        for word in self.words(characters) {
            if let Some(first) = word.first()
                && out.last().is_some_and(|phone| phone.symbol != ' ')
            {
                out.push(Phone { symbol: ' ', at: first.at });
            }
            for syllable in word {
                let ipa = ipa(&syllable.plain, syllable.tone);
                out.extend(ipa.chars().map(|symbol| Phone { symbol, at: syllable.at }));
            }
        }
    }

    /// The syllables of a word: the longest known words in it, and each other character by itself.
    fn read(&self, word: &str, places: &[(usize, char)]) -> Vec<Syllable> {
        let mut out: Vec<Syllable> = Vec::new();
        let (mut word, mut places) = (word, places);
        while let [(at, han), after @ ..] = places {
            let known = (2..=places.len()).rev().find_map(|length| {
                let end = word.char_indices().nth(length).map_or(word.len(), |(end, _)| end);
                let reading = self.readings.get(word.get(..end)?)?;
                (reading.len() == length).then_some((end, reading))
            });
            if let Some((end, reading)) = known {
                let (these, after) = places.split_at_checked(reading.len()).unwrap_or_default();
                let syllables = reading.iter().zip(these);
                out.extend(syllables.map(|(syllable, (at, han))| numbered(syllable, *han, *at)));
                word = word.get(end..).unwrap_or_default();
                places = after;
                continue;
            }
            let inside = !out.is_empty() && !after.is_empty();
            match han.to_pinyin() {
                // 跑得快, 看得见
                Some(_) if *han == '得' && inside => out.push(numbered("de5", *han, *at)),
                Some(reading) => out.push(numbered(reading.with_tone_num_end(), *han, *at)),
                // Which one is not logged: it is what is said.
                None => tracing::warn!("a character whose reading is not known is not spoken"),
            }
            word = word.get(han.len_utf8()..).unwrap_or_default();
            places = after;
        }
        out
    }
}

fn numbered(reading: &str, han: char, at: usize) -> Syllable {
    let plain = reading.trim_end_matches(|c: char| c.is_ascii_digit());
    let tone = reading.get(plain.len()..).and_then(|digit| digit.parse().ok()).unwrap_or(5);
    let tone = if tone == 0 { 5 } else { tone };
    Syllable { plain: plain.replace('v', "ü"), tone, han, at }
}

fn space(out: &mut Vec<Phone>, at: usize) {
    if out.last().is_some_and(|phone| phone.symbol != ' ') {
        out.push(Phone { symbol: ' ', at });
    }
}

/// A stretch of one kind of writing.
#[derive(Debug, PartialEq, Eq)]
enum Run<'a> {
    /// Characters and where they stand; figures have been written out.
    Han(Vec<(usize, char)>),
    /// English, with its offset.
    Latin(usize, &'a str),
    /// A pause.
    Mark(usize, char),
}

fn runs(text: &str) -> Vec<Run<'_>> {
    let characters: Vec<(usize, char)> = text.char_indices().collect();
    let mut out: Vec<Run> = Vec::new();
    let mut index = 0;
    let han = |out: &mut Vec<Run>, more: Vec<(usize, char)>| match out.last_mut() {
        Some(Run::Han(run)) => run.extend(more),
        _ => out.push(Run::Han(more)),
    };
    while let Some(&(at, c)) = characters.get(index) {
        let rest = text.get(at..).unwrap_or_default();
        let before = index.checked_sub(1).and_then(|place| characters.get(place)).map(|(_, c)| *c);
        if let Some((written, said)) = zh_numbers::read(rest, before) {
            han(&mut out, said.chars().map(|c| (at, c)).collect());
            index += rest.get(..written).map_or(1, |text| text.chars().count()).max(1);
            continue;
        }
        match script::of(c).filter(|_| sign(c).is_none()) {
            Some(Script::Han) => han(&mut out, vec![(at, c)]),
            Some(Script::Latin) => {
                let part = |c: char| {
                    script::of(c) == Some(Script::Latin)
                        || c.is_ascii_digit()
                        || " '’-.@&+/_".contains(c)
                };
                let mut last = ' ';
                let end = rest
                    .find(|c: char| {
                        // Figures behind a space are Chinese ones.
                        let ends = !part(c) || (last == ' ' && c.is_ascii_digit());
                        last = c;
                        ends
                    })
                    .unwrap_or(rest.len());
                let words = rest.get(..end).unwrap_or(rest);
                // A stop is not part of the English.
                let words =
                    words.trim_end_matches(|c: char| c.is_whitespace() || ".-/&".contains(c));
                out.push(Run::Latin(at, words));
                index += words.chars().count().max(1);
                continue;
            }
            _ => {
                if let Some(said) = sign(c) {
                    han(&mut out, said.chars().map(|c| (at, c)).collect());
                } else if let Some(mark) = pause(c) {
                    out.push(Run::Mark(at, mark));
                }
            }
        }
        index += 1;
    }
    out
}

/// Signs that are words.
fn sign(c: char) -> Option<&'static str> {
    Some(match c {
        '+' | '＋' => "加",
        '=' | '＝' => "等于",
        '×' => "乘",
        '÷' => "除以",
        '≈' => "约等于",
        '>' | '＞' => "大于",
        '<' | '＜' => "小于",
        '&' | '＆' => "和",
        '%' | '％' => "百分号",
        '℃' => "摄氏度",
        'π' => "派",
        _ => return None,
    })
}

fn pause(c: char) -> Option<char> {
    Some(match c {
        '，' | '、' | ',' | '—' | '（' | '）' | '(' | ')' => ',',
        '。' | '.' | '…' | '．' => '.',
        '！' | '!' => '!',
        '？' | '?' => '?',
        '；' | ';' => ';',
        '：' | ':' => ':',
        _ => return None,
    })
}

/// Which neighbours give a character that is a word by itself another reading.
enum Beside {
    /// It stands behind one of these.
    After(&'static str),
    /// It stands before one of these.
    Before(&'static str),
    /// It ends an adverb of two syllables or more, and something follows.
    Adverb,
    /// Always.
    Alone,
}

/// Characters whose reading as a word of one syllable is not the usual one: the first rule that fits.
const LONE: &[(char, Beside, &str)] = &[
    ('还', Beside::Before("书钱款债贷给清账车"), "huan2"),
    ('得', Beside::After("我你您他她它们咱谁就也还都总"), "dei3"),
    ('得', Beside::Alone, "de5"),
    ('地', Beside::Adverb, "de5"),
    ('只', Beside::After("一二两三四五六七八九十百几这那每半"), "zhi1"),
    ('种', Beside::Before("树花菜田草地"), "zhong4"),
    ('系', Beside::Before("鞋领扣安紧"), "ji4"),
    ('背', Beside::Before("着起"), "bei1"),
    ('数', Beside::Before("了一数到"), "shu3"),
    ('弹', Beside::Alone, "tan2"),
    ('教', Beside::Alone, "jiao1"),
    ('量', Beside::Alone, "liang2"),
    ('调', Beside::Alone, "tiao2"),
    ('干', Beside::Alone, "gan4"),
];

/// Readings of words of one character, by their neighbours.
fn lone(words: &mut [Vec<Syllable>]) {
    let ends: Vec<(usize, Option<char>, Option<char>)> = words
        .iter()
        .map(|word| (word.len(), word.first().map(|s| s.han), word.last().map(|s| s.han)))
        .collect();
    for (index, word) in words.iter_mut().enumerate() {
        let [syllable] = word.as_mut_slice() else { continue };
        let before = index.checked_sub(1).and_then(|place| ends.get(place));
        let after = ends.get(index + 1);
        let fits = |beside: &Beside| match beside {
            Beside::After(these) => {
                before.and_then(|word| word.2).is_some_and(|c| these.contains(c))
            }
            Beside::Before(these) => {
                after.and_then(|word| word.1).is_some_and(|c| these.contains(c))
            }
            Beside::Adverb => before.is_some_and(|word| word.0 > 1) && after.is_some(),
            Beside::Alone => true,
        };
        let rule = LONE.iter().find(|(han, beside, _)| *han == syllable.han && fits(beside));
        if let Some((.., reading)) = rule {
            *syllable = numbered(reading, syllable.han, syllable.at);
        }
    }
}

/// Tones as they are spoken next to each other: 一, 不, and third tones in a row.
fn sandhi(words: &mut [Vec<Syllable>]) {
    // 一 and 不 look at the syllable behind them, across words.
    let flat: Vec<(char, u8, String)> =
        words.iter().flatten().map(|s| (s.han, s.tone, s.plain.clone())).collect();
    let at = |index: usize| flat.get(index);
    // 星期一, 统一: 一 that ends a word keeps its tone, unless it counts what follows (这一, 另一).
    let mut closing = Vec::with_capacity(flat.len());
    for word in words.iter() {
        let counts = word.first().is_some_and(|s| "这那每另某哪同有任".contains(s.han));
        closing.extend((1..=word.len()).map(|place| place == word.len() && place > 1 && !counts));
    }
    for (index, syllable) in words.iter_mut().flatten().enumerate() {
        let before = index.checked_sub(1).and_then(at);
        let after = at(index + 1);
        // 看一看, 好不好
        let between = matches!((before, after), (Some(a), Some(b)) if a.0 == b.0);
        match syllable.han {
            '一' if syllable.tone == 1 => {
                let counted = |c: char| "零一二三四五六七八九十百千万亿点第月号日年".contains(c);
                let number = before.is_some_and(|(c, ..)| counted(*c) && !"月号日年".contains(*c))
                    || after.is_some_and(|(c, ..)| counted(*c) && !"百千万亿点年".contains(*c));
                let closes = closing.get(index).is_some_and(|closes| *closes);
                syllable.tone = match after {
                    _ if between && !number => 5,
                    _ if closes => 1,
                    None => 1,
                    _ if number => 1,
                    Some((_, 4, _)) => 2,
                    // 一个, whose 个 has lost its fourth tone
                    Some(('个', ..)) => 2,
                    Some((_, 1..=3, _)) => 4,
                    Some(_) => 1,
                };
            }
            '不' if syllable.tone == 4 => {
                syllable.tone = match after {
                    _ if between => 5,
                    Some((_, 4, _)) => 2,
                    _ => 4,
                };
            }
            _ => {}
        }
    }
    // Third tones: within a word all but the last rise; across a border when one of the two words is
    // a single syllable (很好, 我买书), for longer words are spoken apart.
    let lengths: Vec<usize> = words.iter().map(Vec::len).collect();
    let first_tone: Vec<Option<u8>> =
        words.iter().map(|word| word.first().map(|syllable| syllable.tone)).collect();
    for (index, word) in words.iter_mut().enumerate() {
        let tones: Vec<u8> = word.iter().map(|syllable| syllable.tone).collect();
        let next = first_tone
            .get(index + 1)
            .copied()
            .flatten()
            .filter(|_| lengths.get(index) == Some(&1) || lengths.get(index + 1) == Some(&1));
        for (place, syllable) in word.iter_mut().enumerate() {
            let after = tones.get(place + 1).copied().or(next);
            if syllable.tone == 3 && after == Some(3) {
                syllable.tone = 2;
            }
        }
    }
}

/// (final in full, before the tone, behind it)
const FINALS: &[(&str, &str, &str)] = &[
    ("a", "a", ""),
    ("ai", "ai", ""),
    ("an", "a", "n"),
    ("ang", "a", "ŋ"),
    ("ao", "au", ""),
    ("e", "ɤ", ""),
    ("ei", "ei", ""),
    ("en", "ə", "n"),
    ("eng", "ə", "ŋ"),
    ("i", "i", ""),
    ("ia", "ja", ""),
    ("ian", "jɛ", "n"),
    ("iang", "ja", "ŋ"),
    ("iao", "jau", ""),
    ("ie", "je", ""),
    ("in", "i", "n"),
    ("iou", "jou", ""),
    ("ing", "i", "ŋ"),
    ("iong", "jʊ", "ŋ"),
    ("ong", "ʊ", "ŋ"),
    ("ou", "ou", ""),
    ("u", "u", ""),
    ("uei", "wei", ""),
    ("ua", "wa", ""),
    ("uai", "wai", ""),
    ("uan", "wa", "n"),
    ("uen", "wə", "n"),
    ("uang", "wa", "ŋ"),
    ("ueng", "wə", "ŋ"),
    ("uo", "wo", ""),
    ("o", "wo", ""),
    ("ü", "y", ""),
    ("üe", "ɥe", ""),
    ("üan", "ɥɛ", "n"),
    ("ün", "y", "n"),
];

/// Syllables without an initial that are written in their own way.
const ALONE: &[(&str, &str, &str)] = &[
    ("er", "ɚ", ""),
    ("o", "ɔ", ""),
    ("ê", "ɛ", ""),
    ("yo", "jɔ", ""),
    ("m", "m", ""),
    ("n", "n", ""),
    ("ng", "ŋ", ""),
    ("hm", "hm", ""),
    ("hng", "hŋ", ""),
];

const INITIALS: &[(&str, &str)] = &[
    ("zh", "ꭧ"),
    ("ch", "ꭧʰ"),
    ("sh", "ʂ"),
    ("b", "p"),
    ("p", "pʰ"),
    ("m", "m"),
    ("f", "f"),
    ("d", "t"),
    ("t", "tʰ"),
    ("n", "n"),
    ("l", "l"),
    ("g", "k"),
    ("k", "kʰ"),
    ("h", "x"),
    ("j", "ʨ"),
    ("q", "ʨʰ"),
    ("x", "ɕ"),
    ("r", "ɻ"),
    ("z", "ʦ"),
    ("c", "ʦʰ"),
    ("s", "s"),
];

/// A syllable in IPA with the arrow of its tone.
fn ipa(plain: &str, tone: u8) -> String {
    let arrow = match tone {
        1 => "→",
        2 => "↗",
        3 => "↓",
        4 => "↘",
        _ => "",
    };
    let find = |table: &[(&str, &'static str, &'static str)], name: &str| {
        table.iter().find(|entry| entry.0 == name).map(|entry| (entry.1, entry.2))
    };
    if let Some((nucleus, coda)) = find(ALONE, plain) {
        return format!("{nucleus}{arrow}{coda}");
    }
    let (initial, rest) = INITIALS
        .iter()
        .find_map(|(name, ipa)| Some(((*name, *ipa), plain.strip_prefix(name)?)))
        .unwrap_or((("", ""), plain));
    if rest == "i" && matches!(initial.0, "zh" | "ch" | "sh" | "r" | "z" | "c" | "s") {
        return format!("{}ɨ{arrow}", initial.1);
    }
    let full = full_final(initial.0, rest);
    let (nucleus, coda) = find(FINALS, &full).unwrap_or(("", ""));
    format!("{}{nucleus}{arrow}{coda}", initial.1)
}

/// Pinyin's short spellings written out: `iu` is iou, `yu` is ü, `ju` is jü.
fn full_final(initial: &str, rest: &str) -> String {
    match rest {
        "iu" => return "iou".into(),
        "ui" => return "uei".into(),
        "un" if !matches!(initial, "j" | "q" | "x") => return "uen".into(),
        "ue" => return "üe".into(),
        "üan" | "ün" => return rest.into(),
        _ => {}
    }
    if let Some(after) = rest.strip_prefix('u').filter(|_| matches!(initial, "j" | "q" | "x")) {
        return format!("ü{after}");
    }
    if initial.is_empty() {
        if let Some(after) = rest.strip_prefix("yu") {
            return if after == "ng" { "iong".into() } else { format!("ü{after}") };
        }
        if let Some(after) = rest.strip_prefix('y') {
            return match after {
                "ou" => "iou".into(),
                "ong" => "iong".into(),
                _ if after.starts_with('i') => after.into(),
                _ => format!("i{after}"),
            };
        }
        if let Some(after) = rest.strip_prefix('w') {
            return match after {
                "u" => "u".into(),
                _ => format!("u{after}"),
            };
        }
    }
    rest.into()
}

#[cfg(test)]
#[path = "zh_tests.rs"]
mod tests;
