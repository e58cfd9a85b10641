//! Sound devices by cpal: which there are, and a microphone opened at its own rate and format.
//! On Linux the host is PulseAudio (or PipeWire in its place) when a server answers, else ALSA.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Context;
use cpal::traits::{DeviceTrait, HostTrait, StreamTrait};
use cpal::{
    BufferSize, Device, ErrorKind, FromSample, Host, InputCallbackInfo, Sample, SampleFormat,
    SizedSample, Stream, StreamConfig, SupportedBufferSize,
};

use super::ring::stamp;
use super::tap::{Inlet, Tap, tap};
use super::watchdog::{Candidate, Fault, Loop, Seen};
use crate::kernel::clock::Clock;
use crate::kernel::sound_system::sound_host;

/// Callbacks a second that are asked for: 20 ms each.
const CALLBACKS: u32 = 50;

/// A longer callback makes listening slow, ms; some drivers choose seconds when they are not asked.
const LONGEST_CALLBACK_MS: f64 = 50.0;

/// A device as the person sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Name, of which a part can be given in the settings.
    pub name: String,
    /// The system's own name for it, of which a part can be given as well.
    pub id: String,
    /// It is the system's default.
    pub is_default: bool,
    /// It hears what an output plays; no microphone.
    pub is_monitor: bool,
}

/// All inputs, with the name of the host (`PulseAudio`, `ALSA`, `CoreAudio` …) first.
///
/// # Errors
/// One line when the sound system does not answer.
pub fn list_inputs() -> anyhow::Result<(String, Vec<DeviceInfo>)> {
    let host = sound_host();
    let default = host.default_input_device();
    let devices = host.input_devices().context("the sound system lists no inputs")?;
    Ok((host.id().to_string(), infos(devices, default.as_ref())))
}

/// All outputs, with the name of the host first.
///
/// # Errors
/// One line when the sound system does not answer.
pub fn list_outputs() -> anyhow::Result<(String, Vec<DeviceInfo>)> {
    let host = sound_host();
    let default = host.default_output_device();
    let devices = host.output_devices().context("the sound system lists no outputs")?;
    Ok((host.id().to_string(), infos(devices, default.as_ref())))
}

fn infos(devices: impl Iterator<Item = Device>, default: Option<&Device>) -> Vec<DeviceInfo> {
    let default = default.map(id_of);
    devices
        .map(|device| {
            let id = id_of(&device);
            DeviceInfo {
                name: name_of(&device),
                is_default: default.as_ref() == Some(&id),
                is_monitor: is_monitor(&id),
                id,
            }
        })
        .collect()
}

fn name_of(device: &Device) -> String {
    device.description().map_or_else(|_| id_of(device), |device| device.name().to_owned())
}

fn id_of(device: &Device) -> String {
    device.id().map(|id| id.id().to_owned()).unwrap_or_default()
}

fn is_monitor(id: &str) -> bool {
    id.ends_with(".monitor")
}

/// Whether a device is meant by (part of) a name, in any case.
pub fn is_meant(wanted: &str, name: &str, id: &str) -> bool {
    let wanted = wanted.to_lowercase();
    name.to_lowercase().contains(&wanted) || id.to_lowercase().contains(&wanted)
}

/// The system's sound, as one thread uses it. Calls may hang with the sound server.
pub struct System {
    host: Option<Host>,
}

impl System {
    /// Connects when it is first used.
    pub fn new() -> Self {
        Self { host: None }
    }

    fn host(&mut self) -> &Host {
        self.host.get_or_insert_with(sound_host)
    }

    /// Looks what devices there are; `wanted` is part of a name.
    ///
    /// # Errors
    /// One line when the sound system does not answer. The next call connects anew.
    pub fn look(&mut self, wanted: Option<&str>) -> anyhow::Result<Seen> {
        let seen = self.try_look(wanted);
        let nothing = seen.as_ref().map_or(true, |seen| seen.default.is_none());
        if nothing {
            // A server that was restarted needs a new connection; and one that has come up since
            // is better than the fallback.
            self.host = None;
        }
        seen
    }

