//! Sound that arrives from elsewhere, as frames: a ring that the sender fills, a framer behind it,
//! and the wake-up of the thread that waits.

use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use super::resample::{Framed, Framer};
use super::ring::{Reader, Writer, ring};
use super::{FRAME, SourceEvent};

/// How much of a stamp's jump is believed at once; the rest is the scheduling of callbacks.
const BELIEF: f64 = 0.05;

/// A jump of stamps from here on is a gap in the sound, ms.
const GAP_MS: f64 = 100.0;

/// The sender's end.
pub struct Inlet {
    writer: Writer,
    listener: Arc<OnceLock<Thread>>,
}

/// The ears' end. Used by one thread: the first that waits is the one that is woken.
pub struct Tap {
    reader: Reader,
    framer: Framer,
    listener: Arc<OnceLock<Thread>>,
    heard: Vec<f32>,
    /// When the last sample that was read was captured, smoothed.
    last_ms: Option<f64>,
    name: String,
}

/// The two ends for mono sound of `rate` Hz; `name` is for the log.
///
/// # Errors
/// When the rate is not supported.
pub fn tap(rate: u32, name: &str) -> anyhow::Result<(Inlet, Tap)> {
    let (writer, reader) = ring(rate);
    let listener = Arc::new(OnceLock::new());
    let tap = Tap {
        reader,
        framer: Framer::new(rate)?,
        listener: Arc::clone(&listener),
        heard: Vec::new(),
        last_ms: None,
        name: name.into(),
    };
    Ok((Inlet { writer, listener }, tap))
}

impl Inlet {
    /// Takes samples, the last of which was captured at `at_ms`. May be called from an audio
    /// callback: it neither allocates nor locks, and waking the reader does not wait for it.
    pub fn write(&mut self, samples: impl ExactSizeIterator<Item = f32>, at_ms: f64) {
        self.writer.write(samples, at_ms);
        if let Some(listener) = self.listener.get() {
            listener.unpark();
        }
    }
}

impl Tap {
    /// The next frame, waiting for `wait` at most.
    pub fn frame(&mut self, wait: Duration) -> Option<SourceEvent> {
        let until = Instant::now() + wait;
        self.listener.get_or_init(std::thread::current);
        loop {
            if let Some(frame) = self.ready() {
                return Some(frame);
            }
            if self.fill() == 0 {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                std::thread::park_timeout(left);
            }
        }
    }

    /// The next frame, when it is already there.
    fn ready(&mut self) -> Option<SourceEvent> {
        let Framed { samples, age_ms } = self.framer.pull()?;
        let at_ms = self.last_ms.unwrap_or_default() - age_ms;
        Some(SourceEvent::Frame { samples, at_ms })
    }

    /// Reads what has arrived; returns how many samples that was.
    fn fill(&mut self) -> usize {
        self.heard.clear();
        // A frame's worth at a time, so that a frame's stamp is its own also when many wait.
        let most = FRAME * self.reader.rate() as usize / super::RATE as usize + 1;
        let lost = self.reader.read(&mut self.heard, most);
        if lost > 0 {
            tracing::warn!(
                source = self.name,
                lost,
                all = self.reader.lost(),
                "the ears were late and lost samples"
            );
        }
        self.framer.push(&self.heard);
        let passed = self.heard.len() as f64 * 1000.0 / f64::from(self.reader.rate());
        let told = self.reader.at_ms();
        self.last_ms = Some(match self.last_ms.map(|last| last + passed) {
            Some(expected) if (told - expected).abs() < GAP_MS => {
                expected + BELIEF * (told - expected)
            }
            _ => told,
        });
        self.heard.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(tap: &mut Tap) -> Vec<(f32, f64)> {
        std::iter::from_fn(|| tap.frame(Duration::ZERO))
            .map(|event| match event {
                SourceEvent::Frame { samples, at_ms } => (samples[0], at_ms),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn sound_of_any_chunk_size_becomes_stamped_frames() {
        let (mut inlet, mut tap) = tap(16_000, "test").unwrap();
        assert_eq!(tap.frame(Duration::ZERO), None);
        for n in 1..=16 {
            inlet.write(std::iter::repeat_n(n as f32, 160), 1_000.0 + 10.0 * f64::from(n));
        }
        // 2560 samples are five frames, the first of which begins with the first sample and ends
        // 32 ms after it.
        assert_eq!(
            frames(&mut tap),
            [(1.0, 1_032.0), (4.0, 1_064.0), (7.0, 1_096.0), (10.0, 1_128.0), (13.0, 1_160.0)]
        );
        assert_eq!(tap.frame(Duration::ZERO), None);
    }

    #[test]
    fn jitter_is_smoothed_and_a_gap_is_believed() {
        let (mut inlet, mut tap) = tap(16_000, "test").unwrap();
        let mut stamps = Vec::new();
        for n in 1..=20 {
            let jitter = if n % 2 == 0 { 20.0 } else { 0.0 };
            inlet.write(std::iter::repeat_n(0.1, FRAME), 32.0 * f64::from(n) + jitter);
            stamps.extend(frames(&mut tap).into_iter().map(|(_, at)| at));
        }
        for pair in stamps.windows(2) {
            assert!((pair[1] - pair[0] - 32.0).abs() <= 1.0 + 1e-6, "{stamps:?}");
        }
        inlet.write(std::iter::repeat_n(0.1, FRAME), 5_000.0);
        assert_eq!(frames(&mut tap), [(0.1, 5_000.0)]);
    }

    #[test]
    fn a_waiting_thread_is_woken() {
        let (mut inlet, mut tap) = tap(16_000, "test").unwrap();
        let waiting = std::thread::spawn(move || tap.frame(Duration::from_secs(60)));
        inlet.write(std::iter::repeat_n(0.5, FRAME), 0.0);
        // Written before or after the wait began: the frame comes either way, long before a minute.
        assert!(waiting.join().unwrap().is_some());
    }
}
