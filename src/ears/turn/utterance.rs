//! One utterance of the user: from its first speech frame to its turn or its misfire.

use super::{
    Action, FRAME_MS, Reply, Taken, TurnMachine, WORDS_TO_INTERRUPT, millis, patience, samples,
};
use crate::config::settings::ListenMode;
use crate::ears::FRAME;
use crate::kernel::ids::TurnId;

/// Speech frames in a row that end a silence; one alone is a click.
const RESUME_FRAMES: u32 = 2;
/// Silence after which the words so far are taken. The first silent frame is enough: recognition
/// takes longer than a gap inside a word, and speech that comes back before its result cancels it
/// before the mind hears of a draft (measured: the first sound comes 64 ms earlier than with three).
const DRAFT_MS: f64 = FRAME_MS;
/// Longer utterances are transcribed once, at their end.
const LONGEST_DRAFT_MS: f64 = 30_000.0;
/// The end-of-turn model takes 40–140 ms on a small machine: it is asked so long before its answer
/// is needed, and again every [`ASK_AGAIN_MS`].
const ASK_AHEAD_MS: f64 = 72.0;
const ASK_AGAIN_MS: f64 = 7.0 * FRAME_MS;
/// What the model looks at.
const ASK_ABOUT_MS: f64 = 8_000.0;
/// Probability at which the model is believed.
const COMPLETE: f32 = 0.5;
/// Sound whose best frame is below this is no speech.
const VOICED: f32 = 0.4;
/// An ended utterance is given up after this and half its length, or a little after the time-out of
/// its transcription, whichever is later.
pub(super) const RESOLVE_MS: f64 = 2_000.0;
const LONGEST_RESOLVE_MS: f64 = 10_000.0;
const AFTER_TIMEOUT_MS: f64 = 500.0;
/// The piece before a forced cut is given up after this.
const CUT_MS: f64 = 5_000.0;
/// So many pieces of the longest capture are one turn at most.
const MAX_PIECES: u32 = 5;
/// Silence after the last speech that is transcribed with it.
const TAIL_MS: f64 = 200.0;
/// A pause that is shown as one.
const SHOWN_PAUSE_MS: f64 = 3.0 * FRAME_MS;
/// A source that gives nothing for so long ends the utterance.
pub(super) const LOST_MS: f64 = 1_000.0;

#[derive(Clone, Copy, Debug)]
pub(super) enum Phase {
    Open,
    /// Its end is decided, its words are not known yet.
    Ended {
        until_ms: f64,
    },
}

#[derive(Clone, Debug)]
pub(super) enum Words {
    None,
    Working(u64),
    /// Known, and begun as a draft.
    Ready(Option<TurnId>, String),
    /// There are none that matter.
    Empty,
    Failed,
}

#[derive(Debug)]
struct Cut {
    job: u64,
    at: u64,
    since_ms: f64,
}

#[derive(Debug)]
pub(super) struct Utterance {
    pub(super) from: u64,
    last_speech: u64,
    /// Speech frames.
    voiced: u32,
    peak: f32,
    peak_db: f32,
    over_reply: bool,
    /// Speech frames in a row within a silence.
    run: u32,
    /// The question that is out.
    asked: Option<u64>,
    /// The last answer of this silence.
    complete: Option<bool>,
    /// The model failed in this silence.
    no_answer: bool,
    next_ask_ms: f64,
    words: Words,
    phase: Phase,
    cut: Option<Cut>,
    retried: bool,
}

