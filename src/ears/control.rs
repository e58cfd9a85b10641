//! The handle by which others steer the ears while they run.

use std::sync::mpsc;

use super::{Source, Transcription};

/// What reaches the ears thread.
pub(super) enum Message {
    Source(Option<Box<dyn Source>>),
    Mute(bool),
    PushToTalk(bool),
    EndOfTurn { ask: u64, complete: anyhow::Result<f32> },
    Words { job: u64, result: anyhow::Result<Transcription> },
    Stop,
}

/// Steers the ears. Cheap to clone; calls never block and may come from any thread.
#[derive(Clone)]
pub struct EarsControl(pub(super) mpsc::Sender<Message>);

impl EarsControl {
    /// Listens to this source from now on: a remote device takes over, or the local one comes back.
    /// What was said up to here is a turn; the old source is dropped on the ears thread.
    pub fn use_source(&self, source: Box<dyn Source>) {
        self.tell(Message::Source(Some(source)));
    }

    /// Listens to nothing.
    pub fn no_source(&self) {
        self.tell(Message::Source(None));
    }

    /// Throws away what the microphone hears (`true`), or listens again.
    pub fn mute(&self, muted: bool) {
        self.tell(Message::Mute(muted));
    }

    /// The key of push-to-talk is pressed or released.
    pub fn push_to_talk(&self, pressed: bool) {
        self.tell(Message::PushToTalk(pressed));
    }

    pub(super) fn tell(&self, message: Message) {
        if self.0.send(message).is_err() {
            tracing::debug!("the ears have stopped");
        }
    }
}
