//! Engines of the ears on what engines of the voice say.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use alice::app::engines;
use alice::bench::talk::speech;
use alice::config::{Home, Settings};
use alice::ears::Stt;
use alice::ears::stt::moonshine::Moonshine;
use alice::kernel::load::CoreLoad;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_sentence_that_ends_without_silence_is_still_a_sentence() {
    let home = Home::at(std::env::temp_dir());
    let mut settings = Settings::default();
    settings.voice.engine = "kokoro".into();
    settings.voice.kokoro_voice = "am_michael".into();
    let voice = engines::voice(&settings, &home, CoreLoad::default());
    let (voice, stt) = match (voice, Moonshine::open(&home, 2, CoreLoad::default())) {
        (Ok(voice), Ok(stt)) => (voice.engine, stt),
        (voice, stt) => {
            println!("skipped: {:?} {:?}", voice.err(), stt.err());
            return;
        }
    };
    // Moonshine heard a comma behind both, and the turn went on for a second of silence.
    let texts = ["I had a very long day at work.", "Who wrote the play about Romeo and Juliet?"];
    for (text, sound) in texts.iter().zip(speech(voice.as_ref(), &texts).unwrap()) {
        let last = sound.iter().rposition(|sample| sample.abs() > 0.01).unwrap();
        for early_ms in [0, 15, 30] {
            let clip = sound[..last - early_ms * 16].to_vec();
            let heard = stt.transcribe(clip, CancellationToken::new()).await.unwrap().text;
            println!("{early_ms} ms early: {heard}");
            assert!(heard.ends_with(['.', '?']), "{text}: {heard}");
        }
    }
}
