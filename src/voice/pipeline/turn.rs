//! One turn in the pipeline: its segments and how far each of them is.

use std::sync::Arc;
use std::time::Duration;

use crate::kernel::contracts::{Event, Stage};
use crate::kernel::ids::{SegmentId, TurnId};
use crate::kernel::ports::Pcm;
use crate::voice::Piece;
use crate::voice::ledger::{Ledger, Script};

use super::{Cutter, DRAFT_SEGMENTS, Made, Output, Ready, Rules};

/// What the speaker said of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Played {
    Started,
    Until(Duration),
    Whole,
}

pub(super) struct Turn {
    id: TurnId,
    user_text: Arc<str>,
    cutter: Box<dyn Cutter>,
    confirmed: bool,
    /// Interrupted: nothing more is made of it.
    halted: bool,
    /// All of the reply is cut.
    whole: bool,
    segments: Vec<Segment>,
    /// Segments before this one were announced and, with sound, handed to the speaker.
    given: usize,
    /// Segments before this one are over.
    done: usize,
    /// The first sample was played.
    sounding: bool,
    /// When the speaker was last heard of, or was handed something while it had nothing.
    speaker_ms: f64,
    /// Since when the device has been waiting for the permission to play.
    waits_since_ms: Option<f64>,
    clause_asked: bool,
    sound_made: bool,
    /// Stages that were reached while the turn was a draft.
    stages: Vec<(Stage, f64)>,
}

struct Segment {
    piece: Piece,
    state: State,
}

enum State {
    /// Not begun.
    Waiting,
    /// Being synthesised, until the deadline in ms.
    Asked(f64),
    /// Synthesised, not announced.
    Made(Made),
    /// Only to be shown, not announced.
    Text,
    /// Could not be spoken, not announced.
    Failed(String),
    /// Announced and at the speaker.
    Playing { pcm: Arc<Pcm>, words: Vec<(usize, f64)>, started: bool, played_ms: f64 },
    /// Announced, is shown when its turn comes.
    Shown,
    /// Named as skipped, is over when its turn comes.
    Skipped,
    /// Over: heard or shown.
    Done,
}

impl Turn {
    pub(super) fn new(id: TurnId, user_text: String, cutter: Box<dyn Cutter>) -> Self {
        Self {
            id,
            user_text: user_text.into(),
            cutter,
            confirmed: false,
            halted: false,
            whole: false,
            segments: Vec::new(),
            given: 0,
            done: 0,
            sounding: false,
            speaker_ms: 0.0,
            waits_since_ms: None,
            clause_asked: false,
            sound_made: false,
            stages: Vec::new(),
        }
    }

    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    pub(super) fn is_halted(&self) -> bool {
        self.halted
    }

    pub(super) fn is_sounding(&self) -> bool {
        self.sounding
    }

    /// A confirmed reply of which everything was cut, played and shown.
    pub(super) fn is_over(&self) -> bool {
        self.confirmed && !self.halted && self.whole && self.done == self.segments.len()
    }

    pub(super) fn push(&mut self, delta: &str) {
        if !self.whole && !self.halted {
            let pieces = self.cutter.push(delta);
            self.add(pieces);
        }
    }

    pub(super) fn generated(&mut self) {
        if !self.whole && !self.halted {
            let pieces = self.cutter.finish();
            self.add(pieces);
            self.whole = true;
        }
    }

    fn add(&mut self, pieces: Vec<Piece>) {
        self.segments
            .extend(pieces.into_iter().map(|piece| Segment { piece, state: State::Waiting }));
    }

    pub(super) fn confirm(&mut self, out: &mut Vec<Output>) {
        self.confirmed = true;
        for (stage, at_ms) in std::mem::take(&mut self.stages) {
            out.push(Output::Publish(Event::Stage { turn: self.id, stage, at_ms }));
        }
    }

    fn stage(&mut self, stage: Stage, at_ms: f64, out: &mut Vec<Output>) {
        if self.confirmed {
            out.push(Output::Publish(Event::Stage { turn: self.id, stage, at_ms }));
        } else {
            self.stages.push((stage, at_ms));
        }
    }

