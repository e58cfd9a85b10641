//! Engines that take no time, so that what is left of a turn is Alice's own overhead.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use crate::ears::{EndOfTurn, FRAME, Stt, Transcription, Vad};
use crate::kernel::clock::BoxFuture;
use crate::kernel::ports::Pcm;
use crate::voice::{Tts, Utterance};

/// Takes loud for speech.
#[derive(Debug, Default)]
pub struct LoudIsSpeech;

impl Vad for LoudIsSpeech {
    fn speech(&mut self, frame: &[f32; FRAME]) -> anyhow::Result<f32> {
        let loud = frame.iter().any(|sample| sample.abs() > 0.02);
        Ok(if loud { 1.0 } else { 0.0 })
    }

    fn reset(&mut self) {}
}

/// Takes every silence for the end.
#[derive(Debug, Default)]
pub struct AlwaysComplete;

impl EndOfTurn for AlwaysComplete {
    fn complete(&mut self, _: &[f32]) -> anyhow::Result<f32> {
        Ok(1.0)
    }
}

/// Knows what is said before it is said, and says of each transcription a number, so that no two
/// turns are alike.
#[derive(Debug, Default)]
pub struct KnowsTheWords(AtomicUsize);

impl Stt for KnowsTheWords {
    fn name(&self) -> String {
        "instant: a known question".into()
    }

    fn transcribe(
        &self,
        _: Vec<f32>,
        _: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let text = format!("What is the number {number}?");
            Ok(Transcription { text, no_speech: None })
        })
    }
}

/// Speaks a tone of 60 ms for each word.
#[derive(Debug, Default)]
pub struct Tone;

impl Tts for Tone {
    fn name(&self) -> String {
        "instant: a tone".into()
    }

    fn synthesize(&self, spoken: &str, _: &CancellationToken) -> anyhow::Result<Utterance> {
        let rate = 16_000u32;
        let words = spoken.split_whitespace().count().max(1);
        let samples = (0..words * rate as usize * 60 / 1000)
            .map(|n| (n as f32 * 440.0 * std::f32::consts::TAU / rate as f32).sin() * 0.3)
            .collect();
        Ok(Utterance { pcm: Pcm { rate, samples }, visemes: Vec::new(), words: Vec::new() })
    }
}
