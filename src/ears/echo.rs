//! Removes the voice's own sound from the microphone: WebRTC's AEC3 in its Rust port `sonora`.
//!
//! The canceller needs what is really played, never later than its echo: a reference 30 ms too late
//! left 6 dB of 35 when it was measured. So both sides are laid on the process clock. The speaker
//! says when the samples it hands over will sound; the microphone's frames say when they were heard;
//! and the reference that is shown to the canceller runs a lead ahead of that. What the stamps don't
//! know (unreported latency, the way through the room, drift) the canceller finds by itself.
//!
//! Where stamps go wrong faster than it can follow, [`Mirror`] sees that a frame is a copy of what was
//! just played, and the frame is silenced.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sonora::config::{EchoCanceller as Aec3, HighPassFilter};
use sonora::{AudioProcessing, Config, StreamConfig};

use super::mirror::Mirror;
use super::ring::{Reader, Writer, ring};
use super::{EchoPath, FRAME, RATE, Source, SourceEvent};
use crate::kernel::clock::Clock;
use crate::kernel::ports::EchoReference;

/// Samples that the canceller takes at a time: 10 ms.
const BLOCK: usize = RATE as usize / 100;

/// How far frames and blocks can be apart.
const CARRY: usize = 128;

/// Delay of what is given back while the canceller works: the carry and, measured, its own blocks.
const DELAY: usize = CARRY + 128;

/// Samples in a millisecond.
const PER_MS: f64 = RATE as f64 / 1000.0;

/// How far the reference is meant to run ahead of the microphone, ms.
const LEAD_MS: f64 = 40.0;

/// Least lead, after it was shortened because the speaker hands over its samples late.
const LEAST_LEAD_MS: f64 = -300.0;

/// Differences between stamps that are taken for jitter or drift, ms. Beyond it the speaker was
/// restarted or paused, and both sides are aligned anew.
const SLACK_MS: f64 = 30.0;

/// How much of the jitter of a stamp is believed at once.
const BELIEF: f64 = 0.02;

/// The canceller goes on for so long after the last sound was played: an echo of up to 450 ms and
/// the room's answer to it.
const TAIL_BLOCKS: u32 = 100;

/// A frame of which what was played explains this share is echo, and is given out this much quieter.
const ECHO: f32 = 0.5;
const SILENCED: f32 = 0.01;

/// What the speaker is given: takes the samples that are played.
pub struct Reference {
    /// Never contended: one audio callback writes. `try_lock` so that it can't wait if two did.
    inlet: Mutex<Inlet>,
    clock: Arc<dyn Clock>,
}

struct Inlet {
    writer: Writer,
    /// The same sound without the pauses.
    bare: Writer,
    /// When sample 0 sounded, ms; unknown before the first sound.
    origin_ms: Option<f64>,
}

impl EchoReference for Reference {
    fn played(&self, samples: &[f32], delay: Duration) {
        if let Ok(mut inlet) = self.inlet.try_lock() {
            let sounds_ms = self.clock.now_ms() + delay.as_secs_f64() * 1000.0;
            inlet.played(samples, sounds_ms);
        }
    }
}

impl Inlet {
    /// Takes samples of which the first sounds at `sounds_ms`.
    fn played(&mut self, samples: &[f32], sounds_ms: f64) {
        let next = self.writer.written() as f64 / PER_MS;
        let origin = *self.origin_ms.get_or_insert(sounds_ms - next);
        let off = sounds_ms - (origin + next);
        let origin = if off > SLACK_MS {
            // Nothing was played meanwhile.
            self.writer.silence((off * PER_MS) as u64);
            origin
        } else if off < -SLACK_MS {
            origin + off
        } else {
            origin + BELIEF * off
        };
        self.origin_ms = Some(origin);
        let last_ms = origin + (self.writer.written() + samples.len() as u64) as f64 / PER_MS;
        self.writer.write(samples.iter().copied(), last_ms);
        self.bare.write(samples.iter().copied(), last_ms);
    }
}

/// Removes the echo from the microphone's frames.
pub struct EchoCanceller {
    aec: AudioProcessing,
    mirror: Mirror,
    reader: Reader,
    lead_ms: f64,
    /// Samples of silence that were shown because the speaker's samples were not there.
    starved: u64,
    /// Blocks since the last sound of the speaker; the canceller rests when it is over.
    quiet: u32,
    working: bool,
    /// Samples of frames that don't fill a block yet, and processed ones that wait for their frame.
    before: Vec<f32>,
    after: Vec<f32>,
    far: Vec<f32>,
    near: [f32; BLOCK],
    scratch: [f32; BLOCK],
}

/// A canceller and what the speaker must be given for it. Stamps of frames must come from `clock`.
pub fn echo_canceller(clock: Arc<dyn Clock>) -> (Arc<Reference>, EchoCanceller) {
    let (writer, reader) = ring(RATE);
    let (bare, copy) = ring(RATE);
    let inlet = Mutex::new(Inlet { writer, bare, origin_ms: None });
    let config = Config {
        echo_canceller: Some(Aec3::default()),
        high_pass_filter: Some(HighPassFilter::default()),
        ..Config::default()
    };
    let aec = AudioProcessing::builder()
        .config(config)
        .capture_config(StreamConfig::new(RATE, 1))
        .render_config(StreamConfig::new(RATE, 1))
        .build();
    let canceller = EchoCanceller {
        aec,
        mirror: Mirror::new(copy),
        reader,
        lead_ms: LEAD_MS,
        starved: 0,
        quiet: TAIL_BLOCKS,
        working: false,
        before: Vec::with_capacity(FRAME + BLOCK),
        after: Vec::with_capacity(FRAME + BLOCK),
        far: Vec::with_capacity(BLOCK),
        near: [0.0; BLOCK],
        scratch: [0.0; BLOCK],
    };
    (Arc::new(Reference { inlet, clock }), canceller)
}

