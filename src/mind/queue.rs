//! The queue of turns as a machine without I/O: it is told what happened and says what to do.
//!
//! Turns are answered one at a time, in the order in which they came. A draft takes the place of a
//! turn when nothing else runs; its reply is made and published, but nothing is written and the
//! conversation does not know of it until it is confirmed. A turn ends when the voice says what was
//! heard of it ([`Event::SpeakingEnded`]); that, and nothing else, is what the history keeps.

use std::collections::{BTreeSet, VecDeque};

use crate::kernel::contracts::{
    Event, GetHistory, Heard, HistoryEntry, InterruptCause, Notice, NoticeLevel, Stage,
    TurnCommand, TurnSource,
};
use crate::kernel::ids::TurnId;
use crate::kernel::ports::{
    ChatDelta, ChatError, ChatMessage, EntryKind, JournalEntry, StopReason,
};

use super::history::{History, without_tags};

/// Silence of the voice after which a reply that was made counts as heard: the voice is gone. Every
/// sign of life of the turn's sound begins the wait anew.
const VOICE_LOST_MS: f64 = 15_000.0;

/// The same for a turn that was interrupted, where the voice only has to stop.
const STOP_LOST_MS: f64 = 3_000.0;

/// How long a confirmed turn waits behind a draft that nobody confirms or discards.
const DRAFT_LOST_MS: f64 = 20_000.0;

/// Ids of turns that were stopped before they began are forgotten beyond this many.
const STOPPED_KEPT: usize = 64;

/// What the machine is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// An entrance asks.
    Command(TurnCommand),
    /// The model of the running turn said something; `None`: its stream ended.
    Reply(TurnId, Option<Result<ChatDelta, ChatError>>),
    /// Somebody asked for silence.
    Interrupt(Option<TurnId>, InterruptCause),
    /// The voice is at work on a turn.
    VoiceAlive(TurnId),
    /// The voice is done with a turn.
    Spoken(TurnId, Heard),
    /// The time of [`TurnQueue::deadline`] may have come.
    Tick,
    /// Alice stops: nothing is begun any more, and what runs ends now.
    Close,
}

/// What the machine wants done, in this order.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Publish it.
    Publish(Event),
    /// Write it into the transcript.
    Write(JournalEntry),
    /// Ask the model for the reply to [`TurnQueue::prompt`].
    Ask(TurnId),
    /// Stop the model's reply to this turn, if it is still making one.
    Cancel(TurnId),
    /// Nothing is running: let the model get ready for the next prompt.
    Warm,
}

/// A turn that waits for its place.
#[derive(Clone, Debug, PartialEq)]
struct Waiting {
    turn: TurnId,
    text: String,
    source: TurnSource,
    draft: bool,
    since_ms: f64,
}

/// How far the reply is.
#[derive(Clone, Debug, PartialEq)]
enum Reply {
    /// Being made.
    Running,
    /// All there.
    Whole,
    /// There will be none; why. Held back while the turn is a draft.
    Failed(String),
    /// Cut short by the user while it was made.
    Cut,
}

/// The turn whose place it is.
#[derive(Clone, Debug, PartialEq)]
struct Current {
    turn: TurnId,
    text: String,
    source: TurnSource,
    draft: bool,
    reply: Reply,
    interrupted: bool,
    /// The user took it back: unless something of the reply was heard, its words are not kept.
    withdrawn: bool,
    made: String,
    thought: bool,
    first_token_ms: Option<f64>,
    notice: Option<Notice>,
    alive_ms: f64,
}

/// The queue.
#[derive(Debug, Default)]
pub struct TurnQueue {
    history: History,
    waiting: VecDeque<Waiting>,
    current: Option<Current>,
    /// Stopped before they came: an interruption may overtake the command that it is meant for.
    stopped: BTreeSet<TurnId>,
    voice_present: bool,
    closed: bool,
}

