//! The turn machine: who speaks, when a turn is over, when the user speaks over the voice.
//!
//! Sans-IO: [`TurnMachine::take`] gets one input and gives the actions that follow from it. All
//! waits are counted in audio, so a recording gives the same turns at any speed. Positions are
//! samples of the stream at [`super::RATE`].
//!
//! An utterance begins after three speech frames and is *open* while the user may go on. In its
//! first silence it is transcribed and, with speculation, answered as a draft. When its end is
//! decided it is *ended*, and is resolved as soon as its words are known: it becomes a turn, or is
//! forgotten as a misfire. Speech that comes back before that opens it again; speech that comes back
//! just after it, before anything was heard of the answer, takes the turn back and adds to its words.

mod barge;
mod level;
pub mod patience;
mod utterance;

use std::sync::Arc;

use crate::config::settings::{self, ListenMode, Patience};
use crate::ears::{EchoPath, FRAME, RATE};
use crate::kernel::contracts::ListenState;
use crate::kernel::ids::{TurnId, TurnIds};

use barge::{Barge, BargeStep};
use level::Level;
use utterance::Utterance;

/// Length of a frame, ms.
pub const FRAME_MS: f64 = FRAME as f64 * 1000.0 / RATE as f64;

/// Speech frames in a row that begin an utterance (96 ms): enough for a short "yes", too much for a
/// click.
const START_FRAMES: u32 = 3;
/// The user may go on with a turn for so long after its end while nothing of the answer was heard
/// (Hugging Face speech-to-speech uses the same).
const REOPEN_MS: f64 = 800.0;
/// A room and a speaker go on sounding for a while after the last sample.
const HOLD_OFF_MS: f64 = 400.0;
/// The voice reports its progress every 100 ms; silence of this length means that it is not playing.
const SOUNDING_MS: f64 = 3_000.0;
/// A turn of which nothing was heard for this long is given up here; its own time-outs are shorter.
const THINKING_MS: f64 = 60_000.0;
/// With the voice itself in the microphone a single word is not enough to stop it.
const WORDS_TO_INTERRUPT: usize = 2;
/// What the user says over a turn that is being thought about stops it when it is this long.
const SURE_FRAMES: u32 = 6;

/// Settings of the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnConfig {
    /// How the user says that Alice is meant.
    pub mode: ListenMode,
    /// Probability at which speech begins.
    pub threshold: f32,
    /// Probability below which it ends.
    pub release: f32,
    /// Sound that is kept from before the start, samples.
    pub pre_roll: u64,
    /// An end-of-turn model answers [`Action::AskEndOfTurn`].
    pub model: bool,
    /// Silence after which a complete turn ends, ms.
    pub silence_ms: f64,
    /// Silence that ends a turn whatever the model says, ms.
    pub max_silence_ms: f64,
    /// The silence wait without an answer of the model, ms.
    pub patience_ms: f64,
    /// Longest capture, samples.
    pub max_turn: u64,
    /// Less speech than this is no turn, ms.
    pub min_speech_ms: f64,
    /// Time after which a transcription that is still at work is given up by its caller, ms. The
    /// words are waited for a little longer, so that the caller is the one who tells why.
    pub words_ms: f64,
    /// Begin drafts in the silence wait.
    pub speculate: bool,
    /// Speaking over the voice interrupts it.
    pub barge_in: bool,
}

impl TurnConfig {
    /// The machine's share of the settings. `model`: an end-of-turn model is there.
    pub fn new(ears: &settings::Ears, model: bool) -> Self {
        let patience_ms = match ears.patience {
            Patience::Fast => 500.0,
            Patience::Normal => 700.0,
            Patience::Patient => 1200.0,
        };
        Self {
            mode: ears.mode,
            threshold: ears.threshold,
            release: ears.release.min(ears.threshold),
            pre_roll: samples(f64::from(ears.pre_roll_ms)),
            model: model && ears.smart_turn,
            silence_ms: f64::from(ears.silence_ms),
            max_silence_ms: f64::from(ears.max_silence_ms.max(ears.silence_ms)),
            patience_ms,
            max_turn: samples(f64::from(ears.max_turn_s.clamp(5, 600)) * 1000.0),
            min_speech_ms: f64::from(ears.min_speech_ms),
            words_ms: 0.0,
            speculate: ears.speculate,
            barge_in: ears.barge_in,
        }
    }
}

