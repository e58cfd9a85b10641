//! Traits that one room implements and another uses, joined by `app`.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::clock::BoxFuture;
use super::contracts::TurnSource;
use super::ids::{MediaId, SegmentId, TurnId};

/// Mono sound.
#[derive(Clone, Debug, PartialEq)]
pub struct Pcm {
    /// Samples a second.
    pub rate: u32,
    /// Samples, −1 to 1.
    pub samples: Vec<f32>,
}

impl Pcm {
    /// Length in milliseconds.
    pub fn duration_ms(&self) -> f64 {
        if self.rate == 0 { 0.0 } else { self.samples.len() as f64 * 1000.0 / f64::from(self.rate) }
    }
}

// ---- language model (llm → mind) ----------------------------------------------------------------

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The person.
    User,
    /// Alice.
    Assistant,
}

/// One message of a conversation as a model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who.
    pub role: Role,
    /// What.
    pub content: String,
}

/// A question to a language model.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatRequest {
    /// The conversation; the first is the system prompt. A prefix that equals the last request's is
    /// found in the embedded model's cache.
    pub messages: Vec<ChatMessage>,
    /// At most so many tokens of reply.
    pub max_tokens: u32,
    /// 0 is deterministic.
    pub temperature: f32,
}

/// A piece of a reply as it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatDelta {
    /// Words of the reply.
    Text(String),
    /// Reasoning, not part of the reply.
    Thinking(String),
    /// The reply is whole. Always the last, exactly once, unless an error is.
    Done(StopReason),
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It was done.
    End,
    /// The token limit.
    Length,
    /// The provider refused to say more.
    Filtered,
}

/// Why a model gave no (whole) reply. The text of each is one line for the person, without a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChatError {
    /// Wrong or missing key, unknown model, malformed request: trying again does not help.
    #[error("{0}")]
    Refused(String),
    /// Quota or rate limit; the server may say when to come back.
    #[error("{text}")]
    Limited {
        /// One line.
        text: String,
        /// What `Retry-After` said.
        retry_after: Option<Duration>,
    },
    /// Not reachable, hung, 5xx, or the stream broke.
    #[error("{0}")]
    Unavailable(String),
    /// The answer could not be understood.
    #[error("{0}")]
    Garbled(String),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// The deltas of one reply.
pub type ChatStream = mpsc::Receiver<Result<ChatDelta, ChatError>>;

/// A language model.
pub trait ChatModel: Send + Sync {
    /// Name for the person, such as `embedded: Qwen2.5-Coder-0.5B`.
    fn name(&self) -> String;

    /// Whether emotion tags of this model mean something; small models write them at random.
    fn tags_feelings(&self) -> bool {
        true
    }

    /// Begins a reply. Returns at once; connecting, waiting and errors happen in the stream.
    /// Cancelling `cancel` ends it within one token, and so does dropping the stream.
    fn chat(&self, request: ChatRequest, cancel: CancellationToken) -> ChatStream;

    /// Gets ready for requests that begin with these messages (prompt cache, connection). Best
    /// effort; returns when done.
    fn warm(&self, messages: Vec<ChatMessage>) -> BoxFuture<'_, ()>;
}

// ---- speaker (voice → device) -------------------------------------------------------------------

/// What a speaker tells about its playing. `played` is what has left for the ear, not what was queued.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeakerEvent {
    /// The first sample of a segment was played.
    Started(SegmentId),
    /// How far the playing segment is; at least every 100 ms while it plays.
    Progress(SegmentId, Duration),
    /// The last sample of a segment was played.
    Finished(SegmentId),
    /// The device has the segment and may not play it yet: a browser waits for a tap. Repeated while
    /// that lasts.
    Waiting(SegmentId),
    /// Everything queued was played.
    Drained,
    /// The device is gone; one line says why. What was queued is lost.
    Lost(String),
    /// The device is there (again); its name.
    Ready(String),
}

/// Where spoken sound goes: a sound card, a remote device, a file, or nowhere.
///
/// Calls never block. Segments are played in the order of `play`. Events go to the sender that the
/// speaker was made with.
pub trait Speaker: Send + Sync {
    /// Queues a segment behind those that wait.
    fn play(&self, segment: SegmentId, pcm: Arc<Pcm>);

    /// Fades out in 10 ms, drops the queue, and returns what of the playing segment was heard (and
    /// which it was), if one was playing. No event of a dropped segment follows.
    fn stop(&self) -> Option<(SegmentId, Duration)>;

    /// Lowers the sound by 18 dB within 10 ms (`true`) or brings it back within 100 ms.
    fn duck(&self, on: bool);

    /// Loudness, 0–1.
    fn set_volume(&self, volume: f32);
}

/// Mono sound at 16 kHz as it is really played, for the echo canceller. Implemented by the ears.
pub trait EchoReference: Send + Sync {
    /// Takes samples that are handed to the device now and will sound `delay` later. Called from an
    /// audio callback: does not allocate, lock or block.
    fn played(&self, samples: &[f32], delay: Duration);
}

// ---- media (voice → server) ---------------------------------------------------------------------

/// Keeps the sound of recent segments for pages; old ones are dropped by total size.
pub trait MediaStore: Send + Sync {
    /// Puts sound in and names it.
    fn put(&self, pcm: Arc<Pcm>) -> MediaId;