    fn try_look(&mut self, wanted: Option<&str>) -> anyhow::Result<Seen> {
        let host = self.host();
        let speaker = host.default_output_device().map(|device| id_of(&device));
        let candidate = |device: &Device| {
            let id = id_of(device);
            let own = speaker.as_ref().is_some_and(|speaker| id == format!("{speaker}.monitor"));
            let hears = match (is_monitor(&id), own) {
                (_, true) => Loop::OwnVoice,
                (true, false) => Loop::Monitor,
                (false, false) => Loop::No,
            };
            Candidate { name: name_of(device), id, hears }
        };
        let default = host.default_input_device().as_ref().map(candidate);
        // Other hosts open every device to list them, which disturbs those in use.
        let cheap = host.id().to_string().eq_ignore_ascii_case("pulseaudio");
        if !cheap && wanted.is_none() {
            return Ok(Seen { default, named: None, all: None });
        }
        let inputs: Vec<Candidate> = host
            .input_devices()
            .context("the sound system does not answer")?
            .map(|device| candidate(&device))
            .collect();
        let named = wanted.and_then(|wanted| {
            let exact = inputs.iter().find(|input| input.id == wanted || input.name == wanted);
            exact.or_else(|| inputs.iter().find(|input| is_meant(wanted, &input.name, &input.id)))
        });
        let named = named.cloned();
        let all = cheap.then(|| inputs.into_iter().map(|input| input.id).collect());
        Ok(Seen { default, named, all })
    }

    /// Opens a device and starts it. `failed` gets the stream's errors, from any thread.
    ///
    /// # Errors
    /// One line that says why it can't be opened.
    pub fn open(
        &mut self,
        candidate: &Candidate,
        signs: &Arc<Signs>,
        clock: &Arc<dyn Clock>,
        failed: impl Fn(Fault, String) + Clone + Send + 'static,
    ) -> anyhow::Result<(Stream, Tap)> {
        let result = self.try_open(candidate, signs, clock, failed);
        if result.is_err() {
            self.host = None;
        }
        result.with_context(|| format!("`{}` can't be opened", candidate.name))
    }

