//! Voice activity by the Silero model, version 6.2 (github.com/snakers4/silero-vad, MIT).
//!
//! The model takes 576 samples: 64 of the frame before and 512 new ones. Without those 64 it gives
//! no error and hears almost nothing, so the context is kept here and nowhere else.

use anyhow::Context;
use ort::session::Session;
use ort::value::Tensor;

use super::{FRAME, RATE, Vad};
use crate::config::Home;
use crate::{models, onnx};

/// Samples of the frame before that the model wants to see.
const CONTEXT: usize = 64;

/// Values of the model's state, which has the shape [2, 1, 128].
const STATE: usize = 2 * 128;

/// Below this loudness nothing is speech, whatever the model says of near-silence: −60 dBFS.
const FLOOR: f32 = 1e-3;

/// Probability under which a frame counts as quiet.
const QUIET: f32 = 0.1;

/// Frames in a row that must be quiet before the state may be forgotten.
const QUIET_FRAMES: u32 = 5;

/// Least frames between two resets: 2 s.
const RESET_FRAMES: u32 = 2 * RATE / FRAME as u32 + 1;

/// The model with its state.
pub struct Silero {
    session: Session,
    input: Tensor<f32>,
    state: Tensor<f32>,
    rate: Tensor<i64>,
    context: [f32; CONTEXT],
    live: Option<Quiet>,
}

impl Silero {
    /// The model exactly as its authors run it over a recording: nothing is gated, and the state is
    /// never reset on its own.
    ///
    /// # Errors
    /// When the weights or ONNX Runtime are missing.
    pub fn open(home: &Home) -> anyhow::Result<Self> {
        let model = models::locate(home, "silero-vad", "silero_vad.onnx")?;
        let mut silero = Self {
            session: onnx::open(home, &model, 1)?,
            input: Tensor::from_array(([1, CONTEXT + FRAME], vec![0.0; CONTEXT + FRAME]))?,
            state: Tensor::from_array(([2_usize, 1, 128], vec![0.0; STATE]))?,
            rate: Tensor::from_array(([0_usize; 0], vec![i64::from(RATE)]))?,
            context: [0.0; CONTEXT],
            live: None,
        };
        // The first run is much slower than the others; better now than on the first word.
        silero.speech(&[0.0; FRAME])?;
        silero.reset();
        Ok(silero)
    }

    /// The same for a microphone that is open for hours: frames under −60 dBFS are never speech (and
    /// cost nothing once it has been quiet for a while), and the state is forgotten in confirmed
    /// quiet, because hours of noise make the model deaf to the speech after them. Resets at any
    /// other moment lose speech. The rule is pipecat 1.14's; with it the recall of speech after a
    /// minute of noise measured .92–.97, without it .88–.91, with blind resets .74–.82.
    ///
    /// # Errors
    /// When the weights or ONNX Runtime are missing.
    pub fn open_live(home: &Home) -> anyhow::Result<Self> {
        Ok(Self { live: Some(Quiet::default()), ..Self::open(home)? })
    }

    fn infer(&mut self, frame: &[f32; FRAME]) -> anyhow::Result<f32> {
        let (_, input) = self.input.extract_tensor_mut();
        let (old, new) = input.split_at_mut_checked(CONTEXT).context("the input is too short")?;
        old.copy_from_slice(&self.context);
        new.copy_from_slice(frame);
        let outputs = self.session.run(ort::inputs! {
            "input" => &self.input,
            "state" => &self.state,
            "sr" => &self.rate,
        })?;
        let output = |name| outputs.get(name).with_context(|| format!("no output `{name}`"));
        let (_, speech) = output("output")?.try_extract_tensor::<f32>()?;
        let speech = *speech.first().context("the model gave no probability")?;
        let (_, next) = output("stateN")?.try_extract_tensor::<f32>()?;
        anyhow::ensure!(next.len() == STATE, "the model's state has {} values", next.len());
        self.state.extract_tensor_mut().1.copy_from_slice(next);
        Ok(speech)
    }

    fn forget(&mut self) {
        self.state.extract_tensor_mut().1.fill(0.0);
        self.context = [0.0; CONTEXT];
    }
}

impl Vad for Silero {
    fn speech(&mut self, frame: &[f32; FRAME]) -> anyhow::Result<f32> {
        let silent = self.live.is_some() && rms(frame) < FLOOR;
        let asleep = silent && self.live.as_ref().is_some_and(Quiet::confirmed);
        let speech = if asleep { Ok(0.0) } else { self.infer(frame) };
        if let Some(last) = frame.last_chunk() {
            self.context = *last;
        }
        let speech = if silent { speech.map(|_| 0.0) } else { speech }?;
        if self.live.as_mut().is_some_and(|quiet| quiet.heard(speech)) {
            self.forget();
        }
        Ok(speech)
    }

    fn reset(&mut self) {
        self.forget();
        if let Some(live) = &mut self.live {
            *live = Quiet::default();
        }
    }
}

fn rms(frame: &[f32; FRAME]) -> f32 {
    (frame.iter().map(|sample| sample * sample).sum::<f32>() / FRAME as f32).sqrt()
}

/// When the state may be forgotten.
#[derive(Debug, Default)]
struct Quiet {
    quiet_frames: u32,
    since_reset: u32,
}

impl Quiet {
    /// Takes the probability of the next frame; `true` when the state is to be forgotten now.
    fn heard(&mut self, speech: f32) -> bool {
        self.quiet_frames = if speech < QUIET { self.quiet_frames.saturating_add(1) } else { 0 };
        self.since_reset = self.since_reset.saturating_add(1);
        let reset = self.confirmed() && self.since_reset >= RESET_FRAMES;
        if reset {
            self.since_reset = 0;
        }
        reset
    }

    /// It has been quiet for long enough to be sure that nobody speaks.
    fn confirmed(&self) -> bool {
        self.quiet_frames >= QUIET_FRAMES
    }
}

#[cfg(test)]
#[path = "vad_tests.rs"]
mod tests;
