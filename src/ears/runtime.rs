//! The ears at work: a thread that hears, and workers that think about what was heard.
//!
//! The thread takes frames from the source, asks the voice activity model about each, and gives
//! everything to the [`TurnMachine`]; it never waits for a recogniser or the end-of-turn model. It
//! sleeps in [`Source::next`], so idle ears cost one inference each 32 ms.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::backchannel::is_backchannel;
use super::capture::Capture;
use super::control::{EarsControl, Message};
use super::self_echo::SelfEcho;
use super::stt::guard;
use super::turn::{Action, FRAME_MS, Input, TurnConfig, TurnMachine, millis};
use super::{EchoPath, EndOfTurn, FRAME, Source, SourceEvent, Stt, Transcription, Vad};
use crate::config::settings;
use crate::kernel::bus::{Bus, BusError, Events};
use crate::kernel::clock::BoxFuture;
use crate::kernel::contracts::{
    EarsCommand, EarsStats, Event, GetEarsStats, InterruptCause, MicState, MicStatus, Notice,
    NoticeLevel, Stage, TurnCommand, TurnSource, VoiceCommand,
};
use crate::kernel::host::Module;
use crate::kernel::ids::TurnIds;
use crate::kernel::load::CoreLoad;

/// Wait for sound while nothing else is expected, and while a worker's answer is.
const WAIT: Duration = Duration::from_millis(40);
const BUSY_WAIT: Duration = Duration::from_millis(8);

/// Frames between two level events (96 ms).
const LEVEL_FRAMES: u32 = 3;

/// Sound that is this far ahead of the clock comes from a recording that is given without pause: the
/// machine then waits for the workers, because its waits are counted in sound.
const AHEAD_MS: f64 = 200.0;

/// What the ears are made of.
pub struct EarsParts {
    /// The ears' settings.
    pub settings: settings::Ears,
    /// Where to listen first; `None`: nowhere until [`EarsControl::use_source`].
    pub source: Option<Box<dyn Source>>,
    /// Voice activity.
    pub vad: Box<dyn Vad>,
    /// End of turn; without it silence decides.
    pub end_of_turn: Option<Box<dyn EndOfTurn>>,
    /// Speech recognition.
    pub stt: Arc<dyn Stt>,
    /// Longest wait for a transcription.
    pub stt_timeout: Duration,
    /// Where the end-of-turn model says that it computes.
    pub load: CoreLoad,
    /// Where turn ids come from.
    pub turn_ids: Arc<TurnIds>,
}

/// The room as a module of the host, named `ears`.
pub struct Ears {
    parts: Option<EarsParts>,
    inbox: Option<mpsc::Receiver<Message>>,
    control: EarsControl,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Ears {
    /// Ears that listen from [`Module::start`] on.
    pub fn new(parts: EarsParts) -> Self {
        let (sender, inbox) = mpsc::channel();
        let control = EarsControl(sender);
        Self { parts: Some(parts), inbox: Some(inbox), control, thread: None }
    }

    /// The handle that steers them.
    pub fn control(&self) -> EarsControl {
        self.control.clone()
    }
}

impl Module for Ears {
    fn name(&self) -> &'static str {
        "ears"
    }

    fn dependencies(&self) -> &'static [&'static str] {
        &["mind", "voice"]
    }

    fn start<'a>(&'a mut self, bus: &'a Bus) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let (Some(parts), Some(inbox)) = (self.parts.take(), self.inbox.take()) else {
                anyhow::bail!("the ears were started twice");
            };
            let stats: Arc<Mutex<EarsStats>> = Arc::default();
            let counted = Arc::clone(&stats);
            bus.provide(move |_: GetEarsStats| {
                let stats = *counted.lock().unwrap_or_else(PoisonError::into_inner);
                async move { stats }
            })?;
            let mut commands = bus.commands::<EarsCommand>()?;
            let control = self.control.clone();
            tokio::spawn(async move {
                while let Some(command) = commands.recv().await {
                    match command {
                        EarsCommand::Mute(muted) => control.mute(muted),
                        EarsCommand::PushToTalk(pressed) => control.push_to_talk(pressed),
                    }
                }
            });
            let events = bus.subscribe("ears", matters);
            let hearing =
                Hearing::new(parts, bus.clone(), self.control.clone(), stats, Handle::current())?;
            let thread = std::thread::Builder::new().name("ears".into());
            self.thread = Some(thread.spawn(move || hearing.run(&inbox, events))?);
            Ok(())
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        self.control.tell(Message::Stop);
        let thread = self.thread.take();
        Box::pin(async move {
            if let Some(thread) = thread
                && tokio::task::spawn_blocking(move || thread.join()).await.is_err()
            {
                tracing::error!("the ears did not stop in order");
            }
        })
    }
}