    fn try_open(
        &mut self,
        candidate: &Candidate,
        signs: &Arc<Signs>,
        clock: &Arc<dyn Clock>,
        failed: impl Fn(Fault, String) + Clone + Send + 'static,
    ) -> anyhow::Result<(Stream, Tap)> {
        let host = self.host();
        let meant = |device: &Device| id_of(device) == candidate.id;
        let device = host
            .default_input_device()
            .filter(meant)
            .or_else(|| host.input_devices().ok()?.find(meant))
            .context("it is gone")?;
        let native = device.default_input_config()?;
        let rate = native.sample_rate();
        let buffer = match native.buffer_size() {
            SupportedBufferSize::Range { min, max } => (rate / CALLBACKS).clamp(*min, *max),
            SupportedBufferSize::Unknown => rate / CALLBACKS,
        };
        let mut config = native.config();
        let format = native.sample_format();
        let mut open = |buffer_size| {
            config.buffer_size = buffer_size;
            let (inlet, tap) = tap(rate, &candidate.name)?;
            let mouth = Mouth {
                inlet,
                channels: usize::from(config.channels.max(1)),
                signs: Arc::clone(signs),
                clock: Arc::clone(clock),
                sounded: false,
            };
            Ok::<_, anyhow::Error>((mouth.listen(&device, config, format, failed.clone())?, tap))
        };
        let (stream, tap) = open(BufferSize::Fixed(buffer)).or_else(|error| {
            tracing::debug!(%error, "no buffer of 20 ms: the device's own is used");
            open(BufferSize::Default)
        })?;
        stream.play()?;
        if let Ok(frames) = stream.buffer_size() {
            let ms = f64::from(frames) * 1000.0 / f64::from(rate.max(1));
            if ms > LONGEST_CALLBACK_MS {
                tracing::warn!(device = candidate.name, ms, "the microphone's buffer is long");
            }
        }
        tracing::info!(device = candidate.name, rate, ?format, "microphone open");
        Ok((stream, tap))
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

/// Signs of life of a stream, left by its callback.
#[derive(Debug)]
pub struct Signs {
    callback_ms: AtomicU64,
    sound: AtomicBool,
}

impl Default for Signs {
    fn default() -> Self {
        Self { callback_ms: AtomicU64::new(f64::NAN.to_bits()), sound: AtomicBool::new(false) }
    }
}

impl Signs {
    /// When the last callback came, ms.
    pub fn callback_ms(&self) -> Option<f64> {
        let ms = f64::from_bits(self.callback_ms.load(Ordering::Relaxed));
        (!ms.is_nan()).then_some(ms)
    }

    /// Whether a sample was not zero yet.
    pub fn sound(&self) -> bool {
        self.sound.load(Ordering::Relaxed)
    }
}

/// The callback of a stream.
struct Mouth {
    inlet: Inlet,
    channels: usize,
    signs: Arc<Signs>,
    clock: Arc<dyn Clock>,
    sounded: bool,
}

impl Mouth {
    fn listen(
        self,
        device: &Device,
        config: StreamConfig,
        format: SampleFormat,
        failed: impl Fn(Fault, String) + Send + 'static,
    ) -> anyhow::Result<Stream> {
        let stream = match format {
            SampleFormat::I8 => self.build::<i8>(device, config, failed),
            SampleFormat::I16 => self.build::<i16>(device, config, failed),
            SampleFormat::I24 => self.build::<cpal::I24>(device, config, failed),
            SampleFormat::I32 => self.build::<i32>(device, config, failed),
            SampleFormat::I64 => self.build::<i64>(device, config, failed),
            SampleFormat::U8 => self.build::<u8>(device, config, failed),
            SampleFormat::U16 => self.build::<u16>(device, config, failed),
            SampleFormat::U24 => self.build::<cpal::U24>(device, config, failed),
            SampleFormat::U32 => self.build::<u32>(device, config, failed),
            SampleFormat::U64 => self.build::<u64>(device, config, failed),
            SampleFormat::F32 => self.build::<f32>(device, config, failed),
            SampleFormat::F64 => self.build::<f64>(device, config, failed),
            other => anyhow::bail!("its sample format {other} is not supported"),
        };
        Ok(stream?)
    }

    fn build<T: SizedSample>(
        mut self,
        device: &Device,
        config: StreamConfig,
        failed: impl Fn(Fault, String) + Send + 'static,
    ) -> Result<Stream, cpal::Error>
    where
        f32: FromSample<T>,
    {
        let rate = f64::from(config.sample_rate.max(1));
        device.build_input_stream(
            config,
            move |data: &[T], info: &InputCallbackInfo| self.heard(data, info, rate),
            move |error| failed(meaning(error.kind()), reason(&error)),
            Some(std::time::Duration::from_secs(3)),
        )
    }

    fn heard<T: SizedSample>(&mut self, data: &[T], info: &InputCallbackInfo, rate: f64)
    where
        f32: FromSample<T>,
    {
        let frames = data.chunks_exact(self.channels);
        if frames.len() == 0 {
            return;
        }
        if !self.sounded && data.iter().any(|sample| *sample != T::EQUILIBRIUM) {
            self.sounded = true;
            self.signs.sound.store(true, Ordering::Relaxed);
        }
        self.signs.callback_ms.store(self.clock.now_ms().to_bits(), Ordering::Relaxed);
        // The stamp of the device is of the first sample.
        let stamps = info.timestamp();
        let since_first = stamps.callback.saturating_duration_since(stamps.capture);
        let length_ms = frames.len() as f64 * 1000.0 / rate;
        let latency_ms = since_first.as_secs_f64() * 1000.0 - length_ms;
        let scale = 1.0 / self.channels as f32;
        let mono =
            frames.map(|frame| frame.iter().map(|s| f32::from_sample(*s)).sum::<f32>() * scale);
        self.inlet.write(mono, stamp(&*self.clock, latency_ms));
    }
}

fn meaning(kind: ErrorKind) -> Fault {
    match kind {
        ErrorKind::Xrun | ErrorKind::RealtimeDenied => Fault::Harmless,
        ErrorKind::DeviceChanged => Fault::Rerouted,
        _ => Fault::Dead,
    }
}

fn reason(error: &cpal::Error) -> String {
    match error.kind() {
        ErrorKind::DeviceNotAvailable => "it was unplugged or switched off".into(),
        ErrorKind::HostUnavailable | ErrorKind::StreamInvalidated => {
            "the sound system closed it".into()
        }
        ErrorKind::PermissionDenied => {
            "the system does not allow it: allow the microphone in its privacy settings".into()
        }
        _ => format!("it failed: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_meant_by_part_of_their_name() {
        assert!(is_meant("yeti", "Blue Yeti Nano", "alsa_input.usb-1"));
        assert!(is_meant("USB-1", "Blue Yeti Nano", "alsa_input.usb-1"));
        assert!(!is_meant("headset", "Blue Yeti Nano", "alsa_input.usb-1"));
    }

    #[test]
    fn errors_that_a_stream_survives_are_known() {
        assert_eq!(meaning(ErrorKind::Xrun), Fault::Harmless);
        assert_eq!(meaning(ErrorKind::RealtimeDenied), Fault::Harmless);
        assert_eq!(meaning(ErrorKind::DeviceChanged), Fault::Rerouted);
        assert_eq!(meaning(ErrorKind::DeviceNotAvailable), Fault::Dead);
        assert_eq!(meaning(ErrorKind::StreamInvalidated), Fault::Dead);
    }

    #[test]
    fn signs_begin_empty() {
        let signs = Signs::default();
        assert_eq!(signs.callback_ms(), None);
        assert!(!signs.sound());
    }
}
