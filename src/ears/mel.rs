//! Whisper's log-mel spectrogram of the last 8 seconds, as the smart-turn model was trained on it:
//! windows of 400 samples every 160, 80 mel bands on Slaney's scale, the clip brought to zero mean
//! and unit variance first (the extractor of the `transformers` project with `do_normalize`).

use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

use super::RATE;

/// Samples of a clip: 8 s.
pub const CLIP: usize = 8 * RATE as usize;

/// Mel bands.
pub const BANDS: usize = 80;

/// Columns of the spectrogram, one every 10 ms.
pub const COLUMNS: usize = CLIP / HOP;

const WINDOW: usize = 400;
const HOP: usize = 160;
const BINS: usize = WINDOW / 2 + 1;

/// The extractor, with its tables and buffers made once.
pub struct LogMel {
    fft: Arc<dyn RealToComplex<f32>>,
    window: [f32; WINDOW],
    bands: Vec<Band>,
    /// The clip with half a window before and behind it.
    clip: Vec<f32>,
    frame: Vec<f32>,
    spectrum: Vec<Complex<f32>>,
    power: [f32; BINS],
    scratch: Vec<Complex<f32>>,
}

/// A triangle over neighbouring bins.
struct Band {
    first: usize,
    weights: Vec<f32>,
}

impl Default for LogMel {
    fn default() -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(WINDOW);
        let turn = std::f64::consts::TAU / WINDOW as f64;
        Self {
            window: std::array::from_fn(|n| (0.5 - 0.5 * (turn * n as f64).cos()) as f32),
            bands: bands(),
            clip: vec![0.0; CLIP + WINDOW],
            frame: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            power: [0.0; BINS],
            scratch: fft.make_scratch_vec(),
            fft,
        }
    }
}

impl LogMel {
    /// Writes the spectrogram of `audio` (16 kHz; its last 8 s count, a shorter clip has silence
    /// before it) into `out`, band by band: [`BANDS`] rows of [`COLUMNS`].
    ///
    /// # Errors
    /// When `out` is not that large.
    pub fn extract(&mut self, audio: &[f32], out: &mut [f32]) -> anyhow::Result<()> {
        anyhow::ensure!(out.len() == BANDS * COLUMNS, "a spectrogram has {BANDS}×{COLUMNS} values");
        let silent = self.lay_out(audio);
        // Columns that see nothing but the silence in front are all the same.
        let same = (silent.saturating_sub(WINDOW / 2) / HOP).min(COLUMNS);
        let mut highest = f32::MIN;
        for column in 0..COLUMNS {
            if column > 0 && column < same {
                continue;
            }
            self.transform(column)?;
            for (band, row) in self.bands.iter().zip(out.chunks_exact_mut(COLUMNS)) {
                let bins = self.power.iter().skip(band.first);
                let energy: f32 = band.weights.iter().zip(bins).map(|(w, p)| w * p).sum();
                let level = energy.max(1e-10).log10();
                highest = highest.max(level);
                if let Some(place) = row.get_mut(column) {
                    *place = level;
                }
            }
        }
        for row in out.chunks_exact_mut(COLUMNS) {
            if let Some((first, rest)) = row.split_first_mut() {
                rest.iter_mut().take(same.saturating_sub(1)).for_each(|place| *place = *first);
            }
        }
        let floor = highest - 8.0;
        out.iter_mut().for_each(|level| *level = (level.max(floor) + 4.0) / 4.0);
        Ok(())
    }

    /// Puts the normalised clip in its place and mirrors its ends; returns the number of samples of
    /// silence before it.
    fn lay_out(&mut self, audio: &[f32]) -> usize {
        let audio = audio.get(audio.len().saturating_sub(CLIP)..).unwrap_or_default();
        let silent = CLIP - audio.len();
        let count = CLIP as f64;
        let mean = audio.iter().map(|s| f64::from(*s)).sum::<f64>() / count;
        // The silence is part of the clip, and of its variance.
        let spread = audio.iter().map(|s| (f64::from(*s) - mean).powi(2)).sum::<f64>()
            + silent as f64 * mean * mean;
        let scale = 1.0 / (spread / count + 1e-7).sqrt();
        let normal = |sample: f32| ((f64::from(sample) - mean) * scale) as f32;
        let half = WINDOW / 2;
        let middle = self.clip.iter_mut().skip(half);
        let padded = std::iter::repeat_n(0.0, silent).chain(audio.iter().copied());
        for (place, sample) in middle.zip(padded) {
            *place = normal(sample);
        }
        let whole = self.clip.len();
        for n in 1..=half {
            self.mirror(half - n, half + n);
            self.mirror(whole - half + n - 1, whole - half - n - 1);
        }
        silent
    }

