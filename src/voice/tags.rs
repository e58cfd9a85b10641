//! What brackets, asterisks and angle brackets of a reply mean: emotion tags, stage directions,
//! emoticons. Pure tables and predicates; [`super::clean`] decides where to apply them.

use crate::kernel::contracts::{Emotion, Feeling};

/// Names that models use for emotions beside [`Emotion::name`]: the words of common avatar prompts
/// (AIRI, Open-LLM-VTuber, Amica) and their Chinese forms.
const SYNONYMS: &[(&str, Emotion)] = &[
    ("joy", Emotion::Happy),
    ("joyful", Emotion::Happy),
    ("smile", Emotion::Happy),
    ("laugh", Emotion::Happy),
    ("cheerful", Emotion::Happy),
    ("sadness", Emotion::Sad),
    ("sorrow", Emotion::Sad),
    ("cry", Emotion::Sad),
    ("anger", Emotion::Angry),
    ("annoyed", Emotion::Angry),
    ("surprise", Emotion::Surprised),
    ("shocked", Emotion::Surprised),
    ("calm", Emotion::Relaxed),
    ("think", Emotion::Thinking),
    ("thoughtful", Emotion::Thinking),
    ("blush", Emotion::Shy),
    ("embarrassed", Emotion::Shy),
    ("fear", Emotion::Fearful),
    ("scared", Emotion::Fearful),
    ("disgust", Emotion::Disgusted),
    ("excitement", Emotion::Excited),
    ("confusion", Emotion::Confused),
    ("love", Emotion::Loving),
    ("开心", Emotion::Happy),
    ("高兴", Emotion::Happy),
    ("难过", Emotion::Sad),
    ("悲伤", Emotion::Sad),
    ("生气", Emotion::Angry),
    ("惊讶", Emotion::Surprised),
    ("放松", Emotion::Relaxed),
    ("思考", Emotion::Thinking),
    ("害羞", Emotion::Shy),
    ("害怕", Emotion::Fearful),
    ("厌恶", Emotion::Disgusted),
    ("兴奋", Emotion::Excited),
    ("困惑", Emotion::Confused),
    ("喜爱", Emotion::Loving),
    ("平静", Emotion::Neutral),
];

/// The feeling of a tag's inside: `happy`, `happy:0.7`, `EMOTE_HAPPY`; `None` when it names none.
pub(super) fn feeling(inside: &str) -> Option<Feeling> {
    let (name, strength) = match inside.split_once([':', '=', '|']) {
        Some((key, value)) if value.trim().parse::<f32>().is_err() => {
            // `emotion:happy`
            if !matches!(key.trim().to_ascii_lowercase().as_str(), "emotion" | "emote" | "feeling")
            {
                return None;
            }
            (value, None)
        }
        Some((name, strength)) => (name, strength.trim().parse::<f32>().ok()),
        None => (inside, None),
    };
    let name = name.trim().to_lowercase();
    let name =
        name.strip_prefix("emote_").or_else(|| name.strip_prefix("emotion_")).unwrap_or(&name);
    let emotion = Emotion::from_name(name)
        .or_else(|| SYNONYMS.iter().find(|(word, _)| *word == name).map(|(_, emotion)| *emotion))?;
    let intensity = match strength {
        Some(value) if value.is_finite() => value.clamp(0.0, 1.0),
        _ if emotion == Emotion::Neutral => 0.0,
        _ => 1.0,
    };
    Some(Feeling { emotion, intensity })
}

/// Whether the inside of brackets is a tag of one word, known or not: letters, `_`, `-`, and
/// perhaps a value after a colon.
pub(super) fn is_one_word_tag(inside: &str) -> bool {
    let (name, value) = match inside.split_once([':', '=', '|']) {
        Some((name, value)) => (name.trim(), Some(value.trim())),
        None => (inside.trim(), None),
    };
    let word = |text: &str| {
        text.chars().any(char::is_alphabetic)
            && text.chars().all(|c| c.is_alphabetic() || c == '_' || c == '-')
    };
    word(name)
        && name.chars().count() <= 24
        && value.is_none_or(|value| word(value) || value.parse::<f32>().is_ok())
}

