//! The voices are understood: what they say is transcribed back by the ears' own recogniser, which
//! knows English only.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

use alice::config::Home;
use alice::config::settings::Voice;
use alice::ears::stt::moonshine::Moonshine;
use alice::ears::{RATE, Stt};
use alice::kernel::load::CoreLoad;
use alice::kernel::resample::Resampler;
use alice::voice::engines;
use tokio_util::sync::CancellationToken;

/// Written as the recogniser writes them.
const SENTENCES: [&str; 6] = [
    "Of course, I can help you with that.",
    "The weather tomorrow will be sunny with a gentle wind from the west.",
    "I read the book that you gave me, and it was wonderful.",
    "Would you like some tea, or do you prefer coffee in the morning?",
    "My favourite place is a small village near the mountains.",
    "Doctor Smith said that we should wait for another week.",
];

fn words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .replace("dr.", "doctor")
        .replace("favourite", "favorite")
        .split_whitespace()
        .map(|word| word.chars().filter(|c| c.is_alphanumeric()).collect())
        .filter(|word: &String| !word.is_empty())
        .collect()
}

/// How many words of `said` are in `heard`, in order.
fn recalled(said: &[String], heard: &[String]) -> usize {
    let mut row = vec![0; heard.len() + 1];
    for word in said {
        let mut diagonal = 0;
        for (column, other) in heard.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] =
                if word == other { diagonal + 1 } else { row[column].max(row[column + 1]) };
            diagonal = above;
        }
    }
    row[heard.len()]
}

#[tokio::test]
async fn what_is_said_is_understood() {
    let home = Home::from_env();
    let stt = match Moonshine::open(&home, 2, CoreLoad::default()) {
        Ok(stt) => stt,
        Err(missing) => return eprintln!("skipped: {missing:#}"),
    };
    // A Chinese voice speaks the English words in Chinese too, with its accent.
    for (engine, voice, least) in
        [("piper", "af_heart", 0.9), ("kokoro", "af_heart", 0.9), ("kokoro", "zf_xiaoxiao", 0.7)]
    {
        let settings = Voice {
            engine: engine.into(),
            kokoro_voice: voice.into(),
            threads: 2,
            ..Voice::default()
        };
        let opened = match engines::open(&settings, &home, &CoreLoad::default()) {
            Ok(opened) if opened.reason.is_none() => opened,
            Ok(opened) => return eprintln!("skipped: {:?}", opened.reason),
            Err(missing) => return eprintln!("skipped: {missing:#}"),
        };
        let (mut said, mut understood) = (0, 0);
        for sentence in SENTENCES {
            let made = opened.tts.synthesize(sentence, &CancellationToken::new()).unwrap();
            let mut audio = Resampler::whole(&made.pcm.samples, made.pcm.rate, RATE).unwrap();
            audio.extend(std::iter::repeat_n(0.0, 4_000));
            let heard = stt.transcribe(audio, CancellationToken::new()).await.unwrap().text;
            let written = words(sentence);
            said += written.len();
            understood += recalled(&written, &words(&heard));
            eprintln!("{engine} {voice}: {sentence} → {heard}");
        }
        let share = understood as f64 / said as f64;
        eprintln!("{engine} {voice}: {understood} of {said} words ({share:.2})");
        assert!(share >= least, "{engine} {voice}: {understood} of {said} words");
    }
}
