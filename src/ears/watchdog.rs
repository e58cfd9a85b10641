//! Keeps a microphone open whatever happens to it: what to do, decided without doing it.
//!
//! The watchdog is told the time, what devices there are, how opening went, what the stream's errors
//! were and when the last callback came; it answers with what to do and what to tell.

use crate::kernel::contracts::{MicState, MicStatus};

/// A stream without a callback for so long is dead, ms.
const SILENT_MS: f64 = 1_000.0;

/// Opening or listing that takes longer hangs, ms.
const HUNG_MS: f64 = 5_000.0;

/// Devices are looked at so often while all is well, ms.
const LOOK_MS: f64 = 2_000.0;

/// A stream that gives only zeros for so long is taken as it is, ms: a muted microphone, or a
/// virtual one that nobody speaks into.
const ZEROS_MS: f64 = 1_000.0;

/// First wait after a failure, and the longest, ms.
const BACK_OFF_MS: (f64, f64) = (250.0, 5_000.0);

/// Longest wait between two looks for a device that is not there, ms: looking is cheap.
const LONGEST_LOOK_MS: f64 = 1_000.0;

/// What hears what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    /// A microphone.
    No,
    /// The monitor of an output: hears what is played there.
    Monitor,
    /// The monitor of the output that Alice speaks through: hears her own voice and nobody else.
    OwnVoice,
}

/// A device that could be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The system's name for it.
    pub id: String,
    /// Name for the person.
    pub name: String,
    /// Whether it hears an output.
    pub hears: Loop,
}

/// The devices of the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The system's default input.
    pub default: Option<Candidate>,
    /// The device that was asked for by name.
    pub named: Option<Candidate>,
    /// Ids of all inputs, where listing them is cheap.
    pub all: Option<Vec<String>>,
}

/// Errors of a running stream, by what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The stream is dead.
    Dead,
    /// The stream goes on, from another device.
    Rerouted,
    /// The stream goes on; a few samples may be missing.
    Harmless,
}

/// What the watchdog is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// Time has passed. `callback_ms`: when the stream's last callback came.
    Tick {
        /// Of the open stream; `None` before its first.
        callback_ms: Option<f64>,
    },
    /// The answer to [`Act::Look`].
    Seen(Seen),
    /// Listing failed.
    LookFailed(String),
    /// The device that was to be opened is open.
    Opened,
    /// It could not be opened.
    OpenFailed(String),
    /// The first sample that is not zero.
    Sound,
    /// The stream's error.
    Fault(Fault, String),
}

/// What is to be done, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// List the devices.
    Look,
    /// Open a device.
    Open(Candidate),
    /// Close what is open or being opened.
    Close,
    /// Whoever looks or opens hangs: leave them alone and use another thread from now on.
    Abandon,
    /// Tell the person.
    Tell(MicStatus),
}

#[derive(Clone, Debug)]
enum State {
    Closed { look_ms: f64 },
    Looking { since_ms: f64 },
    Opening { device: Candidate, since_ms: f64 },
    Open { device: Candidate, since_ms: f64, sound: bool, look_ms: f64, looking: bool },
}

/// The watchdog of one microphone.
#[derive(Debug)]
pub struct Watchdog {
    /// Part of the name that was asked for; `None`: the default device.
    wanted: Option<String>,
    state: State,
    back_off_ms: f64,
    /// The last device that was open.
    last: Option<Candidate>,
    told: Option<MicStatus>,
}

impl Watchdog {
    /// A watchdog for the default device, or for the one that `wanted` names.
    pub fn new(wanted: Option<String>) -> Self {
        Self {
            wanted,
            state: State::Closed { look_ms: f64::MIN },
            back_off_ms: BACK_OFF_MS.0,
            last: None,
            told: None,
        }
    }