/// Events that the turn machine learns from.
fn matters(event: &Event) -> bool {
    use Event::*;
    matches!(
        event,
        TurnStarted { .. }
            | TurnDiscarded { .. }
            | TurnCompleted { .. }
            | TurnFailed { .. }
            | TokenEmitted { .. }
            | ThinkingUpdated { .. }
            | SegmentReady(_)
            | SegmentStarted { .. }
            | SegmentProgress { .. }
            | SegmentWaiting { .. }
            | SegmentFinished { .. }
            | SpeakingStarted { .. }
            | SpeakingEnded { .. }
            | Interrupted { .. }
    )
}

/// A transcription that is being made.
struct Job {
    cancel: CancellationToken,
    /// When its first sample was heard, ms of the clock.
    from_ms: f64,
}

/// An engine that fails is named once, and once more when it works again.
#[derive(Default)]
struct Health {
    failing: bool,
}

/// State of the ears thread.
struct Hearing {
    bus: Bus,
    machine: TurnMachine,
    capture: Capture,
    echo: SelfEcho,
    vad: Box<dyn Vad>,
    questions: Option<mpsc::Sender<(u64, Vec<f32>)>>,
    asked: Option<u64>,
    stt: Arc<dyn Stt>,
    stt_timeout: Duration,
    jobs: HashMap<u64, Job>,
    control: EarsControl,
    runtime: Handle,
    stats: Arc<Mutex<EarsStats>>,
    source: Option<Box<dyn Source>>,
    /// What the machine knows of the source.
    told: Option<EchoPath>,
    mic: MicStatus,
    muted: bool,
    /// Clock time minus stream time, ms, at the newest frame.
    offset_ms: f64,
    /// The same at the first frame of the source.
    first_offset_ms: Option<f64>,
    idle_since_ms: f64,
    endpoint_ms: f64,
    words_ms: f64,
    level: (u32, f32, f32),
    vad_health: Health,
    stt_health: Health,
    turn_health: Health,
    /// The last step crashed.
    crashed: bool,
}

impl Hearing {
    fn new(
        parts: EarsParts,
        bus: Bus,
        control: EarsControl,
        stats: Arc<Mutex<EarsStats>>,
        runtime: Handle,
    ) -> anyhow::Result<Self> {
        let config = TurnConfig {
            words_ms: parts.stt_timeout.as_secs_f64() * 1000.0,
            ..TurnConfig::new(&parts.settings, parts.end_of_turn.is_some())
        };
        let questions = match parts.end_of_turn.filter(|_| config.model) {
            Some(model) => Some(answer_questions(model, control.clone(), parts.load)?),
            None => None,
        };
        Ok(Self {
            machine: TurnMachine::new(config, parts.turn_ids),
            capture: Capture::default(),
            echo: SelfEcho::default(),
            vad: parts.vad,
            questions,
            asked: None,
            stt: parts.stt,
            stt_timeout: parts.stt_timeout,
            jobs: HashMap::new(),
            control,
            runtime,
            stats,
            source: parts.source,
            told: None,
            mic: MicStatus { state: MicState::Off, device: None, reason: None },
            muted: false,
            offset_ms: 0.0,
            first_offset_ms: None,
            idle_since_ms: bus.clock().now_ms(),
            endpoint_ms: 0.0,
            words_ms: 0.0,
            level: (0, 0.0, 0.0),
            vad_health: Health::default(),
            stt_health: Health::default(),
            turn_health: Health::default(),
            crashed: false,
            bus,
        })
    }

