//! Short sounds with which a listener shows that they follow. Said over the voice they are no turn.

/// Words that only say "I am listening", by language: English, German, French, Spanish, Chinese,
/// Japanese.
const WORDS: &[&str] = &[
    "mm",
    "mmm",
    "mhm",
    "mhmm",
    "hm",
    "hmm",
    "uh",
    "huh",
    "uhuh",
    "uhhuh",
    "mmhm",
    "mmhmm",
    "ah",
    "oh",
    "aha",
    "yeah",
    "yep",
    "yup",
    "yes",
    "ok",
    "okay",
    "right",
    "sure",
    "wow",
    "cool",
    "nice",
    "ja",
    "genau",
    "achso",
    "aha",
    "klar",
    "stimmt",
    "oui",
    "ouais",
    "daccord",
    "hein",
    "sí",
    "si",
    "vale",
    "claro",
    "ajá",
    "嗯",
    "嗯嗯",
    "哦",
    "噢",
    "啊",
    "是",
    "是的",
    "对",
    "对对",
    "对啊",
    "好",
    "好的",
    "うん",
    "うんうん",
    "ええ",
    "はい",
    "へえ",
    "ああ",
    "そう",
    "そうですね",
    "なるほど",
];

/// The same, of several words.
const PHRASES: &[&str] = &["i see", "got it", "of course", "ach so", "je vois", "ya veo"];

/// Longer answers are more than listening.
const MOST_WORDS: usize = 3;

/// Whether the words only say "I am listening".
pub fn is_backchannel(text: &str) -> bool {
    // "Mm-hm" and "d'accord" are one word; every other sign parts two, as does "、".
    let joined = text.to_lowercase().replace(['-', '\'', '’'], "");
    let bare = joined.replace(|c: char| !c.is_alphanumeric(), " ");
    let words: Vec<&str> = bare.split_whitespace().collect();
    if PHRASES.contains(&words.join(" ").as_str()) {
        return true;
    }
    (1..=MOST_WORDS).contains(&words.len()) && words.iter().all(|word| WORDS.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_is_told_from_speaking() {
        let cases = [
            ("Mm-hm.", true),
            ("Uh-huh, yeah.", true),
            ("Okay, I see", false),
            ("I see.", true),
            ("嗯。", true),
            ("はい、はい", true),
            ("Genau!", true),
            ("D’accord.", true),
            ("Stop.", false),
            ("No.", false),
            ("yes please stop", false),
            ("ok ok ok ok", false),
            ("等一下", false),
            ("", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_backchannel(text), expected, "{text}");
        }
    }
}
