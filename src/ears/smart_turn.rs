//! End of turn by smart-turn v3.2 (github.com/pipecat-ai/smart-turn, BSD-2-Clause): hears from the
//! melody of the last 8 seconds whether the speaker is done.

use anyhow::Context;
use ort::session::Session;
use ort::value::Tensor;

use super::EndOfTurn;
use super::mel::{BANDS, COLUMNS, LogMel};
use crate::config::Home;
use crate::{models, onnx};

/// The model and its features.
pub struct SmartTurn {
    session: Session,
    mel: LogMel,
    features: Tensor<f32>,
}

impl SmartTurn {
    /// Opens the model on `threads` threads and runs it once, because its first run takes twice as
    /// long as the others.
    ///
    /// # Errors
    /// When the weights or ONNX Runtime are missing.
    pub fn open(home: &Home, threads: usize) -> anyhow::Result<Self> {
        let model = models::locate(home, "smart-turn", "smart-turn-v3.2-cpu.onnx")?;
        // The session first: making a tensor before ONNX Runtime is loaded panics.
        let session = onnx::open(home, &model, threads)?;
        let features = Tensor::from_array(([1, BANDS, COLUMNS], vec![0.0; BANDS * COLUMNS]))?;
        let mut turn = Self { session, mel: LogMel::default(), features };
        turn.infer()?;
        Ok(turn)
    }

    fn infer(&mut self) -> anyhow::Result<f32> {
        let outputs = self.session.run(ort::inputs! { "input_features" => &self.features })?;
        // The name says logits, but the model ends in a sigmoid.
        let output = outputs.get("logits").context("no output `logits`")?;
        let (_, values) = output.try_extract_tensor::<f32>()?;
        values.first().copied().context("the model gave no probability")
    }
}

impl EndOfTurn for SmartTurn {
    fn complete(&mut self, audio: &[f32]) -> anyhow::Result<f32> {
        self.mel.extract(audio, self.features.extract_tensor_mut().1)?;
        self.infer()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::ears::wav::{Pace, WavSource};
    use crate::ears::{RATE, Source, SourceEvent};
    use crate::kernel::clock::FakeClock;
    use crate::testing::{fixture, weights};

    fn recording() -> Option<Vec<f32>> {
        let path = fixture("audio/silero-test-60s.wav")?;
        let mut source = WavSource::open(&path, Pace::Fast, FakeClock::shared()).unwrap();
        let mut heard = Vec::new();
        while let SourceEvent::Frame { samples, .. } = source.next(Duration::ZERO) {
            heard.extend_from_slice(&*samples);
        }
        Some(heard)
    }

    fn span(recording: &[f32], from: f64, to: f64) -> &[f32] {
        let place = |seconds: f64| (seconds * f64::from(RATE)) as usize;
        &recording[place(from)..place(to).min(recording.len())]
    }

    #[test]
    fn the_spectrogram_is_that_of_the_reference_extractor() {
        let Some(recording) = recording() else { return };
        let mut mel = LogMel::default();
        let mut out = vec![0.0; BANDS * COLUMNS];
        for (from, to, mean, deviation) in
            [(0.0, 2.25, 0.19753, 0.40525), (10.0, 18.1, 0.55769, 0.42332)]
        {
            mel.extract(span(&recording, from, to), &mut out).unwrap();
            let count = out.len() as f64;
            let ours = out.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
            let spread = out.iter().map(|v| (f64::from(*v) - ours).powi(2)).sum::<f64>() / count;
            println!("{from}–{to}: mean {ours:.5}, deviation {:.5}", spread.sqrt());
            assert!((ours - mean).abs() < 2e-4, "{ours}");
            assert!((spread.sqrt() - deviation).abs() < 2e-4, "{}", spread.sqrt());
        }
    }

    #[test]
    fn probabilities_are_those_of_the_reference() {
        let Some(home) = weights("smart-turn", "smart-turn-v3.2-cpu.onnx") else { return };
        let Some(recording) = recording() else { return };
        let mut turn = SmartTurn::open(&home, 1).unwrap();
        for (from, to, expected) in [
            (0.0, 1.0, 0.0069),
            (0.0, 2.25, 0.9794),
            (0.0, 4.9, 0.0095),
            (0.0, 7.08, 0.7434),
            (0.0, 11.0, 0.0107),
            (0.0, 13.54, 0.0115),
            (10.0, 18.1, 0.9505),
            (20.0, 32.8, 0.0860),
            (0.0, 60.0, 0.0643),
        ] {
            let complete = turn.complete(span(&recording, from, to)).unwrap();
            println!("{from}–{to}: {complete:.4}, reference {expected:.4}");
            // The int8 layers quantise to the clip's own range, so the last bits of the features
            // and the kernels of the processor move the result this far.
            assert!((complete - expected).abs() < 0.04, "{from}–{to}: {complete}");
            assert_eq!(complete > 0.5, expected > 0.5);
        }
        let silence = vec![0.0; RATE as usize];
        assert!((turn.complete(&silence).unwrap() - 0.987).abs() < 0.02);
    }

    #[test]
    fn it_is_quick() {
        let Some(home) = weights("smart-turn", "smart-turn-v3.2-cpu.onnx") else { return };
        let Some(recording) = recording() else { return };
        let median = |mut run: Box<dyn FnMut() + '_>| {
            let mut times: Vec<Duration> = (0..9)
                .map(|_| {
                    let begun = Instant::now();
                    run();
                    begun.elapsed()
                })
                .collect();
            times.sort();
            times[4]
        };
        let mut mel = LogMel::default();
        let mut out = vec![0.0; BANDS * COLUMNS];
        for seconds in [2.0, 8.0] {
            let clip = span(&recording, 0.0, seconds);
            let features = median(Box::new(|| mel.extract(clip, &mut out).unwrap()));
            println!("{seconds} s: features p50 {features:?}");
            for threads in [1, 2] {
                let mut turn = SmartTurn::open(&home, threads).unwrap();
                let whole = median(Box::new(|| {
                    turn.complete(clip).unwrap();
                }));
                println!("{seconds} s: features and model p50 {whole:?}, {threads} threads");
            }
            // Far above what it takes (1 ms here), so that only a real fault trips it.
            assert!(features < Duration::from_millis(100), "{features:?}");
        }
    }
}