    /// Takes what happened at `now_ms` and says what to do.
    pub fn step(&mut self, now_ms: f64, told: Told) -> Vec<Act> {
        let mut acts = Vec::new();
        match told {
            Told::Tick { callback_ms } => self.tick(now_ms, callback_ms, &mut acts),
            Told::Seen(seen) => self.seen(now_ms, &seen, &mut acts),
            Told::LookFailed(reason) => {
                if let State::Looking { .. } = self.state {
                    self.fail(now_ms, reason, LONGEST_LOOK_MS, &mut acts);
                } else if let State::Open { looking, .. } = &mut self.state {
                    // The stream says itself when it is dead.
                    *looking = false;
                }
            }
            Told::Opened => {
                if let State::Opening { device, .. } = &self.state {
                    let device = device.clone();
                    self.last = Some(device.clone());
                    self.state = State::Open {
                        device,
                        since_ms: now_ms,
                        sound: false,
                        look_ms: now_ms + LOOK_MS,
                        looking: false,
                    };
                }
            }
            Told::OpenFailed(reason) => {
                if let State::Opening { .. } = self.state {
                    self.fail(now_ms, reason, BACK_OFF_MS.1, &mut acts);
                }
            }
            Told::Sound => self.live(None, &mut acts),
            Told::Fault(Fault::Dead, reason) => {
                if let State::Open { .. } | State::Opening { .. } = self.state {
                    self.fail(now_ms, reason, BACK_OFF_MS.1, &mut acts);
                }
            }
            Told::Fault(Fault::Rerouted, _) => {
                if let State::Open { look_ms, .. } = &mut self.state {
                    *look_ms = now_ms;
                }
            }
            Told::Fault(Fault::Harmless, _) => {}
        }
        acts
    }

    fn tick(&mut self, now_ms: f64, callback_ms: Option<f64>, acts: &mut Vec<Act>) {
        match &mut self.state {
            State::Closed { look_ms } => {
                if now_ms >= *look_ms {
                    self.state = State::Looking { since_ms: now_ms };
                    acts.push(Act::Look);
                }
            }
            State::Looking { since_ms } | State::Opening { since_ms, .. } => {
                if now_ms - *since_ms > HUNG_MS {
                    acts.push(Act::Abandon);
                    let reason = "the sound system does not answer".into();
                    self.fail(now_ms, reason, BACK_OFF_MS.1, acts);
                }
            }
            State::Open { since_ms, sound, look_ms, looking, .. } => {
                let since_ms = *since_ms;
                let heard_ms = callback_ms.map_or(since_ms, |at| at.max(since_ms));
                if now_ms - heard_ms > SILENT_MS {
                    let reason = "it gave no sound for a second".into();
                    self.fail(now_ms, reason, BACK_OFF_MS.1, acts);
                    return;
                }
                if now_ms >= *look_ms && !*looking {
                    *looking = true;
                    *look_ms = now_ms + LOOK_MS;
                    acts.push(Act::Look);
                }
                let zeros = !*sound && callback_ms.is_some_and(|at| at - since_ms > ZEROS_MS);
                if zeros {
                    self.live(Some("it gives only silence so far: is it muted?".into()), acts);
                }
            }
        }
    }

    fn seen(&mut self, now_ms: f64, seen: &Seen, acts: &mut Vec<Act>) {
        match &mut self.state {
            State::Looking { .. } => match self.choose(seen) {
                Ok((device, reason)) => self.open(now_ms, device, reason, acts),
                Err(reason) => self.fail(now_ms, reason, LONGEST_LOOK_MS, acts),
            },
            State::Open { device, looking, .. } => {
                *looking = false;
                let current = device.clone();
                let gone = seen.all.as_ref().is_some_and(|all| !all.contains(&current.id));
                let better = self.better(seen, &current, gone);
                match better {
                    Some((device, reason)) => {
                        acts.push(Act::Close);
                        self.open(now_ms, device, Some(reason), acts);
                    }
                    None if gone => {
                        let reason = format!("`{}` is gone", current.name);
                        self.fail(now_ms, reason, LONGEST_LOOK_MS, acts);
                    }
                    None => {}
                }
            }
            State::Closed { .. } | State::Opening { .. } => {}
        }
    }