/// Samples in so many ms.
pub fn samples(ms: f64) -> u64 {
    (ms.max(0.0) * f64::from(RATE) / 1000.0) as u64
}

/// The ms of so many samples.
pub fn millis(samples: u64) -> f64 {
    samples as f64 * 1000.0 / f64::from(RATE)
}

/// What the machine is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The next 32 ms: probability of speech, and loudness in dBFS.
    Frame {
        /// 0–1.
        speech: f32,
        /// RMS, dBFS.
        rms_db: f32,
    },
    /// No sound for so many ms.
    Idle(f64),
    /// The end-of-turn model answered: the probability that the turn is complete, or `None` when it
    /// failed.
    EndOfTurn {
        /// The number of the question.
        ask: u64,
        /// 0–1.
        complete: Option<f32>,
    },
    /// A transcription is done.
    Words {
        /// Its number.
        job: u64,
        /// The words (empty: there were none), or `None` when it failed.
        text: Option<String>,
        /// They are Alice's own (the self-echo check).
        own: bool,
        /// They only say "I am listening", such as "mm-hm".
        backchannel: bool,
    },
    /// A turn from elsewhere (typed) began.
    Thinking(TurnId),
    /// Work on a turn goes on.
    Alive(TurnId),
    /// Sound of a turn is being played.
    Sounding(TurnId),
    /// The voice is done with a turn, or the turn was taken back.
    Over(TurnId),
    /// A turn is done or has failed; what of it is being heard goes on until [`Input::Over`].
    Done(TurnId),
    /// A reply was cut short; `None`: whatever was going on.
    Interrupted(Option<TurnId>),
    /// Throw away what is heard, or listen again.
    Mute(bool),
    /// The key is pressed or released.
    PushToTalk(bool),
    /// The source and the way of the voice's sound to it; `None`: it is gone.
    Source(Option<EchoPath>),
    /// The recording is over: nothing follows.
    End,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The state changed.
    State(ListenState),
    /// An utterance began.
    SpeechStarted,
    /// It was resolved: exactly one for each `SpeechStarted`.
    SpeechEnded {
        /// End of its last speech frame, samples.
        end: u64,
        /// It is forgotten.
        misfire: bool,
    },
    /// Ask the end-of-turn model about this part of the stream.
    AskEndOfTurn {
        /// Comes back in [`Input::EndOfTurn`].
        ask: u64,
        /// First sample.
        from: u64,
        /// After the last sample.
        to: u64,
    },
    /// Transcribe this part of the stream.
    Transcribe {
        /// Comes back in [`Input::Words`].
        job: u64,
        /// First sample.
        from: u64,
        /// After the last sample.
        to: u64,
    },
    /// The words of this job are not needed any more.
    CancelTranscribe(u64),
    /// The end of the turn was decided.
    Endpoint,
    /// What is understood so far.
    Partial(String),
    /// Begin a turn.
    Begin {
        /// Its id.
        turn: TurnId,
        /// What the user said.
        text: String,
        /// To be confirmed or discarded.
        draft: bool,
    },
    /// The draft holds.
    Confirm(TurnId),
    /// The draft does not hold.
    Discard(TurnId),
    /// These are the words of a turn, which has begun and is no draft (any more).
    Final {
        /// The turn.
        turn: TurnId,
        /// Its words.
        text: String,
        /// End of its last speech frame, samples.
        speech_end: u64,
    },
    /// The user goes on with this turn, of which nothing was heard yet: take it back. Its words are
    /// part of the next one.
    Reopen(TurnId),
    /// Lower the voice, or bring it back.
    Duck(bool),
    /// Stop this reply.
    Interrupt(TurnId),
}

/// A reply that is being made or heard.
#[derive(Clone, Copy, Debug)]
struct Reply {
    turn: TurnId,
    /// It is heard.
    speaking: bool,
    /// When it last gave a sign of life, machine time.
    alive_ms: f64,
}

/// A turn of the user that may still be taken back.
#[derive(Clone, Debug)]
struct Taken {
    turn: TurnId,
    text: String,
    at_ms: f64,
}

