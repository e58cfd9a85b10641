//! Every message that crosses the border between two rooms.
//!
//! *Events* say what happened and go to everyone who cares; *commands* ask one room to act;
//! *requests* want an answer. Sound is never inside a message: a segment names its [`MediaId`].

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bus::{Command, Request};
use super::ids::{MediaId, SegmentId, SessionId, TurnId};

/// An event with what the bus adds to it.
#[derive(Clone, Debug, Serialize)]
pub struct Envelope {
    /// Place in the order of publication, from 1, without gaps.
    pub seq: u64,
    /// The session it belongs to.
    pub session: SessionId,
    /// When it was published, in ms of the bus's clock.
    pub at_ms: f64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. The JSON form (`type` in snake case) is what `GET /events` sends and what the
/// timeline of `alice converse` holds, so names and fields are part of the public interface.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The microphone (or what stands for it) changed its state.
    Mic(MicStatus),
    /// The turn machine changed its state.
    Listen {
        /// The new state.
        state: ListenState,
    },
    /// Loudness and speech probability of what the ears hear, about ten times a second.
    Level {
        /// RMS of the last 100 ms, dBFS, −120 at the lowest.
        rms_db: f32,
        /// Highest speech probability of the last 100 ms, 0–1.
        speech: f32,
    },
    /// The user began to speak (three speech frames in a row, not a blip).
    SpeechStarted,
    /// The user stopped: a whole utterance was heard, or one too short to count.
    SpeechEnded {
        /// When the last speech sample was heard, ms of the bus's clock.
        speech_end_ms: f64,
        /// The utterance was too short or empty and is forgotten.
        misfire: bool,
    },
    /// What was understood of the user's words.
    Transcript {
        /// The turn that this text began, when it is final.
        turn: Option<TurnId>,
        /// The words.
        text: String,
        /// `false` while the user may go on speaking.
        is_final: bool,
    },
    /// A turn began. While it is a draft nothing of it may be heard, written or done.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// Who or what asked.
        source: TurnSource,
        /// What the user said.
        user_text: String,
        /// The end of the user's turn is not certain yet.
        draft: bool,
    },
    /// A draft became a real turn: its sound may play.
    TurnConfirmed {
        /// The turn.
        turn: TurnId,
    },
    /// A draft was thrown away: forget everything of this turn.
    TurnDiscarded {
        /// The turn.
        turn: TurnId,
    },
    /// The next piece of a reply, raw: tags, markdown and all. Never cut inside a character.
    TokenEmitted {
        /// The turn.
        turn: TurnId,
        /// The piece.
        delta: String,
    },
    /// The next piece of the model's reasoning, which is shown on request and never spoken.
    ThinkingUpdated {
        /// The turn.
        turn: TurnId,
        /// The piece.
        delta: String,
    },
    /// The model has said all of its reply; speech may still be playing.
    ReplyGenerated {
        /// The turn.
        turn: TurnId,
    },
    /// The turn is over and its history written.
    TurnCompleted {
        /// The turn.
        turn: TurnId,
        /// What of the reply was heard (or shown, where nothing is spoken), without tags.
        content: String,
        /// The user cut the reply short.
        interrupted: bool,
    },
    /// The turn ended without a reply; the line says why and what to do.
    TurnFailed {
        /// The turn.
        turn: TurnId,
        /// One line for the person.
        error: String,
    },
    /// A piece of the reply is synthesised and waits to be played.
    SegmentReady(Arc<Segment>),
    /// The first sample of a segment left for the speaker.
    SegmentStarted {
        /// The segment.
        segment: SegmentId,
    },
    /// How far a segment has been played; about every 100 ms, and once at its end.
    SegmentProgress {
        /// The segment.
        segment: SegmentId,
        /// Audio of the segment that was heard, ms.
        played_ms: f64,
    },
    /// The speaker may not play a segment yet: a browser waits for a tap. Repeated while that lasts.
    SegmentWaiting {
        /// The segment.
        segment: SegmentId,
    },
    /// The last sample of a segment was played.
    SegmentFinished {
        /// The segment.
        segment: SegmentId,
    },
    /// A segment could not be spoken; its text is shown and the next one is played.
    SegmentSkipped {
        /// The segment.
        segment: SegmentId,
        /// The text that was not spoken, for the eye.
        display: String,
        /// Why, in one line.
        reason: String,
    },
    /// The first sound of a reply.
    SpeakingStarted {
        /// The turn.
        turn: TurnId,
    },
    /// The voice is done with a turn: all played, stopped, or nothing to say. Published exactly once
    /// for every confirmed turn; it is what the history is written from.
    SpeakingEnded {
        /// The turn.
        turn: TurnId,
        /// What the person heard of it.
        heard: Heard,
    },
    /// The voice was lowered (`true`) because somebody may be speaking over it, or brought back.
    Ducked {
        /// Lowered.
        on: bool,
    },
    /// Stop what is being said and thought, now.
    Interrupted {
        /// The turn that is meant; `None` for whatever is going on.
        turn: Option<TurnId>,
        /// Why.
        cause: InterruptCause,
    },
    /// The feeling to show. Bound to a segment, it is shown with that segment's sound.
    Feeling {
        /// The segment it goes with; `None`: at once.
        segment: Option<SegmentId>,
        /// The feeling.
        feeling: Feeling,
    },
    /// Something the person should know: a device lost, a model fallen back, a file damaged.
    Notice(Notice),
    /// A stage of a turn was reached, for timelines and benchmarks.
    Stage {
        /// The turn.
        turn: TurnId,
        /// Which.
        stage: Stage,
        /// When, ms of the bus's clock (may lie before the event's own stamp).
        at_ms: f64,
    },
    /// Which models and devices are in use, after the choice was made or changed.
    Engines(Engines),
}

