//! The output device: choosing, opening, and knowing when it is gone.

use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cpal::traits::{DeviceTrait, HostTrait};
use cpal::{BufferSize, SupportedBufferSize};
use rodio::{DeviceSinkBuilder, MixerDeviceSink};

use super::deck::{Controls, Deck, Feed, deck};
use crate::kernel::ports::EchoReference;
use crate::kernel::sound_system::sound_host;
use crate::voice::tap::Tap;

/// Sound that the callback makes at once: 2.5 ms.
const BLOCKS_PER_S: u32 = 400;

/// Sound that a device asks for at once: 10 ms. It holds two of these, so a stop is silent at the
/// output after 20 ms and its fade (measured on PulseAudio: 33 ms at a recording of the sink, the
/// recording's own delay included). PulseAudio's own default is two seconds.
const PERIODS_PER_S: u32 = 100;

/// A device that was chosen, and the host that it was found on.
pub(super) struct Choice {
    host: cpal::Host,
    device: cpal::Device,
    name: String,
}

impl Choice {
    /// Finds `wanted`, else the default device.
    ///
    /// # Errors
    /// One line when there is no device at all.
    pub(super) fn make(wanted: &str) -> Result<Self, String> {
        let host = sound_host();
        let device = choose(&host, wanted).ok_or("no output device was found")?;
        let name = name(&device);
        Ok(Self { host, device, name })
    }
}

fn name(device: &cpal::Device) -> String {
    device.description().map_or_else(|_| "unnamed".into(), |d| d.name().to_owned())
}

fn choose(host: &cpal::Host, wanted: &str) -> Option<cpal::Device> {
    let wanted = wanted.to_lowercase();
    let named = (!wanted.is_empty() && wanted != "default").then(|| {
        let id = |device: &cpal::Device| device.id().map(|id| id.to_string().to_lowercase());
        host.output_devices().ok()?.find(|device| {
            name(device).to_lowercase().contains(&wanted)
                || id(device).is_ok_and(|id| id.contains(&wanted))
        })
    });
    named.flatten().or_else(|| host.default_output_device())
}

/// An open device. Its stream runs until this is dropped.
pub(super) struct Output {
    host: cpal::Host,
    id: Option<cpal::DeviceId>,
    name: String,
    rate: u32,
    latency: Duration,
    error: Arc<Mutex<Option<String>>>,
    _stream: MixerDeviceSink,
}

impl Output {
    /// Opens the device with a short buffer and starts to play silence.
    ///
    /// # Errors
    /// One line.
    pub(super) fn open(
        choice: Choice,
        echo: Option<Arc<dyn EchoReference>>,
        controls: &Arc<Controls>,
    ) -> Result<(Self, Feed), String> {
        let Choice { host, device, name } = choice;
        let failed = |why: &dyn std::fmt::Display| format!("`{name}` can't be opened: {why}");
        let config = device.default_output_config().map_err(|error| failed(&error))?;
        let rate = config.sample_rate();
        let period = match config.buffer_size() {
            SupportedBufferSize::Range { min, max } => (rate / PERIODS_PER_S).clamp(*min, *max),
            SupportedBufferSize::Unknown => rate / PERIODS_PER_S,
        };
        let error = Arc::<Mutex<Option<String>>>::default();
        let open = |size| {
            let (error, feeder) = (Arc::clone(&error), std::thread::current());
            DeviceSinkBuilder::from_device(device.clone())?
                .with_buffer_size(size)
                .with_error_callback(move |raised: cpal::Error| {
                    if is_fatal(raised.kind()) {
                        let mut error = error.lock().unwrap_or_else(PoisonError::into_inner);
                        error.get_or_insert_with(|| raised.to_string());
                        feeder.unpark();
                    } else {
                        tracing::debug!(error = %raised, "speaker");
                    }
                })
                .open_stream()
        };
        // A device that does not take this size chooses its own.
        let mut stream = open(BufferSize::Fixed(period))
            .or_else(|_| open(BufferSize::Default))
            .map_err(|error| failed(&error))?;
        stream.log_on_drop(false);
        let latency = Duration::from_secs_f64(2.0 * f64::from(period) / f64::from(rate.max(1)));
        let block = (rate / BLOCKS_PER_S).max(1) as usize;
        let tap = echo
            .map(|echo| Tap::new(echo, rate, block))
            .transpose()
            .map_err(|error| failed(&error))?;
        let feeder = std::thread::current();
        let (deck, feed) = deck(rate, Arc::clone(controls), Some(feeder), tap, latency);
        let source = Source::new(deck, rate, block).ok_or_else(|| failed(&"it has no rate"))?;
        stream.mixer().add(source);
        let id = device.id().ok();
        Ok((Self { host, id, name, rate, latency, error, _stream: stream }, feed))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn rate(&self) -> u32 {
        self.rate
    }

    /// From the callback to the ear, as far as the buffers tell.
    pub(super) fn latency(&self) -> Duration {
        self.latency
    }

    /// Why the device is gone, when it is.
    pub(super) fn error(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Another device should be used: the default changed, or the named one came back.
    pub(super) fn is_outdated(&self, wanted: &str) -> bool {
        let best = choose(&self.host, wanted).and_then(|device| device.id().ok());
        best.is_some() && best != self.id
    }
}

fn is_fatal(kind: cpal::ErrorKind) -> bool {
    use cpal::ErrorKind::{DeviceChanged, RealtimeDenied, Xrun};
    !matches!(kind, DeviceChanged | RealtimeDenied | Xrun)
}

/// The deck as rodio's endless source.
struct Source {
    deck: Deck,
    rate: NonZero<u32>,
    block: Vec<f32>,
    at: usize,
}

impl Source {
    fn new(deck: Deck, rate: u32, block: usize) -> Option<Self> {
        Some(Self { deck, rate: NonZero::new(rate)?, block: vec![0.0; block], at: block })
    }
}

impl Iterator for Source {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        if self.at >= self.block.len() {
            self.deck.fill(&mut self.block);
            self.at = 0;
        }
        let sample = self.block.get(self.at).copied();
        self.at += 1;
        sample
    }
}

impl rodio::Source for Source {
    fn current_span_len(&self) -> Option<usize> {
        None
    }

    fn channels(&self) -> NonZero<u16> {
        NonZero::<u16>::MIN
    }

    fn sample_rate(&self) -> NonZero<u32> {
        self.rate
    }

    fn total_duration(&self) -> Option<Duration> {
        None
    }
}
