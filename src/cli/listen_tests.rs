use serde_json::Value;

use super::*;
use crate::ears::Transcription;
use crate::ears::stt::moonshine::{MODEL, Moonshine};
use crate::ears::stt::wer::word_error_rate;
use crate::kernel::clock::BoxFuture;
use crate::testing::{fixture, weights};

const JFK: &str = "And so, my fellow Americans, ask not what your country can do for you, ask what \
                   you can do for your country.";

/// Answers with how long the sound is, ms.
struct Length;

impl Stt for Length {
    fn name(&self) -> String {
        "length".into()
    }

    fn transcribe(
        &self,
        audio: Vec<f32>,
        _cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        let text = millis(audio.len()).to_string();
        Box::pin(async move { Ok(Transcription { text, no_speech: None }) })
    }
}

/// A recording of the fixtures with what the Python package silero-vad says of it.
fn recording(name: &str) -> Option<(Recording, Value)> {
    let home = weights("silero-vad", "silero_vad.onnx")?;
    let audio = read(&fixture(&format!("audio/{name}.wav"))?).unwrap();
    let reference = std::fs::read_to_string(fixture(&format!("audio/{name}.silero.json"))?);
    let probabilities = pieces::probabilities(&mut Silero::open(&home).unwrap(), &audio).unwrap();
    let reference = serde_json::from_str(&reference.unwrap()).unwrap();
    Some((Recording::new(audio, probabilities), reference))
}

/// What `--json` prints, as a program reads it.
async fn printed(recording: &Recording, stt: &dyn Stt) -> Value {
    let mut listener = Listener { recording, stt, known: HashMap::new() };
    let text = serde_json::to_string(&listener.heard().await.unwrap()).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn frames_and_segments_equal_the_package() {
    for name in ["jfk", "silero-test-60s"] {
        let Some((recording, reference)) = recording(name) else { return };
        let printed = printed(&recording, &Length).await;
        let frames = printed["frames"].as_array().unwrap();
        let expected = reference["probabilities"].as_array().unwrap();
        assert_eq!(frames.len(), expected.len());
        for (index, (frame, expected)) in frames.iter().zip(expected).enumerate() {
            assert_eq!(frame["ms"], index * 32);
            let difference = frame["p"].as_f64().unwrap() - expected.as_f64().unwrap();
            assert!(difference.abs() <= 1e-3, "{name}, frame {index}: {difference}");
        }
        let spans = reference["get_speech_timestamps_defaults"]["samples"].as_array().unwrap();
        let edges = |span: &Value, start: &str, end: &str, factor: f64| {
            [start, end].map(|edge| span[edge].as_f64().unwrap() * factor)
        };
        let expected: Vec<_> =
            spans.iter().map(|span| edges(span, "start", "end", 1.0 / 16.0)).collect();
        let segments = printed["segments"].as_array().unwrap();
        let ours: Vec<_> =
            segments.iter().map(|span| edges(span, "start_ms", "end_ms", 1.0)).collect();
        assert_eq!(ours, expected, "{name}");
        // Every segment was transcribed with its context; the long ones in parts.
        for segment in segments {
            let [start, end] = edges(segment, "start_ms", "end_ms", 1.0);
            let words = segment["text"].as_str().unwrap().split(' ');
            let given: f64 = words.map(|word| word.parse::<f64>().unwrap()).sum();
            assert!((0.0..=300.0).contains(&(given - (end - start))), "{segment}: {given}");
        }
    }
}

#[tokio::test]
async fn the_recording_is_understood() {
    let Some(home) = weights(MODEL, "encoder_model.onnx") else { return };
    let Some((recording, _)) = recording("jfk") else { return };
    let stt = Moonshine::open(&home, 2, CoreLoad::default()).unwrap();
    let printed = printed(&recording, &stt).await;
    let text = printed["text"].as_str().unwrap();
    let wer = word_error_rate(JFK, text);
    println!("word error rate {wer:.3}: {text}");
    assert!(wer <= 0.05, "word error rate {wer:.3}: {text}");
    assert!(printed["segments"].as_array().unwrap().iter().all(|one| one["text"] != ""));
}

#[tokio::test]
async fn silence_has_no_words_and_all_its_frames() {
    let recording = Recording::new(vec![0.0; 1_000], vec![0.1, 0.1]);
    let printed = printed(&recording, &Length).await;
    assert_eq!(printed["text"], "");
    assert_eq!(printed["segments"], serde_json::json!([]));
    assert_eq!(printed["frames"].as_array().unwrap().len(), 2);
}

#[test]
fn times_are_read_as_on_a_clock() {
    let span = SpeechSpan { start: 20_000, end: 61 * 16_000 + 8_000 };
    assert_eq!(times(span), "00:01.25–01:01.50");
}
