//! The face: what an avatar should show, and when.
//!
//! Events go in, scenes come out. The clock of a scene is the playback clock of the segment that
//! sounds: its position is extrapolated from the last report, never taken from the arrival of the
//! text. The page holds the same rules (`vrm-web/src/timeline.ts`); both are tested against one
//! table, `vrm-web/tests/timeline.json`.

mod line;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::kernel::contracts::{
    Emotion, Engines, Envelope, Event, Feeling, ListenState, MicState, MicStatus, Segment,
    VisemeFrame,
};
use crate::kernel::ids::{SegmentId, TurnId};
use crate::kernel::scene::{FaceState, Playing, Scene, SceneTimeline, SceneTurn, Subtitle};

/// How long a position is extrapolated without a report, ms. Reports come every 100 ms, so a longer
/// silence means that the sound stands still: the mouth closes and waits.
pub const STALL_MS: f64 = 500.0;
/// How long a feeling stays after its segment, ms; the next segment of a reply usually begins sooner.
pub const HOLD_MS: f64 = 800.0;
/// How long a feeling that belongs to no segment stays, ms.
pub const MOMENT_MS: f64 = 4_000.0;
/// How long a feeling takes to fade to neutral after that, ms.
pub const FADE_MS: f64 = 1_200.0;
/// How long the last line stays after its sound, ms.
pub const LINGER_MS: f64 = 2_500.0;

/// The state of the face. Feed it with [`SceneTimeline::apply`].
#[derive(Debug)]
pub struct Face {
    listen: ListenState,
    mic: MicStatus,
    engines: Engines,
    turn: Option<SceneTurn>,
    /// The current turn has no more to come.
    done: bool,
    /// The turn whose sound has begun and not ended.
    speaking: Option<TurnId>,
    /// Turns up to this one have nothing to show any more.
    stopped: TurnId,
    segments: VecDeque<Arc<Segment>>,
    bound: Vec<(SegmentId, Feeling)>,
    playing: Option<Play>,
    line: Option<Line>,
    feeling: Feeling,
    /// Until when the feeling stays; `None`: as long as the segment sounds.
    hold_until: Option<f64>,
}

#[derive(Clone, Debug)]
struct Play {
    segment: Arc<Segment>,
    played_ms: f64,
    at_ms: f64,
}

#[derive(Clone, Debug)]
struct Line {
    subtitle: Subtitle,
    until_ms: f64,
}

impl Default for Face {
    fn default() -> Self {
        Self {
            listen: ListenState::Idle,
            mic: MicStatus { state: MicState::Off, device: None, reason: None },
            engines: Engines::default(),
            turn: None,
            done: true,
            speaking: None,
            stopped: TurnId(0),
            segments: VecDeque::new(),
            bound: Vec::new(),
            playing: None,
            line: None,
            feeling: Feeling::default(),
            hold_until: None,
        }
    }
}

impl SceneTimeline for Face {
    fn apply(&mut self, envelope: &Envelope) {
        let at_ms = envelope.at_ms;
        match &envelope.event {
            Event::Mic(mic) => self.mic = mic.clone(),
            Event::Engines(engines) => self.engines = engines.clone(),
            Event::Listen { state } => self.listen = *state,
            Event::TurnStarted { turn, source, user_text, .. } => {
                self.done = false;
                self.turn = Some(SceneTurn {
                    turn: *turn,
                    source: *source,
                    user_text: user_text.clone(),
                    said: String::new(),
                });
            }
            Event::TurnCompleted { turn, .. } | Event::TurnFailed { turn, .. } => {
                self.done |= self.is_current(*turn);
            }
            Event::TurnDiscarded { turn } => self.stop(*turn, at_ms),
            Event::Interrupted { turn, .. } => {
                let through = turn.or_else(|| self.newest()).unwrap_or(self.stopped);
                self.stop(through, at_ms);
            }
            Event::SpeakingStarted { turn } if *turn > self.stopped => self.speaking = Some(*turn),
            Event::SpeakingEnded { turn, .. } => self.stop(*turn, at_ms),
            Event::SegmentReady(segment) if segment.id.turn > self.stopped => {
                self.segments.push_back(Arc::clone(segment));
            }
            Event::SegmentStarted { segment } => self.play(*segment, 0.0, at_ms),
            Event::SegmentProgress { segment, played_ms } => self.play(*segment, *played_ms, at_ms),
            Event::SegmentFinished { segment } => self.finish(*segment, at_ms),
            Event::SegmentSkipped { segment, display, .. } => {
                self.segments.retain(|waiting| waiting.id != *segment);
                if self.is_current(segment.turn) {
                    self.said(display);
                }
            }
            Event::Feeling { segment: None, feeling } => {
                self.feeling = *feeling;
                self.hold_until = Some(at_ms + MOMENT_MS);
            }
            Event::Feeling { segment: Some(segment), feeling } if segment.turn > self.stopped => {
                self.bound.push((*segment, *feeling));
            }
            _ => {}
        }
    }