    /// The device to open, with a remark when it is not the one that was asked for.
    fn choose(&self, seen: &Seen) -> Result<(Candidate, Option<String>), String> {
        if let Some(named) = &seen.named {
            return Ok((named.clone(), None));
        }
        let lost = self.last.as_ref().filter(|last| last.hears == Loop::No);
        let missing = || match (lost, &self.wanted) {
            (Some(last), _) => format!("`{}` is gone", last.name),
            (None, Some(wanted)) => format!("there is no microphone `{wanted}`"),
            (None, None) => "there is no microphone".into(),
        };
        let default = seen.default.as_ref().ok_or_else(missing)?;
        match default.hears {
            Loop::OwnVoice => return Err(missing()),
            // Sound servers fall back to a monitor when the last microphone goes. Somebody may
            // have chosen one on purpose, but not at this moment.
            Loop::Monitor if lost.is_some() => return Err(missing()),
            Loop::Monitor | Loop::No => {}
        }
        let reason = self
            .wanted
            .as_ref()
            .map(|wanted| format!("there is no microphone `{wanted}`: the default one is used"));
        Ok((default.clone(), reason))
    }

    /// Another device than the open one that is to be used now, and why.
    fn better(&self, seen: &Seen, current: &Candidate, gone: bool) -> Option<(Candidate, String)> {
        let other = |device: &&Candidate| device.id != current.id;
        if let Some(named) = &seen.named {
            return Some(named)
                .filter(other)
                .map(|named| (named.clone(), format!("`{}` is here again", named.name)));
        }
        let default = seen.default.as_ref().filter(other)?;
        let fits = match default.hears {
            Loop::No => true,
            Loop::Monitor => !gone || current.hears != Loop::No,
            Loop::OwnVoice => false,
        };
        // Without a name the default is followed; with one, a stand-in is kept while it lives.
        let follow = self.wanted.is_none() || gone || current.hears != Loop::No;
        (fits && follow)
            .then(|| (default.clone(), format!("the default microphone is `{}` now", default.name)))
    }

    fn open(
        &mut self,
        now_ms: f64,
        device: Candidate,
        reason: Option<String>,
        acts: &mut Vec<Act>,
    ) {
        self.tell(MicState::Opening, Some(&device), reason, acts);
        acts.push(Act::Open(device.clone()));
        self.state = State::Opening { device, since_ms: now_ms };
    }

    fn live(&mut self, reason: Option<String>, acts: &mut Vec<Act>) {
        let State::Open { device, sound, .. } = &mut self.state else { return };
        *sound |= reason.is_none();
        let device = device.clone();
        self.back_off_ms = BACK_OFF_MS.0;
        self.tell(MicState::Live, Some(&device), reason, acts);
    }

    fn fail(&mut self, now_ms: f64, reason: String, longest_ms: f64, acts: &mut Vec<Act>) {
        let device = match &self.state {
            State::Opening { device, .. } | State::Open { device, .. } => {
                acts.push(Act::Close);
                Some(device.clone())
            }
            State::Closed { .. } | State::Looking { .. } => self.last.clone(),
        };
        self.tell(MicState::Lost, device.as_ref(), Some(reason), acts);
        let wait_ms = self.back_off_ms.min(longest_ms);
        self.state = State::Closed { look_ms: now_ms + wait_ms };
        self.back_off_ms = (self.back_off_ms * 2.0).min(BACK_OFF_MS.1);
    }

    /// Tells a status, once.
    fn tell(
        &mut self,
        state: MicState,
        device: Option<&Candidate>,
        reason: Option<String>,
        acts: &mut Vec<Act>,
    ) {
        let lost = |told: &MicStatus| told.state == MicState::Lost;
        // While it is tried again and again, the person wants to hear what is wrong, not each try.
        if state == MicState::Opening && self.told.as_ref().is_some_and(lost) {
            return;
        }
        let status = MicStatus { state, device: device.map(|device| device.name.clone()), reason };
        if self.told.as_ref() != Some(&status) {
            self.told = Some(status.clone());
            acts.push(Act::Tell(status));
        }
    }
}

#[cfg(test)]
#[path = "watchdog_tests.rs"]
mod tests;