    /// The sound, while it is kept.
    fn get(&self, id: &MediaId) -> Option<Arc<Pcm>>;
}

// ---- remote devices (server → ears and voice) ---------------------------------------------------

/// What a remote device says of itself when it connects (`GET /audio`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteHello {
    /// Name for notices, such as `phone`.
    #[serde(default)]
    pub name: String,
    /// Rate of the microphone frames that it sends, Hz; 0: it sends none.
    pub input_rate: u32,
    /// Rate of the sound that it wants, Hz; 0: it plays none.
    pub output_rate: u32,
    /// It removes the echo of its own speaker.
    #[serde(default)]
    pub echo_cancelled: bool,
    /// It cannot listen while it plays: the ears close while the voice speaks.
    #[serde(default)]
    pub half_duplex: bool,
    /// It acknowledges what it plays, so nothing counts as heard before it says so. Of a device that
    /// does not promise it, sound is taken to play from the moment that it was sent.
    #[serde(default)]
    pub acknowledges: bool,
    /// It sets the volume itself, also of what it has already; otherwise the volume is in the samples.
    #[serde(default)]
    pub sets_volume: bool,
}

/// What goes down to a remote device, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteOut {
    /// A segment begins.
    Start {
        /// Which.
        segment: SegmentId,
        /// Its length, ms.
        duration_ms: f64,
    },
    /// Sound of the segment that began, s16 mono at the agreed rate.
    Sound(Vec<i16>),
    /// All sound of the segment was sent.
    End(SegmentId),
    /// Drop what is queued and be silent.
    Flush {
        /// The turn that was cut short.
        turn: Option<TurnId>,
    },
    /// Lower the sound by 18 dB, or bring it back.
    Duck(bool),
    /// Play so loud, 0–1. Sent to devices that set their volume.
    Volume(f32),
}

/// The microphone side of a connected remote device.
pub trait RemoteMic: Send {
    /// Takes frames of any size, mono at the rate of the hello. Does not block; when the ears fall
    /// behind the oldest are dropped and counted.
    fn heard(&mut self, samples: &[i16]);
}

/// The speaker side of a connected remote device: acknowledgements that come up.
pub trait RemoteAcks: Send {
    /// So much of the segment was played.
    fn played(&mut self, segment: SegmentId, played: Duration);
    /// All of the segment was played.
    fn finished(&mut self, segment: SegmentId);
    /// The segment is there and may not be played yet.
    fn waiting(&mut self, segment: SegmentId);
}

/// A remote device that was let in. Dropping it disconnects; the local devices take over again.
pub struct RemoteLink {
    /// Where its microphone frames go; `None` when it sends none.
    pub mic: Option<Box<dyn RemoteMic>>,
    /// Where its acknowledgements go.
    pub acks: Box<dyn RemoteAcks>,
    /// What to send down; bounded, and a device that does not read is disconnected.
    pub out: mpsc::Receiver<RemoteOut>,
}

/// Lets remote devices in: the newest one takes the microphone and the speaker from the others.
pub trait RemoteDevices: Send + Sync {
    /// Connects a device.
    ///
    /// # Errors
    /// One line for the device's person: unsupported rate (8–48 kHz is taken), or Alice is stopping.
    fn connect(&self, hello: RemoteHello) -> Result<RemoteLink, String>;
}

// ---- feelings (persona → voice) -----------------------------------------------------------------

/// Finds the feeling of a sentence from its words, the user's words and the model's tag.
pub trait Feels: Send + Sync {
    /// What to show while `sentence`, an answer to `user_text`, is spoken. `tag` is what the model
    /// wrote, where it wrote one; how far it is believed depends on the model.
    fn feel(
        &self,
        user_text: &str,
        sentence: &str,
        tag: Option<super::contracts::Feeling>,
    ) -> super::contracts::Feeling;
}

// ---- journal (store → mind) ---------------------------------------------------------------------

/// What a line of a transcript is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// The user's words.
    User,
    /// What was heard of Alice's reply.
    Assistant,
    /// The user took this turn's words back to say more: a later turn holds them too.
    Withdrawn,
    /// About the talk, not part of it: why a turn failed.
    Meta,
}

/// One line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// The turn that it belongs to.
    pub turn: TurnId,
    /// What it is.
    pub kind: EntryKind,
    /// The words, without tags.
    pub text: String,
    /// Where the user's words came from; absent in other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<TurnSource>,
    /// The user cut this reply short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// Keeps the talk for later. Never fails as far as the caller can see: what can't be written now is
/// held and tried again, and a notice says so.
pub trait Journal: Send + Sync {
    /// Writes an entry behind those before it. Does not block.
    fn append(&self, entry: JournalEntry);

    /// Completes when everything that was appended is on the disk, or when it cannot be for now.
    fn flush(&self) -> BoxFuture<'_, ()>;
}

// ---- system prompt (persona → mind) -------------------------------------------------------------

/// Who Alice is, in words for a language model.
pub trait SystemPrompt: Send + Sync {
    /// The system message of the next request. `tags`: the model is good at writing emotion tags,
    /// so it gets the full prompt that asks for them; else the short one for a small model.
    fn system(&self, tags: bool) -> String;
}