/// The machine. See the module.
#[derive(Debug)]
pub struct TurnMachine {
    config: TurnConfig,
    ids: Arc<TurnIds>,
    /// Audio heard plus time without any, ms.
    now_ms: f64,
    /// Samples heard.
    pos: u64,
    /// Nothing from before here is captured.
    not_before: u64,
    level: Level,
    /// Speech frames in a row outside an utterance, and where they began.
    run: (u32, u64),
    utterance: Option<Utterance>,
    /// Where the first utterance began since Alice was last heard: what the user says in pieces is one
    /// turn to the end-of-turn model ("ask not", alone, sounds complete).
    context: Option<u64>,
    /// Words of earlier pieces of the utterance that is open.
    carried: String,
    pieces: u32,
    reply: Option<Reply>,
    taken: Option<Taken>,
    barge: Barge,
    /// A transcription that decides whether sound over an open echo path is the user.
    check: Option<(u64, u64, f64)>,
    ducked: bool,
    muted: bool,
    pressed: bool,
    source: Option<EchoPath>,
    closed_until_ms: f64,
    /// Time since the last sound, ms.
    idle_ms: f64,
    /// Nothing that arrives late for this turn or an older one counts.
    ended: TurnId,
    next_job: u64,
    shown: ListenState,
    out: Vec<Action>,
}

impl TurnMachine {
    /// A machine without a source; it is idle until [`Input::Source`] names one.
    pub fn new(config: TurnConfig, ids: Arc<TurnIds>) -> Self {
        Self {
            level: Level::default(),
            barge: Barge::new(config.threshold),
            config,
            ids,
            now_ms: 0.0,
            pos: 0,
            not_before: 0,
            run: (0, 0),
            utterance: None,
            context: None,
            carried: String::new(),
            pieces: 0,
            reply: None,
            taken: None,
            check: None,
            ducked: false,
            muted: false,
            pressed: false,
            source: None,
            closed_until_ms: 0.0,
            idle_ms: 0.0,
            ended: TurnId(0),
            next_job: 0,
            shown: ListenState::Idle,
            out: Vec::new(),
        }
    }

    /// Takes one input; gives what follows from it, in order.
    pub fn take(&mut self, input: Input) -> Vec<Action> {
        match input {
            Input::Frame { speech, rms_db } => self.frame(speech, rms_db),
            Input::Idle(ms) => {
                self.now_ms += ms.max(0.0);
                self.idle_ms += ms.max(0.0);
                if self.idle_ms >= utterance::LOST_MS {
                    self.end_of_sound();
                }
                self.watch();
            }
            Input::EndOfTurn { ask, complete } => self.answered(ask, complete),
            Input::Words { job, text, own, backchannel } => {
                self.understood(job, text, own, backchannel);
            }
            Input::Thinking(turn) => self.reply_is(turn, false),
            Input::Alive(turn) => {
                if let Some(reply) = self.reply.as_mut().filter(|reply| reply.turn == turn) {
                    reply.alive_ms = self.now_ms;
                }
            }
            Input::Sounding(turn) => self.sounding(turn),
            Input::Over(turn) => self.over(turn),
            Input::Done(turn) => {
                if self.reply.is_some_and(|reply| reply.turn == turn && !reply.speaking) {
                    self.end_reply();
                }
            }
            Input::Interrupted(turn) => {
                if self.reply.is_some_and(|reply| turn.is_none_or(|turn| turn == reply.turn)) {
                    self.end_reply();
                }
            }
            Input::Mute(muted) => {
                self.muted = muted;
                if muted {
                    self.drop_everything();
                }
            }
            Input::PushToTalk(pressed) => self.push_to_talk(pressed),
            Input::Source(source) => self.source_is(source),
            Input::End => self.end_of_sound(),
        }
        if self.ducked && !self.reply.is_some_and(|reply| reply.speaking) {
            self.duck(false);
        }
        self.show(self.state());
        std::mem::take(&mut self.out)
    }

    /// The earliest sample that an action may still name.
    pub fn needs_from(&self) -> u64 {
        let open = self.utterance.as_ref().map_or(self.pos, |utterance| utterance.from);
        let check = self.check.map_or(self.pos, |(_, from, _)| from);
        let barge = self.barge.reach(self.pos);
        let run = if self.run.0 > 0 { self.run.1 } else { self.pos };
        let context = self.context.map_or(self.pos, |_| self.context_from(self.pos));
        open.min(check).min(context).min(self.back_from(run.min(barge)))
    }

    /// Samples heard so far.
    pub fn heard(&self) -> u64 {
        self.pos
    }