/// Verbs of stage directions, in their base form.
const STAGE_VERBS: &[&str] = &[
    "sigh", "smile", "grin", "laugh", "nod", "wink", "giggle", "chuckle", "blush", "pause",
    "shrug", "whisper", "wave", "hug", "cough", "gasp", "gulp", "yawn", "cry", "sob", "sniff",
    "sniffle", "smirk", "frown", "pout", "blink", "bow", "clap", "cheer", "stretch", "beam",
    "snicker", "snort", "groan", "moan", "hum", "purr", "clear", "tilt", "look", "glance", "stare",
    "gaze", "lean", "pat", "poke", "facepalm", "gesture", "tremble", "shiver", "twirl", "scratch",
    "wipe", "bite", "cross", "raise", "lower", "shake", "nudge", "snuggle", "cuddle", "kiss",
    "exhale", "inhale", "breathe", "ponder", "muse", "sing", "dance", "jump", "bounce", "skip",
    "take", "hold", "reach", "touch", "step", "walk", "turn", "sit", "stand", "roll", "squeal",
    "squeak", "mumble", "mutter", "murmur", "tap",
];

/// Words that are a stage direction on their own (`*sigh*`), where other verbs need an `-s` or
/// `-ing`.
const BARE_STAGE: &[&str] = &[
    "sigh", "smile", "grin", "laugh", "nod", "wink", "giggle", "chuckle", "blush", "pause",
    "shrug", "hug", "cough", "gasp", "gulp", "yawn", "sob", "sniff", "sniffle", "smirk", "frown",
    "pout", "blink", "bow", "clap", "facepalm", "snicker", "snort", "groan", "squeal", "wave",
    "ahem", "beep", "boop", "laughter", "applause",
];

/// Words that end in `s` and are no verb in the third person.
const NOT_VERBS: &[&str] = &[
    "this",
    "is",
    "was",
    "has",
    "does",
    "his",
    "its",
    "always",
    "perhaps",
    "besides",
    "sometimes",
    "towards",
    "afterwards",
    "ours",
    "yours",
    "theirs",
    "hers",
    "thanks",
    "news",
    "nowadays",
    "whereas",
    "minus",
    "pros",
    "cons",
    "these",
    "those",
    "things",
    "times",
    "days",
    "years",
    "alas",
    "physics",
    "mathematics",
    "series",
    "species",
    "hours",
    "minutes",
    "people's",
];

/// Actions in Chinese and Japanese stage directions: laughing, sighing, nodding and their like.
const CJK_STAGE: &[&str] = &[
    "笑",
    "叹气",
    "叹了",
    "嘆",
    "点头",
    "點頭",
    "摇头",
    "搖頭",
    "眨眼",
    "脸红",
    "臉紅",
    "挥手",
    "揮手",
    "害羞",
    "歪头",
    "歪頭",
    "拥抱",
    "擁抱",
    "皱眉",
    "皺眉",
    "哭",
    "沉默",
    "停顿",
    "鞠躬",
    "鼓掌",
    "耸肩",
    "咳",
    "打哈欠",
    "ため息",
    "うなず",
    "頷",
    "泣",
    "照れ",
];

/// How much the place of a group says for a stage direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At the beginning of a line or after the end of a sentence.
    Boundary,
    /// Within a sentence.
    Inside,
}

