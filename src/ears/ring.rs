//! The ring between an audio callback and the ears: one writer that never waits, one reader, and
//! when the reader falls behind the oldest sound is lost, and counted.
//!
//! The crates' single-producer rings can only refuse the newest sound when they are full. This one
//! overwrites: samples are stored as atomics, the reader copies and then looks whether the writer
//! has passed it meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::kernel::clock::Clock;

/// Sound that is kept for a reader that is behind, seconds.
const SECONDS: usize = 2;

struct Shared {
    rate: u32,
    samples: Box<[AtomicU32]>,
    /// Samples that were written since the start, and those that are being written.
    written: AtomicU64,
    claimed: AtomicU64,
    /// Bits of the time, in ms, at which sample 0 would have been captured if the sound had no gap.
    origin: AtomicU64,
}

impl Shared {
    fn slots(&self, from: u64) -> impl Iterator<Item = &AtomicU32> {
        let start = usize::try_from(from % self.samples.len() as u64).unwrap_or(0);
        self.samples.iter().cycle().skip(start)
    }
}

/// The end that the callback holds.
pub struct Writer(Arc<Shared>);

/// The end that the ears hold.
pub struct Reader {
    shared: Arc<Shared>,
    read: u64,
    lost: u64,
}

/// A ring for mono sound of `rate` Hz.
pub fn ring(rate: u32) -> (Writer, Reader) {
    let room = (rate as usize * SECONDS).max(1);
    let shared = Arc::new(Shared {
        rate: rate.max(1),
        samples: (0..room).map(|_| AtomicU32::new(0)).collect(),
        written: AtomicU64::new(0),
        claimed: AtomicU64::new(0),
        origin: AtomicU64::new(0f64.to_bits()),
    });
    (Writer(Arc::clone(&shared)), Reader { shared, read: 0, lost: 0 })
}

impl Writer {
    /// Samples that were written so far.
    pub fn written(&self) -> u64 {
        self.0.written.load(Ordering::Relaxed)
    }

    /// Appends `count` samples of silence, at the cost of a full ring at most.
    pub fn silence(&mut self, count: u64) {
        let shared = &*self.0;
        let from = shared.written.load(Ordering::Relaxed);
        let to = from + count;
        shared.claimed.store(to, Ordering::Relaxed);
        fence(Ordering::Release);
        let room = shared.samples.len() as u64;
        let kept = usize::try_from(count.min(room)).unwrap_or(0);
        for slot in shared.slots(to - kept as u64).take(kept) {
            slot.store(0f32.to_bits(), Ordering::Relaxed);
        }
        shared.written.store(to, Ordering::Release);
    }

    /// Says when sample 0 was (or would have been) heard, ms, without writing anything.
    pub fn set_origin(&mut self, origin_ms: f64) {
        self.0.origin.store(origin_ms.to_bits(), Ordering::Relaxed);
    }

    /// Appends samples, the last of which was captured at `at_ms`. Neither allocates, locks nor
    /// waits.
    pub fn write(&mut self, samples: impl ExactSizeIterator<Item = f32>, at_ms: f64) {
        let shared = &*self.0;
        let from = shared.written.load(Ordering::Relaxed);
        let to = from + samples.len() as u64;
        // Whoever reads a slot after this knows that it may be torn.
        shared.claimed.store(to, Ordering::Relaxed);
        fence(Ordering::Release);
        for (slot, sample) in shared.slots(from).zip(samples) {
            slot.store(sample.to_bits(), Ordering::Relaxed);
        }
        let origin = at_ms - to as f64 * 1000.0 / f64::from(shared.rate);
        shared.origin.store(origin.to_bits(), Ordering::Relaxed);
        shared.written.store(to, Ordering::Release);
    }
}

impl Reader {
    /// Rate of the sound, Hz.
    pub fn rate(&self) -> u32 {
        self.shared.rate
    }

    /// When sample 0 was captured, ms, as the last write knew it.
    pub fn origin_ms(&self) -> f64 {
        f64::from_bits(self.shared.origin.load(Ordering::Relaxed))
    }

    /// The sample that is read next.
    pub fn position(&self) -> u64 {
        self.read
    }

    /// Reads on from another sample, if it is still there, else from the oldest. Nothing counts as
    /// lost for it.
    pub fn seek(&mut self, position: u64) {
        let written = self.shared.written.load(Ordering::Acquire);
        let oldest = written.saturating_sub(self.shared.samples.len() as u64);
        self.read = position.clamp(oldest, written);
    }

    /// Samples that were overwritten before they were read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Samples that wait to be read.
    pub fn waiting(&self) -> usize {
        let behind = self.shared.written.load(Ordering::Acquire).saturating_sub(self.read);
        usize::try_from(behind).unwrap_or(usize::MAX).min(self.shared.samples.len())
    }

