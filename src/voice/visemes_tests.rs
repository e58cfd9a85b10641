use super::*;
use crate::voice::phonemes::Phone;

/// Phones of 100 ms each over a tone, after 100 ms of silence.
fn spoken(symbols: &str) -> (Vec<TimedPhone>, Pcm) {
    let phones: Vec<TimedPhone> = symbols
        .chars()
        .enumerate()
        .map(|(index, symbol)| TimedPhone {
            phone: Phone { symbol, at: 0 },
            start_ms: 100.0 + index as f64 * 100.0,
            end_ms: 200.0 + index as f64 * 100.0,
        })
        .collect();
    let sound = symbols.chars().count() * 1_600;
    let samples = std::iter::repeat_n(0.0, 1_600)
        .chain((0..sound).map(|i| if i % 2 == 0 { 0.3 } else { -0.3 }))
        .chain(std::iter::repeat_n(0.0, 3_200))
        .collect();
    (phones, Pcm { rate: 16_000, samples })
}

fn at(frames: &[VisemeFrame], ms: f32) -> VisemeFrame {
    *frames.iter().min_by(|a, b| (a.at_ms - ms).abs().total_cmp(&(b.at_ms - ms).abs())).unwrap()
}

#[test]
fn each_vowel_has_its_mouth() {
    for (symbol, index) in [('ɑ', 0), ('i', 1), ('u', 2), ('ɛ', 3), ('ɔ', 4)] {
        let (phones, pcm) = spoken(&symbol.to_string().repeat(3));
        let shape = weights(&at(&track(&phones, &pcm), 250.0));
        assert!(shape[index] > 0.8, "{symbol} {shape:?}");
        assert_eq!(shape.iter().filter(|weight| **weight > 0.0).count(), 1, "{symbol}");
    }
}

#[test]
fn the_mouth_is_closed_at_the_ends_in_silence_and_for_m() {
    let (phones, pcm) = spoken("ɑmɑ");
    let frames = track(&phones, &pcm);
    assert_eq!(weights(frames.first().unwrap()), CLOSED);
    assert_eq!(weights(frames.last().unwrap()), CLOSED);
    assert!((f64::from(frames.last().unwrap().at_ms) - pcm.duration_ms()).abs() < 0.1);
    assert_eq!(weights(&at(&frames, 250.0)), CLOSED, "m");
    assert!(at(&frames, 160.0).aa > 0.5);
    for frame in frames.iter().filter(|frame| frame.at_ms < 75.0 || frame.at_ms > 430.0) {
        assert_eq!(weights(frame), CLOSED, "{frame:?}");
    }
    // Silence is one stretch, not a row of frames.
    assert!(frames.iter().filter(|frame| frame.at_ms > 440.0).count() <= 2);
}

#[test]
fn at_most_two_shapes_are_blended_and_weights_are_in_range() {
    let (phones, pcm) = spoken("hˈɛlOwəɹldæIʃuoi");
    let frames = track(&phones, &pcm);
    assert!(frames.len() > 20);
    assert!(frames.is_sorted_by(|a, b| a.at_ms <= b.at_ms));
    for frame in &frames {
        let shape = weights(frame);
        assert!(shape.iter().all(|weight| (0.0..=1.0).contains(weight)));
        assert!(shape.iter().filter(|weight| **weight > 0.0).count() <= 2, "{frame:?}");
    }
}

#[test]
fn a_diphthong_moves() {
    let (phones, pcm) = spoken("II");
    let frames = track(&phones[..1], &pcm);
    assert!(at(&frames, 110.0).aa > at(&frames, 110.0).ih);
    let late = at(&frames, 190.0);
    assert!(late.ih > late.aa, "{late:?}");
}

#[test]
fn no_phonemes_or_no_sound_is_a_closed_mouth() {
    let (phones, _) = spoken("a");
    for (phones, samples) in [(&phones[..], 0), (&phones[..], 16_000), (&[][..], 16_000)] {
        let pcm = Pcm { rate: 16_000, samples: vec![0.0; samples] };
        let frames = track(phones, &pcm);
        assert!(!frames.is_empty() && frames.iter().all(|frame| weights(frame) == CLOSED));
    }
}