    fn name(&self, index: usize) -> SegmentId {
        SegmentId { turn: self.id, index: u32::try_from(index).unwrap_or(u32::MAX) }
    }

    /// Begins the jobs that may begin, announces and hands over what is next, ends what is over.
    pub(super) fn advance(
        &mut self,
        rules: &Rules,
        audible: bool,
        now_ms: f64,
        out: &mut Vec<Output>,
    ) {
        if self.halted {
            return;
        }
        self.ask(rules, audible, now_ms, out);
        if self.confirmed {
            self.give(now_ms, out);
            self.pass(out);
        }
    }

    fn ask(&mut self, rules: &Rules, audible: bool, now_ms: f64, out: &mut Vec<Output>) {
        let limit = rules.look_ahead.saturating_add(1);
        let limit = if self.confirmed { limit } else { limit.min(DRAFT_SEGMENTS) };
        let mut busy = self
            .segments
            .iter()
            .skip(self.done)
            .filter(|s| matches!(s.state, State::Asked(_) | State::Made(_) | State::Playing { .. }))
            .count();
        let turn = self.id;
        let mut asked = false;
        for (index, segment) in self.segments.iter_mut().enumerate().skip(self.done) {
            if !matches!(segment.state, State::Waiting) {
                continue;
            }
            if !audible || segment.piece.spoken.trim().is_empty() {
                segment.state = State::Text;
                continue;
            }
            if busy >= limit {
                break;
            }
            busy += 1;
            asked = true;
            segment.state = State::Asked(now_ms + rules.synthesis_ms);
            let id = SegmentId { turn, index: u32::try_from(index).unwrap_or(u32::MAX) };
            out.push(Output::Synthesise(id, segment.piece.spoken.clone()));
        }
        if asked && !std::mem::replace(&mut self.clause_asked, true) {
            self.stage(Stage::FirstClause, now_ms, out);
        }
    }

    /// Announces segments in order as far as they are ready.
    fn give(&mut self, now_ms: f64, out: &mut Vec<Output>) {
        let mut idle = !self.segments.iter().any(|s| matches!(s.state, State::Playing { .. }));
        while let Some(segment) = self.segments.get_mut(self.given) {
            let id =
                SegmentId { turn: self.id, index: u32::try_from(self.given).unwrap_or(u32::MAX) };
            let ready = |made| {
                Output::Ready(Box::new(Ready {
                    id,
                    piece: segment.piece.clone(),
                    user_text: Arc::clone(&self.user_text),
                    made,
                }))
            };
            segment.state = match std::mem::replace(&mut segment.state, State::Waiting) {
                State::Made(made) => {
                    let pcm = Arc::clone(&made.pcm);
                    let words = made.words.clone();
                    out.push(ready(Some(made)));
                    out.push(Output::Play(id, Arc::clone(&pcm)));
                    if std::mem::replace(&mut idle, false) {
                        self.speaker_ms = now_ms;
                    }
                    State::Playing { pcm, words, started: false, played_ms: 0.0 }
                }
                State::Text => {
                    out.push(ready(None));
                    State::Shown
                }
                State::Failed(reason) => {
                    out.push(Output::Publish(Event::SegmentSkipped {
                        segment: id,
                        display: segment.piece.display.clone(),
                        reason,
                    }));
                    State::Skipped
                }
                other => {
                    segment.state = other;
                    return;
                }
            };
            self.given += 1;
        }
    }

    /// Ends segments in order as far as nothing of them has to be waited for.
    fn pass(&mut self, out: &mut Vec<Output>) {
        while self.done < self.given {
            let segment = self.name(self.done);
            let Some(entry) = self.segments.get_mut(self.done) else { return };
            match entry.state {
                State::Shown => out.extend([
                    Output::Publish(Event::SegmentStarted { segment }),
                    Output::Publish(Event::SegmentFinished { segment }),
                ]),
                State::Skipped | State::Done => {}
                _ => return,
            }
            entry.state = State::Done;
            self.done += 1;
        }
    }

