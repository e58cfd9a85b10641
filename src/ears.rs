//! Ears: capture, resampling, echo cancelling, voice activity, turns, speech recognition.

pub mod backchannel;
mod capture;
pub mod control;
pub mod device;
pub mod echo;
#[cfg(test)]
mod live_tests;
pub mod mel;
pub mod mic;
pub mod mirror;
pub mod pieces;
pub mod remote;
pub mod resample;
pub mod ring;
pub mod runtime;
pub mod self_echo;
pub mod smart_turn;
pub mod stt;
mod tap;
pub mod timestamps;
pub mod turn;
pub mod vad;
pub mod watchdog;
pub mod wav;

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::kernel::clock::BoxFuture;
use crate::kernel::contracts::MicStatus;

/// Rate at which the ears work, Hz.
pub const RATE: u32 = 16_000;

/// Samples of a frame: what the voice activity model takes at a time (32 ms).
pub const FRAME: usize = 512;

/// What a source of sound gives.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceEvent {
    /// The next 32 ms at [`RATE`], mono, −1 to 1, echo already removed where it can be.
    Frame {
        /// The samples.
        samples: Box<[f32; FRAME]>,
        /// When its last sample was captured, ms of the process clock.
        at_ms: f64,
    },
    /// The device changed its state.
    Status(MicStatus),
    /// Nothing arrived within the wait.
    Idle,
    /// A recording is over; never sent by a device.
    End,
}

/// How the sound of the voice reaches this source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoPath {
    /// Not at all: a file, or headphones.
    None,
    /// It does, and it is removed here or in the device.
    Cancelled,
    /// It does, and nothing removes it.
    Open,
    /// The device cannot listen while it plays.
    HalfDuplex,
}

/// Where frames come from: a microphone, a recording, a remote device. Used by one thread.
pub trait Source: Send {
    /// The next event, waiting for `wait` at most. Frames that arrived late are given without pause
    /// until the source has caught up.
    fn next(&mut self, wait: Duration) -> SourceEvent;

    /// How the voice's own sound reaches it.
    fn echo_path(&self) -> EchoPath;
}

/// Tells speech from other sound.
pub trait Vad: Send {
    /// Probability, 0–1, that the frame holds speech. Frames must be given in order.
    ///
    /// # Errors
    /// When the engine fails; the caller goes on with the next frame.
    fn speech(&mut self, frame: &[f32; FRAME]) -> anyhow::Result<f32>;

    /// Forgets what was heard, for a new stream.
    fn reset(&mut self);
}

/// Tells whether a speaker is done from how they sounded.
pub trait EndOfTurn: Send {
    /// Probability, 0–1, that the turn in `audio` ([`RATE`], its end last; the last 8 s count) is
    /// complete. Never asked on silence alone.
    ///
    /// # Errors
    /// When the engine fails; the caller falls back to its timer.
    fn complete(&mut self, audio: &[f32]) -> anyhow::Result<f32>;
}

/// What was understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcription {
    /// The words; empty when there were none.
    pub text: String,
    /// The engine's own doubt that this was speech, 0–1, where it tells.
    pub no_speech: Option<f32>,
}

/// Turns speech into words.
pub trait Stt: Send + Sync {
    /// Name for the person, such as `moonshine-tiny`.
    fn name(&self) -> String;

    /// Transcribes `audio` ([`RATE`], mono). Cancelling ends it early with an error.
    fn transcribe(
        &self,
        audio: Vec<f32>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>>;
}
