//! The speech pipeline as a machine without I/O: tokens, synthesised sound and the speaker's reports
//! go in, jobs, sound and events come out. [`super::speaking`] does what it says.
//!
//! Each turn is cut into segments. They are synthesised a few ahead of the one that plays, handed to
//! the speaker strictly in order, and ended exactly once with what was heard. A draft is cut and the
//! beginning of it synthesised, but nothing leaves the machine until the turn is confirmed.

mod turn;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::kernel::contracts::{Event, InterruptCause, Notice, NoticeLevel, VisemeFrame};
use crate::kernel::ids::{SegmentId, TurnId};
use crate::kernel::ports::{Pcm, SpeakerEvent};

use super::Piece;
use super::segment::Segmenter;
use turn::Turn;

/// Cuts the stream of a reply into pieces that can be spoken.
pub trait Cutter: Send {
    /// Takes the next tokens; returns the pieces that are whole now.
    fn push(&mut self, delta: &str) -> Vec<Piece>;

    /// The reply is whole: returns what is left.
    fn finish(&mut self) -> Vec<Piece>;
}

impl Cutter for Segmenter {
    fn push(&mut self, delta: &str) -> Vec<Piece> {
        Self::push(self, delta)
    }

    fn finish(&mut self) -> Vec<Piece> {
        Self::finish(self)
    }
}

/// Makes a [`Cutter`] for each turn.
pub type Cutters = Box<dyn Fn() -> Box<dyn Cutter> + Send>;

/// How the pipeline behaves.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// There is a synthesis engine; without one everything is text.
    pub voice: bool,
    /// Segments that are synthesised or wait synthesised behind the one that plays.
    pub look_ahead: usize,
    /// After so many ms a segment's synthesis is given up.
    pub synthesis_ms: f64,
    /// A speaker that says nothing for so many ms more than it should need for the rest of a segment
    /// is given up for that turn.
    pub stall_ms: f64,
    /// How long a device may wait for the permission to play, ms. The ears give a turn up after the
    /// same time.
    pub wait_ms: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            voice: true,
            look_ahead: 2,
            synthesis_ms: 10_000.0,
            stall_ms: 5_000.0,
            wait_ms: 60_000.0,
        }
    }
}

/// Segments of a draft that are synthesised before it is known whether they are wanted.
const DRAFT_SEGMENTS: usize = 2;

/// A synthesised segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    /// Its sound.
    pub pcm: Arc<Pcm>,
    /// Mouth shapes in ms of the sound.
    pub visemes: Vec<VisemeFrame>,
    /// When each word of the spoken text begins, as (byte offset, ms).
    pub words: Vec<(usize, f64)>,
}

/// What happened outside.
#[derive(Clone, Debug)]
pub enum Input {
    /// A turn began.
    Started {
        /// The turn.
        turn: TurnId,
        /// What the user said.
        user_text: String,
        /// It must be confirmed before anything of it is heard or seen.
        draft: bool,
    },
    /// A draft became real.
    Confirmed(TurnId),
    /// A draft was thrown away.
    Discarded(TurnId),
    /// The next tokens of a reply.
    Token(TurnId, String),
    /// The reply is whole (or broke off: what there is of it is spoken).
    Generated(TurnId),
    /// Stop this turn, or whatever is going on.
    Interrupted(Option<TurnId>),
    /// A job ended.
    Synthesised(SegmentId, Result<Made, String>),
    /// The speaker reports.
    Speaker(SpeakerEvent),
    /// Another speaker took over; the one before was stopped.
    SpeakerChanged {
        /// There is a speaker now and it works.
        usable: bool,
        /// What the one before had played of the segment that it was stopped in.
        heard: Option<(SegmentId, Duration)>,
    },
    /// The answer to [`Output::Stop`], to be given before anything that was put out after it is done.
    Stopped(TurnId, Option<(SegmentId, Duration)>),
    /// Lower the voice, or bring it back.
    Duck(bool),
    /// Time has passed.
    Tick,
}

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Begin a job.
    Synthesise(SegmentId, String),
    /// Cancel a job; its result no longer matters.
    Abandon(SegmentId),
    /// Publish that a segment is ready.
    Ready(Box<Ready>),
    /// Queue the sound at the speaker.
    Play(SegmentId, Arc<Pcm>),
    /// Stop the speaker and answer with [`Input::Stopped`] at once.
    Stop(TurnId),
    /// Stop the speaker; no answer is wanted.
    Silence,
    /// Lower the sound, or bring it back.
    Duck(bool),
    /// Publish an event.
    Publish(Event),
}

/// A segment in the order of the reply, to be announced.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// Which.
    pub id: SegmentId,
    /// Its texts.
    pub piece: Piece,
    /// What the user said.
    pub user_text: Arc<str>,
    /// Its sound; `None`: it is only shown.
    pub made: Option<Made>,
}