    fn mirror(&mut self, to: usize, from: usize) {
        let sample = self.clip.get(from).copied().unwrap_or_default();
        if let Some(place) = self.clip.get_mut(to) {
            *place = sample;
        }
    }

    /// The power spectrum of a column.
    fn transform(&mut self, column: usize) -> anyhow::Result<()> {
        let samples = self.clip.iter().skip(column * HOP);
        for ((place, sample), weight) in self.frame.iter_mut().zip(samples).zip(&self.window) {
            *place = sample * weight;
        }
        self.fft.process_with_scratch(&mut self.frame, &mut self.spectrum, &mut self.scratch)?;
        for (place, bin) in self.power.iter_mut().zip(&self.spectrum) {
            *place = bin.norm_sqr();
        }
        Ok(())
    }
}

/// Slaney's mel scale: linear up to 1 kHz, logarithmic above (M. Slaney, Auditory Toolbox, 1998).
fn mel_to_hz(mel: f64) -> f64 {
    if mel < 15.0 { mel * 200.0 / 3.0 } else { 1000.0 * (6.4f64.ln() / 27.0 * (mel - 15.0)).exp() }
}

fn hz_to_mel(hz: f64) -> f64 {
    if hz < 1000.0 { hz * 3.0 / 200.0 } else { 15.0 + (hz / 1000.0).ln() * 27.0 / 6.4f64.ln() }
}

/// Triangles of equal area, evenly spaced on the mel scale between 0 and half the rate.
fn bands() -> Vec<Band> {
    let nyquist = f64::from(RATE) / 2.0;
    let step = hz_to_mel(nyquist) / (BANDS + 1) as f64;
    let bin_hz = nyquist / (BINS - 1) as f64;
    (0..BANDS)
        .map(|band| {
            let edge = |n: usize| mel_to_hz(step * (band + n) as f64);
            let (low, centre, high) = (edge(0), edge(1), edge(2));
            let height = |bin: usize| {
                let hz = bin as f64 * bin_hz;
                let up = (hz - low) / (centre - low);
                let down = (high - hz) / (high - centre);
                (up.min(down).max(0.0) * 2.0 / (high - low)) as f32
            };
            let first = (0..BINS).find(|bin| height(*bin) > 0.0).unwrap_or(0);
            let weights = (first..BINS).map(height).take_while(|weight| *weight > 0.0).collect();
            Band { first, weights }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract(audio: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; BANDS * COLUMNS];
        LogMel::default().extract(audio, &mut out).unwrap();
        out
    }

    #[test]
    fn every_band_hears_its_own_tone() {
        let bands = bands();
        assert_eq!(bands.len(), BANDS);
        assert!(bands.iter().all(|band| !band.weights.is_empty()));
        for hz in [300.0, 1_000.0, 4_000.0] {
            let tone: Vec<f32> = (0..CLIP)
                .map(|n| (std::f64::consts::TAU * hz * n as f64 / f64::from(RATE)).sin() as f32)
                .collect();
            let out = extract(&tone);
            let loudest = (0..BANDS)
                .max_by(|a, b| out[a * COLUMNS + 400].total_cmp(&out[b * COLUMNS + 400]))
                .unwrap();
            let centre = mel_to_hz(hz_to_mel(8_000.0) / 81.0 * (loudest + 1) as f64);
            assert!((centre / hz - 1.0).abs() < 0.08, "{hz}: {centre}");
        }
    }

    #[test]
    fn silence_in_front_is_silence_of_the_clip() {
        let noise: Vec<f32> = (0..20_000u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 16) as f32 / 32_768.0 - 1.0)
            .collect();
        let mut padded = vec![0.0; CLIP - noise.len()];
        padded.extend_from_slice(&noise);
        let (short, whole) = (extract(&noise), extract(&padded));
        let worst = short.iter().zip(&whole).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-4, "{worst}");
    }

    #[test]
    fn only_the_last_eight_seconds_count() {
        let tone: Vec<f32> = (0..CLIP + 5_000).map(|n| (n as f32 * 0.3).sin()).collect();
        assert_eq!(extract(&tone), extract(&tone[5_000..]));
    }
}
