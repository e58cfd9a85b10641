//! A second look at the echo that knows no clock: is what the microphone hears a copy of what was
//! just played?
//!
//! The canceller in [`super::echo`] must know within some 30 ms which sound the microphone is hearing
//! an echo of. On a busy machine the speaker runs dry, the microphone loses sound and stamps jump, and
//! until the canceller has found its way back the voice sounds through it like a person. A copy is a
//! copy however late it is: the frame is laid on every place of the last 600 ms that were handed to
//! the speaker, and the best correlation tells which share of its energy the voice explains. Measured
//! on such a talk of 80 s: of 1640 frames of echo alone 13 were explained by less than half and never
//! two in a row; of frames in which a person was louder than the echo 4 % by more than half.
//!
//! A room with much reverberation gives no good copy. Then the share is low and all is left to the
//! canceller, which such a room does not trouble.

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};

use super::ring::Reader;
use super::{FRAME, RATE};

/// How long ago the sound may have been handed over: the speaker's buffers, the room and the
/// microphone's buffers.
const REACH: usize = RATE as usize * 600 / 1000;

/// Sound that is looked through, and the length of the transforms: a power of two that holds it.
const HISTORY: usize = REACH + FRAME;
const LENGTH: usize = 16_384;

/// Sound without its lows, in which all voices are alike.
const EMPHASIS: f32 = 0.9;

/// Energy of a frame below which there is nothing to explain, and of a played one that explains
/// nothing: −60 and −67 dBFS, after the emphasis.
const FAINT: f32 = FRAME as f32 * 1e-6;
const SILENT: f64 = FRAME as f64 * 2e-7;

/// The share of the frames' energy that what was played explains.
pub struct Mirror {
    reader: Reader,
    /// What was handed to the speaker last, emphasised.
    played: Vec<f32>,
    last_played: f32,
    last_heard: f32,
    /// Frames since anything was handed over.
    idle: usize,
    forward: Arc<dyn RealToComplex<f32>>,
    back: Arc<dyn ComplexToReal<f32>>,
    time: Vec<f32>,
    frame_spectrum: Vec<Complex<f32>>,
    spectrum: Vec<Complex<f32>>,
    scratch: Vec<Complex<f32>>,
    fresh: Vec<f32>,
}

impl Mirror {
    /// Looks at what comes out of `reader`: all that is handed to the speaker, without its pauses.
    pub fn new(reader: Reader) -> Self {
        let mut planner = RealFftPlanner::new();
        let (forward, back) = (planner.plan_fft_forward(LENGTH), planner.plan_fft_inverse(LENGTH));
        let scratch = forward.get_scratch_len().max(back.get_scratch_len());
        Self {
            reader,
            played: Vec::with_capacity(2 * HISTORY),
            last_played: 0.0,
            last_heard: 0.0,
            idle: 0,
            time: forward.make_input_vec(),
            frame_spectrum: forward.make_output_vec(),
            spectrum: forward.make_output_vec(),
            scratch: vec![Complex::default(); scratch],
            fresh: Vec::with_capacity(FRAME),
            forward,
            back,
        }
    }

    /// The share, 0–1, of this frame of the microphone's.
    pub fn explained(&mut self, frame: &[f32; FRAME]) -> f32 {
        self.fresh.clear();
        self.reader.read(&mut self.fresh, usize::MAX);
        self.idle = if self.fresh.is_empty() { self.idle + 1 } else { 0 };
        if self.idle * FRAME > REACH {
            self.played.clear();
        }
        let mut last = self.last_played;
        self.played.extend(self.fresh.iter().map(|&sample| emphasised(&mut last, sample)));
        self.last_played = last;
        self.played.drain(..self.played.len().saturating_sub(HISTORY));

        let (places, rest) = self.time.split_at_mut(FRAME);
        for (place, &sample) in places.iter_mut().zip(frame) {
            *place = emphasised(&mut self.last_heard, sample);
        }
        let energy: f32 = places.iter().map(|sample| sample * sample).sum();
        if self.played.len() < FRAME || energy < FAINT {
            return 0.0;
        }
        rest.fill(0.0);
        self.correlate().map_or(0.0, |()| self.best(f64::from(energy)))
    }

    /// Puts the correlation of the frame in `time` with what was played there, by place.
    fn correlate(&mut self) -> Option<()> {
        let Self { forward, back, time, frame_spectrum, spectrum, scratch, played, .. } = self;
        // The sizes are fixed: none of these can fail.
        forward.process_with_scratch(time, frame_spectrum, scratch).ok()?;
        time.fill(0.0);
        time.iter_mut().zip(played.iter()).for_each(|(place, sample)| *place = *sample);
        forward.process_with_scratch(time, spectrum, scratch).ok()?;
        for (bin, frame) in spectrum.iter_mut().zip(frame_spectrum.iter()) {
            *bin *= frame.conj() / LENGTH as f32;
        }
        back.process_with_scratch(spectrum, time, scratch).ok()
    }

    /// The best square of the normalised correlation.
    fn best(&self, energy: f64) -> f32 {
        let square = |sample: &f32| f64::from(*sample).powi(2);
        let mut behind: f64 = self.played.iter().take(FRAME).map(square).sum();
        let mut best = 0.0_f64;
        let ends = self.played.iter().skip(FRAME).map(Some).chain([None]);
        for ((product, leaving), entering) in self.time.iter().zip(&self.played).zip(ends) {
            if behind > SILENT {
                best = best.max(square(product) / (behind * energy));
            }
            behind += entering.map_or(0.0, square) - square(leaving);
        }
        best.min(1.0) as f32
    }
}

fn emphasised(last: &mut f32, sample: f32) -> f32 {
    sample - EMPHASIS * std::mem::replace(last, sample)
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
