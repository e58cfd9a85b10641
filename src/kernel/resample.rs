//! Sample rate conversion of a stream, for everything that has a rate of its own: microphones,
//! recordings, remote devices, synthesis engines, speakers.
//!
//! The filter is rubato's windowed sinc. It carries its state from call to call, so the borders of
//! the caller's chunks can't be heard, and its delay is taken off at the start, so the output lies
//! on the same time axis as the input.

use anyhow::Context;
use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{
    Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, WindowFunction,
};

/// Lowest and highest rates that are taken, Hz.
pub const RATES: std::ops::RangeInclusive<u32> = 4_000..=384_000;

/// Length of the filter in samples of the lower rate: half of it is the delay (4 ms at 16 kHz).
/// With 16 kHz on the lower side this measured flat within 0.1 dB up to 7 kHz, and aliases of what
/// lies above 8.7 kHz below −80 dB (see the tests).
const FILTER: usize = 128;

/// Converts a mono stream from one rate to another.
pub struct Resampler {
    from: u32,
    to: u32,
    /// `None` when both rates are the same.
    engine: Option<Async<f32>>,
    /// Input that does not fill the engine's next chunk yet.
    pending: Vec<f32>,
    /// One chunk of output.
    chunk: Vec<f32>,
    /// Output samples of the filter's delay that are still to be dropped.
    skip: usize,
    taken: u64,
    given: u64,
}

impl Resampler {
    /// A resampler from `from` Hz to `to` Hz.
    ///
    /// # Errors
    /// When a rate is not in [`RATES`].
    pub fn new(from: u32, to: u32) -> anyhow::Result<Self> {
        for rate in [from, to] {
            anyhow::ensure!(
                RATES.contains(&rate),
                "sample rate {rate} Hz is not supported: use {} to {} Hz",
                RATES.start(),
                RATES.end()
            );
        }
        let engine = (from != to).then(|| engine(from, to)).transpose()?;
        let skip = if from == to { 0 } else { delay(from, to) };
        let (input, output) = engine
            .as_ref()
            .map_or((0, 0), |engine| (engine.input_frames_max(), engine.output_frames_max()));
        Ok(Self {
            from,
            to,
            engine,
            pending: Vec::with_capacity(2 * input),
            chunk: vec![0.0; output],
            skip,
            taken: 0,
            given: 0,
        })
    }

    /// Takes the next samples, of any number, and appends to `output` what is ready.
    pub fn push(&mut self, input: &[f32], output: &mut Vec<f32>) {
        self.taken += input.len() as u64;
        let Some(engine) = &mut self.engine else {
            output.extend_from_slice(input);
            self.given += input.len() as u64;
            return;
        };
        self.pending.extend_from_slice(input);
        let mut done = 0;
        while let Some(rest) = self.pending.get(done..) {
            let wanted = engine.input_frames_next();
            if rest.len() < wanted {
                break;
            }
            let made = convert(engine, rest, None, &mut self.chunk);
            let skipped = self.skip.min(made.len());
            self.skip -= skipped;
            let made = made.get(skipped..).unwrap_or_default();
            output.extend_from_slice(made);
            self.given += made.len() as u64;
            done += wanted;
        }
        self.pending.drain(..done.min(self.pending.len()));
    }

    /// Ends the stream: appends what the filter still holds, so that the whole output is as long as
    /// the whole input. The resampler is then as new.
    pub fn flush(&mut self, output: &mut Vec<f32>) {
        if let Some(engine) = &mut self.engine {
            let whole = (self.taken * u64::from(self.to)).div_ceil(u64::from(self.from));
            let mut missing = usize::try_from(whole.saturating_sub(self.given)).unwrap_or(0);
            while missing > 0 {
                let known = self.pending.len();
                let made = convert(engine, &self.pending, Some(known), &mut self.chunk);
                self.pending.clear();
                if made.is_empty() {
                    break;
                }
                let skipped = self.skip.min(made.len());
                self.skip -= skipped;
                let made = made.get(skipped..).unwrap_or_default();
                let made = made.get(..missing).unwrap_or(made);
                output.extend_from_slice(made);
                missing -= made.len();
            }
            engine.reset();
            self.skip = delay(self.from, self.to);
            self.pending.clear();
        }
        self.taken = 0;
        self.given = 0;
    }

    /// How much of the input that was taken is not in the output yet, in seconds.
    pub fn held_s(&self) -> f64 {
        self.taken as f64 / f64::from(self.from) - self.given as f64 / f64::from(self.to)
    }

    /// Converts a whole recording.
    ///
    /// # Errors
    /// When a rate is not in [`RATES`].
    pub fn whole(input: &[f32], from: u32, to: u32) -> anyhow::Result<Vec<f32>> {
        let mut resampler = Self::new(from, to)?;
        let length = input.len() as u64 * u64::from(to) / u64::from(from);
        let mut output = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
        resampler.push(input, &mut output);
        resampler.flush(&mut output);
        Ok(output)
    }
}

/// Length of the filter in samples of the input; the engine takes multiples of eight.
fn length(from: u32, to: u32) -> usize {
    let longer = (f64::from(from) / f64::from(to)).max(1.0);
    ((FILTER as f64 * longer).ceil() as usize).next_multiple_of(8)
}

/// Output samples from before the first input sample: half the filter, to the nearest sample, less
/// one, because the engine's first output lies one step after the start of its filter (rubato's own
/// `output_delay` is one too many; the tests measure it).
fn delay(from: u32, to: u32) -> usize {
    let half = length(from, to) as f64 / 2.0 * f64::from(to) / f64::from(from);
    (half.round() as usize).saturating_sub(1)
}

fn engine(from: u32, to: u32) -> anyhow::Result<Async<f32>> {
    let ratio = f64::from(to) / f64::from(from);
    // 2.5 ms at a time: the caller waits for no more than that beside the filter's delay.
    let chunk = (from as usize / 400).max(16);
    Async::new_sinc(
        ratio,
        1.0,
        &SincInterpolationParameters::new(length(from, to), WindowFunction::Blackman2),
        chunk,
        1,
        FixedAsync::Input,
    )
    .with_context(|| format!("no resampler from {from} Hz to {to} Hz"))
}

/// Runs one chunk. `known` is the number of samples of a last chunk, which silence fills up.
fn convert<'a>(
    engine: &mut Async<f32>,
    input: &[f32],
    known: Option<usize>,
    chunk: &'a mut [f32],
) -> &'a [f32] {
    let frames = chunk.len();
    let indexing = Indexing { partial_len: known, ..Indexing::default() };
    let made = InterleavedSlice::new(input, 1, input.len())
        .and_then(|input| Ok((input, InterleavedSlice::new_mut(&mut *chunk, 1, frames)?)))
        .map_err(|error| error.to_string())
        .and_then(|(input, mut output)| {
            engine
                .process_into_buffer(&input, &mut output, Some(&indexing))
                .map_err(|error| error.to_string())
        });
    match made {
        Ok((_, made)) => chunk.get(..made).unwrap_or_default(),
        Err(error) => {
            // The sizes are the engine's own, so this would be a fault of the engine.
            tracing::error!(error, "a chunk of sound could not be resampled and is left out");
            &[]
        }
    }
}

#[cfg(test)]
#[path = "resample_tests.rs"]
mod tests;
