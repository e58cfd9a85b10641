//! Takes what is really played, as 16 kHz mono, to the echo canceller.

use std::sync::Arc;
use std::time::Duration;

use crate::kernel::ports::EchoReference;
use crate::kernel::resample::Resampler;

/// Rate of the echo reference, Hz.
const RATE: u32 = 16_000;

/// Resamples the played blocks inside the audio callback. All memory is taken when it is made.
pub(super) struct Tap {
    reference: Arc<dyn EchoReference>,
    resampler: Resampler,
    output: Vec<f32>,
    rate: u64,
    /// Samples that went in and came out since it was made.
    taken: u64,
    given: u64,
    /// Silent samples in a row that went in.
    quiet: u64,
}

impl Tap {
    /// A tap for blocks of `rate` Hz, at most `block` samples each.
    ///
    /// # Errors
    /// When the rate can't be resampled.
    pub(super) fn new(
        reference: Arc<dyn EchoReference>,
        rate: u32,
        block: usize,
    ) -> anyhow::Result<Self> {
        let resampler = Resampler::new(rate, RATE)?;
        // Up to three of the resampler's own chunks (2.5 ms each) can come out at once.
        let room = block * RATE as usize / rate as usize + 4 * RATE as usize / 400;
        Ok(Self {
            reference,
            resampler,
            output: Vec::with_capacity(room),
            rate: u64::from(rate),
            taken: 0,
            given: 0,
            quiet: 0,
        })
    }

    /// Takes a block whose first sample sounds `delay` from now.
    pub(super) fn push(&mut self, block: &[f32], delay: Duration) {
        let silent = block.iter().all(|sample| *sample == 0.0);
        self.quiet = if silent { self.quiet + block.len() as u64 } else { 0 };
        self.taken += block.len() as u64;
        self.output.clear();
        if self.quiet > self.rate / 4 {
            // The filter holds nothing but silence, so it need not run: this is most of the day.
            let owed = (self.taken * u64::from(RATE) / self.rate).saturating_sub(self.given);
            let owed = usize::try_from(owed).unwrap_or(0).min(self.output.capacity());
            self.output.resize(owed, 0.0);
        } else {
            self.resampler.push(block, &mut self.output);
        }
        let before = self.given as f64 / f64::from(RATE);
        self.given += self.output.len() as u64;
        if !self.output.is_empty() {
            // The output may begin with samples that were held back from the block before.
            let begins = (self.taken - block.len() as u64) as f64 / self.rate as f64;
            let delay = (delay.as_secs_f64() + before - begins).max(0.0);
            self.reference.played(&self.output, Duration::from_secs_f64(delay));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<(Vec<f32>, Vec<Duration>)>);

    impl EchoReference for Heard {
        fn played(&self, samples: &[f32], delay: Duration) {
            let mut heard = self.0.lock().unwrap();
            heard.0.extend_from_slice(samples);
            heard.1.push(delay);
        }
    }

    fn tone(rate: u32, samples: usize) -> Vec<f32> {
        (0..samples)
            .map(|n| (n as f32 * 440.0 * std::f32::consts::TAU / rate as f32).sin() * 0.5)
            .collect()
    }

    #[test]
    fn the_reference_is_the_sound_at_sixteen_kilohertz() {
        for rate in [16_000, 44_100, 48_000] {
            let heard = Arc::<Heard>::default();
            let block = rate as usize / 400;
            let mut tap = Tap::new(heard.clone(), rate, block).unwrap();
            let room = tap.output.capacity();
            for block in tone(rate, rate as usize).chunks(block) {
                tap.push(block, Duration::from_millis(20));
            }
            assert_eq!(tap.output.capacity(), room, "it allocates in the callback");
            let (samples, delays) = &*heard.0.lock().unwrap();
            let wanted = tone(16_000, samples.len());
            assert!(samples.len() > 15_800, "{rate}: {}", samples.len());
            let middle = 200..samples.len() - 200;
            let worst = middle.map(|n| (samples[n] - wanted[n]).abs()).fold(0.0_f32, f32::max);
            // The filter's delay is a whole number of samples: half of one is 0.043 of this tone.
            assert!(worst < 0.045, "{rate}: {worst}");
            // What the filter held back is late by that much.
            assert!(delays.iter().all(|d| *d <= Duration::from_millis(20)), "{rate}: {delays:?}");
            assert!(delays.iter().all(|d| *d >= Duration::from_millis(8)), "{rate}: {delays:?}");
        }
    }

    #[test]
    fn silence_costs_no_filter_and_loses_no_time() {
        let heard = Arc::<Heard>::default();
        let mut tap = Tap::new(heard.clone(), 44_100, 110).unwrap();
        let silence = [0.0; 110];
        for _ in 0..44_100 / 110 * 3 {
            tap.push(&silence, Duration::ZERO);
        }
        for block in tone(44_100, 44_100).chunks(110) {
            tap.push(block, Duration::ZERO);
        }
        let (samples, _) = &*heard.0.lock().unwrap();
        let begins = samples.iter().position(|s| s.abs() > 0.05).unwrap();
        let wanted = 44_100 / 110 * 3 * 110 * 160 / 441;
        assert!(begins.abs_diff(wanted) < 100, "{begins} {wanted}");
        assert!(samples.len().abs_diff(wanted + 16_000) < 200, "{}", samples.len());
    }
}
