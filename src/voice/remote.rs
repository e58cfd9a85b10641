//! A remote device as a speaker: sound goes down as it is made, acknowledgements come up.

use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::pace::{Paced, Pacer};
use super::switch::SpeakerPort;
use super::track::Track;
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{Pcm, RemoteAcks, RemoteHello, RemoteOut, Speaker, SpeakerEvent};
use crate::kernel::resample::Resampler;
use crate::kernel::wav::to_s16;

/// Rates that a device may ask for, Hz.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;
/// Sound in one frame.
const FRAME_MS: usize = 40;
/// Messages that wait for a device: at least half a minute of sound. Alice makes speech faster than it
/// is spoken, and the device keeps what it can't play yet; one that does not read is let go.
const WAITING: usize = 1_024;

/// Plays on a device at the other end of a line. For a device that does not acknowledge the clock
/// stands in: sound is taken to play from the moment that the first of it was sent.
pub struct RemoteSpeaker {
    shared: Pacer<Shared>,
    jobs: Mutex<std_mpsc::Sender<(u64, SegmentId, Arc<Pcm>)>>,
}

struct Shared {
    name: String,
    rate: u32,
    /// The device sets the volume, not the samples.
    sets_volume: bool,
    clock: Arc<dyn Clock>,
    port: SpeakerPort,
    state: Mutex<State>,
}

struct State {
    /// `None` once the device is gone or does not read.
    out: Option<mpsc::Sender<RemoteOut>>,
    /// Grows with every stop.
    epoch: u64,
    track: Track,
    /// The device acknowledges, so the clock is not asked.
    acknowledges: bool,
    volume: f32,
}

/// The three ends of a remote speaker: what plays, where acknowledgements go, what is sent down.
pub type RemoteEnds = (Arc<dyn Speaker>, Box<dyn RemoteAcks>, mpsc::Receiver<RemoteOut>);

impl RemoteSpeaker {
    /// A speaker for a device that wants sound (`output_rate` is not 0). Must be made inside a tokio
    /// runtime.
    ///
    /// # Errors
    /// One line: a rate outside 8–48 kHz, or no thread can be started.
    #[expect(clippy::new_ret_no_self, reason = "the speaker is used through its trait only")]
    pub fn new(
        hello: &RemoteHello,
        port: SpeakerPort,
        clock: Arc<dyn Clock>,
    ) -> Result<RemoteEnds, String> {
        let rate = hello.output_rate;
        if !RATES.contains(&rate) {
            return Err(format!("output rate {rate} Hz is not supported: use 8000 to 48000 Hz"));
        }
        let name = if hello.name.is_empty() { "remote device" } else { &hello.name };
        let (out, queue) = mpsc::channel(WAITING);
        let state = State {
            out: Some(out),
            epoch: 0,
            track: Track::default(),
            acknowledges: hello.acknowledges,
            volume: 1.0,
        };
        let state = Mutex::new(state);
        let (name, sets_volume) = (name.to_owned(), hello.sets_volume);
        let shared = Pacer::start(Shared { name, rate, sets_volume, clock, port, state });
        let (jobs, asked) = std_mpsc::channel();
        let (sender, wake) = shared.share();
        std::thread::Builder::new()
            .name("remote speaker".into())
            .spawn(move || send(&sender, &wake, &asked))
            .map_err(|error| format!("no thread for the device: {error}"))?;
        shared.port.send(SpeakerEvent::Ready(shared.name.clone()));
        let acks = Box::new(Acks(shared.share().0));
        let speaker = Arc::new(Self { shared, jobs: Mutex::new(jobs) });
        Ok((speaker, acks, queue))
    }
}

/// The thread that resamples and sends, so that nobody waits for it.
fn send(
    shared: &Weak<Shared>,
    wake: &Notify,
    asked: &std_mpsc::Receiver<(u64, SegmentId, Arc<Pcm>)>,
) {
    while let Ok((epoch, segment, pcm)) = asked.recv() {
        let Some(shared) = shared.upgrade() else { return };
        let mut resampler = match Resampler::new(pcm.rate, shared.rate) {
            Ok(resampler) => resampler,
            Err(error) => {
                tracing::error!(%error, "a segment can't be sent");
                shared.pass(epoch, RemoteOut::End(segment));
                continue;
            }
        };
        let duration_ms = pcm.duration_ms();
        if !shared.pass(epoch, RemoteOut::Start { segment, duration_ms }) {
            continue;
        }
        let mut frame = Vec::new();
        let mut begun = false;
        let size = (pcm.rate as usize * FRAME_MS / 1000).max(1);
        let mut parts = pcm.samples.chunks(size).peekable();
        while let Some(part) = parts.next() {
            frame.clear();
            resampler.push(part, &mut frame);
            if parts.peek().is_none() {
                resampler.flush(&mut frame);
            }
            if !std::mem::replace(&mut begun, true) {
                shared.begin(epoch, segment, duration_ms);
                wake.notify_one();
            }
            if !shared.sound(epoch, &frame) {
                break;
            }
        }
        shared.pass(epoch, RemoteOut::End(segment));
    }
}

