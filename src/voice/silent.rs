//! A speaker without a device: time passes as if the sound were played.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pace::{Paced, Pacer};
use super::switch::SpeakerPort;
use super::track::Track;
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{Pcm, Speaker, SpeakerEvent};

/// Plays into nothing at the pace of the clock.
pub struct SilentSpeaker {
    shared: Pacer<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    port: SpeakerPort,
    track: Mutex<Track>,
}

impl SilentSpeaker {
    /// A speaker on the clock's time. Must be made inside a tokio runtime.
    pub fn new(port: SpeakerPort, clock: Arc<dyn Clock>) -> Arc<Self> {
        port.send(SpeakerEvent::Ready("silence".into()));
        let shared = Pacer::start(Shared { clock, port, track: Mutex::default() });
        Arc::new(Self { shared })
    }
}

impl Paced for Shared {
    fn keep_up(&self) -> Option<BoxFuture<'static, ()>> {
        let wait = self.advance().next_event()?;
        Some(self.clock.sleep(wait))
    }
}

impl Shared {
    /// Brings the track up to now and reports what was passed.
    fn advance(&self) -> MutexGuard<'_, Track> {
        let mut track = self.track.lock().unwrap_or_else(PoisonError::into_inner);
        for event in track.advance(self.clock.now()) {
            self.port.send(event);
        }
        track
    }
}

impl Speaker for SilentSpeaker {
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>) {
        let length = Duration::from_secs_f64(pcm.duration_ms() / 1000.0);
        self.shared.advance().push(segment, length, self.shared.clock.now());
        self.shared.wake();
    }

    fn stop(&self) -> Option<(SegmentId, Duration)> {
        self.shared.advance().stop()
    }

    fn duck(&self, _: bool) {}

    fn set_volume(&self, _: f32) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::clock::FakeClock;
    use crate::kernel::ids::TurnId;
    use crate::voice::switch::{SpeakerSwitch, SwitchEvent};

    #[tokio::test]
    async fn segments_pass_at_the_pace_of_the_clock() {
        let clock = FakeClock::shared();
        let switch = SpeakerSwitch::default();
        let mut events = switch.events().unwrap();
        let port = switch.port();
        switch.use_speaker(&port, SilentSpeaker::new(port.clone(), clock.clone()));
        let segment = SegmentId { turn: TurnId(1), index: 0 };
        switch.play(segment, Arc::new(Pcm { rate: 1000, samples: vec![0.0; 150] }));
        let mut seen = Vec::new();
        for _ in 0..20 {
            tokio::task::yield_now().await;
            clock.advance(Duration::from_millis(10));
            tokio::task::yield_now().await;
            while let Some(event) = events.try_next() {
                if let SwitchEvent::Speaker(event) = event {
                    seen.push((clock.now().as_millis(), event));
                }
            }
        }
        let at = |event| seen.iter().find(|(_, seen)| *seen == event).map(|(at, _)| *at);
        assert!(at(SpeakerEvent::Started(segment)) <= Some(10));
        assert_eq!(at(SpeakerEvent::Progress(segment, Duration::from_millis(100))), Some(100));
        assert_eq!(at(SpeakerEvent::Finished(segment)), Some(150));
        assert_eq!(at(SpeakerEvent::Drained), Some(150));
    }
}
