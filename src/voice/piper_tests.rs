use super::*;

fn piper() -> Option<Piper> {
    let home = crate::testing::weights(MODEL, &format!("{VOICE}.onnx"))?;
    if let Err(error) = Espeak::start("en-us") {
        eprintln!("skipped: {error:#}");
        return None;
    }
    Some(Piper::open(&home, 2, 1.0, CoreLoad::default()).unwrap())
}

#[test]
fn it_speaks_with_words_and_mouths_in_time() {
    let Some(piper) = piper() else { return };
    let text = "The old man walked slowly along the river, and nobody saw him.";
    let made = piper.synthesize(text, &CancellationToken::new()).unwrap();
    super::super::testing::check_utterance(text, &made);
}

#[test]
fn several_sentences_are_one_utterance() {
    let Some(piper) = piper() else { return };
    let text = "Yes. It costs $4.99! Is that all right?";
    let made = piper.synthesize(text, &CancellationToken::new()).unwrap();
    super::super::testing::check_utterance(text, &made);
    assert!(made.pcm.duration_ms() > 2_000.0);
}

#[test]
fn another_script_is_refused() {
    let Some(piper) = piper() else { return };
    for text in ["你好，世界", "Привет", "..."] {
        let error = piper.synthesize(text, &CancellationToken::new()).unwrap_err();
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn a_cancelled_synthesis_ends() {
    let Some(piper) = piper() else { return };
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(piper.synthesize("Hello there.", &cancel).is_err());
    // And the next one works.
    assert!(piper.synthesize("Hello there.", &CancellationToken::new()).is_ok());
}

#[test]
#[cfg(target_os = "linux")]
fn a_rest_gives_the_memory_of_answers_back() {
    let resident_mb = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1024.0
    };
    let Some(piper) = piper() else { return };
    let text =
        "This is one long sentence, which goes on and on, so that the model takes much memory.";
    piper.synthesize(text, &CancellationToken::new()).unwrap();
    let before = resident_mb();
    whisper(&piper.model).unwrap();
    let after = resident_mb();
    assert!(before - after > 40.0, "{before:.0} MB, then {after:.0} MB");
    // And it still speaks.
    assert!(piper.synthesize("Hello there.", &CancellationToken::new()).is_ok());
}
