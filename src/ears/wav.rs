//! A recording as a source: the same resampling and framing as a microphone's sound.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use hound::{SampleFormat, WavReader, WavSpec};

use super::resample::{Framed, Framer};
use super::{EchoPath, FRAME, RATE, Source, SourceEvent};
use crate::kernel::clock::Clock;

/// Data lengths from here on mean "unknown": programs that write WAV into a pipe put them there.
const UNKNOWN_LENGTH: u64 = 0x7ff0_0000;

/// How fast a recording is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As a microphone would: a frame every 32 ms. Frames are stamped with the time at which a
    /// microphone would have heard their last sample.
    RealTime,
    /// Without waiting. Frames are stamped with the time at which they are given.
    Fast,
}

/// A WAV recording: any rate, any number of channels, 8 to 32 bits or float.
pub struct WavSource {
    samples: Box<dyn Iterator<Item = hound::Result<f32>> + Send>,
    name: String,
    length_known: bool,
    channels: usize,
    /// Frames of the file that are read at a time.
    block: usize,
    mono: Vec<f32>,
    framer: Framer,
    finished: bool,
    /// Samples of silence that filled up the last frame.
    padding: usize,
    broke_off: bool,
    /// Silent frames that are still to follow.
    trailing: u64,
    waiting: Option<Framed>,
    pace: Pace,
    clock: Arc<dyn Clock>,
    /// When the first frame was asked for, and how many were given since.
    begun: Option<(Duration, u64)>,
}

impl WavSource {
    /// Opens a recording.
    ///
    /// # Errors
    /// One line that says what is wrong with the file.
    pub fn open(path: &Path, pace: Pace, clock: Arc<dyn Clock>) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let file = File::open(path).with_context(|| format!("can't open `{name}`"))?;
        let size = file.metadata().with_context(|| format!("can't read `{name}`"))?.len();
        ensure!(size > 0, "`{name}` is empty");
        let mut file = BufReader::new(file);
        let header = read_header(&mut file).with_context(|| format!("can't read `{name}`"))?;
        let reader = WavReader::new(header).map_err(|error| explain(&name, &error))?;
        let (spec, length) = (reader.spec(), reader.len());
        drop(reader);
        let data = u64::from(length) * u64::from(spec.bits_per_sample).div_ceil(8);
        let header = file.stream_position().with_context(|| format!("can't read `{name}`"))?;
        let there = size.saturating_sub(header);
        if data > there && data < UNKNOWN_LENGTH {
            let seconds = |bytes: u64| {
                let second = u64::from(spec.sample_rate)
                    * u64::from(spec.channels)
                    * u64::from(spec.bits_per_sample).div_ceil(8);
                bytes as f64 / second.max(1) as f64
            };
            bail!(
                "`{name}` is cut short: its header promises {:.1} s of sound, {:.1} s are there",
                seconds(data),
                seconds(there)
            );
        }
        file.seek(SeekFrom::Start(0)).with_context(|| format!("can't read `{name}`"))?;
        Self::from_reader(file, &name, pace, clock)
    }

    /// Takes a recording from a stream, such as standard input; `name` is for messages. When the
    /// stream breaks off, what was there is given.
    ///
    /// # Errors
    /// One line that says what is wrong with the recording.
    pub fn from_reader(
        reader: impl Read + Send + 'static,
        name: &str,
        pace: Pace,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let reader = read_header(reader).with_context(|| format!("can't read `{name}`"))?;
        ensure!(!reader.get_ref().0.get_ref().is_empty(), "`{name}` is empty");
        let reader = WavReader::new(reader).map_err(|error| explain(name, &error))?;
        let spec = reader.spec();
        let bytes = u64::from(reader.len()) * u64::from(spec.bits_per_sample).div_ceil(8);
        let length_known = bytes < UNKNOWN_LENGTH;
        let framer =
            Framer::new(spec.sample_rate).with_context(|| format!("can't use `{name}`"))?;
        ensure!(reader.len() > 0, "`{name}` holds no sound");
        Ok(Self {
            samples: decode(reader, spec),
            name: name.into(),
            length_known,
            channels: usize::from(spec.channels.max(1)),
            block: spec.sample_rate as usize / 50,
            mono: Vec::new(),
            framer,
            finished: false,
            padding: 0,
            broke_off: false,
            trailing: 0,
            waiting: None,
            pace,
            clock,
            begun: None,
        })
    }

    /// Lets silence follow the recording before the end, so that a turn at its end can end.
    #[must_use]
    pub fn with_silence(mut self, silence: Duration) -> Self {
        let samples = silence.as_secs_f64() * f64::from(RATE);
        self.trailing = (samples / FRAME as f64).ceil() as u64;
        self
    }

    /// Reads the next 20 ms of the recording into the framer, or ends it.
    fn read(&mut self) {
        self.mono.clear();
        while self.mono.len() < self.block {
            let mut sum = 0.0;
            let mut channels = 0;
            for sample in self.samples.by_ref().take(self.channels) {
                match sample {
                    Ok(sample) => {
                        sum += sample;
                        channels += 1;
                    }
                    Err(error) => {
                        if self.length_known {
                            tracing::warn!(file = self.name, %error, "the recording breaks off");
                            self.broke_off = true;
                        }
                        channels = 0;
                        break;
                    }
                }
            }
            if channels < self.channels {
                self.finished = true;
                break;
            }
            self.mono.push(sum / self.channels as f32);
        }
        self.framer.push(&self.mono);
        if self.finished {
            self.padding = self.framer.finish();
        }
    }

    /// The whole recording at [`RATE`], mono, without silence behind it.
    ///
    /// # Errors
    /// When less is there than the recording's header promises.
    pub fn read_whole(mut self) -> anyhow::Result<Vec<f32>> {
        self.trailing = 0;
        let mut samples = Vec::new();
        while let Some(frame) = self.frame() {
            samples.extend_from_slice(&*frame.samples);
        }
        ensure!(!self.broke_off, "`{}` is cut short: its header promises more sound", self.name);
        samples.truncate(samples.len().saturating_sub(self.padding));
        Ok(samples)
    }

    fn frame(&mut self) -> Option<Framed> {
        if let Some(frame) = self.waiting.take() {
            return Some(frame);
        }
        loop {
            if let Some(frame) = self.framer.pull() {
                return Some(frame);
            }
            if self.finished {
                self.trailing = self.trailing.checked_sub(1)?;
                return Some(Framed { samples: Box::new([0.0; FRAME]), age_ms: 0.0 });
            }
            self.read();
        }
    }
}

