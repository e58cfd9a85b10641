//! Between the calls of a speaker and the audio callback: resamples, fills the ring, reports.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use ringbuf::traits::{Consumer, Observer, Producer};

use super::deck::{Chunk, Controls, Feed, Report};
use super::output::{Choice, Output};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{EchoReference, Pcm, SpeakerEvent};
use crate::kernel::resample::Resampler;
use crate::voice::switch::SpeakerPort;
use crate::voice::track::PROGRESS;

/// Sound that is resampled and handed over at once.
const CHUNK_MS: usize = 100;
/// A device that asks for nothing for so long is gone.
const DEAD: Duration = Duration::from_secs(1);
/// How often a better device is looked for.
const LOOK: Duration = Duration::from_secs(2);
/// Waits between attempts to open a device: the first, and the longest.
const RETRY: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(4));

/// The calls' side: what is queued and what of it is where.
pub(in crate::voice) struct Desk {
    controls: Arc<Controls>,
    epoch: u64,
    next_serial: u32,
    /// Rate of the open device, Hz.
    rate: u32,
    /// Segments that the feeder has not taken yet.
    queue: VecDeque<(u32, Arc<Pcm>)>,
    /// Segments that are not finished, oldest first.
    live: VecDeque<(u32, SegmentId)>,
}

impl Desk {
    pub(super) fn new(controls: Arc<Controls>) -> Self {
        Self {
            controls,
            epoch: 0,
            next_serial: 0,
            rate: 0,
            queue: VecDeque::new(),
            live: VecDeque::new(),
        }
    }

    pub(super) fn play(&mut self, segment: SegmentId, pcm: Arc<Pcm>) {
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        self.queue.push_back((serial, pcm));
        self.live.push_back((serial, segment));
    }

    pub(super) fn stop(&mut self) -> Option<(SegmentId, Duration)> {
        self.epoch = self.controls.stop();
        let (serial, _) = self.controls.position();
        let playing = self.segment(serial).map(|segment| (segment, self.played()));
        self.queue.clear();
        self.live.clear();
        playing
    }

    fn segment(&self, serial: u32) -> Option<SegmentId> {
        self.live.iter().find(|(live, _)| *live == serial).map(|(_, segment)| *segment)
    }

    fn played(&self) -> Duration {
        let (_, samples) = self.controls.position();
        Duration::from_secs_f64(f64::from(samples) / f64::from(self.rate.max(1)))
    }
}

/// A segment that is being resampled.
struct Loading {
    serial: u32,
    epoch: u64,
    pcm: Arc<Pcm>,
    at: usize,
    resampler: Option<Resampler>,
    /// A chunk for which the ring had no room.
    ready: Option<Chunk>,
}

/// The thread `speaker`.
pub(in crate::voice) struct Feeder {
    wanted: String,
    echo: Option<Arc<dyn EchoReference>>,
    port: SpeakerPort,
    desk: Weak<Mutex<Desk>>,
    controls: Arc<Controls>,
    output: Option<(Output, Feed)>,
    loading: Option<Loading>,
    /// The port was told that there is no device.
    lost: bool,
    retry: (Instant, Duration),
    look: Instant,
    alive: (u64, Instant),
    progress: (u32, Duration),
}

impl Feeder {
    pub(super) fn new(
        wanted: &str,
        echo: Option<Arc<dyn EchoReference>>,
        port: SpeakerPort,
        desk: Weak<Mutex<Desk>>,
        controls: Arc<Controls>,
    ) -> Self {
        let now = Instant::now();
        Self {
            wanted: wanted.to_owned(),
            echo,
            port,
            desk,
            controls,
            output: None,
            loading: None,
            lost: false,
            retry: (now, RETRY.0),
            look: now,
            alive: (0, now),
            progress: (0, Duration::ZERO),
        }
    }

    /// Runs until the speaker is dropped.
    pub(super) fn run(mut self) {
        while let Some(desk) = self.desk.upgrade() {
            let now = Instant::now();
            self.keep_open(&desk, now);
            self.feed(&desk);
            let busy = self.report(&desk);
            drop(desk);
            // A new segment, a stop and each report wake the thread; the rest is looking after things.
            thread::park_timeout(match (&self.output, busy) {
                (Some(_), true) => PROGRESS / 4,
                (Some(_), false) => DEAD / 2,
                (None, _) => self.retry.0.saturating_duration_since(now).max(RETRY.0 / 10),
            });
        }
    }