impl Event {
    /// The turn that the event belongs to, where it has one.
    pub fn turn(&self) -> Option<TurnId> {
        match self {
            Self::TurnStarted { turn, .. }
            | Self::TurnConfirmed { turn }
            | Self::TurnDiscarded { turn }
            | Self::TokenEmitted { turn, .. }
            | Self::ThinkingUpdated { turn, .. }
            | Self::ReplyGenerated { turn }
            | Self::TurnCompleted { turn, .. }
            | Self::TurnFailed { turn, .. }
            | Self::SpeakingStarted { turn }
            | Self::SpeakingEnded { turn, .. }
            | Self::Stage { turn, .. } => Some(*turn),
            Self::SegmentReady(segment) => Some(segment.id.turn),
            Self::SegmentStarted { segment }
            | Self::SegmentProgress { segment, .. }
            | Self::SegmentWaiting { segment }
            | Self::SegmentFinished { segment }
            | Self::SegmentSkipped { segment, .. } => Some(segment.turn),
            Self::Feeling { segment, .. } => segment.map(|segment| segment.turn),
            Self::Transcript { turn, .. } | Self::Interrupted { turn, .. } => *turn,
            Self::Mic(_)
            | Self::Listen { .. }
            | Self::Level { .. }
            | Self::SpeechStarted
            | Self::SpeechEnded { .. }
            | Self::Ducked { .. }
            | Self::Notice(_)
            | Self::Engines(_) => None,
        }
    }
}

/// State of the microphone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MicStatus {
    /// What it does.
    pub state: MicState,
    /// The device's name.
    pub device: Option<String>,
    /// Why it is not listening, in one line.
    pub reason: Option<String>,
}

/// What the microphone does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MicState {
    /// Not used: text only.
    Off,
    /// Being opened.
    Opening,
    /// Sound arrives.
    Live,
    /// Open, but what it hears is thrown away.
    Muted,
    /// Gone; it is tried again by itself.
    Lost,
}