/// Without acknowledgements: reports what the clock says.
impl Paced for Shared {
    fn keep_up(&self) -> Option<BoxFuture<'static, ()>> {
        let state = self.advance();
        let wait = if state.acknowledges { None } else { state.track.next_event() }?;
        Some(self.clock.sleep(wait))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self) -> MutexGuard<'_, State> {
        let mut state = self.state();
        if !state.acknowledges {
            for event in state.track.advance(self.clock.now()) {
                self.port.send(event);
            }
        }
        state
    }

    /// The first sound of a segment is sent now.
    fn begin(&self, epoch: u64, segment: SegmentId, duration_ms: f64) {
        let mut state = self.advance();
        if state.epoch == epoch {
            let length = Duration::from_secs_f64(duration_ms / 1000.0);
            state.track.push(segment, length, self.clock.now());
        }
    }

    fn sound(&self, epoch: u64, samples: &[f32]) -> bool {
        let volume = if self.sets_volume { 1.0 } else { self.state().volume };
        self.pass(epoch, RemoteOut::Sound(samples.iter().map(|s| to_s16(s * volume)).collect()))
    }

    /// Sends something of an epoch; `false` when that is over or the device is gone.
    fn pass(&self, epoch: u64, message: RemoteOut) -> bool {
        let mut state = self.state();
        state.epoch == epoch && self.put(&mut state, message)
    }

    fn put(&self, state: &mut State, message: RemoteOut) -> bool {
        let Some(out) = &state.out else { return false };
        let reason = match out.try_send(message) {
            Ok(()) => return true,
            Err(mpsc::error::TrySendError::Full(_)) => "does not take its sound",
            Err(mpsc::error::TrySendError::Closed(_)) => "is gone",
        };
        // Closing the line tells the server to disconnect the device.
        state.out = None;
        state.track.stop();
        self.port.send(SpeakerEvent::Lost(format!("`{}` {reason}", self.name)));
        false
    }
}

impl Speaker for RemoteSpeaker {
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>) {
        let epoch = self.shared.state().epoch;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends with this speaker only.
        let _ = jobs.send((epoch, segment, pcm));
    }

    fn stop(&self) -> Option<(SegmentId, Duration)> {
        let mut state = self.shared.advance();
        state.epoch += 1;
        let heard = state.track.stop();
        let turn = heard.map(|(segment, _)| segment.turn);
        self.shared.put(&mut state, RemoteOut::Flush { turn });
        heard
    }

    fn duck(&self, on: bool) {
        self.shared.put(&mut self.shared.state(), RemoteOut::Duck(on));
    }

    fn set_volume(&self, volume: f32) {
        let volume = if volume.is_finite() { volume.clamp(0.0, 1.0) } else { 0.0 };
        let mut state = self.shared.state();
        state.volume = volume;
        if self.shared.sets_volume {
            self.shared.put(&mut state, RemoteOut::Volume(volume));
        }
    }
}

struct Acks(Weak<Shared>);

impl Acks {
    fn take(&self, segment: SegmentId, played: Option<Duration>) {
        let Some(shared) = self.0.upgrade() else { return };
        let mut state = shared.state();
        // An acknowledgement of something unknown (flushed, or never sent) says nothing.
        let events = state.track.acknowledge(segment, played);
        state.acknowledges |= !events.is_empty();
        for event in events {
            shared.port.send(event);
        }
    }
}

impl RemoteAcks for Acks {
    fn played(&mut self, segment: SegmentId, played: Duration) {
        self.take(segment, Some(played));
    }

    fn finished(&mut self, segment: SegmentId) {
        self.take(segment, None);
    }

    fn waiting(&mut self, segment: SegmentId) {
        let Some(shared) = self.0.upgrade() else { return };
        let mut state = shared.state();
        if state.track.holds(segment) {
            state.acknowledges = true;
            shared.port.send(SpeakerEvent::Waiting(segment));
        }
    }
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
