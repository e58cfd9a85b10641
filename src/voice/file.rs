//! A speaker that writes what it plays into memory, for recordings of a talk.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pace::{Paced, Pacer};
use super::player::deck::{Controls, Deck, Feed, deck};
use super::player::line::{Desk, Line, lock};
use super::switch::SpeakerPort;
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{Pcm, Speaker, SpeakerEvent};

/// How often the recording is brought up to the clock while something plays.
const STEP: Duration = Duration::from_millis(10);
/// Blocks that are played at once: 10 ms.
const BLOCKS_PER_S: u32 = 100;

/// Plays into a recording. Loudness, ducking, fades and positions are those of the local speaker,
/// because it is the same deck that plays.
pub struct FileSpeaker {
    shared: Pacer<Shared>,
}

struct Shared {
    /// `None`: as fast as it can.
    clock: Option<Arc<dyn Clock>>,
    port: SpeakerPort,
    controls: Arc<Controls>,
    rate: u32,
    desk: Mutex<Desk>,
    tape: Mutex<Tape>,
}

struct Tape {
    deck: Deck,
    feed: Feed,
    line: Line,
    sound: Vec<f32>,
}

impl FileSpeaker {
    /// A speaker on the clock's time: the recording begins at the clock's zero, and a sound lies in it
    /// where it was played. Must be made inside a tokio runtime.
    pub fn paced(port: SpeakerPort, clock: Arc<dyn Clock>, rate: u32) -> Arc<Self> {
        let shared = Pacer::start(Shared::new(port, Some(clock), rate));
        Arc::new(Self { shared })
    }

    /// A speaker without time: a segment is played when it is handed over, and the recording holds
    /// nothing but the segments.
    pub fn fast(port: SpeakerPort, rate: u32) -> Arc<Self> {
        let shared = Pacer::idle(Shared::new(port, None, rate));
        Arc::new(Self { shared })
    }

    /// The recording so far.
    pub fn recording(&self) -> Pcm {
        Pcm { rate: self.shared.rate, samples: self.shared.advance().sound.clone() }
    }
}

impl Paced for Shared {
    fn keep_up(&self) -> Option<BoxFuture<'static, ()>> {
        drop(self.advance());
        let busy = !lock(&self.desk).is_idle();
        self.clock.as_ref().filter(|_| busy).map(|clock| clock.sleep(STEP))
    }
}

impl Shared {
    fn new(port: SpeakerPort, clock: Option<Arc<dyn Clock>>, rate: u32) -> Self {
        let controls = Arc::<Controls>::default();
        let (deck, feed) = deck(rate, Arc::clone(&controls), None, None, Duration::ZERO);
        port.send(SpeakerEvent::Ready("recording".into()));
        Self {
            clock,
            port,
            rate,
            desk: Mutex::new(Desk::new(Arc::clone(&controls), rate)),
            controls,
            tape: Mutex::new(Tape { deck, feed, line: Line::default(), sound: Vec::new() }),
        }
    }

    /// Plays up to now (without a clock: all there is) and reports it.
    fn advance(&self) -> MutexGuard<'_, Tape> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let block = (self.rate / BLOCKS_PER_S).max(1) as usize;
        loop {
            let Tape { deck, feed, line, sound } = &mut *tape;
            line.feed(&self.desk, feed);
            let missing = match &self.clock {
                Some(clock) => {
                    let now = (clock.now().as_secs_f64() * f64::from(self.rate)) as usize;
                    now.saturating_sub(sound.len()).min(block)
                }
                None => deck.remaining().min(block),
            };
            if missing == 0 {
                return tape;
            }
            let from = sound.len();
            sound.resize(from + missing, 0.0);
            if let Some(block) = sound.get_mut(from..) {
                deck.fill(block);
            }
            line.report(&self.desk, feed, &self.port, Duration::ZERO);
        }
    }
}

impl Speaker for FileSpeaker {
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>) {
        // What was silent up to now is written as silence.
        drop(self.shared.advance());
        lock(&self.shared.desk).play(segment, pcm);
        drop(self.shared.advance());
        self.shared.wake();
    }

    fn stop(&self) -> Option<(SegmentId, Duration)> {
        let _tape = self.shared.advance();
        lock(&self.shared.desk).stop()
    }

    fn duck(&self, on: bool) {
        self.shared.controls.set_ducked(on);
    }

    fn set_volume(&self, volume: f32) {
        self.shared.controls.set_volume(volume);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::clock::FakeClock;
    use crate::kernel::ids::TurnId;
    use crate::voice::switch::{SpeakerSwitch, SwitchEvent, SwitchEvents};

    const SEGMENT: SegmentId = SegmentId { turn: TurnId(1), index: 0 };

    fn sound(ms: usize) -> Arc<Pcm> {
        Arc::new(Pcm { rate: 16_000, samples: vec![0.5; ms * 16] })
    }

    fn events(events: &mut SwitchEvents) -> Vec<SpeakerEvent> {
        std::iter::from_fn(|| events.try_next())
            .filter_map(|event| match event {
                SwitchEvent::Speaker(SpeakerEvent::Ready(_)) => None,
                SwitchEvent::Speaker(event) => Some(event),
                SwitchEvent::Changed { .. } => None,
            })
            .collect()
    }

    #[test]
    fn a_fast_recording_holds_the_segments_and_nothing_else() {
        let switch = SpeakerSwitch::default();
        let mut reports = switch.events().unwrap();
        let port = switch.port();
        let file = FileSpeaker::fast(port.clone(), 16_000);
        switch.use_speaker(&port, file.clone());
        switch.play(SEGMENT, sound(250));
        let seen = events(&mut reports);
        assert_eq!(seen.first(), Some(&SpeakerEvent::Started(SEGMENT)));
        assert_eq!(
            seen[seen.len() - 2..],
            [SpeakerEvent::Finished(SEGMENT), SpeakerEvent::Drained]
        );
        switch.play(SegmentId { index: 1, ..SEGMENT }, sound(9_000));
        let recording = file.recording();
        assert_eq!(recording.samples.len(), 9_250 * 16);
        assert!(recording.samples.iter().all(|sample| *sample == 0.5));
        assert_eq!(switch.stop(), None);
    }

    #[tokio::test]
    async fn a_paced_recording_has_every_sound_at_its_time() {
        let clock = FakeClock::shared();
        let switch = SpeakerSwitch::default();
        let mut reports = switch.events().unwrap();
        let port = switch.port();
        let file = FileSpeaker::paced(port.clone(), clock.clone(), 16_000);
        switch.use_speaker(&port, file.clone());
        let ms = Duration::from_millis;
        clock.advance(ms(500));
        switch.play(SEGMENT, sound(1000));
        clock.advance(ms(300));
        tokio::task::yield_now().await;
        assert_eq!(switch.stop(), Some((SEGMENT, ms(300))));
        clock.advance(ms(200));
        let recording = file.recording();
        let at = |ms: usize| recording.samples[ms * 16];
        assert_eq!(recording.samples.len(), 1000 * 16);
        assert_eq!((at(499), at(501), at(799)), (0.0, 0.5, 0.5));
        assert!(at(805) > 0.1 && at(805) < 0.4, "it fades");
        assert!(recording.samples[811 * 16..].iter().all(|sample| *sample == 0.0));
        let seen = events(&mut reports);
        assert_eq!(seen.first(), Some(&SpeakerEvent::Started(SEGMENT)));
        assert!(seen.contains(&SpeakerEvent::Progress(SEGMENT, ms(80))), "{seen:?}");
        assert!(!seen.contains(&SpeakerEvent::Finished(SEGMENT)));
    }
}