    pub(super) fn synthesised(
        &mut self,
        index: u32,
        result: Result<Made, String>,
        now_ms: f64,
        out: &mut Vec<Output>,
    ) {
        let Some(segment) = self.segments.get_mut(index as usize) else { return };
        if !matches!(segment.state, State::Asked(_)) {
            return;
        }
        segment.state = match result {
            Ok(made) if made.pcm.samples.is_empty() => State::Text,
            Ok(made) => State::Made(made),
            Err(reason) => State::Failed(reason),
        };
        if matches!(segment.state, State::Made(_)) && !std::mem::replace(&mut self.sound_made, true)
        {
            self.stage(Stage::FirstPcm, now_ms, out);
        }
    }

    /// Takes a report of the speaker. Reports of segments that it does not have are dropped.
    pub(super) fn played(
        &mut self,
        index: u32,
        played: Played,
        now_ms: f64,
        out: &mut Vec<Output>,
    ) {
        let index = index as usize;
        if self.halted || !self.is_playing(index) {
            return;
        }
        self.speaker_ms = now_ms;
        self.waits_since_ms = None;
        // Speakers play in order, so whatever was handed over before this one is over.
        for earlier in self.done..index {
            self.finish(earlier, now_ms, out);
        }
        match played {
            Played::Started => self.start(index, now_ms, out),
            Played::Until(played) => {
                self.start(index, now_ms, out);
                self.progress(index, played.as_secs_f64() * 1000.0, out);
            }
            Played::Whole => self.finish(index, now_ms, out),
        }
    }

    /// The device may not play yet. It is waited for, but not for ever.
    pub(super) fn waits(&mut self, index: u32, rules: &Rules, now_ms: f64, out: &mut Vec<Output>) {
        let index = index as usize;
        let since_ms = *self.waits_since_ms.get_or_insert(now_ms);
        if self.halted || !self.is_playing(index) || now_ms - since_ms > rules.wait_ms {
            return;
        }
        self.speaker_ms = now_ms;
        out.push(Output::Publish(Event::SegmentWaiting { segment: self.name(index) }));
    }

    fn is_playing(&self, index: usize) -> bool {
        self.segments.get(index).is_some_and(|s| matches!(s.state, State::Playing { .. }))
    }

    fn start(&mut self, index: usize, now_ms: f64, out: &mut Vec<Output>) {
        self.pass(out);
        let segment = self.name(index);
        if let Some(Segment { state: State::Playing { started, .. }, .. }) =
            self.segments.get_mut(index)
            && !std::mem::replace(started, true)
        {
            if !std::mem::replace(&mut self.sounding, true) {
                out.push(Output::Publish(Event::SpeakingStarted { turn: self.id }));
                self.stage(Stage::FirstSample, now_ms, out);
            }
            out.push(Output::Publish(Event::SegmentStarted { segment }));
        }
    }

    fn progress(&mut self, index: usize, reported_ms: f64, out: &mut Vec<Output>) {
        let segment = self.name(index);
        if let Some(Segment { state: State::Playing { played_ms, pcm, .. }, .. }) =
            self.segments.get_mut(index)
        {
            *played_ms = played_ms.max(reported_ms.min(pcm.duration_ms()));
            out.push(Output::Publish(Event::SegmentProgress { segment, played_ms: *played_ms }));
        }
    }

    fn finish(&mut self, index: usize, now_ms: f64, out: &mut Vec<Output>) {
        if !self.is_playing(index) {
            return;
        }
        self.start(index, now_ms, out);
        self.progress(index, f64::INFINITY, out);
        if let Some(entry) = self.segments.get_mut(index) {
            entry.state = State::Done;
        }
        out.push(Output::Publish(Event::SegmentFinished { segment: self.name(index) }));
        self.pass(out);
    }

    /// Stops making anything of the turn; says whether some of it is at the speaker.
    pub(super) fn halt(&mut self, out: &mut Vec<Output>) -> bool {
        self.halted = true;
        for index in 0..self.segments.len() {
            if self.segments.get(index).is_some_and(|s| matches!(s.state, State::Asked(_))) {
                out.push(Output::Abandon(self.name(index)));
            }
        }
        if !self.confirmed {
            self.segments.clear();
        }
        self.segments.iter().any(|s| matches!(s.state, State::Playing { .. }))
    }

