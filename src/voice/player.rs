//! The speaker of this machine: one output stream that stays open, fed by a thread of its own.

pub(super) mod deck;
mod feeder;
pub(super) mod line;
mod output;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use super::switch::SpeakerPort;
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{EchoReference, Pcm, Speaker};

use deck::Controls;
use feeder::Feeder;
use line::Desk;

/// Plays on a sound card. The device is opened by the thread `speaker`, and opened again when it was
/// lost; [`crate::kernel::ports::SpeakerEvent::Ready`] and `Lost` say how that goes.
pub struct LocalSpeaker {
    desk: Arc<Mutex<Desk>>,
    controls: Arc<Controls>,
    feeder: Thread,
}

impl LocalSpeaker {
    /// Begins to open `device`: `default` or (part of) the name of one; the default device stands in
    /// while the named one is not there. What is played goes to `echo` as well.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(
        device: &str,
        echo: Option<Arc<dyn EchoReference>>,
        port: SpeakerPort,
    ) -> std::io::Result<Arc<Self>> {
        let controls = Arc::<Controls>::default();
        let desk = Arc::new(Mutex::new(Desk::new(Arc::clone(&controls), 0)));
        let feeder = Feeder::new(device, echo, port, Arc::downgrade(&desk), Arc::clone(&controls));
        let thread = std::thread::Builder::new().name("speaker".into()).spawn(|| feeder.run())?;
        Ok(Arc::new(Self { desk, controls, feeder: thread.thread().clone() }))
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Speaker for LocalSpeaker {
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>) {
        self.desk().play(segment, pcm);
        self.feeder.unpark();
    }

    fn stop(&self) -> Option<(SegmentId, Duration)> {
        let heard = self.desk().stop();
        self.feeder.unpark();
        heard
    }

    fn duck(&self, on: bool) {
        self.controls.set_ducked(on);
    }

    fn set_volume(&self, volume: f32) {
        self.controls.set_volume(volume);
    }
}

impl Drop for LocalSpeaker {
    fn drop(&mut self) {
        // The feeder sees that the desk is gone and ends.
        self.feeder.unpark();
    }
}
