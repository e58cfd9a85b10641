//! Voice: speakable text, synthesis, mouth shapes, playback, and the ledger of what was heard.

pub mod file;
pub mod ledger;
pub mod media;
mod pace;
pub mod pipeline;
pub mod player;
pub mod remote;
pub mod silent;
pub mod speaking;
pub mod switch;
mod tap;
mod track;

// Text and synthesis.
mod audio;
mod clean;
pub mod engines;
pub mod espeak;
mod infer;
pub mod kokoro;
mod misaki;
mod numbers;
mod phonemes;
pub mod piper;
mod script;
pub mod segment;
mod tags;
#[cfg(test)]
mod testing;
mod visemes;
mod zh;
mod zh_numbers;

use tokio_util::sync::CancellationToken;

use crate::kernel::contracts::{Feeling, VisemeFrame};
use crate::kernel::ports::Pcm;

/// A piece of a reply, cut where it can be spoken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Piece {
    /// For the eye: markdown, code, URLs and emoji kept; tags and thoughts removed.
    pub display: String,
    /// For the ear; empty when there is nothing to speak in it (then it is only shown).
    pub spoken: String,
    /// The emotion tag that stood in or before it.
    pub tag: Option<Feeling>,
}

/// A synthesised piece.
#[derive(Clone, Debug, PartialEq)]
pub struct Utterance {
    /// Its sound.
    pub pcm: Pcm,
    /// Mouth shapes in ms of the sound.
    pub visemes: Vec<VisemeFrame>,
    /// When each word of the spoken text begins, as (byte offset, ms); empty when unknown.
    pub words: Vec<(usize, f64)>,
}

/// Makes speech of text. Calls block and compute: they belong on a worker thread.
pub trait Tts: Send + Sync {
    /// Name for the person, such as `piper: en_US-joe-medium`.
    fn name(&self) -> String;

    /// Speaks `spoken`. Gives up early with an error when `cancel` is cancelled, where it can.
    ///
    /// # Errors
    /// One line: text that this voice can't speak, or an engine failure.
    fn synthesize(&self, spoken: &str, cancel: &CancellationToken) -> anyhow::Result<Utterance>;
}
