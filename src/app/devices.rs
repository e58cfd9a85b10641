//! Which microphone and speaker are in use: the local ones, or those of the newest remote device.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tokio::sync::mpsc;

use crate::ears::Source;
use crate::ears::control::EarsControl;
use crate::ears::echo::Reference;
use crate::ears::remote::{Apart, remote_source};
use crate::kernel::clock::Clock;
use crate::kernel::contracts::{Event, Notice, NoticeLevel};
use crate::kernel::ids::SegmentId;
use crate::kernel::ports::{
    EchoReference, RemoteAcks, RemoteDevices, RemoteHello, RemoteLink, RemoteOut, Speaker,
};
use crate::voice::remote::RemoteSpeaker;
use crate::voice::switch::{SpeakerPort, SpeakerSwitch};

use super::engines::Tell;

/// Rates that a remote device may use, Hz.
const RATES: std::ops::RangeInclusive<u32> = 8_000..=48_000;

/// Hands what the local speaker plays to the echo canceller of the microphone that is open now.
#[derive(Default)]
pub struct PlayedSound(ArcSwapOption<Reference>);

impl PlayedSound {
    /// The canceller that needs it from now on.
    pub fn hear(&self, canceller: Option<Arc<Reference>>) {
        self.0.store(canceller);
    }
}

impl EchoReference for PlayedSound {
    fn played(&self, samples: &[f32], delay: Duration) {
        if let Some(canceller) = &*self.0.load() {
            canceller.played(samples, delay);
        }
    }
}

/// Opens the microphone of this machine; `None` when there is none to open.
pub type OpenMicrophone = Box<dyn Fn() -> Option<Box<dyn Source>> + Send + Sync>;

/// The devices of a running Alice.
pub struct Devices {
    ears: Option<EarsControl>,
    voice: Arc<SpeakerSwitch>,
    clock: Arc<dyn Clock>,
    microphone: OpenMicrophone,
    speaker: Option<(SpeakerPort, Arc<dyn Speaker>)>,
    tell: Tell,
    /// Counts the remote devices; the newest has the microphone and the speaker.
    newest: Mutex<u64>,
    me: Weak<Self>,
}

impl Devices {
    /// Devices with the local ones in use. `ears` is missing where nothing can be heard, `speaker`
    /// where this machine plays nothing.
    pub fn new(
        ears: Option<EarsControl>,
        voice: Arc<SpeakerSwitch>,
        clock: Arc<dyn Clock>,
        microphone: OpenMicrophone,
        speaker: Option<(SpeakerPort, Arc<dyn Speaker>)>,
        tell: Tell,
    ) -> Arc<Self> {
        let devices = Arc::new_cyclic(|me| Self {
            ears,
            voice,
            clock,
            microphone,
            speaker,
            tell,
            newest: Mutex::new(0),
            me: Weak::clone(me),
        });
        devices.use_local_speaker();
        devices
    }

    fn newest(&self) -> MutexGuard<'_, u64> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Alice stops: nothing takes over from the devices that are in use.
    pub fn close(&self) {
        *self.newest() += 1;
    }

    fn use_local_speaker(&self) {
        match &self.speaker {
            Some((port, speaker)) => self.voice.use_speaker(port, Arc::clone(speaker)),
            None => self.voice.use_nothing(),
        }
    }

    /// Listens with the microphone of this machine, or to nothing when there is none. `apart`: the voice
    /// sounds elsewhere, so what it says can't be taken out of what this microphone hears.
    fn use_local_microphone(&self, apart: bool) -> bool {
        self.ears.as_ref().is_some_and(|ears| match (self.microphone)() {
            Some(microphone) if apart => {
                ears.use_source(Box::new(Apart(microphone)));
                true
            }
            Some(microphone) => {
                ears.use_source(microphone);
                true
            }
            None => {
                ears.no_source();
                false
            }
        })
    }