impl TurnQueue {
    /// A queue that goes on from `history`. Without a voice room (`voice_present` is `false`) a turn
    /// ends when its reply is whole, and all of it counts as heard.
    pub fn new(history: History, voice_present: bool) -> Self {
        Self { history, voice_present, ..Self::default() }
    }

    /// What to do now that `input` happened at `now_ms`.
    pub fn step(&mut self, now_ms: f64, input: Input) -> Vec<Action> {
        let mut actions = Vec::new();
        let out = &mut actions;
        match input {
            Input::Command(TurnCommand::Begin { turn, text, source, draft }) => {
                self.begin(Waiting { turn, text, source, draft, since_ms: now_ms }, out);
            }
            Input::Command(TurnCommand::Confirm(turn)) => self.confirm(turn, now_ms, out),
            Input::Command(TurnCommand::Discard(turn)) => self.discard(turn, out),
            Input::Reply(turn, delta) => self.reply(turn, delta, now_ms, out),
            Input::Interrupt(turn, cause) => self.interrupt(turn, cause, now_ms, out),
            Input::VoiceAlive(turn) => {
                if let Some(current) = self.current.as_mut().filter(|c| c.turn == turn) {
                    current.alive_ms = now_ms;
                }
            }
            Input::Spoken(turn, heard) => {
                if self.current.as_ref().is_some_and(|c| c.turn == turn && !c.draft) {
                    self.finish(heard, out);
                }
            }
            Input::Tick => {}
            Input::Close => self.close(out),
        }
        self.check_time(now_ms, out);
        self.start_next(now_ms, out);
        actions
    }

    /// When to send [`Input::Tick`], in ms of the same clock.
    pub fn deadline(&self) -> Option<f64> {
        let current = self.current.as_ref()?;
        if current.draft {
            let waits = self.waiting.iter().filter(|waiting| !waiting.draft);
            return waits.map(|w| w.since_ms + DRAFT_LOST_MS).reduce(f64::min);
        }
        match current.reply {
            Reply::Running => None,
            _ if current.interrupted => Some(current.alive_ms + STOP_LOST_MS),
            _ => Some(current.alive_ms + VOICE_LOST_MS),
        }
    }

    /// The conversation as the model should see it now, at most `room` tokens by estimate: up to and
    /// with the words of the running turn.
    pub fn prompt(&mut self, system: String, room: usize) -> Vec<ChatMessage> {
        let text = self.current.as_ref().map(|current| current.text.as_str());
        self.history.messages(system, text, room)
    }

    /// The conversation as a person sees it; the words of a running turn are its last line.
    pub fn entries(&self, GetHistory { limit }: &GetHistory) -> Vec<HistoryEntry> {
        let running = self.current.as_ref().filter(|current| !current.draft);
        let asked = running.map(|current| HistoryEntry {
            turn: current.turn,
            from_user: true,
            text: current.text.clone(),
            interrupted: false,
        });
        let mut entries = self.history.entries(limit.saturating_sub(usize::from(asked.is_some())));
        entries.extend(asked.filter(|_| *limit > 0));
        entries
    }

    /// The confirmed turn whose reply is made or heard now.
    pub fn running(&self) -> Option<TurnId> {
        self.current.as_ref().filter(|current| !current.draft).map(|current| current.turn)
    }

    fn begin(&mut self, waiting: Waiting, out: &mut Vec<Action>) {
        if !waiting.draft {
            out.push(Action::Write(user_line(&waiting)));
        }
        if self.closed {
            return;
        }
        if self.stopped.remove(&waiting.turn) {
            if !waiting.draft {
                self.stop_waiting(waiting, out);
            }
        } else {
            self.waiting.push_back(waiting);
        }
    }

