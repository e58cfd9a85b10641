use super::*;
use crate::ears::ring::{Writer, ring};
use crate::ears::wav::{Pace, WavSource};
use crate::ears::{Source, SourceEvent};
use crate::kernel::clock::FakeClock;
use crate::testing::fixture;

fn recording(name: &str) -> Option<Vec<f32>> {
    let path = fixture(name)?;
    let mut source = WavSource::open(&path, Pace::Fast, FakeClock::shared()).unwrap();
    let mut heard = Vec::new();
    while let SourceEvent::Frame { samples, .. } = source.next(std::time::Duration::ZERO) {
        heard.extend_from_slice(&*samples);
    }
    Some(heard)
}

fn mirror() -> (Writer, Mirror) {
    let (writer, reader) = ring(RATE);
    (writer, Mirror::new(reader))
}

/// Shares of the frames of `heard` that are louder than −50 dBFS, while `played` is handed over frame
/// by frame.
fn shares(played: &[f32], heard: &[f32]) -> Vec<f32> {
    let (mut writer, mut mirror) = mirror();
    let (played, heard) = (played.as_chunks::<FRAME>().0, heard.as_chunks::<FRAME>().0);
    let mut shares = Vec::new();
    for (played, heard) in played.iter().zip(heard) {
        writer.write(played.iter().copied(), 0.0);
        let share = mirror.explained(heard);
        if heard.iter().map(|s| s * s).sum::<f32>() / FRAME as f32 > 1e-5 {
            shares.push(share);
        }
    }
    shares
}

fn above_half(shares: &[f32]) -> f64 {
    shares.iter().filter(|share| **share >= 0.5).count() as f64 / shares.len() as f64
}

#[test]
fn a_copy_is_known_however_late_it_is_and_a_person_is_none() {
    let (Some(voice), Some(person)) =
        (recording("audio/silero-test-60s.wav"), recording("audio/jfk.wav"))
    else {
        return;
    };
    let voice = &voice[..10 * RATE as usize];
    for late_ms in [0, 20, 80, 333, 560] {
        let late = vec![0.0; late_ms * 16];
        let echo: Vec<f32> = late.iter().chain(voice).map(|sample| sample * 0.5).collect();
        let alone = above_half(&shares(voice, &echo));
        let both: Vec<f32> = echo.iter().zip(&person).map(|(a, b)| a * 0.5 + b).collect();
        let (with, other) =
            (above_half(&shares(voice, &both)), above_half(&shares(voice, &person)));
        println!("{late_ms} ms: echo {alone:.3}, person over it {with:.3}, person {other:.3}");
        assert!(alone > 0.97, "{late_ms} ms: {alone}");
        assert!(other < 0.02, "{late_ms} ms: {other}");
        assert!(with < 0.5, "{late_ms} ms: {with}");
    }
}

#[test]
fn a_speaker_that_runs_dry_again_and_again_is_still_known() {
    let Some(voice) = recording("audio/silero-test-60s.wav") else { return };
    let voice = &voice[..10 * RATE as usize];
    // Six milliseconds of nothing each 200 ms: everything behind it is heard later.
    let mut echo = vec![0.0; 80 * 16];
    for piece in voice.chunks(3_200) {
        echo.extend(piece.iter().map(|sample| sample * 0.5));
        echo.extend([0.0; 96]);
    }
    let known = above_half(&shares(voice, &echo));
    println!("{known:.3}");
    assert!(known > 0.9, "{known}");
}

#[test]
fn nothing_is_explained_by_nothing() {
    let (mut writer, mut mirror) = mirror();
    let tone: [f32; FRAME] = std::array::from_fn(|n| (n as f32 * 0.7).sin() * 0.3);
    assert_eq!(mirror.explained(&tone), 0.0);
    writer.write([0.0; 8_000].into_iter(), 0.0);
    assert_eq!(mirror.explained(&tone), 0.0);
    writer.write(tone.iter().copied(), 0.0);
    assert!(mirror.explained(&tone) > 0.9);
    assert!(mirror.explained(&[0.0; FRAME]) < 0.5);
    // Long after the last sound even the same tone is somebody else's.
    for _ in 0..20 {
        mirror.explained(&[0.0; FRAME]);
    }
    assert_eq!(mirror.explained(&tone), 0.0);
}
