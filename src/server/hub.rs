//! What all viewers share: the order of what they see, the present as a snapshot, the recent past.
//!
//! An event is written once and handed to every viewer as the same bytes. Snapshot and subscription
//! are taken under one lock, so that nothing is missing between them and nothing comes twice.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use serde::Serialize;
use tokio::sync::broadcast;

use super::gate::DraftGate;
use super::standing::Standing;
use crate::config::Settings;
use crate::config::settings::ListenMode;
use crate::kernel::clock::Clock;
use crate::kernel::contracts::{Envelope, Event, HistoryEntry, Notice};
use crate::kernel::ids::{SegmentId, SessionId};
use crate::kernel::scene::{Scene, SceneTimeline};

/// Events that a viewer who was away can catch up with.
pub(super) const REPLAY: usize = 1_000;
/// Events that a viewer may be late before it skips to the present.
pub(super) const BACKLOG: usize = 1_024;
/// Lines of the talk in a snapshot.
pub(super) const HISTORY: usize = 50;

/// The hub of one server start.
pub(super) struct Hub {
    epoch: String,
    session: SessionId,
    name: String,
    mode: ListenMode,
    clock: Arc<dyn Clock>,
    frames: broadcast::Sender<Bytes>,
    inner: Mutex<Inner>,
}

struct Inner {
    seq: u64,
    gate: DraftGate,
    timeline: Box<dyn SceneTimeline>,
    ring: VecDeque<Kept>,
    history: VecDeque<HistoryEntry>,
    standing: Standing,
    volume: f32,
}

struct Kept {
    seq: u64,
    kind: String,
    data: String,
}

/// How an event reaches viewers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    /// Live only, without an id: it is worth nothing a second later.
    Passing,
    /// Live with an id, never replayed: it is about sound, which is over.
    Sound,
    /// Live, and replayed to viewers who were away.
    State,
}

/// The place of a viewer in the order of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastSeen {
    epoch: String,
    seq: u64,
}

impl LastSeen {
    /// Reads an event id, `epoch-seq`.
    pub(super) fn parse(id: &str) -> Option<Self> {
        let (epoch, seq) = id.rsplit_once('-')?;
        Some(Self { epoch: epoch.to_owned(), seq: seq.parse().ok()? })
    }
}

#[derive(Serialize)]
struct Snapshot<'a> {
    r#type: &'static str,
    epoch: &'a str,
    seq: u64,
    at_ms: f64,
    session: &'a SessionId,
    name: &'a str,
    version: &'static str,
    volume: f32,
    mode: ListenMode,
    history: &'a VecDeque<HistoryEntry>,
    notices: &'a VecDeque<Notice>,
    scene: Scene,
}

#[derive(Serialize)]
struct VolumeSet {
    r#type: &'static str,
    at_ms: f64,
    volume: f32,
}

