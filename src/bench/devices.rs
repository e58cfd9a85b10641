//! Devices of a benchmark: a microphone that is told what to hear and knows when it was said, and a
//! speaker that notes when it was told what.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ears::{EchoPath, FRAME, RATE, Source, SourceEvent};
use crate::kernel::clock::Clock;
use crate::kernel::contracts::{MicState, MicStatus};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{Pcm, Speaker};

/// Loudness below which a sample is not speech: −46 dBFS.
const AUDIBLE: f32 = 0.005;

/// Length of a frame.
const FRAME_TIME: Duration = Duration::from_millis(FRAME as u64 * 1000 / RATE as u64);

/// When something that was said was heard, ms of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Said {
    /// Its first audible sample.
    pub onset_ms: f64,
    /// Its last audible sample.
    pub end_ms: f64,
}

#[derive(Default)]
struct Script {
    waiting: VecDeque<Vec<f32>>,
    said: Vec<Said>,
}

/// Says things into the [`ScriptedMicrophone`] that it came with.
#[derive(Clone)]
pub struct Speakers(Arc<Mutex<Script>>);

impl Speakers {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says `samples` (16 kHz) from the next frame on, behind what still waits.
    pub fn say(&self, samples: Vec<f32>) {
        self.script().waiting.push_back(samples);
    }

    /// What was said so far. The last one may still be going on; its end is where it has come to.
    pub fn said(&self) -> Vec<Said> {
        self.script().said.clone()
    }
}

/// A microphone in a quiet room, at the pace of the clock.
pub struct ScriptedMicrophone {
    speakers: Speakers,
    clock: Arc<dyn Clock>,
    next: Duration,
    speaking: Option<(Vec<f32>, usize, usize)>,
    noise: u32,
    told: bool,
}

impl ScriptedMicrophone {
    /// A microphone and what says things into it.
    pub fn new(clock: Arc<dyn Clock>) -> (Self, Speakers) {
        let speakers = Speakers(Arc::default());
        let next = clock.now() + FRAME_TIME;
        let microphone =
            Self { speakers: speakers.clone(), clock, next, speaking: None, noise: 1, told: false };
        (microphone, speakers)
    }

    /// Room noise at about −70 dBFS (a linear congruential generator; Numerical Recipes' constants).
    fn noise(&mut self) -> f32 {
        self.noise = self.noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.noise >> 16) as f32 / 65_536.0 * 0.0012 - 0.0006
    }

    fn fill(&mut self, samples: &mut [f32; FRAME], begin_ms: f64) {
        for (at, sample) in samples.iter_mut().enumerate() {
            *sample = self.noise();
            if self.speaking.is_none() {
                let next = self.speakers.script().waiting.pop_front();
                self.speaking = next.map(|speech| {
                    let last = speech.iter().rposition(|s| s.abs() > AUDIBLE).unwrap_or(0);
                    (speech, 0, last)
                });
                if self.speaking.is_some() {
                    self.speakers.script().said.push(Said::default());
                }
            }
            let Some((speech, position, last)) = &mut self.speaking else { continue };
            let spoken = speech.get(*position).copied().unwrap_or(0.0);
            *sample += spoken;
            let now_ms = begin_ms + at as f64 * 1000.0 / f64::from(RATE);
            if spoken.abs() > AUDIBLE
                && let Some(said) = self.speakers.script().said.last_mut()
            {
                if said.onset_ms == 0.0 {
                    said.onset_ms = now_ms;
                }
                if *position <= *last {
                    said.end_ms = now_ms;
                }
            }
            *position += 1;
            if *position >= speech.len() {
                self.speaking = None;
            }
        }
    }
}