/// Whether the inside of `*…*` or `(…)` is a stage direction, which is not spoken, and not an
/// emphasis or an aside, which is.
///
/// English: the first word (or the second, after an adverb in `-ly`) is a known stage verb with
/// `-s` or `-ing`, or one of a few bare words (`sigh`); between asterisks at a sentence boundary any
/// verb in the third person counts (`*tunes her guitar*`), since nobody emphasises that. Chinese and
/// Japanese: short and naming a known action, or, between asterisks at a boundary, any short group.
pub(super) fn is_stage_direction(inside: &str, place: Place, asterisks: bool) -> bool {
    let inside = inside.trim();
    if inside.chars().any(is_cjk) {
        let short = inside.chars().count() <= 12;
        return short
            && (CJK_STAGE.iter().any(|action| inside.contains(action))
                || (asterisks && place == Place::Boundary));
    }
    let words: Vec<String> = inside
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|word| !word.is_empty())
        .collect();
    let Some(first) = words.first() else { return false };
    let verb = match words.get(1) {
        Some(second) if first.ends_with("ly") || first == "just" => second,
        _ => first,
    };
    if words.len() == 1 && BARE_STAGE.contains(&verb.as_str()) {
        return true;
    }
    if is_stage_form(verb) {
        // "(looks good to me)" is a remark; between asterisks it is an action.
        return asterisks || words.len() <= 3;
    }
    asterisks && place == Place::Boundary && is_third_person(verb)
}

fn is_third_person(word: &str) -> bool {
    word.len() >= 4
        && word.ends_with('s')
        && !word.ends_with("ss")
        && !word.ends_with("us")
        && word.chars().all(|c| c.is_ascii_lowercase())
        && !NOT_VERBS.contains(&word)
}

/// A stage verb in the third person or with `-ing`.
fn is_stage_form(word: &str) -> bool {
    let known = |stem: &str| STAGE_VERBS.contains(&stem);
    if let Some(stem) = word.strip_suffix("ies") {
        return known(&format!("{stem}y"));
    }
    if let Some(stem) = word.strip_suffix("es")
        && known(stem)
    {
        return true;
    }
    if let Some(stem) = word.strip_suffix("ing") {
        let mut undoubled = stem.to_owned();
        undoubled.pop();
        return known(stem) || known(&format!("{stem}e")) || known(&undoubled);
    }
    word.strip_suffix('s').is_some_and(known)
}

/// Emoticons that may stand as a word of their own.
const EMOTICONS: &[&str] = &[
    ":)",
    ":-)",
    ":(",
    ":-(",
    ":D",
    ":-D",
    ";)",
    ";-)",
    ";D",
    ":P",
    ":-P",
    ":p",
    ":-p",
    ";P",
    ":O",
    ":o",
    ":-O",
    ":/",
    ":-/",
    ":|",
    ":3",
    ":'(",
    ":')",
    "=)",
    "=D",
    "=(",
    ">:(",
    ">:)",
    ">_<",
    ">.<",
    "<3",
    "</3",
    "^_^",
    "^^",
    "^-^",
    "^.^",
    "-_-",
    "T_T",
    "T.T",
    "Q_Q",
    "o_O",
    "O_o",
    "O_O",
    "o_o",
    "xD",
    "XD",
    "x_x",
    "X_X",
    "UwU",
    "uwu",
    "OwO",
    "owo",
    "¯\\_(ツ)_/¯",
    "orz",
    "QAQ",
    "TAT",
];

/// What [`emoticon`] says of a text that may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Match {
    /// Not one, whatever follows.
    No,
    /// It could become one.
    Maybe,
    /// These many characters are one.
    Yes(usize),
}

/// Whether `text`, which begins a word, begins with an emoticon that ends at a space, at the end or
/// at a mark. `ended`: nothing follows.
pub(super) fn emoticon(text: &[char], ended: bool) -> Match {
    let mut best = Match::No;
    for entry in EMOTICONS {
        let length = entry.chars().count();
        let same = entry.chars().zip(text).take_while(|(a, b)| a == *b).count();
        if same == text.len() && !ended {
            // Everything seen so far agrees; even a whole match needs the character behind it.
            return Match::Maybe;
        }
        let open = |c: &char| c.is_whitespace() || ".,!?~…。，！？*".contains(*c);
        if same == length && text.get(length).is_none_or(open) {
            best = Match::Yes(length);
        }
    }
    best
}

/// Whether the inside of parentheses is a face, such as `◕‿◕` or `╯°□°`: more marks than letters.
pub(super) fn is_kaomoji(inside: &str) -> bool {
    let letters = inside.chars().filter(|c| c.is_ascii_alphanumeric()).count();
    let cjk = inside.chars().filter(|c| is_cjk(*c)).count();
    let marks = inside
        .chars()
        .filter(|c| !c.is_alphanumeric() && !c.is_whitespace() && !".,!?'\"$%-+/:".contains(*c))
        .count();
    marks > letters && cjk <= 1
}

