//! Between the calls of a speaker and its deck: resamples, fills the ring, reports.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringbuf::traits::{Consumer, Observer, Producer};

use super::deck::{Chunk, Controls, Feed, Report};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{Pcm, SpeakerEvent};
use crate::kernel::resample::Resampler;
use crate::voice::switch::SpeakerPort;
use crate::voice::track::PROGRESS;

/// Sound that is resampled and handed over at once.
const CHUNK_MS: usize = 100;

/// The calls' side: what is queued and what of it is where.
pub(in crate::voice) struct Desk {
    controls: Arc<Controls>,
    epoch: u64,
    next_serial: u32,
    /// Rate of the open device, Hz.
    pub(in crate::voice) rate: u32,
    /// Segments that the feeder has not taken yet.
    queue: VecDeque<(u32, Arc<Pcm>)>,
    /// Segments that are not finished, oldest first.
    live: VecDeque<(u32, SegmentId)>,
}

impl Desk {
    pub(in crate::voice) fn new(controls: Arc<Controls>, rate: u32) -> Self {
        Self {
            controls,
            epoch: 0,
            next_serial: 0,
            rate,
            queue: VecDeque::new(),
            live: VecDeque::new(),
        }
    }

    pub(in crate::voice) fn play(&mut self, segment: SegmentId, pcm: Arc<Pcm>) {
        let serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1);
        self.queue.push_back((serial, pcm));
        self.live.push_back((serial, segment));
    }

    pub(in crate::voice) fn stop(&mut self) -> Option<(SegmentId, Duration)> {
        self.epoch = self.controls.stop();
        let (serial, _) = self.controls.position();
        let playing = self.segment(serial).map(|segment| (segment, self.played()));
        self.queue.clear();
        self.live.clear();
        playing
    }

    /// Nothing waits and nothing plays.
    pub(in crate::voice) fn is_idle(&self) -> bool {
        self.live.is_empty()
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

/// What is under way from a desk to a deck.
#[derive(Default)]
pub(in crate::voice) struct Line {
    loading: Option<Loading>,
    progress: (u32, Duration),
}

impl Line {
    /// Resamples and hands over as much as the ring takes.
    pub(in crate::voice) fn feed(&mut self, desk: &Mutex<Desk>, feed: &mut Feed) {
        feed.free();
        loop {
            if self.loading.as_ref().is_none_or(|loading| loading.epoch != lock(desk).epoch) {
                self.loading = begin(desk);
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

    /// Passes the deck's reports on; says whether something plays or waits. What the device still
    /// holds, `latency`, has not left for the ear.
    pub(in crate::voice) fn report(
        &mut self,
        desk: &Mutex<Desk>,
        feed: &mut Feed,
        port: &SpeakerPort,
        latency: Duration,
    ) -> bool {
        // Under the lock, so that no event of a segment follows the stop that dropped it.
        let mut desk = lock(desk);
        while let Some(report) = feed.reports.try_pop() {
            match report {
                Report::Started(serial) => {
                    if let Some(segment) = desk.segment(serial) {
                        self.progress = (serial, Duration::ZERO);
                        port.send(SpeakerEvent::Started(segment));
                    }
                }
                Report::Finished(serial) => {
                    if let Some(segment) = desk.segment(serial) {
                        desk.live.retain(|(live, _)| *live != serial);
                        port.send(SpeakerEvent::Finished(segment));
                        if desk.is_idle() {
                            port.send(SpeakerEvent::Drained);
                        }
                    }
                }
            }
        }
        let (serial, _) = desk.controls.position();
        if let Some(segment) = desk.segment(serial)
            && self.progress.0 == serial
        {
            let played = desk.played().saturating_sub(latency);
            if played >= self.progress.1 + PROGRESS * 3 / 4 {
                self.progress.1 = played;
                port.send(SpeakerEvent::Progress(segment, played));
            }
        }
        !desk.is_idle()
    }
}

pub(in crate::voice) fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin(desk: &Mutex<Desk>) -> Option<Loading> {
    let mut desk = lock(desk);
    let (serial, pcm) = desk.queue.pop_front()?;
    let (epoch, rate) = (desk.epoch, desk.rate);
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