/// States of the turn machine (design, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenState {
    /// Not listening: muted, no microphone, or push-to-talk not pressed.
    Idle,
    /// Waiting for speech.
    Listening,
    /// The user speaks.
    UserSpeaking,
    /// Silence: is the turn over?
    Deciding,
    /// The reply is being made.
    Thinking,
    /// The reply is heard.
    Speaking,
    /// The reply was cut short.
    Interrupted,
}

/// Who or what began a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnSource {
    /// Spoken.
    Voice,
    /// Typed in the page.
    Page,
    /// Typed in a terminal.
    Terminal,
}

/// Why a reply is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptCause {
    /// The user spoke over it.
    BargeIn,
    /// A button, a key or an API call.
    Request,
    /// A newer turn took its place.
    NewTurn,
    /// Alice is stopping.
    Shutdown,
}

/// A spoken piece of a reply.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Which.
    pub id: SegmentId,
    /// Text for the eye: markdown and emoji kept, tags and thoughts removed.
    pub display: String,
    /// Text for the ear.
    pub spoken: String,
    /// The feeling to show while it sounds.
    pub feeling: Feeling,
    /// Mouth shapes, stamped in ms of the segment's audio.
    pub visemes: Vec<VisemeFrame>,
    /// Length of its audio, ms.
    pub duration_ms: f64,
    /// Where a page can fetch its sound.
    pub media: MediaId,
    /// When each word of `spoken` begins, as (byte offset in `spoken`, ms); empty when unknown.
    pub words: Vec<(usize, f64)>,
}

/// Mouth shape at a moment: weights 0–1 of the five VRM vowels. Weights hold until the next frame;
/// shows interpolate between frames. A track begins and ends with a closed mouth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VisemeFrame {
    /// Position in the segment's audio, ms.
    pub at_ms: f32,
    /// Open, as in "father".
    pub aa: f32,
    /// Wide, as in "see".
    pub ih: f32,
    /// Rounded small, as in "food".
    pub ou: f32,
    /// Half wide, as in "bed".
    pub ee: f32,
    /// Rounded, as in "more".
    pub oh: f32,
}

/// What a person heard of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// The display text of all that was heard; cut at a word (CJK: a character) when it was stopped
    /// in the middle. Empty when nothing was heard.
    pub text: String,
    /// The whole reply was heard (or there was nothing to speak).
    pub complete: bool,
}

/// An emotion with its strength.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feeling {
    /// Which.
    pub emotion: Emotion,
    /// 0–1.
    pub intensity: f32,
}

impl Default for Feeling {
    fn default() -> Self {
        Self { emotion: Emotion::Neutral, intensity: 0.0 }
    }
}

/// The emotions that a face can show. Each model maps them to the expressions it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Emotion {
    /// None in particular.
    #[default]
    Neutral,
    /// Glad.
    Happy,
    /// Down, sorry.
    Sad,
    /// Cross.
    Angry,
    /// Astonished.
    Surprised,
    /// At ease.
    Relaxed,
    /// Thinking it over.
    Thinking,
    /// Bashful.
    Shy,
    /// Afraid.
    Fearful,
    /// Put off.
    Disgusted,
    /// Eager.
    Excited,
    /// Puzzled.
    Confused,
    /// Fond.
    Loving,
}

impl Emotion {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Neutral,
        Self::Happy,
        Self::Sad,
        Self::Angry,
        Self::Surprised,
        Self::Relaxed,
        Self::Thinking,
        Self::Shy,
        Self::Fearful,
        Self::Disgusted,
        Self::Excited,
        Self::Confused,
        Self::Loving,
    ];

    /// The name in tags and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Neutral => "neutral",
            Self::Happy => "happy",
            Self::Sad => "sad",
            Self::Angry => "angry",
            Self::Surprised => "surprised",
            Self::Relaxed => "relaxed",
            Self::Thinking => "thinking",
            Self::Shy => "shy",
            Self::Fearful => "fearful",
            Self::Disgusted => "disgusted",
            Self::Excited => "excited",
            Self::Confused => "confused",
            Self::Loving => "loving",
        }
    }

    /// The emotion of a tag's word, in any case; `None` when it names none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|emotion| emotion.name().eq_ignore_ascii_case(name))
    }
}

