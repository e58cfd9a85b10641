//! What viewers show at a moment, and the trait behind which the face stands for the server.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::contracts::{
    Engines, Envelope, Feeling, ListenState, MicState, MicStatus, Segment, TurnSource, VisemeFrame,
};
use super::ids::{SegmentId, TurnId};

/// What the avatar does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaceState {
    /// Nothing is going on and nobody listens.
    #[default]
    Idle,
    /// Somebody may speak or is speaking.
    Listening,
    /// A reply is being made and nothing of it is heard yet.
    Thinking,
    /// A reply is heard.
    Speaking,
}

/// All that a viewer needs to draw the present and to go on from it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scene {
    /// What the avatar does.
    pub state: FaceState,
    /// State of the turn machine.
    pub listen: ListenState,
    /// State of the microphone.
    pub mic: MicStatus,
    /// Which engines are in use.
    pub engines: Engines,
    /// The turn that is going on.
    pub turn: Option<SceneTurn>,
    /// Segments that were made and not yet played to their end, in order; the playing one first.
    pub segments: VecDeque<Arc<Segment>>,
    /// The segment that sounds now.
    pub playing: Option<Playing>,
    /// The line under the avatar.
    pub subtitle: Subtitle,
    /// The feeling to show, already faded.
    pub feeling: Feeling,
    /// The mouth's shape now; `at_ms` is the position in the playing segment, 0 when none plays.
    pub mouth: VisemeFrame,
}

/// The turn that is going on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SceneTurn {
    /// The turn.
    pub turn: TurnId,
    /// Where it came from.
    pub source: TurnSource,
    /// What the user said.
    pub user_text: String,
    /// What of the reply was played so far, for the eye.
    pub said: String,
}

/// Where the sound is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Playing {
    /// The segment.
    pub segment: SegmentId,
    /// Position in its audio, ms.
    pub played_ms: f64,
}

/// A line of text that is being spoken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subtitle {
    /// The whole line.
    pub text: String,
    /// The beginning of it that was spoken, cut at a word.
    pub said: String,
}

impl Default for Scene {
    fn default() -> Self {
        Self {
            state: FaceState::Idle,
            listen: ListenState::Idle,
            mic: MicStatus { state: MicState::Off, device: None, reason: None },
            engines: Engines::default(),
            turn: None,
            segments: VecDeque::new(),
            playing: None,
            subtitle: Subtitle::default(),
            feeling: Feeling::default(),
            mouth: VisemeFrame::default(),
        }
    }
}

/// Turns events into scenes. The face implements it, the server asks it for snapshots.
pub trait SceneTimeline: Send {
    /// Takes the next event, in the order of publication.
    fn apply(&mut self, event: &Envelope);

    /// The scene at a moment, in ms of the bus's clock, not before the last event's stamp.
    fn scene(&self, at_ms: f64) -> Scene;
}
