//! Which writing a text is in, so that no voice reads out what it can't.

use super::tags::is_cjk;

/// A kind of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Script {
    /// Latin letters.
    Latin,
    /// Han characters.
    Han,
    /// Hiragana and katakana.
    Kana,
    /// Anything else with letters.
    Other,
}

/// The script of a letter; `None` for digits, marks and spaces.
pub(super) fn of(c: char) -> Option<Script> {
    if !c.is_alphabetic() && !is_cjk(c) {
        return None;
    }
    Some(match u32::from(c) {
        0x3040..=0x30FF | 0x31F0..=0x31FF | 0xFF66..=0xFF9F => Script::Kana,
        0x3400..=0x4DBF
        | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF
        | 0x20000..=0x3FFFF
        | 0x3005..=0x3007 => Script::Han,
        0..=0x024F
        | 0x1E00..=0x1EFF
        | 0xFF21..=0xFF5A
        | 0x0300..=0x036F
        | 0x02B0..=0x02FF
        | 0x2070..=0x209F => Script::Latin,
        _ => Script::Other,
    })
}

/// What a text is written in, as far as voices are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    /// Latin letters only, or none.
    English,
    /// Han, with Latin words and a few letters of other scripts in it.
    Chinese,
    /// Any kana: its Han are not read as in Chinese.
    Japanese,
    /// Another script.
    Other,
}

impl Language {
    /// Why a text that no voice here reads is not spoken.
    pub(super) fn refusal(self) -> &'static str {
        match self {
            Self::English => "this voice does not speak English",
            Self::Chinese => "Chinese is spoken by Kokoro: run `alice models pull kokoro`",
            Self::Japanese => {
                "Japanese is not spoken, only shown: nothing here reads its characters"
            }
            Self::Other => {
                "this text is shown, not spoken: the voices here speak English and Chinese"
            }
        }
    }
}

/// Tells the language of a text from its letters. Letters of another script, up to a quarter of a
/// Chinese text, are passed over in it.
pub(super) fn language(text: &str) -> Language {
    let count = |wanted| text.chars().filter_map(of).filter(|script| *script == wanted).count();
    let (han, other) = (count(Script::Han), count(Script::Other));
    if count(Script::Kana) > 0 {
        Language::Japanese
    } else if other > 0 && (han == 0 || other * 4 > han + other) {
        Language::Other
    } else if han > 0 {
        Language::Chinese
    } else {
        Language::English
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_told_apart() {
        for (c, want) in [
            ('a', Some(Script::Latin)),
            ('é', Some(Script::Latin)),
            ('你', Some(Script::Han)),
            ('ひ', Some(Script::Kana)),
            ('カ', Some(Script::Kana)),
            ('ж', Some(Script::Other)),
            ('한', Some(Script::Other)),
            ('5', None),
            ('。', None),
            ('😀', None),
        ] {
            assert_eq!(of(c), want, "{c}");
        }
    }

    #[test]
    fn a_language_is_told_from_its_letters() {
        for (text, want) in [
            ("", Language::English),
            ("Café 5, naïve!", Language::English),
            ("Hello 世界", Language::Chinese),
            ("你好", Language::Chinese),
            ("我用Rust写程序，Python也会一点", Language::Chinese),
            ("圆周率π是多少？", Language::Chinese),
            ("日本語を話します", Language::Japanese),
            ("Hello コーヒー", Language::Japanese),
            ("안녕하세요", Language::Other),
            ("俄语的你好是Привет", Language::Other),
            ("Привет", Language::Other),
        ] {
            assert_eq!(language(text), want, "{text}");
        }
    }
}
