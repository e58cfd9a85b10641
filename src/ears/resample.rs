//! From the sound of a device to the ears' frames: channels mixed down, the rate converted, cut
//! into [`FRAME`] samples.

use std::collections::VecDeque;

use super::{FRAME, RATE};
use crate::kernel::resample::Resampler;

/// Cuts a stream of any rate into frames. Carries state: one for each stream.
pub struct Framer {
    resampler: Resampler,
    ready: VecDeque<f32>,
    made: Vec<f32>,
}

/// A frame and how old its last sample is.
#[derive(Debug)]
pub struct Framed {
    /// The samples.
    pub samples: Box<[f32; FRAME]>,
    /// Milliseconds of input that were taken after the frame's last sample.
    pub age_ms: f64,
}

impl Framer {
    /// A framer for mono input of `rate` Hz.
    ///
    /// # Errors
    /// When the rate is not supported.
    pub fn new(rate: u32) -> anyhow::Result<Self> {
        Ok(Self {
            resampler: Resampler::new(rate, RATE)?,
            ready: VecDeque::with_capacity(8 * FRAME),
            made: Vec::new(),
        })
    }

    /// Takes the next mono samples, of any number.
    pub fn push(&mut self, samples: &[f32]) {
        self.made.clear();
        self.resampler.push(samples, &mut self.made);
        self.ready.extend(&self.made);
    }

    /// The next whole frame, when there is one.
    pub fn pull(&mut self) -> Option<Framed> {
        if self.ready.len() < FRAME {
            return None;
        }
        let mut samples = Box::new([0.0; FRAME]);
        for (place, sample) in samples.iter_mut().zip(self.ready.drain(..FRAME)) {
            *place = sample;
        }
        let after = self.ready.len() as f64 / f64::from(RATE);
        Some(Framed { samples, age_ms: (after + self.resampler.held_s()) * 1000.0 })
    }

    /// Ends the stream: what is left becomes frames, the last one filled up with silence. Returns how
    /// many samples of silence that took.
    pub fn finish(&mut self) -> usize {
        self.made.clear();
        self.resampler.flush(&mut self.made);
        self.ready.extend(&self.made);
        let there = self.ready.len();
        let whole = there.next_multiple_of(FRAME);
        self.ready.resize(whole, 0.0);
        whole - there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_the_stream_in_order() {
        let mut framer = Framer::new(RATE).unwrap();
        let sound: Vec<f32> = (0..2_000).map(|n| n as f32 / 2_000.0).collect();
        let mut heard = Vec::new();
        for chunk in sound.chunks(160) {
            framer.push(chunk);
            while let Some(frame) = framer.pull() {
                heard.extend_from_slice(&*frame.samples);
            }
        }
        assert_eq!(heard, &sound[..3 * FRAME]);
        assert_eq!(framer.finish(), 48);
        heard.extend_from_slice(&*framer.pull().unwrap().samples);
        assert!(framer.pull().is_none());
        assert_eq!(&heard[..2_000], sound);
        assert_eq!(heard[2_000..], [0.0; 48]);
    }

    #[test]
    fn a_frame_knows_its_age() {
        let mut framer = Framer::new(RATE).unwrap();
        framer.push(&[0.0; FRAME + 160]);
        assert_eq!(framer.pull().unwrap().age_ms, 10.0);
        // 1120 samples at 48 kHz are 23.3 ms: the first frame would not be whole.
        let mut framer = Framer::new(48_000).unwrap();
        framer.push(&[0.0; 2_400]);
        let age = framer.pull().unwrap().age_ms;
        assert!((age - 18.0).abs() < 0.001, "{age}");
    }
}