/// Han, kana, hangul, bopomofo and the marks of their scripts.
pub(super) fn is_cjk(c: char) -> bool {
    matches!(u32::from(c),
        0x2E80..=0x2FDF | 0x3005..=0x3007 | 0x3021..=0x3029 | 0x3031..=0x3035 | 0x3040..=0x30FA
        | 0x30FC..=0x30FF | 0x3100..=0x318F | 0x31A0..=0x31BF | 0x31F0..=0x31FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xA960..=0xA97F | 0xAC00..=0xD7FF | 0xF900..=0xFAFF | 0xFF66..=0xFF9F
        | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_name_feelings() {
        for (inside, want) in [
            ("happy", Some((Emotion::Happy, 1.0))),
            ("Happy:0.7", Some((Emotion::Happy, 0.7))),
            ("sad: 3", Some((Emotion::Sad, 1.0))),
            ("EMOTE_ANGRY", Some((Emotion::Angry, 1.0))),
            ("emotion:shy", Some((Emotion::Shy, 1.0))),
            ("joy", Some((Emotion::Happy, 1.0))),
            ("neutral", Some((Emotion::Neutral, 0.0))),
            ("开心", Some((Emotion::Happy, 1.0))),
            ("note:happy", None),
            ("laughs", None),
            ("", None),
        ] {
            let want = want.map(|(emotion, intensity)| Feeling { emotion, intensity });
            assert_eq!(feeling(inside), want, "{inside}");
        }
    }

    #[test]
    fn stage_directions_are_told_from_emphasis() {
        for (inside, place, asterisks, want) in [
            ("smiles", Place::Inside, true, true),
            ("sigh", Place::Inside, true, true),
            ("smiling warmly", Place::Inside, true, true),
            ("softly whispers", Place::Inside, true, true),
            ("tunes her guitar", Place::Boundary, true, true),
            ("nodding", Place::Inside, true, true),
            ("cries", Place::Inside, true, true),
            ("blushes", Place::Inside, true, true),
            ("really", Place::Inside, true, false),
            ("really", Place::Boundary, true, false),
            ("depends", Place::Inside, true, false),
            ("this", Place::Boundary, true, false),
            ("not", Place::Inside, true, false),
            ("always remember this", Place::Boundary, true, false),
            ("laughs", Place::Inside, false, true),
            ("pause", Place::Boundary, false, true),
            ("which is nice", Place::Inside, false, false),
            ("looks good to me", Place::Inside, false, false),
            ("needs salt", Place::Boundary, false, false),
            ("微笑", Place::Boundary, false, true),
            ("轻轻地点头", Place::Boundary, true, true),
            ("真的", Place::Inside, true, false),
            ("比如这个", Place::Inside, false, false),
        ] {
            assert_eq!(is_stage_direction(inside, place, asterisks), want, "{inside} {place:?}");
        }
    }

    #[test]
    fn faces_are_known() {
        let chars = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(emoticon(&chars(":"), false), Match::Maybe);
        assert_eq!(emoticon(&chars(":)"), false), Match::Maybe);
        assert_eq!(emoticon(&chars(":)"), true), Match::Yes(2));
        assert_eq!(emoticon(&chars(":) "), false), Match::Yes(2));
        assert_eq!(emoticon(&chars("xD "), false), Match::Yes(2));
        assert_eq!(emoticon(&chars(":30"), false), Match::No);
        assert_eq!(emoticon(&chars("<34"), false), Match::No);
        assert_eq!(emoticon(&chars(">_<."), false), Match::Yes(3));
        for face in ["◕‿◕", "^_^", "╯°□°", "´・ω・`"] {
            assert!(is_kaomoji(face), "{face}");
        }
        for words in ["2", "a", "which is nice", "x + y", "你好"] {
            assert!(!is_kaomoji(words), "{words}");
        }
    }
}
