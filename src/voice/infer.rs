//! Running a speech model: one at a time, stopped when the caller gives up.

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use anyhow::{Context, bail};
use ort::session::{RunOptions, Session, SessionInputs};
use tokio_util::sync::CancellationToken;

use super::phonemes::{Phone, TimedPhone};

/// How often a running model looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(15);

/// A speech model whose first output is the sound and whose second one is the length of each input
/// symbol in frames.
pub(super) struct SpeechModel {
    session: Mutex<Session>,
}

/// Sound and the frames of each input symbol.
pub(super) struct Spoken {
    pub(super) samples: Vec<f32>,
    pub(super) frames: Vec<f32>,
}

impl SpeechModel {
    pub(super) fn new(session: Session) -> Self {
        Self { session: Mutex::new(session) }
    }

    /// Runs the model. It ends within a layer's time after `cancel` was cancelled.
    ///
    /// # Errors
    /// When it was cancelled or the engine fails.
    pub(super) fn run<'i, 'v: 'i, const N: usize>(
        &self,
        inputs: impl Into<SessionInputs<'i, 'v, N>>,
        cancel: &CancellationToken,
    ) -> anyhow::Result<Spoken> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_cancelled() {
            bail!("cancelled");
        }
        let options = RunOptions::new()?;
        let result = std::thread::scope(|scope| {
            let (done, running) = mpsc::channel::<()>();
            let watch = &options;
            std::thread::Builder::new().name("tts-watch".into()).spawn_scoped(
                scope,
                move || {
                    while running.recv_timeout(LOOK) == Err(mpsc::RecvTimeoutError::Timeout) {
                        if cancel.is_cancelled() {
                            // Should it fail, the model runs to its end.
                            let _ = watch.terminate();
                            break;
                        }
                    }
                },
            )?;
            let result = session.run_with_options(inputs, &options);
            drop(done);
            anyhow::Ok(result)
        })?;
        if cancel.is_cancelled() {
            bail!("cancelled");
        }
        let outputs = result?;
        let array = |index: usize| -> anyhow::Result<Vec<f32>> {
            let value = outputs.values().nth(index).context("the model has too few outputs")?;
            Ok(value.try_extract_tensor::<f32>()?.1.to_vec())
        };
        Ok(Spoken { samples: array(0)?, frames: array(1)? })
    }
}

impl SpeechModel {
    /// Runs the model on a short input and gives the memory of longer ones back: ONNX Runtime keeps
    /// what its largest run needed (Piper: 160 MB after an answer of three sentences).
    ///
    /// # Errors
    /// When the engine fails.
    pub(super) fn give_back_memory<'i, 'v: 'i, const N: usize>(
        &self,
        inputs: impl Into<SessionInputs<'i, 'v, N>>,
    ) -> anyhow::Result<()> {
        let mut options = RunOptions::new()?;
        options.set("memory.enable_memory_arena_shrinkage", "cpu:0")?;
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.run_with_options(inputs, &options)?;
        Ok(())
    }
}

/// Lays phonemes over time: `index` of each phoneme in the model's input, frames of each input symbol,
/// length of a frame. A phoneme lasts from its symbol to the next phoneme's, pads included.
pub(super) fn timed(
    phones: &[(Phone, usize)],
    frames: &[f32],
    frame_ms: f64,
    from_ms: f64,
) -> Vec<TimedPhone> {
    let mut starts = Vec::with_capacity(frames.len() + 1);
    let mut sum = 0.0;
    for frames in frames {
        starts.push(sum);
        sum += f64::from(*frames);
    }
    starts.push(sum);
    let at = |index: usize| starts.get(index).copied().unwrap_or(sum) * frame_ms + from_ms;
    let ends = phones.iter().skip(1).map(|(_, index)| *index).chain([frames.len()]);
    phones
        .iter()
        .zip(ends)
        .map(|((phone, index), end)| TimedPhone {
            phone: *phone,
            start_ms: at(*index),
            end_ms: at(end),
        })
        .collect()
}