    /// Hears until it is told to stop. A crash of anything on this thread costs the frame at which it
    /// happened and what was being said, not the ears.
    fn run(mut self, inbox: &mpsc::Receiver<Message>, mut events: Events) {
        loop {
            let step = AssertUnwindSafe(|| self.step(inbox, &mut events));
            match std::panic::catch_unwind(step) {
                Ok(true) => self.crashed = false,
                Ok(false) => return,
                Err(_) if std::mem::replace(&mut self.crashed, true) => std::thread::sleep(WAIT),
                Err(_) => {
                    let text = "the ears crashed and listen again".into();
                    let hint = "the log says more; what was being said is lost";
                    self.notice(NoticeLevel::Error, "ears_crashed", text, Some(hint));
                    // The machine starts afresh with the next frame.
                    let afresh = AssertUnwindSafe(|| self.source_is(None));
                    if std::panic::catch_unwind(afresh).is_err() {
                        tracing::error!("the turn machine crashed");
                    }
                }
            }
        }
    }

    /// Takes what waits, and one event of the source; `false` ends the thread.
    fn step(&mut self, inbox: &mpsc::Receiver<Message>, events: &mut Events) -> bool {
        while let Ok(message) = inbox.try_recv() {
            if !self.message(message) {
                return false;
            }
        }
        while let Some(event) = events.try_next() {
            self.event(&event.event);
        }
        let busy = self.asked.is_some() || !self.jobs.is_empty();
        let wait = if busy { BUSY_WAIT } else { WAIT };
        let listen = !(busy && self.is_ahead());
        let Some(source) = self.source.as_mut().filter(|_| listen) else {
            match inbox.recv_timeout(WAIT) {
                Ok(message) => return self.message(message),
                Err(_) if self.source.is_none() => self.idle(),
                Err(_) => {}
            }
            return true;
        };
        match source.next(wait) {
            SourceEvent::Frame { samples, at_ms } => self.frame(&samples, at_ms),
            SourceEvent::Status(status) => self.status(status),
            SourceEvent::Idle => self.idle(),
            SourceEvent::End => self.end(),
        }
        true
    }

    /// Sound comes faster than time passes.
    fn is_ahead(&self) -> bool {
        self.first_offset_ms.is_some_and(|first| first - self.offset_ms > AHEAD_MS)
    }

    /// Handles a message; `false` ends the thread.
    fn message(&mut self, message: Message) -> bool {
        match message {
            Message::Source(source) => {
                self.source_is(None);
                self.source = source;
                self.first_offset_ms = None;
                self.vad.reset();
                if self.source.is_none() {
                    self.status(MicStatus { state: MicState::Off, device: None, reason: None });
                }
            }
            Message::Mute(muted) => {
                self.muted = muted;
                self.give(Input::Mute(muted));
                self.show_mic();
            }
            Message::PushToTalk(pressed) => self.give(Input::PushToTalk(pressed)),
            Message::EndOfTurn { ask, complete } => {
                if self.asked == Some(ask) {
                    self.asked = None;
                }
                let failed = complete.as_ref().err().map(|error| format!("{error:#}"));
                self.say_health(Engine::EndOfTurn, failed);
                self.give(Input::EndOfTurn { ask, complete: complete.ok() });
            }
            Message::Words { job, result } => self.words(job, result),
            Message::Stop => {
                for job in self.jobs.values() {
                    job.cancel.cancel();
                }
                let stats = self.stats();
                tracing::info!(?stats, "ears stopped");
                return false;
            }
        }
        true
    }