    fn confirm(&mut self, turn: TurnId, now_ms: f64, out: &mut Vec<Action>) {
        if let Some(waiting) = self.waiting.iter_mut().find(|w| w.turn == turn && w.draft) {
            waiting.draft = false;
            waiting.since_ms = now_ms;
            out.push(Action::Write(user_line(waiting)));
        }
        let Some(current) = self.current.as_mut().filter(|c| c.turn == turn && c.draft) else {
            return;
        };
        current.draft = false;
        current.alive_ms = now_ms;
        out.push(Action::Publish(Event::TurnConfirmed { turn }));
        out.push(Action::Write(JournalEntry {
            turn,
            kind: EntryKind::User,
            text: current.text.clone(),
            source: Some(current.source),
            interrupted: false,
        }));
        if let Some(at_ms) = current.first_token_ms {
            out.push(Action::Publish(Event::Stage { turn, stage: Stage::FirstToken, at_ms }));
        }
        self.settle(out);
    }

    fn discard(&mut self, turn: TurnId, out: &mut Vec<Action>) {
        self.waiting.retain(|waiting| !(waiting.turn == turn && waiting.draft));
        if self.current.as_ref().is_some_and(|c| c.turn == turn && c.draft) {
            self.current = None;
            out.push(Action::Cancel(turn));
            out.push(Action::Publish(Event::TurnDiscarded { turn }));
        } else if let Some(current) = self.current.as_mut().filter(|c| c.turn == turn) {
            current.withdrawn = true;
        } else {
            let place = self.waiting.iter().position(|waiting| waiting.turn == turn);
            if let Some(waiting) = place.and_then(|place| self.waiting.remove(place)) {
                self.stop_waiting(waiting, out);
            }
            self.withdraw(turn, out);
        }
    }

    /// Forgets the words of a turn that the user took back to say more: the next turn holds them
    /// too. What was answered aloud stays.
    fn withdraw(&mut self, turn: TurnId, out: &mut Vec<Action>) {
        if self.history.withdraw(turn) {
            out.push(Action::Write(JournalEntry {
                turn,
                kind: EntryKind::Withdrawn,
                text: String::new(),
                source: None,
                interrupted: false,
            }));
        }
    }

    fn reply(
        &mut self,
        turn: TurnId,
        delta: Option<Result<ChatDelta, ChatError>>,
        now_ms: f64,
        out: &mut Vec<Action>,
    ) {
        let running = |c: &&mut Current| c.turn == turn && c.reply == Reply::Running;
        let Some(current) = self.current.as_mut().filter(running) else { return };
        match delta {
            Some(Ok(ChatDelta::Text(delta))) => {
                if delta.is_empty() {
                    return;
                }
                if current.first_token_ms.is_none() {
                    current.first_token_ms = Some(now_ms);
                    if !current.draft {
                        let stage = Stage::FirstToken;
                        out.push(Action::Publish(Event::Stage { turn, stage, at_ms: now_ms }));
                    }
                }
                current.made.push_str(&delta);
                out.push(Action::Publish(Event::TokenEmitted { turn, delta }));
                return;
            }
            Some(Ok(ChatDelta::Thinking(delta))) => {
                current.thought = true;
                out.push(Action::Publish(Event::ThinkingUpdated { turn, delta }));
                return;
            }
            Some(Ok(ChatDelta::Done(reason))) => current.done(reason),
            Some(Err(error)) => current.failed(&error.to_string()),
            None => current.failed("the model broke off: ask again"),
        }
        current.alive_ms = now_ms;
        if current.reply == Reply::Whole {
            out.push(Action::Publish(Event::ReplyGenerated { turn }));
        }
        self.settle(out);
    }

    /// Does what the end of a reply calls for, once the turn is confirmed.
    fn settle(&mut self, out: &mut Vec<Action>) {
        let Some(current) = self.current.as_mut().filter(|current| !current.draft) else { return };
        let turn = current.turn;
        out.extend(current.notice.take().map(|notice| Action::Publish(Event::Notice(notice))));
        if let Reply::Failed(error) = &current.reply {
            let error = error.clone();
            self.fail(turn, error, out);
        } else if current.reply == Reply::Whole && !self.voice_present {
            let heard = Heard { text: without_tags(&current.made), complete: true };
            self.finish(heard, out);
        }
    }

