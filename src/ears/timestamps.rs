//! Where speech lies in a whole recording: the offline algorithm of the silero-vad package
//! (`get_speech_timestamps` with its defaults), as a function of the frames' probabilities.

use super::{FRAME, RATE};

/// Speech begins at this probability.
const THRESHOLD: f32 = 0.5;

/// Speech ends below this one, when it stays there for [`MIN_SILENCE`].
const RELEASE: f32 = 0.35;

/// Speech that is not longer is dropped: 250 ms.
const MIN_SPEECH: usize = RATE as usize / 4;

/// A shorter silence is part of the speech around it: 100 ms.
const MIN_SILENCE: usize = RATE as usize / 10;

/// What is added on both sides: 30 ms.
const PAD: usize = RATE as usize * 3 / 100;

/// A piece of a recording in which somebody speaks; samples at [`RATE`], `end` excluded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpeechSpan {
    /// First sample.
    pub start: usize,
    /// Sample after the last.
    pub end: usize,
}

/// The pieces with speech, in order, of a recording of `samples` samples whose frames of [`FRAME`]
/// samples have these probabilities.
pub fn speech_spans(probabilities: &[f32], samples: usize) -> Vec<SpeechSpan> {
    let mut spans = raw_spans(probabilities, samples);
    pad(&mut spans, samples);
    spans
}

/// Spans as the thresholds cut them, without padding.
fn raw_spans(probabilities: &[f32], samples: usize) -> Vec<SpeechSpan> {
    let mut spans = Vec::new();
    let mut keep = |start: usize, end: usize| {
        if end.saturating_sub(start) > MIN_SPEECH {
            spans.push(SpeechSpan { start, end });
        }
    };
    let mut start = None;
    let mut silence = None;
    for (frame, &probability) in probabilities.iter().enumerate() {
        let at = frame * FRAME;
        match start {
            None if probability >= THRESHOLD => {
                start = Some(at);
                silence = None;
            }
            Some(_) if probability >= THRESHOLD => silence = None,
            // The reference starts to count at the first frame that is clearly not speech, and goes
            // on counting through frames between the two thresholds, but decides only on the former.
            Some(begun) if probability < RELEASE => {
                let end = *silence.get_or_insert(at);
                if at - end >= MIN_SILENCE {
                    keep(begun, end);
                    start = None;
                }
            }
            _ => {}
        }
    }
    if let Some(begun) = start {
        keep(begun, samples);
    }
    spans
}

/// Widens the spans by [`PAD`]; neighbours that are too near for it share the gap.
fn pad(spans: &mut [SpeechSpan], samples: usize) {
    if let Some(first) = spans.first_mut() {
        first.start = first.start.saturating_sub(PAD);
    }
    let mut rest = spans;
    while let [span, later @ ..] = rest {
        let Some(next) = later.first_mut() else {
            span.end = (span.end + PAD).min(samples);
            break;
        };
        let gap = next.start.saturating_sub(span.end);
        let step = if gap < 2 * PAD { gap / 2 } else { PAD };
        span.end = (span.end + step).min(samples);
        next.start = next.start.saturating_sub(step);
        rest = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(probability, frames)` in a row.
    fn spans(runs: &[(f32, usize)]) -> Vec<(usize, usize)> {
        let frames: Vec<f32> =
            runs.iter().flat_map(|&(p, count)| std::iter::repeat_n(p, count)).collect();
        speech_spans(&frames, frames.len() * FRAME)
            .into_iter()
            .map(|span| (span.start, span.end))
            .collect()
    }

    #[test]
    fn silence_has_no_spans() {
        assert_eq!(spans(&[(0.1, 100)]), []);
        assert_eq!(spans(&[]), []);
    }

    #[test]
    fn a_span_is_padded_inside_the_recording() {
        assert_eq!(spans(&[(0.9, 20)]), [(0, 20 * FRAME)]);
        assert_eq!(
            spans(&[(0.1, 10), (0.9, 20), (0.1, 10)]),
            [(10 * FRAME - PAD, 30 * FRAME + PAD)]
        );
    }

    #[test]
    fn short_speech_is_dropped() {
        // 7 frames are 224 ms, 8 are 256.
        assert_eq!(spans(&[(0.1, 10), (0.9, 7), (0.1, 10)]), []);
        assert_eq!(spans(&[(0.1, 10), (0.9, 8), (0.1, 10)]).len(), 1);
    }

    #[test]
    fn short_silence_joins() {
        // The frame that ends speech must begin at least 100 ms after the first silent one: the
        // fifth.
        assert_eq!(spans(&[(0.9, 20), (0.1, 4), (0.9, 20)]).len(), 1);
        let gap = 5 * FRAME;
        assert_eq!(
            spans(&[(0.9, 20), (0.1, 5), (0.9, 20)]),
            [(0, 20 * FRAME + PAD), (20 * FRAME + gap - PAD, 45 * FRAME)]
        );
    }

    #[test]
    fn between_the_thresholds_speech_goes_on() {
        assert_eq!(spans(&[(0.9, 20), (0.4, 40), (0.9, 20)]), [(0, 80 * FRAME)]);
    }
}