/// Something the person should know, as one clear line and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// How bad.
    pub level: NoticeLevel,
    /// Stable name for programs, such as `mic_lost`.
    pub code: &'static str,
    /// What is wrong (or right again), one line.
    pub text: String,
    /// What to do, when there is something to do.
    pub hint: Option<String>,
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Error,
}

/// Stages of a turn, in the order in which they are usually reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The last sample of the user's speech.
    SpeechEnd,
    /// The end of the turn was decided.
    Endpoint,
    /// The transcript that the reply answers was there.
    Transcript,
    /// The first token of the reply.
    FirstToken,
    /// The first clause was handed to synthesis.
    FirstClause,
    /// The first sound of it was synthesised.
    FirstPcm,
    /// Its first sample went to the device.
    FirstSample,
}

/// Which engines are in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Engines {
    /// Language model, such as `embedded: Qwen2.5-Coder-0.5B`.
    pub llm: Option<String>,
    /// Speech recognition.
    pub stt: Option<String>,
    /// Speech synthesis and voice.
    pub tts: Option<String>,
    /// End of turn: `smart-turn` or `timer`.
    pub end_of_turn: Option<String>,
}

/// What entrances ask of the mind. One queue, so order is kept between the kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnCommand {
    /// Answer this. A `draft` must be confirmed or discarded; until then it has no side effect.
    Begin {
        /// The turn's id, taken before any work for it began.
        turn: TurnId,
        /// What the user said.
        text: String,
        /// Where it came from.
        source: TurnSource,
        /// The end of the user's turn is not certain yet.
        draft: bool,
    },
    /// The draft is what the user wanted to say.
    Confirm(TurnId),
    /// The user went on speaking: forget the draft, or a confirmed turn of which nothing was heard
    /// (its words come again in the next one).
    Discard(TurnId),
}
impl Command for TurnCommand {}

/// What is asked of the ears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarsCommand {
    /// Throw away what the microphone hears (`true`) or listen again.
    Mute(bool),
    /// Push-to-talk pressed (`true`) or released.
    PushToTalk(bool),
}
impl Command for EarsCommand {}

/// What is asked of the voice.
#[derive(Clone, Debug, PartialEq)]
pub enum VoiceCommand {
    /// Lower the voice (`true`) or bring it back.
    Duck(bool),
    /// Loudness 0–1 from now on.
    Volume(f32),
}
impl Command for VoiceCommand {}

/// Asks the mind for the conversation so far, oldest first.
#[derive(Clone, Debug)]
pub struct GetHistory {
    /// At most so many of the newest.
    pub limit: usize,
}
impl Request for GetHistory {
    type Reply = Vec<HistoryEntry>;
}

/// One line of the conversation as a person sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The turn.
    pub turn: TurnId,
    /// `true`: the user's words; `false`: Alice's.
    pub from_user: bool,
    /// The words, without tags.
    pub text: String,
    /// Alice was cut short here.
    pub interrupted: bool,
}

/// Asks the ears what they counted since the start.
#[derive(Clone, Copy, Debug)]
pub struct GetEarsStats;
impl Request for GetEarsStats {
    type Reply = EarsStats;
}

/// What the ears counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarsStats {
    /// Turns that were heard whole.
    pub turns: u64,
    /// Drafts that were begun in a silence.
    pub drafts: u64,
    /// Drafts that the end of the turn confirmed.
    pub draft_hits: u64,
    /// Drafts that were thrown away because the user went on.
    pub draft_misses: u64,
    /// Turns that were taken back because the user went on before anything was heard.
    pub reopened: u64,
    /// Utterances that were forgotten.
    pub misfires: u64,
    /// Replies that were stopped by speaking over them.
    pub interruptions: u64,
}