    fn stats(&self) -> EarsStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut EarsStats)) {
        change(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn event(&mut self, event: &Event) {
        use Event::*;
        let now = self.bus.clock().now_ms();
        match event {
            SegmentReady(segment) => self.echo.ready(segment.id, &segment.spoken),
            SegmentStarted { segment }
            | SegmentProgress { segment, .. }
            | SegmentFinished { segment } => self.echo.heard(*segment, now),
            _ => {}
        }
        let input = match event {
            TurnStarted { turn, draft: false, source, .. } if *source != TurnSource::Voice => {
                Input::Thinking(*turn)
            }
            SpeakingStarted { turn } => Input::Sounding(*turn),
            SegmentStarted { segment } | SegmentProgress { segment, .. } => {
                Input::Sounding(segment.turn)
            }
            TokenEmitted { turn, .. } | ThinkingUpdated { turn, .. } => Input::Alive(*turn),
            SegmentReady(segment) => Input::Alive(segment.id.turn),
            SegmentWaiting { segment } => Input::Alive(segment.turn),
            SpeakingEnded { turn, .. } | TurnDiscarded { turn } => Input::Over(*turn),
            TurnCompleted { turn, .. } | TurnFailed { turn, .. } => Input::Done(*turn),
            Interrupted { turn, .. } => Input::Interrupted(*turn),
            _ => return,
        };
        self.give(input);
    }

    fn frame(&mut self, samples: &[f32; FRAME], at_ms: f64) {
        let path = self.source.as_ref().map(|source| source.echo_path());
        if self.mic.state != MicState::Live {
            let device = self.mic.device.clone();
            self.status(MicStatus { state: MicState::Live, device, reason: None });
        }
        self.source_is(path);
        let speech = self.vad.speech(samples);
        let failed = speech.as_ref().err().map(|error| format!("{error:#}"));
        self.say_health(Engine::Vad, failed);
        let speech = speech.unwrap_or(0.0);
        let rms_db = loudness(samples);
        self.capture.push(samples);
        self.offset_ms = at_ms - millis(self.machine.heard()) - FRAME_MS;
        self.first_offset_ms.get_or_insert(self.offset_ms);
        self.idle_since_ms = self.bus.clock().now_ms();
        self.give(Input::Frame { speech, rms_db });
        self.capture.keep_from(self.machine.needs_from());
        let (frames, power, highest) = self.level;
        self.level = (frames + 1, power + 10f32.powf(rms_db / 10.0), highest.max(speech));
        if frames + 1 == LEVEL_FRAMES {
            let rms_db = 10.0 * (self.level.1 / LEVEL_FRAMES as f32).max(1e-12).log10();
            self.bus.publish(Event::Level { rms_db, speech: self.level.2 });
            self.level = (0, 0.0, 0.0);
        }
    }

    fn idle(&mut self) {
        let now = self.bus.clock().now_ms();
        let idle = now - std::mem::replace(&mut self.idle_since_ms, now);
        self.give(Input::Idle(idle));
    }

    fn end(&mut self) {
        self.give(Input::End);
        self.source = None;
        self.status(MicStatus { state: MicState::Off, device: None, reason: None });
    }

    fn source_is(&mut self, path: Option<EchoPath>) {
        if std::mem::replace(&mut self.told, path) != path {
            self.give(Input::Source(path));
        }
    }

    /// The device's state changed.
    fn status(&mut self, status: MicStatus) {
        let was = std::mem::replace(&mut self.mic, status);
        let name = self.mic.device.clone().unwrap_or_else(|| "the microphone".into());
        match self.mic.state {
            MicState::Live if was.state == MicState::Lost => {
                self.notice(NoticeLevel::Info, "mic_back", format!("{name} is back"), None)
            }
            MicState::Lost if was.state != MicState::Lost => {
                let why = self.mic.reason.clone().unwrap_or_else(|| "no sound arrives".into());
                let hint = "plug it in again or choose another with `ears.device`; typing works";
                let text = format!("{name} is lost: {why}");
                self.notice(NoticeLevel::Warning, "mic_lost", text, Some(hint));
            }
            _ => {}
        }
        if matches!(self.mic.state, MicState::Lost | MicState::Off | MicState::Opening) {
            self.source_is(None);
            self.first_offset_ms = None;
        }
        self.show_mic();
    }

    fn show_mic(&self) {
        let mut mic = self.mic.clone();
        if self.muted && mic.state == MicState::Live {
            mic.state = MicState::Muted;
        }
        self.bus.publish(Event::Mic(mic));
    }

    fn notice(&self, level: NoticeLevel, code: &'static str, text: String, hint: Option<&str>) {
        let hint = hint.map(str::to_owned);
        self.bus.publish(Event::Notice(Notice { level, code, text, hint }));
    }

    /// Says once that an engine fails, and once that it works again.
    fn say_health(&mut self, engine: Engine, failed: Option<String>) {
        let health = match engine {
            Engine::Vad => &mut self.vad_health,
            Engine::Stt => &mut self.stt_health,
            Engine::EndOfTurn => &mut self.turn_health,
        };
        let fails = failed.is_some();
        if std::mem::replace(&mut health.failing, fails) == fails {
            return;
        }
        let (code, back, what) = match engine {
            Engine::Vad => ("vad_failed", "vad_back", "speech detection"),
            Engine::Stt => ("stt_failed", "stt_back", "speech recognition"),
            Engine::EndOfTurn => {
                ("end_of_turn_failed", "end_of_turn_back", "end-of-turn detection")
            }
        };
        match failed {
            Some(why) => {
                let hint = "the ears go on listening; run `alice doctor` if it stays so";
                self.notice(
                    NoticeLevel::Warning,
                    code,
                    format!("{what} failed: {why}"),
                    Some(hint),
                );
            }
            None => self.notice(NoticeLevel::Info, back, format!("{what} works again"), None),
        }
    }

    fn words(&mut self, job: u64, result: anyhow::Result<Transcription>) {
        let Some(Job { from_ms, .. }) = self.jobs.remove(&job) else { return };
        self.words_ms = self.bus.clock().now_ms();
        let failed = result.as_ref().err().map(|error| format!("{error:#}"));
        self.say_health(Engine::Stt, failed);
        let text = result.ok().map(|heard| match guard::phantom(&heard) {
            Some(phantom) => {
                tracing::debug!(?phantom, "words not believed");
                String::new()
            }
            None => heard.text,
        });
        let said = text.as_deref().unwrap_or_default();
        let own = self.told != Some(EchoPath::None) && self.echo.is_own(said, from_ms);
        let backchannel = is_backchannel(said);
        self.give(Input::Words { job, text, own, backchannel });
    }

    fn give(&mut self, input: Input) {
        for action in self.machine.take(input) {
            self.act(action);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::State(state) => self.bus.publish(Event::Listen { state }),
            Action::SpeechStarted => self.bus.publish(Event::SpeechStarted),
            Action::SpeechEnded { end, misfire } => {
                self.count(|stats| stats.misfires += u64::from(misfire));
                let speech_end_ms = millis(end) + self.offset_ms;
                self.bus.publish(Event::SpeechEnded { speech_end_ms, misfire });
            }
            Action::AskEndOfTurn { ask, from, to } => self.ask(ask, self.capture.part(from, to)),
            Action::Transcribe { job, from, to } => self.transcribe(job, from, to),
            Action::CancelTranscribe(job) => {
                if let Some(job) = self.jobs.remove(&job) {
                    job.cancel.cancel();
                }
            }
            Action::Endpoint => self.endpoint_ms = self.bus.clock().now_ms(),
            Action::Partial(text) => {
                self.bus.publish(Event::Transcript { turn: None, text, is_final: false });
            }
            Action::Begin { turn, text, draft } => {
                self.count(|stats| stats.drafts += u64::from(draft));
                self.send(TurnCommand::Begin { turn, text, source: TurnSource::Voice, draft });
            }
            Action::Confirm(turn) => {
                self.count(|stats| stats.draft_hits += 1);
                self.send(TurnCommand::Confirm(turn));
            }
            Action::Discard(turn) => {
                self.count(|stats| stats.draft_misses += 1);
                self.send(TurnCommand::Discard(turn));
            }
            Action::Final { turn, text, speech_end } => {
                self.count(|stats| stats.turns += 1);
                self.bus.publish(Event::Transcript { turn: Some(turn), text, is_final: true });
                let stages = [
                    (Stage::SpeechEnd, millis(speech_end) + self.offset_ms),
                    (Stage::Endpoint, self.endpoint_ms),
                    (Stage::Transcript, self.words_ms),
                ];
                for (stage, at_ms) in stages {
                    self.bus.publish(Event::Stage { turn, stage, at_ms });
                }
            }
            Action::Reopen(turn) => {
                self.count(|stats| stats.reopened += 1);
                self.interrupt(turn);
                self.send(TurnCommand::Discard(turn));
            }
            Action::Duck(on) => match self.bus.send(VoiceCommand::Duck(on)) {
                Ok(()) | Err(BusError::Unavailable(_)) => {}
                Err(error) => tracing::warn!(%error, "the voice was not lowered"),
            },
            Action::Interrupt(turn) => {
                self.count(|stats| stats.interruptions += 1);
                self.interrupt(turn);
            }
        }
    }

    fn interrupt(&self, turn: crate::kernel::ids::TurnId) {
        let cause = InterruptCause::BargeIn;
        self.bus.publish(Event::Interrupted { turn: Some(turn), cause });
    }

    fn send(&self, command: TurnCommand) {
        if let Err(error) = self.bus.send(command) {
            let text = format!("what you said can't be answered: {error}");
            self.notice(NoticeLevel::Error, "no_mind", text, Some("restart Alice"));
        }
    }

    fn ask(&mut self, ask: u64, audio: Vec<f32>) {
        let sent = self.questions.as_ref().is_some_and(|worker| worker.send((ask, audio)).is_ok());
        if sent {
            self.asked = Some(ask);
        } else {
            let complete = Err(anyhow::anyhow!("its worker has stopped"));
            self.control.tell(Message::EndOfTurn { ask, complete });
        }
    }

    fn transcribe(&mut self, job: u64, from: u64, to: u64) {
        let audio = self.capture.part(from, to);
        let cancel = CancellationToken::new();
        let from_ms = millis(from) + self.offset_ms;
        self.jobs.insert(job, Job { cancel: cancel.clone(), from_ms });
        let (stt, control) = (Arc::clone(&self.stt), self.control.clone());
        let (timeout, late) = (self.stt_timeout, self.bus.clock().sleep(self.stt_timeout));
        self.runtime.spawn(async move {
            let work = stt.transcribe(audio, cancel.clone());
            let result = tokio::select! {
                result = AssertUnwindSafe(work).catch_unwind() => {
                    result.unwrap_or_else(|_| Err(anyhow::anyhow!("the recogniser crashed")))
                }
                () = late => {
                    cancel.cancel();
                    Err(anyhow::anyhow!("no transcript within {} s", timeout.as_secs_f64()))
                }
            };
            control.tell(Message::Words { job, result });
        });
    }
}

/// Engines whose health is told.
#[derive(Clone, Copy)]
enum Engine {
    Vad,
    Stt,
    EndOfTurn,
}

/// RMS of a frame, dBFS, −120 at the lowest.
fn loudness(samples: &[f32; FRAME]) -> f32 {
    let power = samples.iter().map(|sample| sample * sample).sum::<f32>() / FRAME as f32;
    10.0 * power.max(1e-12).log10()
}

/// The worker that asks the end-of-turn model; it ends with the sender that is returned.
fn answer_questions(
    mut model: Box<dyn EndOfTurn>,
    control: EarsControl,
    load: CoreLoad,
) -> anyhow::Result<mpsc::Sender<(u64, Vec<f32>)>> {
    let (questions, queue) = mpsc::channel::<(u64, Vec<f32>)>();
    std::thread::Builder::new().name("end-of-turn".into()).spawn(move || {
        while let Ok(mut question) = queue.recv() {
            // A newer question makes the older ones needless.
            while let Ok(newer) = queue.try_recv() {
                question = newer;
            }
            let (ask, audio) = question;
            let computing = load.enter();
            let complete = std::panic::catch_unwind(AssertUnwindSafe(|| model.complete(&audio)))
                .unwrap_or_else(|_| Err(anyhow::anyhow!("the model crashed")));
            drop(computing);
            control.tell(Message::EndOfTurn { ask, complete });
        }
    })?;
    Ok(questions)
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