impl EchoCanceller {
    /// Removes the echo from a frame whose last sample was heard at `at_ms`; returns when the last
    /// sample of what is then in the frame was heard (16 ms earlier while the canceller works, the
    /// same while nothing is played and the frame is left as it is).
    pub fn process(&mut self, frame: &mut [f32; FRAME], at_ms: f64) -> f64 {
        let is_echo = self.mirror.explained(frame) >= ECHO;
        let sounding = self.reader.waiting() > 0 || self.quiet < TAIL_BLOCKS;
        if !sounding {
            self.working = false;
            self.before.clear();
            self.after.clear();
            return at_ms;
        }
        if !self.working {
            self.working = true;
            // Heard twice, so that there is something to give until a frame is through.
            let head = frame.get(..CARRY).unwrap_or_default();
            self.after.extend_from_slice(head);
        }
        self.before.extend_from_slice(frame);
        let blocks = self.before.len() / BLOCK;
        for block in 0..blocks {
            let rest = self.before.len() - (block + 1) * BLOCK;
            let heard_ms = at_ms - rest as f64 / PER_MS;
            let samples = self.before.iter().skip(block * BLOCK);
            for (place, sample) in self.near.iter_mut().zip(samples) {
                *place = *sample;
            }
            self.cancel(heard_ms);
            self.after.extend_from_slice(&self.near);
        }
        self.before.drain(..blocks * BLOCK);
        for (place, sample) in frame.iter_mut().zip(self.after.drain(..FRAME.min(self.after.len())))
        {
            *place = sample;
        }
        if is_echo {
            frame.iter_mut().for_each(|sample| *sample *= SILENCED);
        }
        at_ms - DELAY as f64 / PER_MS
    }

    /// Runs the canceller over the block in `near`, whose last sample was heard at `heard_ms`.
    fn cancel(&mut self, heard_ms: f64) {
        self.render(heard_ms);
        let sound = self.far.iter().any(|sample| *sample != 0.0);
        self.quiet = if sound { 0 } else { self.quiet.saturating_add(1) };
        let done = self
            .aec
            .process_render_f32(&[&self.far], &mut [&mut self.scratch])
            .and_then(|()| self.aec.process_capture_f32(&[&self.near], &mut [&mut self.scratch]));
        match done {
            Ok(()) => self.near = self.scratch,
            // The sizes are fixed, so this would be a fault of the canceller; the raw sound is
            // better than none.
            Err(error) => tracing::error!(?error, "the echo canceller failed on a block"),
        }
    }

    /// Puts the reference of a block that was heard at `heard_ms` into `far`.
    fn render(&mut self, heard_ms: f64) {
        let wanted = |lead_ms: f64, reader: &Reader| {
            let end = (heard_ms + lead_ms - reader.origin_ms()) * PER_MS;
            end - BLOCK as f64 - reader.position() as f64
        };
        let waiting = self.reader.waiting();
        if waiting > 0 {
            let late = self.starved as f64 / PER_MS;
            let off = wanted(self.lead_ms, &self.reader);
            // It starved although the speaker was playing: its samples come later than the lead
            // wants them. A pause would have left a gap, and with it a larger difference.
            if self.starved > 0 && (off / PER_MS - late).abs() < SLACK_MS {
                self.lead_ms = (self.lead_ms - late).max(LEAST_LEAD_MS);
            }
            self.starved = 0;
            let off = wanted(self.lead_ms, &self.reader);
            if off.abs() > SLACK_MS * PER_MS {
                let to = self.reader.position() as f64 + off;
                if to >= 0.0 {
                    self.reader.seek(to as u64);
                }
            }
        }
        self.far.clear();
        // Not its time yet: the speaker is far ahead of what was heard.
        if wanted(self.lead_ms, &self.reader) > -SLACK_MS * PER_MS {
            self.reader.read(&mut self.far, BLOCK);
        }
        let missing = BLOCK - self.far.len();
        if missing > 0 && self.quiet < TAIL_BLOCKS {
            self.starved += missing as u64;
        }
        self.far.resize(BLOCK, 0.0);
    }
}

/// The local microphone with the echo of the local speaker removed.
pub struct LocalSource<S> {
    source: S,
    canceller: EchoCanceller,
}

impl<S: Source> LocalSource<S> {
    /// Puts a canceller behind a source whose stamps come from the canceller's clock.
    pub fn new(source: S, canceller: EchoCanceller) -> Self {
        Self { source, canceller }
    }
}

impl<S: Source> Source for LocalSource<S> {
    fn next(&mut self, wait: Duration) -> SourceEvent {
        match self.source.next(wait) {
            SourceEvent::Frame { mut samples, at_ms } => {
                let at_ms = self.canceller.process(&mut samples, at_ms);
                SourceEvent::Frame { samples, at_ms }
            }
            other => other,
        }
    }

    fn echo_path(&self) -> EchoPath {
        match self.source.echo_path() {
            EchoPath::Open => EchoPath::Cancelled,
            other => other,
        }
    }
}

#[cfg(test)]
#[path = "echo_tests.rs"]
mod tests;