impl Utterance {
    pub(super) fn new(from: u64, pos: u64, voiced: u32, peak: f32, over_reply: bool) -> Self {
        Self {
            from,
            last_speech: pos,
            voiced,
            peak,
            peak_db: -120.0,
            over_reply,
            run: 0,
            asked: None,
            complete: None,
            no_answer: false,
            next_ask_ms: 0.0,
            words: Words::None,
            phase: Phase::Open,
            cut: None,
            retried: false,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    pub(super) fn is_speaking(&self, pos: u64) -> bool {
        self.is_open() && millis(pos - self.last_speech.min(pos)) < SHOWN_PAUSE_MS
    }

    pub(super) fn voiced(&self) -> u32 {
        self.voiced
    }

    /// Somebody else discarded the draft: its words begin a turn of their own at the end.
    pub(super) fn lost_draft(&mut self, lost: TurnId) {
        if let Words::Ready(turn, _) = &mut self.words
            && *turn == Some(lost)
        {
            *turn = None;
        }
    }

    fn silence_ms(&self, pos: u64) -> f64 {
        millis(pos.saturating_sub(self.last_speech))
    }
}

impl TurnMachine {
    pub(super) fn in_utterance(&mut self, speech: f32, rms_db: f32) {
        let (pos, max_turn) = (self.pos, self.config.max_turn);
        let Some(utterance) = self.utterance.as_mut() else { return };
        let in_speech = utterance.last_speech + FRAME as u64 == pos;
        let going = in_speech || utterance.run > 0;
        let on = if going { self.config.release } else { self.config.threshold };
        let heard = speech >= on && !self.level.hollow(rms_db, utterance.peak_db);
        if heard {
            utterance.peak = utterance.peak.max(speech);
            utterance.peak_db = utterance.peak_db.max(rms_db);
        }
        if heard && in_speech {
            utterance.last_speech = pos;
            utterance.voiced += 1;
        } else if heard {
            utterance.run += 1;
            if utterance.run >= RESUME_FRAMES {
                self.go_on();
            }
        } else {
            utterance.run = 0;
        }
        let Some(utterance) = self.utterance.as_ref() else { return };
        if utterance.is_open() && utterance.cut.is_none() {
            if pos + FRAME as u64 - utterance.from > max_turn {
                self.cut();
            } else {
                self.consider();
            }
        }
    }

    /// The user goes on after a silence.
    fn go_on(&mut self) {
        let Some(utterance) = self.utterance.as_mut() else { return };
        utterance.phase = Phase::Open;
        utterance.last_speech = self.pos;
        utterance.voiced += std::mem::take(&mut utterance.run);
        utterance.asked = None;
        utterance.complete = None;
        utterance.no_answer = false;
        utterance.next_ask_ms = 0.0;
        self.drop_words();
    }

    fn drop_words(&mut self) {
        let Some(utterance) = self.utterance.as_mut() else { return };
        match std::mem::replace(&mut utterance.words, Words::None) {
            Words::Working(job) => self.out.push(Action::CancelTranscribe(job)),
            Words::Ready(Some(turn), _) => self.out.push(Action::Discard(turn)),
            _ => {}
        }
    }

    /// The capture is as long as it may be: what was said up to the quietest moment of the last
    /// seconds is transcribed as a piece of the turn, and the rest goes on.
    fn cut(&mut self) {
        self.drop_words();
        let back = self.level.best_cut() * FRAME as u64;
        let Some(from) = self.utterance.as_ref().map(|utterance| utterance.from) else { return };
        let at = self.pos.saturating_sub(back).max(from + FRAME as u64);
        let job = self.transcribe(from, at);
        let since_ms = self.now_ms;
        if let Some(utterance) = self.utterance.as_mut() {
            utterance.cut = Some(Cut { job, at, since_ms });
        }
    }

    /// The piece before a cut is known, or given up.
    fn piece(&mut self, text: Option<&str>) {
        let Some(utterance) = self.utterance.as_mut() else { return };
        let Some(cut) = utterance.cut.take() else { return };
        utterance.from = cut.at;
        let (last_speech, ended) = (utterance.last_speech, !utterance.is_open());
        self.carried = joined(&self.carried, text.unwrap_or_default());
        self.pieces += 1;
        if self.pieces >= MAX_PIECES {
            self.begin_carried(last_speech);
        }
        if ended {
            self.want_words();
        }
    }

    fn consider(&mut self) {
        let Some(utterance) = self.utterance.as_ref() else { return };
        let silence = utterance.silence_ms(self.pos);
        if silence == 0.0 || utterance.run > 0 || self.config.mode == ListenMode::PushToTalk {
            return;
        }
        if self.too_short() {
            if silence + FRAME_MS / 2.0 >= self.config.silence_ms {
                self.forget();
            }
            return;
        }
        let length = millis(self.pos - utterance.from);
        if matches!(utterance.words, Words::None)
            && silence >= DRAFT_MS
            && length <= LONGEST_DRAFT_MS
        {
            self.want_words();
        }
        self.ask(silence);
        self.decide();
    }

    fn too_short(&self) -> bool {
        self.utterance.as_ref().is_some_and(|utterance| {
            let voiced_ms = f64::from(utterance.voiced) * FRAME_MS;
            // What follows a forced cut belongs to speech that was long enough.
            self.carried.is_empty() && voiced_ms < self.config.min_speech_ms
                || utterance.peak < VOICED
        })
    }

    fn ask(&mut self, silence: f64) {
        let (pos, ask) = (self.pos, self.next_job + 1);
        let from = self.utterance.as_ref().map_or(pos, |open| self.context_from(open.from));
        let first = (self.config.silence_ms - ASK_AHEAD_MS).max(2.0 * FRAME_MS);
        let Some(utterance) = self.utterance.as_mut() else { return };
        let due = silence >= first.max(utterance.next_ask_ms);
        let done = utterance.no_answer || utterance.complete == Some(true);
        if !self.config.model || !due || done || utterance.asked.is_some() {
            return;
        }
        self.next_job = ask;
        utterance.asked = Some(ask);
        utterance.next_ask_ms = silence + ASK_AGAIN_MS;
        self.out.push(Action::AskEndOfTurn { ask, from, to: pos });
    }

    /// Where the sound begins that the end-of-turn model is shown, given where the utterance does.
    pub(super) fn context_from(&self, from: u64) -> u64 {
        let from = self.context.map_or(from, |context| context.min(from));
        from.max(self.pos.saturating_sub(samples(ASK_ABOUT_MS)))
    }

    pub(super) fn answered(&mut self, ask: u64, complete: Option<f32>) {
        let Some(utterance) = self.utterance.as_mut() else { return };
        if utterance.asked != Some(ask) {
            return;
        }
        utterance.asked = None;
        utterance.no_answer = complete.is_none();
        utterance.complete = complete.map(|complete| complete > COMPLETE);
        self.decide();
    }

    fn decide(&mut self) {
        let Some(utterance) = self.utterance.as_ref() else { return };
        let waits = utterance.run > 0 || utterance.cut.is_some() || !utterance.is_open();
        if waits || self.config.mode == ListenMode::PushToTalk {
            return;
        }
        let text = match &utterance.words {
            Words::Ready(_, text) => Some(text.as_str()),
            _ => None,
        };
        let timer = self.config.patience_ms * patience::factor(text);
        let wait = match utterance.complete {
            Some(true) if text.is_none_or(|text| !patience::is_unfinished(text)) => {
                self.config.silence_ms
            }
            Some(false) => self.config.max_silence_ms,
            _ => timer.max(self.config.silence_ms),
        };
        let wait = wait.min(self.config.max_silence_ms);
        if utterance.silence_ms(self.pos) + FRAME_MS / 2.0 >= wait {
            self.end_utterance();
        }
    }

    pub(super) fn end_utterance(&mut self) {
        if self.too_short() {
            self.forget();
            return;
        }
        let Some(utterance) = self.utterance.as_mut() else { return };
        let length = millis(self.pos - utterance.from);
        let patience = RESOLVE_MS + (length / 2.0).min(LONGEST_RESOLVE_MS);
        let patience = patience.max(self.config.words_ms + AFTER_TIMEOUT_MS);
        utterance.phase = Phase::Ended { until_ms: self.now_ms + patience };
        self.out.push(Action::Endpoint);
        self.resolve();
    }

    /// Goes on with an ended utterance as far as its words are known.
    fn resolve(&mut self) {
        let Some(utterance) = self.utterance.as_mut() else { return };
        if utterance.is_open() || utterance.cut.is_some() {
            return;
        }
        match &utterance.words {
            Words::Ready(..) => self.complete(),
            Words::Working(_) => {}
            Words::Empty => self.forget(),
            Words::Failed if utterance.retried => self.forget(),
            Words::Failed => {
                utterance.retried = true;
                self.want_words();
            }
            Words::None => self.want_words(),
        }
    }

    fn want_words(&mut self) {
        let Some(utterance) = self.utterance.as_ref() else { return };
        let to = self.pos.min(utterance.last_speech + samples(TAIL_MS)).max(utterance.from);
        let job = self.transcribe(utterance.from, to);
        if let Some(utterance) = self.utterance.as_mut() {
            utterance.words = Words::Working(job);
        }
    }

    pub(super) fn understood(
        &mut self,
        job: u64,
        text: Option<String>,
        own: bool,
        backchannel: bool,
    ) {
        if self.check.is_some_and(|(check, ..)| check == job) {
            self.checked(text, own || backchannel);
            return;
        }
        let over_reply = self.reply.is_some();
        let Some(utterance) = self.utterance.as_mut() else { return };
        if utterance.cut.as_ref().is_some_and(|cut| cut.job == job) {
            self.piece(text.as_deref().filter(|_| !own));
            return;
        }
        if !matches!(utterance.words, Words::Working(current) if current == job) {
            return;
        }
        let listener = backchannel && (utterance.over_reply || over_reply);
        let open = utterance.is_open();
        utterance.words = match text {
            None => Words::Failed,
            Some(text) if own || listener || text.trim().is_empty() => Words::Empty,
            Some(text) => Words::Ready(None, joined(&self.carried, &text)),
        };
        if !open {
            self.resolve();
            return;
        }
        if let Words::Ready(turn, text) = &mut utterance.words {
            self.out.push(Action::Partial(text.clone()));
            if self.config.speculate {
                let id = self.ids.next();
                *turn = Some(id);
                self.out.push(Action::Begin { turn: id, text: text.clone(), draft: true });
            }
            self.decide();
        }
    }

    /// The words that were heard over an open echo path are known.
    fn checked(&mut self, text: Option<String>, nothing: bool) {
        let Some((_, from, _)) = self.check.take() else { return };
        // The voice ended before its words were known, and the user is heard already.
        if self.utterance.is_some() {
            return;
        }
        let words = text.as_deref().map_or(0, count_words);
        if nothing || words < WORDS_TO_INTERRUPT {
            self.barge.hold(self.now_ms);
            return;
        }
        self.interrupt();
        let voiced = (millis(self.pos - from) / FRAME_MS) as u32;
        self.utterance = Some(Utterance::new(from, self.pos, voiced, 1.0, true));
        self.out.push(Action::SpeechStarted);
    }

    /// The words are known and the end is decided.
    fn complete(&mut self) {
        let Some(utterance) = self.utterance.take() else { return };
        let Words::Ready(draft, text) = utterance.words else { return };
        if self.reply.is_some() {
            self.interrupt();
        }
        self.carried.clear();
        self.pieces = 0;
        self.not_before = self.pos.min(utterance.last_speech + 2 * FRAME as u64);
        self.out.push(Action::SpeechEnded { end: utterance.last_speech, misfire: false });
        let turn = match draft {
            Some(turn) => {
                self.out.push(Action::Confirm(turn));
                turn
            }
            None => {
                let turn = self.ids.next();
                self.out.push(Action::Begin { turn, text: text.clone(), draft: false });
                turn
            }
        };
        self.given(turn, text, utterance.last_speech);
    }

    fn given(&mut self, turn: TurnId, text: String, speech_end: u64) {
        self.out.push(Action::Final { turn, text: text.clone(), speech_end });
        self.reply = Some(Reply { turn, speaking: false, alive_ms: self.now_ms });
        self.taken = Some(Taken { turn, text, at_ms: self.now_ms });
    }

    /// The utterance was nothing. What was said before it, and taken back for it, is a turn again.
    pub(super) fn forget(&mut self) {
        self.drop_words();
        let Some(utterance) = self.utterance.take() else { return };
        if let Some(cut) = utterance.cut {
            self.out.push(Action::CancelTranscribe(cut.job));
        }
        self.not_before = self.pos.min(utterance.last_speech + 2 * FRAME as u64);
        let misfire = self.carried.is_empty();
        if misfire && self.reply.is_none() {
            self.context = None;
        }
        self.out.push(Action::SpeechEnded { end: utterance.last_speech, misfire });
        self.begin_carried(utterance.last_speech);
    }

    fn begin_carried(&mut self, speech_end: u64) {
        self.pieces = 0;
        let text = std::mem::take(&mut self.carried);
        if !text.is_empty() {
            let turn = self.ids.next();
            self.out.push(Action::Begin { turn, text: text.clone(), draft: false });
            self.given(turn, text, speech_end);
        }
    }

    pub(super) fn watch_utterance(&mut self) {
        let Some(utterance) = self.utterance.as_ref() else { return };
        if utterance.cut.as_ref().is_some_and(|cut| self.now_ms - cut.since_ms > CUT_MS) {
            self.piece(None);
        }
        let Some(utterance) = self.utterance.as_ref() else { return };
        if matches!(utterance.phase, Phase::Ended { until_ms } if self.now_ms >= until_ms) {
            self.forget();
        }
    }
}

/// Two pieces of one turn.
fn joined(before: &str, text: &str) -> String {
    match (before.trim(), text.trim()) {
        ("", text) => text.to_owned(),
        (before, "") => before.to_owned(),
        (before, text) => {
            let tight = before.chars().next_back().is_some_and(is_cjk)
                && text.chars().next().is_some_and(is_cjk);
            format!("{before}{}{text}", if tight { "" } else { " " })
        }
    }
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// Words, or characters where words are not told apart.
fn count_words(text: &str) -> usize {
    let cjk = text.chars().filter(|&c| c.is_alphanumeric() && is_cjk(c)).count();
    let spaced = text
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| word.chars().any(|c| c.is_alphanumeric() && !is_cjk(c)))
        .count();
    cjk + spaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_joined_as_their_script_asks() {
        assert_eq!(joined("I went", " home. "), "I went home.");
        assert_eq!(joined("", "home"), "home");
        assert_eq!(joined("我想", "回家"), "我想回家");
    }

    #[test]
    fn words_are_counted_in_both_scripts() {
        for (text, count) in [("stop", 1), ("please stop!", 2), ("停下", 2), ("", 0), ("...", 0)]
        {
            assert_eq!(count_words(text), count, "{text}");
        }
    }
}