impl Source for WavSource {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        let Some(frame) = self.frame() else { return SourceEvent::End };
        let (start, given) = *self.begun.get_or_insert_with(|| (self.clock.now(), 0));
        let due = start + audio_time((given + 1) * FRAME as u64);
        if self.pace == Pace::RealTime {
            let early = due.saturating_sub(self.clock.now());
            std::thread::sleep(early.min(wait));
            if self.clock.now() < due {
                self.waiting = Some(frame);
                return SourceEvent::Idle;
            }
        }
        self.begun = Some((start, given + 1));
        let at = match self.pace {
            Pace::RealTime => due.as_secs_f64() * 1000.0,
            Pace::Fast => self.clock.now_ms(),
        };
        SourceEvent::Frame { samples: frame.samples, at_ms: at }
    }

    fn echo_path(&self) -> EchoPath {
        EchoPath::None
    }
}

/// Reads up to the sound and puts what was read back in front of the rest. A length of the sound
/// that means "unknown" is replaced by the next smaller one that is whole, which is what hound takes.
fn read_header<R: Read>(mut reader: R) -> io::Result<io::Chain<Cursor<Vec<u8>>, R>> {
    let mut head = Vec::new();
    let mut block = 1;
    let mut more = |head: &mut Vec<u8>, count: u64| -> io::Result<Vec<u8>> {
        let start = head.len();
        reader.by_ref().take(count).read_to_end(head)?;
        Ok(head.get(start..).unwrap_or_default().to_vec())
    };
    if more(&mut head, 12)?.starts_with(b"RIFF") {
        // Anything odd is left to hound, which says what it is.
        while let [kind @ .., a, b, c, d] = &*more(&mut head, 8)? {
            let length = u32::from_le_bytes([*a, *b, *c, *d]);
            match kind {
                b"data" if u64::from(length) >= UNKNOWN_LENGTH => {
                    let whole = length - length % block;
                    head.truncate(head.len() - 4);
                    head.extend(whole.to_le_bytes());
                    break;
                }
                b"fmt " => {
                    if let Some([low, high]) = more(&mut head, length.into())?.get(12..14) {
                        block = u32::from(u16::from_le_bytes([*low, *high])).max(1);
                    }
                }
                [_, _, _, _] if kind != b"data" && length <= 1 << 20 => {
                    more(&mut head, length.into())?;
                }
                _ => break,
            }
        }
    }
    Ok(Cursor::new(head).chain(reader))
}

fn audio_time(samples: u64) -> Duration {
    Duration::from_nanos(samples * 1_000_000_000 / u64::from(RATE))
}

fn decode<R: Read + Send + 'static>(
    reader: WavReader<R>,
    spec: WavSpec,
) -> Box<dyn Iterator<Item = hound::Result<f32>> + Send> {
    match spec.sample_format {
        SampleFormat::Float => Box::new(reader.into_samples::<f32>()),
        SampleFormat::Int => {
            let full = 2f32.powi(i32::from(spec.bits_per_sample) - 1);
            let scale = move |sample: i32| sample as f32 / full;
            Box::new(reader.into_samples::<i32>().map(move |sample| sample.map(scale)))
        }
    }
}

fn explain(name: &str, error: &hound::Error) -> anyhow::Error {
    match error {
        // hound's own word for an unexpected end.
        hound::Error::IoError(error) if error.kind() == io::ErrorKind::Other => {
            anyhow::anyhow!("`{name}` ends within its WAV header")
        }
        hound::Error::IoError(error) => anyhow::anyhow!("can't read `{name}`: {error}"),
        hound::Error::FormatError("no RIFF tag found" | "no WAVE tag found") => {
            anyhow::anyhow!("`{name}` is not a WAV file: convert it with `sox` or `ffmpeg` first")
        }
        hound::Error::Unsupported => anyhow::anyhow!(
            "`{name}` is a compressed WAV: convert it to 16-bit PCM with `sox` or `ffmpeg` first"
        ),
        other => anyhow::anyhow!("`{name}` is a damaged WAV file: {other}"),
    }
}

#[cfg(test)]
#[path = "wav_tests.rs"]
mod tests;
