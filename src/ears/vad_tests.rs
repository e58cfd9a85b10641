use std::time::Duration;

use super::*;
use crate::ears::timestamps::{SpeechSpan, speech_spans};
use crate::ears::wav::{Pace, WavSource};
use crate::ears::{Source, SourceEvent};
use crate::kernel::clock::FakeClock;
use crate::testing::{fixture, weights};

/// What the Python package silero-vad 6.2.3 gives for a recording.
struct Reference {
    frames: Vec<[f32; FRAME]>,
    samples: usize,
    probabilities: Vec<f32>,
    spans: Vec<SpeechSpan>,
}

fn reference(name: &str) -> Option<Reference> {
    let wav = fixture(&format!("audio/{name}.wav"))?;
    let json = fixture(&format!("audio/{name}.silero.json"))?;
    let json: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let mut source = WavSource::open(&wav, Pace::Fast, FakeClock::shared()).unwrap();
    let mut frames = Vec::new();
    while let SourceEvent::Frame { samples, .. } = source.next(Duration::ZERO) {
        frames.push(*samples);
    }
    let number = |value: &serde_json::Value| value.as_u64().unwrap() as usize;
    Some(Reference {
        frames,
        samples: number(&json["audio"]["samples"]),
        probabilities: json["probabilities"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.as_f64().unwrap() as f32)
            .collect(),
        spans: json["get_speech_timestamps_defaults"]["samples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|span| SpeechSpan { start: number(&span["start"]), end: number(&span["end"]) })
            .collect(),
    })
}

fn equals_the_package(name: &str) {
    let Some(home) = weights("silero-vad", "silero_vad.onnx") else { return };
    let Some(reference) = reference(name) else { return };
    let mut silero = Silero::open(&home).unwrap();
    let started = std::time::Instant::now();
    let ours: Vec<f32> =
        reference.frames.iter().map(|frame| silero.speech(frame).unwrap()).collect();
    let took = started.elapsed() / ours.len() as u32;
    assert_eq!(ours.len(), reference.probabilities.len());
    let worst = ours
        .iter()
        .zip(&reference.probabilities)
        .map(|(ours, theirs)| (ours - theirs).abs())
        .fold(0.0, f32::max);
    println!("{name}: {} frames, worst difference {worst:e}, {took:?} a frame", ours.len());
    assert!(worst <= 1e-4, "{worst}");
    assert_eq!(speech_spans(&ours, reference.samples), reference.spans);
}

#[test]
fn probabilities_and_spans_of_jfk_equal_the_package() {
    equals_the_package("jfk");
}

#[test]
fn probabilities_and_spans_of_the_long_recording_equal_the_package() {
    equals_the_package("silero-test-60s");
}

#[test]
fn a_reset_model_is_as_new() {
    let Some(home) = weights("silero-vad", "silero_vad.onnx") else { return };
    let Some(reference) = reference("jfk") else { return };
    let mut silero = Silero::open(&home).unwrap();
    for frame in &reference.frames[20..40] {
        silero.speech(frame).unwrap();
    }
    silero.reset();
    for (frame, theirs) in reference.frames.iter().zip(&reference.probabilities).take(40) {
        assert!((silero.speech(frame).unwrap() - theirs).abs() <= 1e-4);
    }
}

/// The live rules may not change what is heard of speech: single frames at most.
#[test]
fn live_hears_the_same_speech() {
    let Some(home) = weights("silero-vad", "silero_vad.onnx") else { return };
    for name in ["jfk", "silero-test-60s"] {
        let Some(reference) = reference(name) else { return };
        let mut silero = Silero::open_live(&home).unwrap();
        let ours: Vec<f32> =
            reference.frames.iter().map(|frame| silero.speech(frame).unwrap()).collect();
        let speech = |p: &f32| *p >= 0.5;
        let differ = ours
            .iter()
            .zip(&reference.probabilities)
            .filter(|(ours, theirs)| speech(ours) != speech(theirs))
            .count();
        println!("{name}: {differ} of {} frames judged otherwise", ours.len());
        assert!(differ * 50 <= ours.len(), "{differ}");
    }
}

#[test]
fn live_takes_near_silence_for_no_speech_and_still_hears_what_follows() {
    let Some(home) = weights("silero-vad", "silero_vad.onnx") else { return };
    let Some(reference) = reference("jfk") else { return };
    let mut silero = Silero::open_live(&home).unwrap();
    // A minute of hum at −66 dBFS.
    let hum: [f32; FRAME] = std::array::from_fn(|n| 7e-4 * (n as f32 * 0.05).sin());
    for _ in 0..1_875 {
        assert_eq!(silero.speech(&hum).unwrap(), 0.0);
    }
    let first = reference.frames.iter().position(|frame| silero.speech(frame).unwrap() >= 0.5);
    let wanted = reference.probabilities.iter().position(|p| *p >= 0.5);
    assert!(first.unwrap().abs_diff(wanted.unwrap()) <= 2, "{first:?} {wanted:?}");
}

#[test]
fn the_state_is_forgotten_only_in_confirmed_quiet() {
    let resets = |runs: &[(f32, u32)]| {
        let mut quiet = Quiet::default();
        let mut at: Vec<u32> = Vec::new();
        let mut frame = 0;
        for &(speech, frames) in runs {
            for _ in 0..frames {
                frame += 1;
                if quiet.heard(speech) {
                    at.push(frame);
                }
            }
        }
        at
    };
    // 63 frames are the first whole number of them that is not under 2 s.
    assert_eq!(resets(&[(0.0, 200)]), [63, 126, 189]);
    assert_eq!(resets(&[(0.9, 100), (0.0, 4), (0.9, 100)]), Vec::<u32>::new());
    assert_eq!(resets(&[(0.9, 100), (0.0, 5), (0.9, 100)]), [105]);
    assert_eq!(resets(&[(0.1, 500)]), Vec::<u32>::new());
    assert_eq!(resets(&[(0.0, 60), (0.2, 10), (0.0, 10)]), [75]);
}
