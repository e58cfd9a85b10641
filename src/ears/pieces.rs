//! A whole recording for a recogniser: its speech in pieces that are understood well.
//!
//! The spans of the voice activity model follow every short breath. A recogniser understands a few
//! words without the ones around them less well, and takes no recording of any length, so near spans
//! are joined and long ones are cut.

use super::timestamps::SpeechSpan;
use super::{FRAME, RATE, Vad};

/// Speech that is parted by a shorter pause than this is understood better together: 1.5 s.
const PAUSE: usize = RATE as usize * 3 / 2;

/// No piece is longer: 12 s.
const LONGEST: usize = 12 * RATE as usize;

/// Sound that is given before and after the speech: 150 ms.
const CONTEXT: usize = RATE as usize * 15 / 100;

/// Probability, 0–1, of speech in each frame of a recording; the last frame is filled up with
/// silence, as the silero-vad package does.
///
/// # Errors
/// When the engine fails.
pub fn probabilities(vad: &mut dyn Vad, audio: &[f32]) -> anyhow::Result<Vec<f32>> {
    let frames = audio.chunks(FRAME).map(|chunk| {
        let mut frame = [0.0; FRAME];
        for (place, sample) in frame.iter_mut().zip(chunk) {
            *place = *sample;
        }
        vad.speech(&frame)
    });
    frames.collect()
}

/// Cuts a span that is too long, where speech is least likely.
pub fn cut(mut span: SpeechSpan, probabilities: &[f32]) -> Vec<SpeechSpan> {
    let mut parts = Vec::new();
    while span.end.saturating_sub(span.start) > LONGEST {
        let from = (span.start + LONGEST / 2).div_ceil(FRAME);
        let to = (span.start + LONGEST) / FRAME;
        let frames = probabilities.iter().enumerate().take(to).skip(from);
        let quietest = frames.min_by(|a, b| a.1.total_cmp(b.1)).map_or(to, |(frame, _)| frame);
        let middle = quietest * FRAME + FRAME / 2;
        parts.push(SpeechSpan { start: span.start, end: middle });
        span.start = middle;
    }
    parts.push(span);
    parts
}

/// Joins neighbours that are parted by a short pause, as long as the whole is not too long.
pub fn join(spans: &[SpeechSpan]) -> Vec<SpeechSpan> {
    let mut joined: Vec<SpeechSpan> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last)
                if span.start.saturating_sub(last.end) < PAUSE
                    && span.end.saturating_sub(last.start) <= LONGEST =>
            {
                last.end = span.end;
            }
            _ => joined.push(*span),
        }
    }
    joined
}

/// What to give to the recogniser for each span: a little more on both sides, but nothing of a
/// neighbour. `samples` is the length of the recording.
pub fn with_context(spans: &[SpeechSpan], samples: usize) -> Vec<SpeechSpan> {
    let ends = std::iter::once(0).chain(spans.iter().map(|span| span.end));
    let starts = spans.iter().skip(1).map(|span| span.start).chain(std::iter::once(samples));
    let around = ends.zip(starts);
    let widened = spans.iter().zip(around).map(|(span, (before, after))| {
        // Half of the gap each: both sides of it stay apart.
        let lead = span.start.saturating_sub(before) / 2;
        let tail = after.saturating_sub(span.end) / 2;
        SpeechSpan { start: span.start - lead.min(CONTEXT), end: span.end + tail.min(CONTEXT) }
    });
    widened.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans of these tenths of a second.
    fn spans(tenths: &[(usize, usize)]) -> Vec<SpeechSpan> {
        let span = |&(start, end)| SpeechSpan { start: start * 1_600, end: end * 1_600 };
        tenths.iter().map(span).collect()
    }

    #[test]
    fn near_spans_are_joined_up_to_the_longest_piece() {
        assert_eq!(join(&[]), []);
        let cases: [(&[_], &[_]); 3] = [
            (&[(0, 10), (15, 20), (34, 40)], &[(0, 40)]),
            (&[(0, 10), (25, 30)], &[(0, 10), (25, 30)]),
            (&[(0, 60), (62, 119), (121, 140)], &[(0, 119), (121, 140)]),
        ];
        for (given, expected) in cases {
            assert_eq!(join(&spans(given)), spans(expected), "{given:?}");
        }
    }

    #[test]
    fn a_long_span_is_cut_where_it_is_quietest() {
        let mut frames = vec![0.9; 1_000];
        frames[100] = 0.1; // 3.2 s: too early
        frames[300] = 0.4; // 9.6 s
        frames[500] = 0.2; // 16 s: too late for the first cut
        let whole = SpeechSpan { start: 0, end: 20 * RATE as usize };
        let first = 300 * FRAME + FRAME / 2;
        let expected =
            [SpeechSpan { start: 0, end: first }, SpeechSpan { start: first, end: whole.end }];
        assert_eq!(cut(whole, &frames), expected);
        let short = SpeechSpan { start: 0, end: LONGEST };
        assert_eq!(cut(short, &frames), [short]);
        // Even speech: no part is too long, and nothing is lost.
        let even = cut(SpeechSpan { start: 77, end: 500_000 }, &[0.9; 1_000]);
        assert!(even.iter().all(|part| part.end - part.start <= LONGEST));
        assert!(even.windows(2).all(|pair| pair[0].end == pair[1].start));
        assert_eq!((even[0].start, even.last().unwrap().end), (77, 500_000));
    }

    #[test]
    fn context_takes_nothing_of_a_neighbour() {
        let widened = with_context(&spans(&[(1, 10), (11, 20), (40, 50)]), 80_100);
        let expected = [(800, 16_800), (16_800, 34_400), (61_600, 80_050)];
        let pairs: Vec<_> = widened.iter().map(|span| (span.start, span.end)).collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn the_last_frame_is_filled_up() {
        struct Sum;
        impl Vad for Sum {
            fn speech(&mut self, frame: &[f32; FRAME]) -> anyhow::Result<f32> {
                Ok(frame.iter().sum())
            }
            fn reset(&mut self) {}
        }
        assert_eq!(probabilities(&mut Sum, &[1.0; FRAME + 3]).unwrap(), [512.0, 3.0]);
        assert_eq!(probabilities(&mut Sum, &[]).unwrap(), [0.0; 0]);
    }
}
