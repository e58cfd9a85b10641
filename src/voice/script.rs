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

/// Whether every letter is Latin (a text without any letter is).
pub(super) fn is_latin(text: &str) -> bool {
    text.chars().filter_map(of).all(|script| script == Script::Latin)
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
        assert!(is_latin("Café 5, naïve!"));
        assert!(!is_latin("Hello 世界"));
        assert!(!is_latin("Привет"));
    }
}
