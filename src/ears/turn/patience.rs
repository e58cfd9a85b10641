//! What the words so far say about whether the user is done.

/// Longest wait that words ask for, times the patience.
const UNFINISHED: f64 = 1.8;
/// The wait after a sentence that ends like one.
const FINISHED: f64 = 0.8;

/// Words after which hardly anybody stops: English, German, French, Spanish.
const JOINING: &[&str] = &[
    "and", "but", "or", "because", "if", "when", "which", "than", "the", "a", "an", "my", "your",
    "our", "their", "his", "its", "to", "of", "with", "for", "from", "at", "into", "um", "uh",
    "er", "erm", "hmm", "und", "aber", "oder", "weil", "dass", "wenn", "mit", "der", "das", "ein",
    "eine", "äh", "ähm", "et", "mais", "ou", "parce", "que", "le", "les", "un", "une", "du",
    "avec", "euh", "pero", "porque", "el", "los", "las", "con",
];

/// The same in scripts without spaces.
const JOINING_ENDS: &[&str] = &[
    "和",
    "但",
    "但是",
    "因为",
    "所以",
    "如果",
    "然后",
    "还有",
    "嗯",
    "呃",
    "那个",
    "的话",
    "えっと",
    "でも",
    "から",
    "けど",
    "そして",
    "あの",
];

/// The words end in the middle of something.
pub fn is_unfinished(text: &str) -> bool {
    let text = text.trim_end();
    if text.ends_with([',', '，', '、', '-', '–', '—', ':', '：'])
        || text.ends_with("...")
        || text.ends_with('…')
    {
        return true;
    }
    // A recogniser puts a full stop behind everything, so it proves nothing.
    let bare = text.trim_end_matches(['.', '。']).trim_end();
    if JOINING_ENDS.iter().any(|end| bare.ends_with(end)) {
        return true;
    }
    let last = bare.rsplit(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    let last = last.to_lowercase();
    bare.len() > last.len() && JOINING.contains(&last.as_str())
}

/// The silence that ends a turn with these words, as a multiple of the patience.
pub fn factor(text: Option<&str>) -> f64 {
    match text.map(str::trim_end) {
        Some(text) if is_unfinished(text) => UNFINISHED,
        Some(text) if text.ends_with(['?', '!', '.', '？', '！', '。']) => FINISHED,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_lead_on_ask_for_more_time() {
        let cases = [
            ("I would like to", UNFINISHED),
            ("I went to the shop and.", UNFINISHED),
            ("Tell me, um", UNFINISHED),
            ("Let me think...", UNFINISHED),
            ("First of all,", UNFINISHED),
            ("我想去商店，然后", UNFINISHED),
            ("What time is it?", FINISHED),
            ("Stop.", FINISHED),
            ("I think so.", FINISHED),
            ("and", 1.0),
            ("good morning", 1.0),
            ("brand", 1.0),
        ];
        for (text, expected) in cases {
            assert_eq!(factor(Some(text)), expected, "{text}");
        }
        assert_eq!(factor(None), 1.0);
    }
}