    /// A remote device left; the local ones take over unless a newer one has come.
    fn left(&self, device: u64, name: &str) {
        let newest = self.newest();
        if *newest != device {
            return;
        }
        self.use_local_speaker();
        let microphone = self.use_local_microphone(false);
        drop(newest);
        (self.tell)(gone(name, microphone, self.speaker.is_some()));
    }
}

/// Says what is used instead of a device that went away.
fn gone(name: &str, microphone: bool, speaker: bool) -> Event {
    let who = if name.is_empty() { "the remote device".into() } else { format!("`{name}`") };
    let (instead, hint) = match (microphone, speaker) {
        (true, true) => ("the microphone and speaker of this computer are used again", None),
        (true, false) => ("the microphone of this computer is used again, replies are text", None),
        (false, true) => ("replies are played on this computer, and there is no microphone", None),
        (false, false) => {
            ("replies are text, and there is no microphone", Some("connect it again"))
        }
    };
    Event::Notice(Notice {
        level: NoticeLevel::Warning,
        code: "device_gone",
        text: format!("{who} went away: {instead}"),
        hint: hint.map(str::to_owned),
    })
}

impl RemoteDevices for Devices {
    fn connect(&self, hello: RemoteHello) -> Result<RemoteLink, String> {
        for (what, rate) in [("input", hello.input_rate), ("output", hello.output_rate)] {
            if rate != 0 && !RATES.contains(&rate) {
                return Err(format!("an {what} rate of {rate} Hz is not taken: use 8000 to 48000"));
            }
        }
        if hello.input_rate != 0 && self.ears.is_none() {
            return Err("Alice can't hear now: `alice doctor` says what is missing".into());
        }
        // Both ends are made before either is used: a device is let in whole or not at all.
        let port = self.voice.port();
        let clock = || Arc::clone(&self.clock);
        let ends = (hello.output_rate != 0)
            .then(|| RemoteSpeaker::new(&hello, port.clone(), clock()))
            .transpose()?;
        let source = (hello.input_rate != 0)
            .then(|| remote_source(&hello, clock()))
            .transpose()
            .map_err(|error| format!("{error:#}"))?;
        let mut newest = self.newest();
        *newest += 1;
        let device = *newest;
        let (acks, out, silent) = match ends {
            Some((speaker, acks, out)) => {
                self.voice.use_speaker(&port, speaker);
                (Some(acks), out, None)
            }
            None => {
                let (silent, out) = mpsc::channel(1);
                (None, out, Some(silent))
            }
        };
        let mic = source.map(|(mic, source)| {
            if let Some(ears) = &self.ears {
                ears.use_source(Box::new(source));
            }
            mic
        });
        // The microphone of the device before goes away with it.
        if mic.is_none() && acks.is_some() {
            self.use_local_microphone(true);
        }
        let devices = Weak::clone(&self.me);
        let name = hello.name;
        let acks = Box::new(Connected { acks, device, name, devices, _silent: silent });
        Ok(RemoteLink { mic, acks, out })
    }
}

/// Acknowledgements of a connected device, which says goodbye when they are dropped.
struct Connected {
    acks: Option<Box<dyn RemoteAcks>>,
    device: u64,
    name: String,
    devices: Weak<Devices>,
    /// Keeps the line down open for a device that plays nothing.
    _silent: Option<mpsc::Sender<RemoteOut>>,
}

impl RemoteAcks for Connected {
    fn played(&mut self, segment: SegmentId, played: Duration) {
        if let Some(acks) = &mut self.acks {
            acks.played(segment, played);
        }
    }

    fn finished(&mut self, segment: SegmentId) {
        if let Some(acks) = &mut self.acks {
            acks.finished(segment);
        }
    }

    fn waiting(&mut self, segment: SegmentId) {
        if let Some(acks) = &mut self.acks {
            acks.waiting(segment);
        }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        if let Some(devices) = self.devices.upgrade() {
            devices.left(self.device, &self.name);
        }
    }
}

#[cfg(test)]
#[path = "devices_tests.rs"]
mod tests;
