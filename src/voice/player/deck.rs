//! The audio callback's side of a player: takes chunks of sound from a ring, applies loudness, ducking
//! and fades, and says how far it is. It never allocates, locks or blocks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use ringbuf::traits::{Consumer, Producer, Split};
use ringbuf::{HeapCons, HeapProd, HeapRb};

use crate::voice::tap::Tap;

/// −18 dB.
const DUCKED: f32 = 0.125_892_54;
/// A stop fades out in this time; the loudness falls from full to nothing in it, too.
const FALL_S: f32 = 0.010;
/// Loudness rises from nothing to full in this time.
const RISE_S: f32 = 0.100;
/// Chunks that fit between the feeder and the callback.
const CHUNKS: usize = 64;
/// Reports that fit the other way.
const REPORTS: usize = 1024;

/// What both sides share. All of it is atomic.
#[derive(Debug)]
pub(in crate::voice) struct Controls {
    /// Grows with every stop; chunks of an older epoch are dropped.
    epoch: AtomicU64,
    ducked: AtomicBool,
    volume: AtomicU32,
    /// Serial of the segment and its samples that were played: see [`Controls::position`].
    position: AtomicU64,
    /// Blocks that were asked for, so that a dead device is noticed.
    blocks: AtomicU64,
}

impl Default for Controls {
    fn default() -> Self {
        Self {
            epoch: AtomicU64::new(0),
            ducked: AtomicBool::new(false),
            volume: AtomicU32::new(1.0_f32.to_bits()),
            position: AtomicU64::new(u64::MAX),
            blocks: AtomicU64::new(0),
        }
    }
}

impl Controls {
    pub(in crate::voice) fn set_ducked(&self, on: bool) {
        self.ducked.store(on, Ordering::Relaxed);
    }

    pub(in crate::voice) fn set_volume(&self, volume: f32) {
        let volume = if volume.is_finite() { volume.clamp(0.0, 1.0) } else { 0.0 };
        self.volume.store(volume.to_bits(), Ordering::Relaxed);
    }

    /// Fades out and drops everything that was handed over; returns the epoch of what comes next.
    pub(in crate::voice) fn stop(&self) -> u64 {
        self.epoch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// The segment that plays or played last, and how many samples of it were played.
    pub(in crate::voice) fn position(&self) -> (u32, u32) {
        let packed = self.position.load(Ordering::Acquire);
        ((packed >> 32) as u32, packed as u32)
    }

    pub(in crate::voice) fn blocks(&self) -> u64 {
        self.blocks.load(Ordering::Relaxed)
    }
}

/// Some of a segment's sound, at the deck's rate.
#[derive(Debug)]
pub(in crate::voice) struct Chunk {
    pub(in crate::voice) epoch: u64,
    /// Number of the segment.
    pub(in crate::voice) serial: u32,
    pub(in crate::voice) samples: Vec<f32>,
    pub(in crate::voice) first: bool,
    pub(in crate::voice) last: bool,
}

/// What the callback tells the feeder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::voice) enum Report {
    Started(u32),
    Finished(u32),
}

/// The feeder's ends of the rings.
pub(in crate::voice) struct Feed {
    pub(in crate::voice) chunks: HeapProd<Chunk>,
    pub(in crate::voice) reports: HeapCons<Report>,
    empties: HeapCons<Vec<f32>>,
}

impl Feed {
    /// Frees what was played; the callback must not.
    pub(in crate::voice) fn free(&mut self) {
        self.empties.clear();
    }
}

/// The callback's state.
pub(in crate::voice) struct Deck {
    controls: Arc<Controls>,
    chunks: HeapCons<Chunk>,
    reports: HeapProd<Report>,
    empties: HeapProd<Vec<f32>>,
    wake: Option<std::thread::Thread>,
    tap: Option<Tap>,
    /// From the callback to the ear, for the tap.
    latency: Duration,
    epoch: u64,
    current: Option<Chunk>,
    /// The segment that was begun and neither ended nor stopped, between its chunks too.
    playing: Option<u32>,
    at: usize,
    played: u32,
    gain: f32,
    fall: f32,
    rise: f32,
    /// The fade of a stop; `None` while nothing is being stopped.
    fade: Option<Fade>,
}

/// A segment that was stopped and is not silent yet.
struct Fade {
    serial: u32,
    gain: f32,
}

