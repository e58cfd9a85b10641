//! Guards against phantom text: recognisers invent words for noise and silence.

use crate::ears::Transcription;

/// Engine's own doubt from which its usual inventions are not believed, and from which nothing is.
const DOUBT: f32 = 0.6;
const SURE_NOTHING: f32 = 0.95;

/// A unit that repeats so often in a row is a decoder's loop.
const LOOP: usize = 5;
/// Longest unit of a loop, in words or characters.
const LONGEST_UNIT: usize = 6;

/// What recognisers, Whisper above all, write for noise, from the subtitles they learned from. Each
/// is also something that people say, so it counts only together with the engine's doubt.
const INVENTIONS: &[&str] = &[
    "thank you",
    "thank you very much",
    "thanks",
    "thanks for watching",
    "thank you for watching",
    "please subscribe",
    "like and subscribe",
    "bye",
    "bye bye",
    "you",
    "the end",
    "subtitles by the amara org community",
    "music",
    "applause",
    "vielen dank",
    "danke",
    "untertitel der amara org community",
    "untertitel von stephanie geiges",
    "merci",
    "merci d avoir regardé",
    "sous titres réalisés par la communauté d amara org",
    "gracias",
    "gracias por ver el video",
    "subtítulos realizados por la comunidad de amara org",
    "спасибо за просмотр",
    "продолжение следует",
    "谢谢",
    "谢谢大家",
    "谢谢观看",
    "请不吝点赞 订阅 转发 打赏支持明镜与点点栏目",
    "字幕由amara org社区提供",
    "ご視聴ありがとうございました",
    "ありがとうございました",
    "시청해주셔서 감사합니다",
    "감사합니다",
];

/// Why words are not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phantom {
    /// Nothing in it that is a letter or a digit.
    NoLetters,
    /// The engine itself doubts that this was speech.
    Doubted,
    /// The same again and again.
    Loop,
}

/// Whether the words are a recogniser's invention.
pub fn phantom(transcription: &Transcription) -> Option<Phantom> {
    let text = plain(&transcription.text);
    if text.is_empty() {
        return Some(Phantom::NoLetters);
    }
    let doubt = transcription.no_speech.unwrap_or(0.0);
    if doubt >= SURE_NOTHING || doubt >= DOUBT && INVENTIONS.contains(&text.as_str()) {
        return Some(Phantom::Doubted);
    }
    let words: Vec<&str> = text.split(' ').collect();
    let characters: Vec<char> = text.chars().filter(|c| *c != ' ').collect();
    (loops(&words) || loops(&characters)).then_some(Phantom::Loop)
}

/// Lower case, words parted by one space, nothing but letters and digits.
fn plain(text: &str) -> String {
    let spaced: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A unit repeats [`LOOP`] times in a row, and that is most of the text.
fn loops<T: PartialEq>(units: &[T]) -> bool {
    (1..=LONGEST_UNIT).any(|length| {
        // How many places in a row equal the one a unit earlier.
        let mut equal = 0;
        let longest = units.iter().zip(units.iter().skip(length)).fold(0, |longest, (a, b)| {
            equal = if a == b { equal + 1 } else { 0 };
            longest.max(equal)
        });
        longest >= length * (LOOP - 1) && 2 * (longest + length) > units.len()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inventions_are_told_from_words() {
        let cases = [
            ("What time is it?", Some(0.1), None),
            ("", None, Some(Phantom::NoLetters)),
            (" ... ♪ !", None, Some(Phantom::NoLetters)),
            ("Thank you.", Some(0.1), None),
            ("Thank you.", None, None),
            ("Thank you.", Some(0.7), Some(Phantom::Doubted)),
            ("谢谢大家。", Some(0.7), Some(Phantom::Doubted)),
            ("Turn the light on", Some(0.7), None),
            ("Turn the light on", Some(0.97), Some(Phantom::Doubted)),
            ("no no no", Some(0.0), None),
            ("no no no no no no no", Some(0.0), Some(Phantom::Loop)),
            (
                "I am going to I am going to I am going to I am going to I am going to",
                None,
                Some(Phantom::Loop),
            ),
            ("哈哈哈哈哈哈哈哈", None, Some(Phantom::Loop)),
            ("my number is 1000000 I think", None, None),
        ];
        for (text, no_speech, expected) in cases {
            let transcription = Transcription { text: text.into(), no_speech };
            assert_eq!(phantom(&transcription), expected, "{text}");
        }
    }
}
