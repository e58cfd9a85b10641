//! The conversation: what was said, what of the replies was heard, and how a model sees it.

use std::collections::VecDeque;

use crate::kernel::contracts::{Emotion, Heard, HistoryEntry};
use crate::kernel::ids::TurnId;
use crate::kernel::ports::{ChatMessage, EntryKind, JournalEntry, Role};

/// Exchanges that are kept in memory; older ones are in the transcript alone.
const KEPT: usize = 500;

/// Tokens that chat templates put around a message, about.
const MESSAGE_TOKENS: f32 = 5.0;

/// Share of the room that is left filled when the oldest exchanges are let go. Going well below the
/// limit at once keeps the beginning of the prompt, and with it a model's cache, the same for many
/// turns.
const REFILL: f32 = 0.6;

/// What the user said and what they heard of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Exchange {
    turn: TurnId,
    user: String,
    reply: Option<String>,
    interrupted: bool,
}

/// The conversation so far.
#[derive(Clone, Debug, Default)]
pub struct History {
    exchanges: VecDeque<Exchange>,
    /// How many of the oldest exchanges the model no longer sees.
    beyond: usize,
}

impl History {
    /// Rebuilds the conversation from its transcript. A reply finds the words that it answers by its
    /// turn, because the words of a waiting turn may have been written before it.
    pub fn rebuild(entries: impl IntoIterator<Item = JournalEntry>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            match entry.kind {
                EntryKind::User => history.push(entry.turn, entry.text, None),
                EntryKind::Assistant => {
                    let open = |e: &&mut Exchange| e.turn == entry.turn && e.reply.is_none();
                    match history.exchanges.iter_mut().rev().find(open) {
                        Some(exchange) => {
                            exchange.reply = Some(entry.text);
                            exchange.interrupted = entry.interrupted;
                        }
                        // Its question was in a line that could not be read.
                        None => {
                            let heard = Heard { text: entry.text, complete: !entry.interrupted };
                            history.push(entry.turn, String::new(), Some(heard));
                        }
                    }
                }
                EntryKind::Withdrawn => {
                    history.withdraw(entry.turn);
                }
                EntryKind::Meta => {}
            }
        }
        history
    }

    /// Adds an exchange; `None` and an empty `heard` leave the user's words without an answer.
    pub fn push(&mut self, turn: TurnId, user: String, heard: Option<Heard>) {
        let (reply, complete) = heard.map_or((String::new(), true), |h| (h.text, h.complete));
        let reply = reply.trim();
        self.exchanges.push_back(Exchange {
            turn,
            user,
            reply: (!reply.is_empty()).then(|| reply.to_owned()),
            interrupted: !complete,
        });
        while self.exchanges.len() > KEPT {
            self.exchanges.pop_front();
            self.beyond = self.beyond.saturating_sub(1);
        }
    }

    /// Forgets the words of a turn that was not answered. Whether there were any.
    pub fn withdraw(&mut self, turn: TurnId) -> bool {
        let unanswered = |e: &Exchange| e.turn == turn && e.reply.is_none();
        let Some(place) = self.exchanges.iter().rposition(unanswered) else { return false };
        self.exchanges.remove(place);
        if place < self.beyond {
            self.beyond -= 1;
        }
        true
    }

    /// At most `limit` of the newest lines, oldest first.
    pub fn entries(&self, limit: usize) -> Vec<HistoryEntry> {
        let entries: Vec<_> = self.exchanges.iter().flat_map(Exchange::entries).collect();
        entries.into_iter().rev().take(limit).rev().collect()
    }

    /// The conversation as a model sees it: the system prompt, the newest exchanges, and `user_text`
    /// last where there is one. They fit `room` tokens by estimate, except that the system prompt
    /// and `user_text` are never cut.
    ///
    /// User and assistant take turns strictly: words that got no answer are joined with the next
    /// ones. A reply that was cut short is followed by a note in the user's next message.
    pub fn messages(
        &mut self,
        system: String,
        user_text: Option<&str>,
        room: usize,
    ) -> Vec<ChatMessage> {
        let fixed = estimate(&system) + user_text.map_or(0.0, estimate);
        let room = (room as f32 - fixed).max(0.0);
        let seen = self.exchanges.iter().skip(self.beyond);
        let mut filled: f32 = seen.map(Exchange::tokens).sum();
        if filled > room {
            for oldest in self.exchanges.iter().skip(self.beyond) {
                if filled <= room * REFILL {
                    break;
                }
                filled -= oldest.tokens();
                self.beyond += 1;
            }
        }

        let mut messages = vec![ChatMessage { role: Role::System, content: system }];
        let mut asked: Vec<&str> = Vec::new();
        let mut cut_short = false;
        for exchange in self.exchanges.iter().skip(self.beyond) {
            if !exchange.user.is_empty() {
                asked.push(&exchange.user);
            }
            let Some(reply) = &exchange.reply else { continue };
            // An answer whose question is lost has no place between two messages of the user.
            if !asked.is_empty() {
                messages.push(ask(&asked, cut_short));
                messages.push(ChatMessage { role: Role::Assistant, content: reply.clone() });
                asked.clear();
                cut_short = exchange.interrupted;
            }
        }
        asked.extend(user_text);
        if !asked.is_empty() {
            messages.push(ask(&asked, cut_short));
        }
        messages
    }
}

impl Exchange {
    fn entries(&self) -> impl Iterator<Item = HistoryEntry> + use<> {
        let (turn, interrupted) = (self.turn, self.interrupted);
        let user = (!self.user.is_empty()).then(|| HistoryEntry {
            turn,
            from_user: true,
            text: self.user.clone(),
            interrupted: false,
        });
        let reply = self.reply.clone().map(|text| HistoryEntry {
            turn,
            from_user: false,
            text,
            interrupted,
        });
        user.into_iter().chain(reply)
    }

    fn tokens(&self) -> f32 {
        estimate(&self.user) + self.reply.as_deref().map_or(0.0, estimate)
    }
}

/// The user's message, with the note that the reply before it was cut short. The note is the model's
/// to see and nobody's to hear: only replies are spoken.
fn ask(asked: &[&str], cut_short: bool) -> ChatMessage {
    let words = asked.join("\n");
    let content = match (cut_short, words.chars().any(is_cjk)) {
        (false, _) => words,
        (true, false) => format!("[I cut you off there.]\n{words}"),
        (true, true) => format!("［我刚才打断了你。］\n{words}"),
    };
    ChatMessage { role: Role::User, content }
}

/// Tokens of a message by estimate: 1.5 a CJK character and a quarter of one any other, the rule of
/// thumb for vocabularies of 50,000 to 150,000 tokens, and what the template adds.
fn estimate(text: &str) -> f32 {
    let text: f32 = text.chars().map(|c| if is_cjk(c) { 1.5 } else { 0.25 }).sum();
    text + MESSAGE_TOKENS
}

/// Han, kana, hangul and their punctuation.
fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}')
}

/// The reply without its emotion tags, for when no voice room says what was shown of it.
pub fn without_tags(reply: &str) -> String {
    let mut clean = String::with_capacity(reply.len());
    let mut rest = reply;
    while let Some((before, after)) = rest.split_once('[') {
        clean.push_str(before);
        match after.split_once(']') {
            Some((name, behind)) if Emotion::from_name(name.trim()).is_some() => {
                rest = behind.trim_start_matches(' ');
            }
            _ => {
                clean.push('[');
                rest = after;
            }
        }
    }
    clean.push_str(rest);
    clean.trim().to_owned()
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