/// A deck and the other ends of its rings. `wake` is unparked when there is a report.
pub(in crate::voice) fn deck(
    rate: u32,
    controls: Arc<Controls>,
    wake: Option<std::thread::Thread>,
    tap: Option<Tap>,
    latency: Duration,
) -> (Deck, Feed) {
    let (chunk_in, chunk_out) = HeapRb::new(CHUNKS).split();
    let (report_in, report_out) = HeapRb::new(REPORTS).split();
    // Room for every chunk that can be under way, so that none is ever freed in the callback.
    let (empty_in, empty_out) = HeapRb::new(2 * CHUNKS).split();
    let epoch = controls.epoch.load(Ordering::Acquire);
    let deck = Deck {
        gain: f32::from_bits(controls.volume.load(Ordering::Relaxed)),
        controls,
        chunks: chunk_out,
        reports: report_in,
        empties: empty_in,
        wake,
        tap,
        latency,
        epoch,
        current: None,
        playing: None,
        at: 0,
        played: 0,
        fall: 1.0 / (FALL_S * rate as f32),
        rise: 1.0 / (RISE_S * rate as f32),
        fade: None,
    };
    (deck, Feed { chunks: chunk_in, reports: report_out, empties: empty_out })
}

impl Deck {
    /// Fills the next block of mono sound.
    pub(in crate::voice) fn fill(&mut self, block: &mut [f32]) {
        let epoch = self.controls.epoch.load(Ordering::Acquire);
        if epoch != self.epoch {
            self.epoch = epoch;
            if let (Some(serial), None) = (self.playing.take(), &self.fade) {
                self.fade = Some(Fade { serial, gain: 1.0 });
            }
        }
        let volume = f32::from_bits(self.controls.volume.load(Ordering::Relaxed));
        let ducked = self.controls.ducked.load(Ordering::Relaxed);
        let target = if ducked { volume * DUCKED } else { volume };
        let mut woke = false;
        for out in block.iter_mut() {
            self.gain = if self.gain > target {
                (self.gain - self.fall).max(target)
            } else {
                (self.gain + self.rise).min(target)
            };
            let sample = self.next(&mut woke);
            let fade = match &mut self.fade {
                None => 1.0,
                Some(fade) => {
                    fade.gain -= self.fall;
                    fade.gain
                }
            };
            if fade <= 0.0 {
                self.fade = None;
                self.drop_current();
                *out = 0.0;
            } else {
                *out = sample * self.gain * fade;
            }
        }
        self.controls.blocks.fetch_add(1, Ordering::Relaxed);
        if woke && let Some(thread) = &self.wake {
            thread.unpark();
        }
        if let Some(tap) = &mut self.tap {
            tap.push(block, self.latency);
        }
    }

    fn next(&mut self, woke: &mut bool) -> f32 {
        if self.current.is_none() && !self.load(woke) {
            return 0.0;
        }
        let Some(chunk) = &self.current else { return 0.0 };
        let sample = chunk.samples.get(self.at).copied().unwrap_or(0.0);
        self.at += 1;
        let (serial, last) = (chunk.serial, chunk.last);
        let over = self.at >= chunk.samples.len();
        self.played = self.played.saturating_add(1);
        let position = u64::from(serial) << 32 | u64::from(self.played);
        self.controls.position.store(position, Ordering::Release);
        if over {
            self.drop_current();
            if last && self.fade.is_none() {
                self.playing = None;
                *woke |= self.reports.try_push(Report::Finished(serial)).is_ok();
            }
        }
        sample
    }

    /// Takes the next chunk that counts; `false` when there is none.
    fn load(&mut self, woke: &mut bool) -> bool {
        loop {
            let Some(chunk) = self.chunks.try_pop() else {
                // The segment that was fading ended before the fade did.
                self.fade = None;
                return false;
            };
            let stopped = chunk.epoch != self.epoch;
            let fades = self.fade.as_ref().is_some_and(|fade| fade.serial == chunk.serial);
            if stopped && fades && !chunk.samples.is_empty() {
                self.at = 0;
                self.current = Some(chunk);
                return true;
            }
            self.fade = None;
            if stopped || chunk.samples.is_empty() {
                let (serial, last) = (chunk.serial, chunk.last);
                let _ = self.empties.try_push(chunk.samples);
                if !stopped && last {
                    self.playing = None;
                    *woke |= self.reports.try_push(Report::Finished(serial)).is_ok();
                }
                continue;
            }
            if chunk.first {
                self.playing = Some(chunk.serial);
                self.played = 0;
                *woke |= self.reports.try_push(Report::Started(chunk.serial)).is_ok();
            }
            self.at = 0;
            self.current = Some(chunk);
            return true;
        }
    }

    fn drop_current(&mut self) {
        if let Some(chunk) = self.current.take() {
            // There is room: see `deck`.
            let _ = self.empties.try_push(chunk.samples);
        }
    }

    /// Samples of the playing and the waiting chunks.
    pub(in crate::voice) fn remaining(&self) -> usize {
        let playing = self.current.as_ref().map_or(0, |c| c.samples.len().saturating_sub(self.at));
        playing + self.chunks.iter().map(|chunk| chunk.samples.len()).sum::<usize>()
    }
}

#[cfg(test)]
#[path = "deck_tests.rs"]
mod tests;