    fn interrupt(
        &mut self,
        turn: Option<TurnId>,
        cause: InterruptCause,
        now_ms: f64,
        out: &mut Vec<Action>,
    ) {
        if let Some(turn) = turn
            && let Some(place) = self.waiting.iter().position(|w| w.turn == turn && !w.draft)
            && let Some(waiting) = self.waiting.remove(place)
        {
            self.stop_waiting(waiting, out);
            return;
        }
        // A draft makes no sound; only its entrance decides about it.
        let meant = |c: &&mut Current| !c.draft && turn.is_none_or(|turn| turn == c.turn);
        match self.current.as_mut().filter(meant) {
            Some(current) => {
                if !std::mem::replace(&mut current.interrupted, true) {
                    current.alive_ms = now_ms;
                }
                if current.reply == Reply::Running {
                    current.reply = Reply::Cut;
                    out.push(Action::Cancel(current.turn));
                }
                if !self.voice_present {
                    let text = without_tags(&current.made);
                    self.finish(Heard { text, complete: false }, out);
                }
            }
            None => {
                let current = self.current.as_ref().map(|current| current.turn);
                let early = turn.filter(|turn| {
                    cause == InterruptCause::Request && current.is_none_or(|now| *turn > now)
                });
                self.stopped.extend(early);
                if self.stopped.len() > STOPPED_KEPT {
                    self.stopped.pop_first();
                }
            }
        }
    }

    /// Ends a turn that was stopped before its place came.
    fn stop_waiting(&mut self, waiting: Waiting, out: &mut Vec<Action>) {
        let turn = waiting.turn;
        let (source, user_text) = (waiting.source, waiting.text.clone());
        out.push(Action::Publish(Event::TurnStarted { turn, source, user_text, draft: false }));
        out.push(Action::Publish(Event::TurnConfirmed { turn }));
        let error = "stopped before it was answered".to_owned();
        out.push(Action::Publish(Event::TurnFailed { turn, error }));
        self.history.push(turn, waiting.text, None);
    }

    fn fail(&mut self, turn: TurnId, error: String, out: &mut Vec<Action>) {
        let Some(current) = self.current.take() else { return };
        self.history.push(turn, current.text, None);
        if current.withdrawn {
            self.withdraw(turn, out);
        }
        out.push(Action::Write(JournalEntry {
            turn,
            kind: EntryKind::Meta,
            text: format!("no reply: {error}"),
            source: None,
            interrupted: false,
        }));
        out.push(Action::Publish(Event::TurnFailed { turn, error }));
    }

    /// Ends the running turn with what was heard of it.
    fn finish(&mut self, heard: Heard, out: &mut Vec<Action>) {
        let Some(current) = self.current.take() else { return };
        let turn = current.turn;
        if current.reply == Reply::Running {
            out.push(Action::Cancel(turn));
        }
        let whole = heard.complete && current.reply == Reply::Whole;
        let content = heard.text.trim().to_owned();
        if !content.is_empty() {
            out.push(Action::Write(JournalEntry {
                turn,
                kind: EntryKind::Assistant,
                text: content.clone(),
                source: None,
                interrupted: !whole,
            }));
        }
        let kept = Heard { text: content.clone(), complete: whole };
        self.history.push(turn, current.text, Some(kept));
        if current.withdrawn {
            self.withdraw(turn, out);
        }
        out.push(Action::Publish(Event::TurnCompleted { turn, content, interrupted: !whole }));
        if self.waiting.is_empty() && !self.closed {
            out.push(Action::Warm);
        }
    }

