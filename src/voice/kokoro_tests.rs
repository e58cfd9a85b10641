use super::*;
use crate::voice::testing::check_utterance;

fn kokoro(voice: &str) -> Option<Kokoro> {
    let home = crate::testing::weights(MODEL, WEIGHTS)?;
    Some(Kokoro::open(&home, voice, 2, 1.0, CoreLoad::default()).unwrap())
}

#[test]
fn it_speaks_with_words_and_mouths_in_time() {
    let Some(kokoro) = kokoro("af_heart") else { return };
    for text in
        ["The old man walked slowly along the river, and nobody saw him.", "Hello you, it is 5 km!"]
    {
        // "5 km" is one written number with its unit: its second word has no time of its own.
        let made = kokoro.synthesize(text, &CancellationToken::new()).unwrap();
        check_utterance(&text.replace(" km", "_km"), &made);
    }
}

#[test]
fn another_script_or_language_is_refused() {
    let Some(kokoro) = kokoro("bf_emma") else { return };
    for text in ["你好，世界", "Привет", "..."] {
        let error = kokoro.synthesize(text, &CancellationToken::new()).unwrap_err();
        assert!(!error.to_string().contains('\n'));
    }
    let home = Home::from_env();
    for voice in ["ef_dora", "../x", "af_nobody", ""] {
        let error = Kokoro::open(&home, voice, 1, 1.0, CoreLoad::default()).err().unwrap();
        assert!(!format!("{error:#}").contains('\n'));
    }
}

#[test]
fn a_running_synthesis_is_stopped() {
    let Some(kokoro) = kokoro("af_heart") else { return };
    let cancel = CancellationToken::new();
    let text =
        "This is a rather long sentence, made of many words, which takes its time. ".repeat(4);
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            cancel.cancel();
        });
        assert!(kokoro.synthesize(&text, &cancel).is_err());
    });
    // The whole of it takes about 8 s.
    assert!(began.elapsed().as_secs_f64() < 3.0, "{:?}", began.elapsed());
}

#[test]
fn long_texts_are_split_at_pauses() {
    let phones = |text: &str| -> Vec<(Phone, i64)> {
        text.chars().map(|symbol| (Phone { symbol, at: 0 }, 1)).collect()
    };
    let parts =
        |text: &str| -> Vec<usize> { split(&phones(text)).iter().map(|part| part.len()).collect() };
    assert_eq!(parts("abc"), [3]);
    assert_eq!(parts(&"a".repeat(1200)), [510, 510, 180]);
    let sentence = format!("{}. ", "a".repeat(298));
    assert_eq!(parts(&sentence.repeat(2)), [299, 301]);
    let clause = format!("{}, ", "a".repeat(398));
    assert_eq!(parts(&clause.repeat(2)), [399, 401]);
}