    /// Opens the device, notices its loss, follows the person's choice.
    fn keep_open(&mut self, desk: &Mutex<Desk>, now: Instant) {
        if let Some((output, _)) = &self.output {
            let blocks = self.controls.blocks();
            if blocks != self.alive.0 {
                self.alive = (blocks, now);
            }
            let gone = output.error().or_else(|| {
                (now.saturating_duration_since(self.alive.1) >= DEAD)
                    .then(|| "the output device takes no more sound".to_owned())
            });
            if let Some(reason) = gone {
                return self.lose(desk, reason, now);
            }
            if now >= self.look && lock(desk).live.is_empty() {
                self.look = now + LOOK;
                if output.is_outdated(&self.wanted) {
                    self.output = None;
                    self.retry = (now, RETRY.0);
                }
            }
        }
        if self.output.is_none() && now >= self.retry.0 {
            let opened = Choice::make(&self.wanted)
                .and_then(|choice| Output::open(choice, self.echo.clone(), &self.controls));
            match opened {
                Ok((output, feed)) => {
                    lock(desk).rate = output.rate();
                    self.alive = (self.controls.blocks(), Instant::now());
                    self.look = Instant::now() + LOOK;
                    self.retry.1 = RETRY.0;
                    self.lost = false;
                    tracing::info!(device = output.name(), rate = output.rate(), "speaker open");
                    self.port.send(SpeakerEvent::Ready(output.name().to_owned()));
                    self.output = Some((output, feed));
                }
                Err(reason) => self.lose(desk, reason, now),
            }
        }
    }

    fn lose(&mut self, desk: &Mutex<Desk>, reason: String, now: Instant) {
        self.output = None;
        self.loading = None;
        self.retry = (now + self.retry.1, (self.retry.1 * 2).min(RETRY.1));
        let mut desk = lock(desk);
        // What was queued is lost with the device.
        desk.stop();
        if !std::mem::replace(&mut self.lost, true) {
            tracing::warn!(reason, "speaker lost");
            self.port.send(SpeakerEvent::Lost(reason));
        }
    }

    /// Resamples and hands over as much as the ring takes.
    fn feed(&mut self, desk: &Mutex<Desk>) {
        let Some((output, feed)) = &mut self.output else { return };
        feed.free();
        loop {
            if self.loading.as_ref().is_none_or(|l| l.epoch != lock(desk).epoch) {
                self.loading = begin(desk, output.rate());
            }
            let Some(loading) = &mut self.loading else { return };
            if loading.ready.is_none() {
                loading.ready = Some(loading.chunk());
            }
            if feed.chunks.is_full() {
                return;
            }
            if let Some(chunk) = loading.ready.take() {
                let last = chunk.last;
                let _ = feed.chunks.try_push(chunk);
                if last {
                    self.loading = None;
                }
            }
        }
    }

    /// Passes the callback's reports on; says whether something plays.
    fn report(&mut self, desk: &Mutex<Desk>) -> bool {
        let Some((output, feed)) = &mut self.output else { return false };
        // Under the lock, so that no event of a segment follows the stop that dropped it.
        let mut desk = lock(desk);
        while let Some(report) = feed.reports.try_pop() {
            match report {
                Report::Started(serial) => {
                    if let Some(segment) = desk.segment(serial) {
                        self.progress = (serial, Duration::ZERO);
                        self.port.send(SpeakerEvent::Started(segment));
                    }
                }
                Report::Finished(serial) => {
                    if let Some(segment) = desk.segment(serial) {
                        desk.live.retain(|(live, _)| *live != serial);
                        self.port.send(SpeakerEvent::Finished(segment));
                        if desk.live.is_empty() {
                            self.port.send(SpeakerEvent::Drained);
                        }
                    }
                }
            }
        }
        let (serial, _) = self.controls.position();
        if let Some(segment) = desk.segment(serial)
            && self.progress.0 == serial
        {
            // What the device still holds has not left for the ear.
            let played = desk.played().saturating_sub(output.latency());
            if played >= self.progress.1 + PROGRESS * 3 / 4 {
                self.progress.1 = played;
                self.port.send(SpeakerEvent::Progress(segment, played));
            }
        }
        !desk.live.is_empty()
    }
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin(desk: &Mutex<Desk>, rate: u32) -> Option<Loading> {
    let mut desk = lock(desk);
    let (serial, pcm) = desk.queue.pop_front()?;
    let epoch = desk.epoch;
    drop(desk);
    let resampler = match Resampler::new(pcm.rate, rate) {
        Ok(resampler) => Some(resampler),
        Err(error) => {
            tracing::error!(%error, "a segment can't be played");
            None
        }
    };
    Some(Loading { serial, epoch, pcm, at: 0, resampler, ready: None })
}

impl Loading {
    /// The next chunk at the device's rate; of a sound that can't be resampled an empty last one.
    fn chunk(&mut self) -> Chunk {
        let first = self.at == 0;
        let mut samples = Vec::new();
        let size = (self.pcm.rate as usize * CHUNK_MS / 1000).max(1);
        let end = self.at.saturating_add(size).min(self.pcm.samples.len());
        let part = self.pcm.samples.get(self.at..end).unwrap_or_default();
        self.at = end;
        let mut last = self.at >= self.pcm.samples.len();
        match &mut self.resampler {
            Some(resampler) => {
                resampler.push(part, &mut samples);
                if last {
                    resampler.flush(&mut samples);
                }
            }
            None => last = true,
        }
        Chunk { epoch: self.epoch, serial: self.serial, samples, first, last }
    }
}
