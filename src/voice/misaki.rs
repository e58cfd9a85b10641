//! English phonemes for Kokoro: misaki, with espeak-ng for the words that it does not know.

use std::sync::{Mutex, PoisonError};

use misaki_rs::fallback::FallbackError;
use misaki_rs::{Fallback, G2P, Language};

use super::espeak::Espeak;
use super::numbers::{self, Said};
use super::phonemes::Phone;

/// The English front end of one accent.
pub(super) struct English {
    g2p: Mutex<G2P>,
}

impl English {
    /// Without espeak-ng, words that misaki does not know are spelled.
    pub(super) fn new(language: Language) -> Self {
        let british = language == Language::EnglishGB;
        let espeak = Espeak::start(if british { "en-gb" } else { "en-us" }).ok();
        let unknown = Unknown { espeak, british };
        Self { g2p: Mutex::new(G2P::with_fallback(language, Some(Box::new(unknown)))) }
    }

    /// Phonemes of a text in Kokoro's symbols, with spaces and marks.
    ///
    /// # Errors
    /// When misaki can't read it.
    pub(super) fn phones(&self, text: &str) -> anyhow::Result<Vec<Phone>> {
        let (plain, spans) = plain(&numbers::say(text));
        let g2p = self.g2p.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, tokens) = g2p.g2p(&plain)?;
        drop(g2p);
        let mut out = Vec::new();
        let mut from = 0;
        let mut at = 0;
        for token in tokens {
            let found = plain.get(from..).and_then(|rest| rest.find(&token.text));
            if let Some(found) = found {
                let place = from + found;
                at =
                    spans.iter().rev().find(|(begin, _)| *begin <= place).map_or(at, |span| span.1);
                from = place + token.text.len();
            }
            let phonemes = token.phonemes.as_deref().unwrap_or_default();
            out.extend(phonemes.chars().map(|symbol| Phone { symbol, at }));
            if !token.whitespace.is_empty() {
                out.push(Phone { symbol: ' ', at });
            }
        }
        Ok(out)
    }
}

/// The words as one text, and where each written word begins in it: (place in the text, offset of the
/// written word).
fn plain(said: &[Said]) -> (String, Vec<(usize, usize)>) {
    let mut text = String::new();
    let mut spans = Vec::new();
    for said in said {
        match said {
            Said::Word { at, text: words } => {
                if !text.is_empty() {
                    text.push(' ');
                }
                spans.push((text.len(), *at));
                text.push_str(words);
            }
            Said::Mark(mark) => text.push(*mark),
        }
    }
    (text, spans)
}

/// Words that misaki does not know.
struct Unknown {
    espeak: Option<Espeak>,
    british: bool,
}

impl Fallback for Unknown {
    fn phonemize(&self, word: &str) -> Result<String, FallbackError> {
        let letters: String = word.chars().filter(|c| c.is_alphabetic() || *c == '\'').collect();
        let ipa = self
            .espeak
            .as_ref()
            .and_then(|espeak| espeak.lines(std::slice::from_ref(&letters)).ok())
            .and_then(|lines| lines.into_iter().next())
            .filter(|line| !line.is_empty());
        Ok(match ipa {
            Some(ipa) => from_espeak(&ipa, self.british),
            None => spell(&letters),
        })
    }
}