    /// The state that people are shown.
    fn state(&self) -> ListenState {
        let closed = self.muted
            || self.source.is_none()
            || (self.config.mode == ListenMode::PushToTalk && !self.pressed);
        match (&self.utterance, self.reply) {
            (Some(utterance), _) if utterance.is_speaking(self.pos) => ListenState::UserSpeaking,
            (Some(_), _) => ListenState::Deciding,
            (None, Some(Reply { speaking: true, .. })) => ListenState::Speaking,
            (None, Some(_)) => ListenState::Thinking,
            (None, None) if closed => ListenState::Idle,
            (None, None) => ListenState::Listening,
        }
    }

    fn show(&mut self, state: ListenState) {
        if std::mem::replace(&mut self.shown, state) != state {
            self.out.push(Action::State(state));
        }
    }

    fn duck(&mut self, on: bool) {
        if std::mem::replace(&mut self.ducked, on) != on {
            self.out.push(Action::Duck(on));
        }
    }

    /// Whether what the microphone hears is listened to.
    fn hearing(&self) -> bool {
        let Some(path) = self.source else { return false };
        if self.muted {
            return false;
        }
        let sounding =
            self.reply.is_some_and(|reply| reply.speaking) || self.now_ms < self.closed_until_ms;
        match self.config.mode {
            ListenMode::PushToTalk => self.pressed,
            ListenMode::HalfDuplex => !sounding,
            ListenMode::Open if path == EchoPath::HalfDuplex || !self.config.barge_in => !sounding,
            // The tail of the voice would begin an utterance.
            ListenMode::Open if path == EchoPath::Open => {
                self.now_ms >= self.closed_until_ms || self.reply.is_some_and(|r| r.speaking)
            }
            ListenMode::Open => true,
        }
    }

    fn frame(&mut self, speech: f32, rms_db: f32) {
        self.pos += FRAME as u64;
        self.now_ms += FRAME_MS;
        self.idle_ms = 0.0;
        let speech = self.level.gate(speech, rms_db);
        self.watch();
        if !self.hearing() {
            self.close();
            return;
        }
        if self.utterance.is_some() {
            self.in_utterance(speech, rms_db);
            return;
        }
        if speech < level::QUIET && self.reply.is_none() {
            self.level.learn(rms_db);
        }
        if self.reply.is_some_and(|reply| reply.speaking) {
            self.over_the_voice(speech);
        } else {
            self.in_quiet(speech);
        }
    }

    fn in_quiet(&mut self, speech: f32) {
        let (frames, began) = self.run;
        let on = if frames > 0 { self.config.release } else { self.config.threshold };
        if speech < on {
            self.run = (0, 0);
            return;
        }
        let began = if frames == 0 { self.pos - FRAME as u64 } else { began };
        self.run = (frames + 1, began);
        if frames + 1 < START_FRAMES {
            return;
        }
        if let (Some(taken), Some(reply)) = (self.taken.take(), self.reply)
            && taken.turn == reply.turn
            && self.now_ms - taken.at_ms <= REOPEN_MS
        {
            self.reply = None;
            self.ended = self.ended.max(taken.turn);
            self.out.push(Action::Reopen(taken.turn));
            self.carried = taken.text;
            self.pieces += 1;
        }
        self.start(began, frames + 1, speech, false);
    }

    /// A speech frame while Alice is heard.
    fn over_the_voice(&mut self, speech: f32) {
        if self.source == Some(EchoPath::Open) {
            let sure = self.barge.open_path(speech, self.pos, self.now_ms);
            if let (Some(began), None) = (sure, self.check) {
                let from = self.back_from(began);
                let job = self.transcribe(from, self.pos);
                self.check = Some((job, from, self.now_ms));
            }
            return;
        }
        match self.barge.frame(speech, self.pos, self.now_ms) {
            BargeStep::Nothing => {}
            BargeStep::Candidate => self.duck(true),
            BargeStep::Over => self.duck(false),
            BargeStep::Confirmed { began, frames } => {
                self.interrupt();
                self.start(began, frames, speech, true);
            }
        }
    }