impl Source for ScriptedMicrophone {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        if !std::mem::replace(&mut self.told, true) {
            let device = Some("script".to_owned());
            let status = MicStatus { state: MicState::Live, device, reason: None };
            return SourceEvent::Status(status);
        }
        let ahead = self.next.saturating_sub(self.clock.now());
        if ahead > wait {
            std::thread::sleep(wait);
            return SourceEvent::Idle;
        }
        std::thread::sleep(ahead);
        let at_ms = self.next.as_secs_f64() * 1000.0;
        self.next += FRAME_TIME;
        let mut samples = Box::new([0.0; FRAME]);
        self.fill(&mut samples, at_ms - FRAME_TIME.as_secs_f64() * 1000.0);
        SourceEvent::Frame { samples, at_ms }
    }

    fn echo_path(&self) -> EchoPath {
        EchoPath::None
    }
}

/// What a [`MeteredSpeaker`] was told, with when, ms of the clock.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// To play a segment whose sound is audible from so many ms on.
    Play {
        /// When.
        at_ms: f64,
        /// Which.
        segment: SegmentId,
        /// Silence at its head, ms.
        silence_ms: f64,
    },
    /// To stop.
    Stop {
        /// When.
        at_ms: f64,
    },
    /// To lower the sound.
    Duck {
        /// When.
        at_ms: f64,
    },
}

/// Notes what it is told and passes it on.
pub struct MeteredSpeaker {
    inner: Arc<dyn Speaker>,
    clock: Arc<dyn Clock>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl MeteredSpeaker {
    /// A meter in front of `inner`, and the notes that it takes.
    pub fn new(inner: Arc<dyn Speaker>, clock: Arc<dyn Clock>) -> (Arc<Self>, Notes) {
        let told: Arc<Mutex<Vec<Told>>> = Arc::default();
        let notes = Notes(Arc::clone(&told));
        (Arc::new(Self { inner, clock, told }), notes)
    }

    fn note(&self, told: Told) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }
}

impl Speaker for MeteredSpeaker {
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>) {
        let silent = pcm.samples.iter().position(|s| s.abs() > AUDIBLE).unwrap_or(0);
        let silence_ms = silent as f64 * 1000.0 / f64::from(pcm.rate.max(1));
        self.note(Told::Play { at_ms: self.clock.now_ms(), segment, silence_ms });
        self.inner.play(segment, pcm);
    }

    fn stop(&self) -> Option<(SegmentId, Duration)> {
        self.note(Told::Stop { at_ms: self.clock.now_ms() });
        self.inner.stop()
    }

    fn duck(&self, on: bool) {
        if on {
            self.note(Told::Duck { at_ms: self.clock.now_ms() });
        }
        self.inner.duck(on);
    }

    fn set_volume(&self, volume: f32) {
        self.inner.set_volume(volume);
    }
}

/// The notes of a [`MeteredSpeaker`].
#[derive(Clone)]
pub struct Notes(Arc<Mutex<Vec<Told>>>);

impl Notes {
    /// All so far.
    pub fn all(&self) -> Vec<Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::clock::SystemClock;

    #[test]
    fn the_microphone_knows_when_something_was_said() {
        let (mut microphone, speakers) = ScriptedMicrophone::new(Arc::new(SystemClock::default()));
        let mut speech = vec![0.0; 1600];
        speech.extend([0.5; 800]);
        speech.extend([0.0; 800]);
        speakers.say(speech);
        let mut begun = None;
        while speakers.said().len() != 1 || speakers.said()[0].end_ms == 0.0 || begun.is_none() {
            if let SourceEvent::Frame { at_ms, .. } = microphone.next(Duration::from_millis(100)) {
                begun.get_or_insert(at_ms - 32.0);
            }
        }
        for _ in 0..5 {
            microphone.next(Duration::from_millis(100));
        }
        let said = speakers.said()[0];
        let begun = begun.unwrap();
        assert!((said.onset_ms - begun - 100.0).abs() < 0.1, "{said:?} {begun}");
        assert!((said.end_ms - begun - 150.0).abs() < 0.1, "{said:?} {begun}");
    }
}