    /// Takes what the speaker had played when it was stopped.
    pub(super) fn stopped_at(
        &mut self,
        heard: Option<(SegmentId, Duration)>,
        now_ms: f64,
        out: &mut Vec<Output>,
    ) {
        if let Some((segment, played)) = heard
            && segment.turn == self.id
        {
            self.halted = false;
            self.played(segment.index, Played::Until(played), now_ms, out);
            self.halted = true;
        }
    }

    /// Ends the turn with what was heard of it.
    pub(super) fn end(&mut self, complete: bool, out: &mut Vec<Output>) {
        let mut ledger = Ledger::default();
        for segment in &self.segments {
            match &segment.state {
                State::Done => ledger.whole(&segment.piece.display),
                State::Playing { pcm, words, started, played_ms } => {
                    if *started {
                        let script = Script {
                            display: &segment.piece.display,
                            spoken: &segment.piece.spoken,
                            words,
                            duration_ms: pcm.duration_ms(),
                        };
                        ledger.cut(script, *played_ms);
                    }
                    break;
                }
                _ => break,
            }
        }
        let heard = ledger.heard(complete);
        out.push(Output::Publish(Event::SpeakingEnded { turn: self.id, heard }));
    }

    /// Makes text of everything that was not heard: there is no speaker.
    pub(super) fn show_rest(&mut self, out: &mut Vec<Output>) {
        for index in self.done..self.segments.len() {
            let segment = self.name(index);
            let Some(entry) = self.segments.get_mut(index) else { return };
            match entry.state {
                State::Asked(_) => {
                    out.push(Output::Abandon(segment));
                    entry.state = State::Text;
                }
                State::Waiting | State::Made(_) => entry.state = State::Text,
                State::Playing { started: true, .. } => {
                    out.push(Output::Publish(Event::SegmentFinished { segment }));
                    entry.state = State::Done;
                }
                State::Playing { started: false, .. } => entry.state = State::Shown,
                State::Text | State::Failed(_) | State::Shown | State::Skipped | State::Done => {}
            }
        }
    }

    /// Hands what the speaker had not begun to another speaker.
    pub(super) fn replay(&mut self, now_ms: f64, out: &mut Vec<Output>) {
        self.speaker_ms = now_ms;
        for index in self.done..self.given {
            let segment = self.name(index);
            if let Some(Segment { state: State::Playing { pcm, .. }, .. }) =
                self.segments.get(index)
            {
                out.push(Output::Play(segment, Arc::clone(pcm)));
            }
        }
    }

    /// Gives up jobs that take too long.
    pub(super) fn time_out(&mut self, rules: &Rules, now_ms: f64, out: &mut Vec<Output>) {
        for index in self.done..self.segments.len() {
            let segment = self.name(index);
            let Some(entry) = self.segments.get_mut(index) else { return };
            if matches!(entry.state, State::Asked(deadline) if deadline <= now_ms) {
                let seconds = rules.synthesis_ms / 1000.0;
                entry.state = State::Failed(format!("the voice took longer than {seconds} s"));
                out.push(Output::Abandon(segment));
            }
        }
    }

    /// The speaker has something to play and says nothing.
    pub(super) fn stalled(&self, rules: &Rules, now_ms: f64) -> bool {
        self.stall_deadline(rules).is_some_and(|deadline| deadline <= now_ms)
    }

    fn stall_deadline(&self, rules: &Rules) -> Option<f64> {
        let Some(Segment { state: State::Playing { pcm, played_ms, .. }, .. }) =
            self.segments.get(self.done)
        else {
            return None;
        };
        let rest = (pcm.duration_ms() - played_ms).max(0.0);
        (!self.halted).then_some(self.speaker_ms + rest + rules.stall_ms)
    }

    /// When something of the turn has to be looked at, ms.
    pub(super) fn deadlines(&self, rules: &Rules) -> impl Iterator<Item = f64> {
        let jobs = self.segments.iter().filter_map(|segment| match segment.state {
            State::Asked(deadline) => Some(deadline),
            _ => None,
        });
        jobs.chain(self.stall_deadline(rules)).filter(|_| !self.halted)
    }
}