/// espeak-ng's IPA in the symbols that Kokoro was trained with (the correspondences of misaki 0.9's
/// espeak module).
fn from_espeak(ipa: &str, british: bool) -> String {
    let mut text = ipa.replace(' ', "");
    let both: &[(&str, &str)] = &[
        ("ʔˌn\u{329}", "tn"),
        ("ʔn\u{329}", "tn"),
        ("aɪ", "I"),
        ("aʊ", "W"),
        ("dʒ", "ʤ"),
        ("eɪ", "A"),
        ("tʃ", "ʧ"),
        ("ɔɪ", "Y"),
        ("əl", "ᵊl"),
        ("ʲ", "j"),
        ("r", "ɹ"),
        ("x", "k"),
        ("ç", "k"),
        ("ɬ", "l"),
        ("\u{303}", ""),
        ("\u{329}", ""),
    ];
    let american: &[(&str, &str)] = &[
        ("ɜːɹ", "ɜɹ"),
        ("ɜː", "ɜɹ"),
        ("oʊ", "O"),
        ("ɪə", "iə"),
        ("ɚ", "əɹ"),
        ("ɐ", "ə"),
        ("ː", ""),
        ("e", "A"),
        ("o", "ɔ"),
        ("ɾ", "T"),
        ("ʔ", "t"),
    ];
    let english: &[(&str, &str)] =
        &[("eə", "ɛː"), ("iə", "ɪə"), ("əʊ", "Q"), ("ɐ", "ə"), ("e", "ɛ"), ("o", "ɔ"), ("ʔ", "t")];
    for (from, to) in both.iter().chain(if british { english } else { american }) {
        text = text.replace(from, to);
    }
    text
}

/// A word letter by letter.
fn spell(word: &str) -> String {
    word.chars()
        .filter_map(|c| {
            Some(match c.to_ascii_lowercase() {
                'a' => "ˈA",
                'b' => "bˈi",
                'c' => "sˈi",
                'd' => "dˈi",
                'e' => "ˈi",
                'f' => "ˈɛf",
                'g' => "ʤˈi",
                'h' => "ˈAʧ",
                'i' => "ˈI",
                'j' => "ʤˈA",
                'k' => "kˈA",
                'l' => "ˈɛl",
                'm' => "ˈɛm",
                'n' => "ˈɛn",
                'o' => "ˈO",
                'p' => "pˈi",
                'q' => "kjˈu",
                'r' => "ˈɑɹ",
                's' => "ˈɛs",
                't' => "tˈi",
                'u' => "jˈu",
                'v' => "vˈi",
                'w' => "dˈʌbᵊlju",
                'x' => "ˈɛks",
                'y' => "wˈI",
                'z' => "zˈi",
                _ => return None,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(phones: &[Phone]) -> String {
        phones.iter().map(|phone| phone.symbol).collect()
    }

    #[test]
    fn the_phonemes_are_misakis() {
        // The first two are samples of misaki's own documentation.
        let english = English::new(Language::EnglishUS);
        for (written, want) in [
            (
                "Please read the report I read yesterday.",
                "plˈiz ɹˈid ðə ɹəpˈɔɹt ˌI ɹˈɛd jˈɛstəɹdˌA.",
            ),
            ("They record a record every week.", "ðˌA ɹəkˈɔɹd ɐ ɹˈɛkəɹd ˈɛvəɹi wˈik."),
            ("It is 10:30 AM", "ˌɪt ɪz tˈɛn θˈɜɹTi ˌAˈɛm"),
        ] {
            assert_eq!(text(&english.phones(written).unwrap()), want);
        }
    }

    #[test]
    fn each_phoneme_knows_its_written_word() {
        let english = English::new(Language::EnglishUS);
        let written = "It costs $4.99, doesn't it?";
        let phones = english.phones(written).unwrap();
        let mut ats: Vec<usize> = phones.iter().map(|phone| phone.at).collect();
        assert!(ats.is_sorted());
        ats.dedup();
        assert_eq!(ats, [0, 3, 9, 16, 24]);
    }

    #[test]
    fn unknown_words_are_spoken() {
        assert_eq!(from_espeak("kjˌuːzˌiːˈɛksdˌʌbəljˌuːvˈiː", false), "kjˌuzˌiˈɛksdˌʌbᵊljˌuvˈi");
        assert_eq!(from_espeak("ɡˈɪt hˈʌb", false), "ɡˈɪthˈʌb");
        assert_eq!(from_espeak("ɡˈəʊ", true), "ɡˈQ");
        let unknown = Unknown { espeak: None, british: false };
        assert_eq!(unknown.phonemize("qx").unwrap(), "kjˈuˈɛks");
    }
}