    /// When the last sample that was read was captured, ms, as the last write knew it.
    pub fn at_ms(&self) -> f64 {
        self.origin_ms() + self.read as f64 * 1000.0 / f64::from(self.shared.rate)
    }

    /// Appends what waits to `into`, `most` samples of it; returns how many were lost before them.
    pub fn read(&mut self, into: &mut Vec<f32>, most: usize) -> u64 {
        let room = self.shared.samples.len() as u64;
        let before = self.lost;
        let written = self.shared.written.load(Ordering::Acquire);
        self.skip_to(written.saturating_sub(room));
        let count = usize::try_from(written - self.read).unwrap_or(0).min(most);
        let kept = into.len();
        let slots = self.shared.slots(self.read).take(count);
        into.extend(slots.map(|slot| f32::from_bits(slot.load(Ordering::Relaxed))));
        fence(Ordering::Acquire);
        let claimed = self.shared.claimed.load(Ordering::Relaxed);
        // What the writer has begun to overwrite meanwhile is not what it was.
        let from = self.read;
        self.skip_to(claimed.saturating_sub(room).min(from + count as u64));
        let torn = usize::try_from(self.read - from).unwrap_or(count);
        into.drain(kept..(kept + torn).min(into.len()));
        self.read = from + count as u64;
        self.lost - before
    }

    fn skip_to(&mut self, oldest: u64) {
        if self.read < oldest {
            self.lost += oldest - self.read;
            self.read = oldest;
        }
    }
}

/// The clock's time as the writer stamps it: now, less what the device says lies in its buffers
/// (half a second at most; some drivers say nonsense).
pub fn stamp(clock: &dyn Clock, latency_ms: f64) -> f64 {
    clock.now_ms() - latency_ms.clamp(0.0, 500.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(range: std::ops::Range<u32>) -> impl ExactSizeIterator<Item = f32> {
        range.map(|n| n as f32)
    }

    #[test]
    fn what_is_written_is_read_in_order() {
        let (mut writer, mut reader) = ring(100);
        let mut heard = Vec::new();
        writer.write(numbers(0..3), 0.0);
        writer.write(numbers(3..5), 0.0);
        assert_eq!(reader.waiting(), 5);
        assert_eq!(reader.read(&mut heard, 4), 0);
        assert_eq!(reader.read(&mut heard, 9), 0);
        assert_eq!(heard, [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn a_reader_that_is_behind_loses_the_oldest() {
        let (mut writer, mut reader) = ring(50);
        for start in (0..330).step_by(10) {
            writer.write(numbers(start..start + 10), 0.0);
        }
        let mut heard = Vec::new();
        assert_eq!(reader.waiting(), 100);
        assert_eq!(reader.read(&mut heard, usize::MAX), 230);
        assert_eq!(heard, numbers(230..330).collect::<Vec<_>>());
        assert_eq!(reader.lost(), 230);
    }

    #[test]
    fn samples_know_their_time() {
        let (mut writer, mut reader) = ring(1_000);
        writer.write(numbers(0..20), 520.0);
        let mut heard = Vec::new();
        reader.read(&mut heard, 5);
        assert_eq!(reader.at_ms(), 505.0);
        reader.read(&mut heard, 15);
        assert_eq!(reader.at_ms(), 520.0);
    }

    #[test]
    fn silence_is_written_and_a_reader_may_seek() {
        let (mut writer, mut reader) = ring(50);
        writer.write(numbers(1..11), 0.0);
        writer.silence(5);
        writer.write(numbers(11..13), 0.0);
        let mut heard = Vec::new();
        reader.seek(8);
        reader.read(&mut heard, usize::MAX);
        assert_eq!(heard, [9.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 11.0, 12.0]);
        writer.silence(1_000_000);
        heard.clear();
        reader.seek(0);
        assert_eq!(reader.read(&mut heard, usize::MAX), 0);
        assert_eq!(heard, [0.0; 100]);
        assert_eq!(reader.position(), writer.written());
    }

    /// Whatever the two threads do, the reader sees rising numbers, and every sample was either read
    /// or counted as lost.
    #[test]
    fn two_threads_lose_nothing_unseen() {
        const ALL: u32 = 2_000_000;
        let (mut writer, mut reader) = ring(500);
        let writing = std::thread::spawn(move || {
            for start in (0..ALL).step_by(100) {
                writer.write(numbers(start..start + 100), 0.0);
                if start % 1_000 == 0 {
                    std::thread::yield_now();
                }
            }
        });
        let mut heard = Vec::new();
        let mut last = -1.0;
        let mut count = 0;
        while last < (ALL - 1) as f32 {
            heard.clear();
            reader.read(&mut heard, 700);
            for sample in &heard {
                assert!(*sample > last, "{sample} after {last}");
                last = *sample;
            }
            count += heard.len() as u64;
        }
        writing.join().unwrap();
        assert_eq!(count + reader.lost(), u64::from(ALL));
        println!("read {count}, lost {}", reader.lost());
    }
}