impl Hub {
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        session: SessionId,
        settings: &Settings,
        timeline: Box<dyn SceneTimeline>,
    ) -> Self {
        let inner = Inner {
            seq: 0,
            gate: DraftGate::default(),
            timeline,
            ring: VecDeque::new(),
            history: VecDeque::new(),
            standing: Standing::default(),
            volume: settings.voice.volume,
        };
        Self {
            epoch: uuid::Uuid::now_v7().simple().to_string(),
            session,
            name: settings.persona.name.clone(),
            mode: settings.ears.mode,
            clock,
            frames: broadcast::channel(BACKLOG).0,
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines of the talk from before this start, oldest first.
    pub(super) fn recall(&self, history: Vec<HistoryEntry>) {
        self.inner().history.extend(history);
    }

    /// Takes the next event of the bus.
    pub(super) fn take(&self, envelope: Arc<Envelope>) {
        let mut inner = self.inner();
        for envelope in inner.gate.pass(envelope) {
            inner.timeline.apply(&envelope);
            inner.remember(&envelope.event);
            match serde_json::to_value(&*envelope) {
                Ok(data) => self.send(&mut inner, &data, weight(&envelope.event)),
                Err(error) => tracing::error!(%error, seq = envelope.seq, "event has no JSON form"),
            }
        }
    }

    /// Keeps a new loudness and tells the viewers, so that every page shows the same.
    pub(super) fn set_volume(&self, volume: f32) {
        let mut inner = self.inner();
        inner.volume = volume;
        let event = VolumeSet { r#type: "volume", at_ms: self.clock.now_ms(), volume };
        if let Ok(data) = serde_json::to_value(event) {
            self.send(&mut inner, &data, Weight::State);
        }
    }

    fn send(&self, inner: &mut Inner, data: &serde_json::Value, weight: Weight) {
        let kind = data.get("type").and_then(|kind| kind.as_str()).unwrap_or("event").to_owned();
        let data = data.to_string();
        let id = (weight != Weight::Passing).then(|| {
            inner.seq += 1;
            self.id(inner.seq)
        });
        // No viewer is no error.
        let _ = self.frames.send(frame(id.as_deref(), &kind, &data));
        if weight == Weight::State {
            if inner.ring.len() == REPLAY {
                inner.ring.pop_front();
            }
            inner.ring.push_back(Kept { seq: inner.seq, kind, data });
        }
    }

    fn id(&self, seq: u64) -> String {
        format!("{}-{seq}", self.epoch)
    }

    /// The present for a viewer, then what it missed, and where it gets the rest from.
    pub(super) fn join(&self, last: Option<&LastSeen>) -> (Vec<Bytes>, broadcast::Receiver<Bytes>) {
        let inner = self.inner();
        let at_ms = self.clock.now_ms();
        let snapshot = Snapshot {
            r#type: "snapshot",
            epoch: &self.epoch,
            seq: inner.seq,
            at_ms,
            session: &self.session,
            name: &self.name,
            version: env!("CARGO_PKG_VERSION"),
            volume: inner.volume,
            mode: self.mode,
            history: &inner.history,
            notices: inner.standing.notices(),
            scene: inner.timeline.scene(at_ms),
        };
        let data = serde_json::to_string(&snapshot).unwrap_or_else(|error| {
            tracing::error!(%error, "snapshot has no JSON form");
            r#"{"type":"snapshot"}"#.to_owned()
        });
        let mut first = vec![frame(Some(&self.id(inner.seq)), "snapshot", &data)];
        if let Some(last) = last.filter(|last| last.epoch == self.epoch) {
            for kept in inner.ring.iter().filter(|kept| kept.seq > last.seq) {
                let data = kept.data.strip_prefix('{').unwrap_or_default();
                let data = format!("{{\"replayed\":true,{data}");
                first.push(frame(Some(&self.id(kept.seq)), &kept.kind, &data));
            }
        }
        (first, self.frames.subscribe())
    }

    /// How late a page that mirrors a segment is, in ms; `None` when that segment does not sound.
    pub(super) fn lag_ms(&self, segment: SegmentId, played_ms: f64) -> Option<f64> {
        let playing = self.inner().timeline.scene(self.clock.now_ms()).playing;
        playing.filter(|it| it.segment == segment).map(|it| it.played_ms - played_ms)
    }

    /// The present.
    pub(super) fn scene(&self) -> Scene {
        self.inner().timeline.scene(self.clock.now_ms())
    }
}

impl Inner {
    fn remember(&mut self, event: &Event) {
        let entry = match event {
            Event::TurnStarted { turn, user_text, .. } => HistoryEntry {
                turn: *turn,
                from_user: true,
                text: user_text.clone(),
                interrupted: false,
            },
            Event::TurnCompleted { turn, content, interrupted } => HistoryEntry {
                turn: *turn,
                from_user: false,
                text: content.clone(),
                interrupted: *interrupted,
            },
            Event::TurnDiscarded { turn } => {
                self.history.retain(|entry| entry.turn != *turn);
                return;
            }
            Event::Notice(notice) => return self.standing.take(notice),
            _ => return,
        };
        self.history.push_back(entry);
        while self.history.len() > HISTORY {
            self.history.pop_front();
        }
    }
}

fn weight(event: &Event) -> Weight {
    match event {
        Event::Level { .. } | Event::SegmentProgress { .. } | Event::SegmentWaiting { .. } => {
            Weight::Passing
        }
        Event::SegmentReady(_)
        | Event::SegmentStarted { .. }
        | Event::SegmentFinished { .. }
        | Event::SpeakingStarted { .. }
        | Event::SpeakingEnded { .. }
        | Event::Feeling { .. }
        | Event::Ducked { .. } => Weight::Sound,
        _ => Weight::State,
    }
}

/// One event in the form of `text/event-stream`. JSON has no raw line breaks, so it is one line.
fn frame(id: Option<&str>, kind: &str, data: &str) -> Bytes {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}event: {kind}\ndata: {data}\n\n"))
}