    fn check_time(&mut self, now_ms: f64, out: &mut Vec<Action>) {
        if self.deadline().is_none_or(|deadline| now_ms < deadline) {
            return;
        }
        let Some(current) = &self.current else { return };
        if current.draft {
            let turn = current.turn;
            tracing::warn!(%turn, "a draft was neither confirmed nor discarded");
            self.discard(turn, out);
            return;
        }
        tracing::warn!(turn = %current.turn, "the voice did not say what was heard");
        // Of a reply that was cut short nobody knows what was heard; nothing is made up.
        let heard = if current.interrupted {
            Heard::default()
        } else {
            Heard { text: without_tags(&current.made), complete: true }
        };
        out.push(Action::Publish(Event::Notice(Notice {
            level: NoticeLevel::Warning,
            code: "voice_silent",
            text: "the voice did not say how much of the reply was heard".into(),
            hint: Some("if it stays silent, start Alice again".into()),
        })));
        self.finish(heard, out);
    }

    fn close(&mut self, out: &mut Vec<Action>) {
        self.closed = true;
        self.waiting.clear();
        match &self.current {
            Some(current) if current.draft => {
                let turn = current.turn;
                self.discard(turn, out);
            }
            Some(current) => {
                // With a voice, what was heard is unknown now, and nothing is made up.
                let shown = if self.voice_present { "" } else { &current.made };
                self.finish(Heard { text: without_tags(shown), complete: false }, out);
            }
            None => {}
        }
    }

    /// Gives the free place to the first confirmed turn, or else to the first draft.
    fn start_next(&mut self, now_ms: f64, out: &mut Vec<Action>) {
        if self.current.is_some() {
            return;
        }
        let confirmed = self.waiting.iter().position(|waiting| !waiting.draft);
        let Some(next) = self.waiting.remove(confirmed.unwrap_or(0)) else { return };
        let Waiting { turn, text, source, draft, .. } = next;
        let user_text = text.clone();
        out.push(Action::Publish(Event::TurnStarted { turn, source, user_text, draft }));
        if !draft {
            out.push(Action::Publish(Event::TurnConfirmed { turn }));
        }
        out.push(Action::Ask(turn));
        self.current = Some(Current {
            turn,
            text,
            source,
            draft,
            reply: Reply::Running,
            interrupted: false,
            withdrawn: false,
            made: String::new(),
            thought: false,
            first_token_ms: None,
            notice: None,
            alive_ms: now_ms,
        });
    }
}

impl Current {
    fn done(&mut self, reason: StopReason) {
        let said = !self.made.trim().is_empty();
        self.reply = match reason {
            _ if said => Reply::Whole,
            StopReason::Length if self.thought => Reply::Failed(
                "the model thought until its token limit and said nothing: raise `llm.max_tokens`"
                    .into(),
            ),
            StopReason::Filtered => {
                Reply::Failed("the model's provider refused to answer this".into())
            }
            StopReason::End | StopReason::Length => {
                Reply::Failed("the model gave an empty answer: ask again".into())
            }
        };
        if said && reason == StopReason::Filtered {
            self.notice = Some(cut("the model's provider stopped the reply"));
        }
    }

    /// What was already said stays; only a turn without a word of reply fails.
    fn failed(&mut self, error: &str) {
        if self.made.trim().is_empty() {
            self.reply = Reply::Failed(error.to_owned());
        } else {
            self.reply = Reply::Whole;
            self.notice = Some(cut(error));
        }
    }
}

fn cut(why: &str) -> Notice {
    Notice {
        level: NoticeLevel::Warning,
        code: "reply_cut",
        text: format!("the reply is not whole: {why}"),
        hint: None,
    }
}

fn user_line(waiting: &Waiting) -> JournalEntry {
    JournalEntry {
        turn: waiting.turn,
        kind: EntryKind::User,
        text: waiting.text.clone(),
        source: Some(waiting.source),
        interrupted: false,
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