    fn scene(&self, at_ms: f64) -> Scene {
        let (playing, mouth) = match &self.playing {
            Some(play) => {
                let position = play.position(at_ms);
                let mouth = if at_ms - play.at_ms > STALL_MS {
                    VisemeFrame { at_ms: position as f32, ..VisemeFrame::default() }
                } else {
                    line::mouth_at(&play.segment.visemes, position)
                };
                (Some(Playing { segment: play.segment.id, played_ms: position }), mouth)
            }
            None => (None, VisemeFrame::default()),
        };
        let subtitle = match (&self.playing, &self.line) {
            (Some(play), _) => line::subtitle(&play.segment, play.position(at_ms)),
            (None, Some(line)) if at_ms <= line.until_ms => line.subtitle.clone(),
            _ => Subtitle::default(),
        };
        Scene {
            state: self.state(),
            listen: self.listen,
            mic: self.mic.clone(),
            engines: self.engines.clone(),
            turn: self.turn.clone().filter(|_| !self.done),
            segments: self.segments.clone(),
            playing,
            subtitle,
            feeling: self.feeling_at(at_ms),
            mouth,
        }
    }
}

impl Face {
    fn is_current(&self, turn: TurnId) -> bool {
        self.turn.as_ref().is_some_and(|current| current.turn == turn)
    }

    /// The newest turn that may have something to show.
    fn newest(&self) -> Option<TurnId> {
        let waiting = self.segments.back().map(|segment| segment.id.turn);
        let playing = self.playing.as_ref().map(|play| play.segment.id.turn);
        let current = self.turn.as_ref().filter(|_| !self.done).map(|turn| turn.turn);
        [waiting, playing, current, self.speaking].into_iter().flatten().max()
    }

    fn said(&mut self, text: &str) {
        if let Some(turn) = &mut self.turn {
            let text = text.trim();
            if !turn.said.is_empty() && !text.is_empty() {
                turn.said.push(' ');
            }
            turn.said.push_str(text);
        }
    }

    fn play(&mut self, id: SegmentId, played_ms: f64, at_ms: f64) {
        if id.turn <= self.stopped {
            return;
        }
        if let Some(play) = self.playing.as_mut().filter(|play| play.segment.id == id) {
            play.played_ms = played_ms;
            play.at_ms = at_ms;
            return;
        }
        let Some(place) = self.segments.iter().position(|segment| segment.id == id) else {
            return;
        };
        self.segments.drain(..place);
        let Some(segment) = self.segments.front().cloned() else { return };
        let bound = self.bound.iter().rev().find(|(bound, _)| *bound == id).map(|(_, it)| *it);
        self.bound.retain(|(bound, _)| *bound > id);
        self.feeling = bound.unwrap_or(segment.feeling);
        self.hold_until = None;
        self.speaking = Some(id.turn);
        self.playing = Some(Play { segment, played_ms, at_ms });
    }

    fn finish(&mut self, id: SegmentId, at_ms: f64) {
        self.segments.retain(|segment| segment.id != id);
        if let Some(play) = self.playing.take_if(|play| play.segment.id == id) {
            let text = play.segment.display.trim().to_owned();
            if self.is_current(id.turn) {
                self.said(&text);
            }
            self.linger(Subtitle { said: text.clone(), text }, at_ms);
        }
    }

    /// Nothing more of the turns up to `through` is shown.
    fn stop(&mut self, through: TurnId, at_ms: f64) {
        self.stopped = self.stopped.max(through);
        self.segments.retain(|segment| segment.id.turn > through);
        self.bound.retain(|(segment, _)| segment.turn > through);
        self.speaking.take_if(|turn| *turn <= through);
        if let Some(play) = self.playing.take_if(|play| play.segment.id.turn <= through) {
            let subtitle = line::subtitle(&play.segment, play.position(at_ms));
            self.linger(subtitle, at_ms);
        }
        self.done |= self.turn.as_ref().is_some_and(|turn| turn.turn <= through);
    }

    fn linger(&mut self, subtitle: Subtitle, at_ms: f64) {
        self.line = Some(Line { subtitle, until_ms: at_ms + LINGER_MS });
        self.hold_until = Some(at_ms + HOLD_MS);
    }

    fn feeling_at(&self, at_ms: f64) -> Feeling {
        let left = match self.hold_until {
            Some(until) => 1.0 - ((at_ms - until) / FADE_MS).clamp(0.0, 1.0),
            None => 1.0,
        };
        if left <= 0.0 || self.feeling.emotion == Emotion::Neutral {
            return Feeling::default();
        }
        Feeling { intensity: self.feeling.intensity * left as f32, ..self.feeling }
    }

    fn state(&self) -> FaceState {
        if self.playing.is_some() || self.speaking.is_some() {
            return FaceState::Speaking;
        }
        match self.listen {
            ListenState::UserSpeaking => FaceState::Listening,
            _ if !self.done => FaceState::Thinking,
            ListenState::Thinking => FaceState::Thinking,
            ListenState::Idle => FaceState::Idle,
            ListenState::Listening
            | ListenState::Deciding
            | ListenState::Speaking
            | ListenState::Interrupted => FaceState::Listening,
        }
    }
}

impl Play {
    fn position(&self, at_ms: f64) -> f64 {
        let since = (at_ms - self.at_ms).clamp(0.0, STALL_MS);
        (self.played_ms + since).clamp(0.0, self.segment.duration_ms.max(0.0))
    }
}

#[cfg(test)]
#[path = "face/face_tests.rs"]
mod tests;