    fn interrupt(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.ended = self.ended.max(reply.turn);
            self.out.push(Action::Interrupt(reply.turn));
            self.show(ListenState::Interrupted);
        }
        self.taken = None;
        self.barge.reset();
    }

    /// Where a capture begins whose speech began here.
    fn back_from(&self, began: u64) -> u64 {
        began.saturating_sub(self.config.pre_roll).max(self.not_before)
    }

    fn start(&mut self, began: u64, frames: u32, speech: f32, over_reply: bool) {
        self.run = (0, 0);
        self.barge.reset();
        let from = self.back_from(began);
        self.context.get_or_insert(from);
        self.utterance = Some(Utterance::new(from, self.pos, frames, speech, over_reply));
        self.out.push(Action::SpeechStarted);
    }

    fn transcribe(&mut self, from: u64, to: u64) -> u64 {
        self.next_job += 1;
        self.out.push(Action::Transcribe { job: self.next_job, from, to });
        self.next_job
    }

    fn reply_is(&mut self, turn: TurnId, speaking: bool) {
        if turn > self.ended && (speaking || self.reply.is_none_or(|reply| !reply.speaking)) {
            self.reply = Some(Reply { turn, speaking, alive_ms: self.now_ms });
        }
    }

    fn sounding(&mut self, turn: TurnId) {
        let began = self.reply.is_none_or(|reply| !reply.speaking || reply.turn != turn);
        self.reply_is(turn, true);
        if !began || self.reply.is_none_or(|reply| reply.turn != turn) {
            return;
        }
        self.taken = None;
        self.context = None;
        self.run = (0, 0);
        if !self.hearing() {
            self.close();
            return;
        }
        // The user is already speaking: Alice does not begin over them. A sound too short to be sure
        // of goes through the same test as any other while she speaks.
        if let Some(utterance) = &self.utterance
            && utterance.is_open()
            && utterance.is_speaking(self.pos)
        {
            if utterance.voiced() >= SURE_FRAMES && self.source != Some(EchoPath::Open) {
                self.interrupt();
            } else {
                self.forget();
            }
        }
    }

    fn over(&mut self, turn: TurnId) {
        if self.reply.is_some_and(|reply| reply.turn == turn) {
            self.end_reply();
        }
        if let Some(utterance) = &mut self.utterance {
            utterance.lost_draft(turn);
        }
    }

    fn end_reply(&mut self) {
        if let Some(reply) = self.reply.take() {
            self.ended = self.ended.max(reply.turn);
            if reply.speaking {
                self.closed_until_ms = self.now_ms + HOLD_OFF_MS;
            }
        }
        self.taken = None;
        self.context = None;
        self.barge.reset();
        self.drop_check();
    }

    fn drop_check(&mut self) {
        if let Some((job, ..)) = self.check.take() {
            self.out.push(Action::CancelTranscribe(job));
        }
    }

    /// Ends every state that waits for a sign which may never come.
    fn watch(&mut self) {
        if let Some(reply) = &mut self.reply {
            let quiet = self.now_ms - reply.alive_ms;
            if quiet >= THINKING_MS {
                self.reply = None;
                self.taken = None;
            } else if reply.speaking && quiet >= SOUNDING_MS {
                reply.speaking = false;
                self.barge.reset();
            }
        }
        if self.check.is_some_and(|(_, _, since)| self.now_ms - since > utterance::RESOLVE_MS) {
            self.drop_check();
            self.barge.hold(self.now_ms);
        }
        self.watch_utterance();
    }

    /// Nothing is heard now: an open utterance is forgotten, an ended one is still resolved.
    fn close(&mut self) {
        if self.utterance.as_ref().is_some_and(Utterance::is_open) {
            self.forget();
        }
        self.deaf();
    }

    fn deaf(&mut self) {
        self.run = (0, 0);
        self.barge.reset();
        self.drop_check();
        self.duck(false);
        self.not_before = self.pos;
        self.context = None;
    }

    fn drop_everything(&mut self) {
        if self.utterance.is_some() {
            self.forget();
        }
        self.deaf();
    }

    fn push_to_talk(&mut self, pressed: bool) {
        let was = std::mem::replace(&mut self.pressed, pressed);
        if self.config.mode != ListenMode::PushToTalk || was == pressed {
            return;
        }
        if pressed {
            if !self.muted {
                self.interrupt();
            }
            self.not_before = self.pos;
        } else {
            self.end_of_sound();
            self.deaf();
        }
    }

    fn source_is(&mut self, source: Option<EchoPath>) {
        let was = std::mem::replace(&mut self.source, source);
        if source.is_none() || was.is_some() && was != source {
            self.end_of_sound();
            self.deaf();
        }
        if source.is_some() && was.is_none() {
            self.level = Level::default();
            self.not_before = self.pos;
        }
    }

    /// No more sound for now: what was said is the turn.
    fn end_of_sound(&mut self) {
        self.run = (0, 0);
        if self.utterance.as_ref().is_some_and(Utterance::is_open) {
            self.end_utterance();
        }
    }
}

#[cfg(test)]
#[path = "turn_properties.rs"]
mod properties;
#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