/// The machine.
pub struct Pipeline {
    rules: Rules,
    cutters: Cutters,
    turns: BTreeMap<TurnId, Turn>,
    /// There is a speaker and it works.
    usable: bool,
    /// The person was told that there is no sound.
    told: bool,
    ducked: bool,
}

impl Pipeline {
    /// A machine with no turn. `usable`: there is a speaker.
    pub fn new(rules: Rules, cutters: Cutters, usable: bool) -> Self {
        Self { rules, cutters, turns: BTreeMap::new(), usable, told: false, ducked: false }
    }

    /// Takes what happened at `now_ms` and returns what is to be done.
    pub fn handle(&mut self, input: Input, now_ms: f64) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Started { turn, user_text, draft } => {
                self.turns
                    .entry(turn)
                    .or_insert_with(|| Turn::new(turn, user_text, (self.cutters)()));
                if !draft {
                    self.confirm(turn, now_ms, &mut out);
                }
            }
            Input::Confirmed(turn) => self.confirm(turn, now_ms, &mut out),
            Input::Discarded(turn) => {
                if self.turns.get(&turn).is_some_and(|known| known.is_confirmed()) {
                    self.cut(turn, &mut out);
                } else if let Some(mut draft) = self.turns.remove(&turn) {
                    draft.halt(&mut out);
                }
            }
            Input::Token(turn, delta) => {
                if let Some(known) = self.turns.get_mut(&turn) {
                    known.push(&delta);
                    self.advance(turn, now_ms, &mut out);
                }
            }
            Input::Generated(turn) => {
                if let Some(known) = self.turns.get_mut(&turn) {
                    known.generated();
                    self.advance(turn, now_ms, &mut out);
                }
            }
            Input::Interrupted(turn) => {
                let meant: Vec<TurnId> = match turn {
                    Some(turn) => vec![turn],
                    None => self.turns.keys().copied().collect(),
                };
                for turn in meant {
                    self.cut(turn, &mut out);
                }
            }
            Input::Synthesised(segment, result) => {
                if let Some(turn) = self.turns.get_mut(&segment.turn) {
                    turn.synthesised(segment.index, result, now_ms, &mut out);
                    self.advance(segment.turn, now_ms, &mut out);
                }
            }
            Input::Speaker(event) => self.speaker(event, now_ms, &mut out),
            Input::SpeakerChanged { usable, heard } => {
                self.speaker_changed(usable, heard, now_ms, &mut out);
            }
            Input::Stopped(turn, heard) => {
                if let Some(mut stopped) = self.turns.remove(&turn) {
                    stopped.stopped_at(heard, now_ms, &mut out);
                    stopped.end(false, &mut out);
                }
            }
            Input::Duck(on) => {
                if std::mem::replace(&mut self.ducked, on) != on {
                    out.extend([Output::Duck(on), Output::Publish(Event::Ducked { on })]);
                }
            }
            Input::Tick => self.tick(now_ms, &mut out),
        }
        out
    }

    /// When [`Input::Tick`] is wanted, if nothing else happens before; ms.
    pub fn next_deadline(&self) -> Option<f64> {
        self.turns.values().flat_map(|turn| turn.deadlines(&self.rules)).min_by(f64::total_cmp)
    }

    fn audible(&self) -> bool {
        self.rules.voice && self.usable
    }

    fn confirm(&mut self, turn: TurnId, now_ms: f64, out: &mut Vec<Output>) {
        let Some(confirmed) = self.turns.get(&turn) else { return };
        if confirmed.is_confirmed() {
            return;
        }
        let others: Vec<TurnId> = self
            .turns
            .iter()
            .filter(|(id, other)| **id != turn && other.is_confirmed())
            .map(|(id, _)| *id)
            .collect();
        for other in others {
            self.cut(other, out);
        }
        let Some(confirmed) = self.turns.get_mut(&turn) else { return };
        confirmed.confirm(out);
        if confirmed.is_halted() {
            if let Some(mut halted) = self.turns.remove(&turn) {
                halted.end(false, out);
            }
        } else {
            self.advance(turn, now_ms, out);
        }
    }

    /// Does what became possible for a turn, and ends it when all is done.
    fn advance(&mut self, turn: TurnId, now_ms: f64, out: &mut Vec<Output>) {
        let audible = self.audible();
        let Some(known) = self.turns.get_mut(&turn) else { return };
        known.advance(&self.rules, audible, now_ms, out);
        if known.is_over()
            && let Some(mut over) = self.turns.remove(&turn)
        {
            over.end(true, out);
        }
    }

    /// Stops a turn before its end.
    fn cut(&mut self, turn: TurnId, out: &mut Vec<Output>) {
        let Some(known) = self.turns.get_mut(&turn) else { return };
        if known.is_halted() && known.is_confirmed() {
            return;
        }
        let at_the_speaker = known.halt(out);
        if known.is_confirmed() {
            // What was lowered because somebody spoke is not lowered for the next reply.
            if std::mem::replace(&mut self.ducked, false) {
                out.extend([Output::Duck(false), Output::Publish(Event::Ducked { on: false })]);
            }
            if at_the_speaker {
                // The end follows with the answer.
                out.push(Output::Stop(turn));
            } else if let Some(mut ended) = self.turns.remove(&turn) {
                ended.end(false, out);
            }
        }
    }

    fn speaker(&mut self, event: SpeakerEvent, now_ms: f64, out: &mut Vec<Output>) {
        let (segment, played) = match event {
            SpeakerEvent::Started(segment) => (segment, turn::Played::Started),
            SpeakerEvent::Progress(segment, played) => (segment, turn::Played::Until(played)),
            SpeakerEvent::Finished(segment) => (segment, turn::Played::Whole),
            SpeakerEvent::Waiting(segment) => {
                if let Some(turn) = self.turns.get_mut(&segment.turn) {
                    turn.waits(segment.index, &self.rules, now_ms, out);
                }
                return;
            }
            SpeakerEvent::Drained => return,
            SpeakerEvent::Lost(reason) => return self.lost(&reason, now_ms, out),
            SpeakerEvent::Ready(name) => return self.ready(&name, out),
        };
        if let Some(turn) = self.turns.get_mut(&segment.turn) {
            turn.played(segment.index, played, now_ms, out);
            self.advance(segment.turn, now_ms, out);
        }
    }

    fn lost(&mut self, reason: &str, now_ms: f64, out: &mut Vec<Output>) {
        self.usable = false;
        if !self.rules.voice {
            return;
        }
        if !std::mem::replace(&mut self.told, true) {
            out.push(Output::Publish(Event::Notice(Notice {
                level: NoticeLevel::Warning,
                code: "speaker_lost",
                text: format!("no sound: {reason}; replies are shown as text"),
                hint: Some(
                    "plug in or choose an output device; it is tried again by itself".into(),
                ),
            })));
        }
        self.show_all(now_ms, out);
    }

    fn ready(&mut self, name: &str, out: &mut Vec<Output>) {
        self.usable = true;
        if std::mem::replace(&mut self.told, false) {
            out.push(Output::Publish(Event::Notice(Notice {
                level: NoticeLevel::Info,
                code: "speaker_back",
                text: format!("sound is back: `{name}`"),
                hint: None,
            })));
        }
    }

    fn show_all(&mut self, now_ms: f64, out: &mut Vec<Output>) {
        let turns: Vec<TurnId> = self.turns.keys().copied().collect();
        for turn in turns {
            if let Some(known) = self.turns.get_mut(&turn) {
                known.show_rest(out);
                self.advance(turn, now_ms, out);
            }
        }
    }

    fn speaker_changed(
        &mut self,
        usable: bool,
        heard: Option<(SegmentId, Duration)>,
        now_ms: f64,
        out: &mut Vec<Output>,
    ) {
        self.usable = usable;
        let turns: Vec<TurnId> = self.turns.keys().copied().collect();
        for turn in turns {
            let Some(known) = self.turns.get_mut(&turn) else { continue };
            if known.is_sounding() || heard.is_some_and(|(segment, _)| segment.turn == turn) {
                known.halt(out);
                if let Some(mut stopped) = self.turns.remove(&turn) {
                    let cause = InterruptCause::Request;
                    out.push(Output::Publish(Event::Interrupted { turn: Some(turn), cause }));
                    stopped.stopped_at(heard, now_ms, out);
                    stopped.end(false, out);
                }
            } else if usable {
                known.replay(now_ms, out);
            }
        }
        if !self.audible() {
            self.show_all(now_ms, out);
        }
    }

    fn tick(&mut self, now_ms: f64, out: &mut Vec<Output>) {
        let turns: Vec<TurnId> = self.turns.keys().copied().collect();
        for turn in turns {
            let Some(known) = self.turns.get_mut(&turn) else { continue };
            known.time_out(&self.rules, now_ms, out);
            if known.stalled(&self.rules, now_ms) {
                out.push(Output::Silence);
                out.push(Output::Publish(Event::Notice(Notice {
                    level: NoticeLevel::Warning,
                    code: "speaker_stalled",
                    text: "the speaker stopped answering; this reply is shown as text".into(),
                    hint: Some("choose another output device if it happens again".into()),
                })));
                known.show_rest(out);
            }
            self.advance(turn, now_ms, out);
        }
    }
}

#[cfg(test)]
#[path = "pipeline_tests.rs"]
mod tests;
