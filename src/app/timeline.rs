//! The timeline of a talk: what `alice converse` writes and what benchmarks measure.

use serde::Serialize;

use crate::kernel::contracts::{Envelope, Event, Stage};
use crate::kernel::ids::TurnId;

/// A whole talk on one clock. Its JSON form is documented in `docs/converse.md`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// The turns that were confirmed, in order.
    pub turns: Vec<TurnTimes>,
    /// Every event, in order.
    pub events: Vec<Envelope>,
}

/// One turn with the moments of its stages, ms of one clock; `null` for a stage that it never had
/// (a typed turn has no end of speech).
#[derive(Clone, Debug, Default, Serialize)]
pub struct TurnTimes {
    /// The turn.
    pub turn: u64,
    /// What the user said.
    pub user_text: String,
    /// What was heard of the reply.
    pub reply_text: String,
    /// The reply was cut short.
    pub interrupted: bool,
    /// Why there was no reply, when there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last sample of the user's speech.
    pub speech_end_ms: Option<f64>,
    /// The end of the turn was decided.
    pub endpoint_ms: Option<f64>,
    /// The transcript was there.
    pub transcript_ms: Option<f64>,
    /// The first token of the reply.
    pub first_token_ms: Option<f64>,
    /// The first clause went to synthesis.
    pub first_clause_ms: Option<f64>,
    /// The first sound was synthesised.
    pub first_pcm_ms: Option<f64>,
    /// The first sample went to the device.
    pub first_sample_ms: Option<f64>,
}

impl TurnTimes {
    fn stage(&mut self, stage: Stage) -> &mut Option<f64> {
        match stage {
            Stage::SpeechEnd => &mut self.speech_end_ms,
            Stage::Endpoint => &mut self.endpoint_ms,
            Stage::Transcript => &mut self.transcript_ms,
            Stage::FirstToken => &mut self.first_token_ms,
            Stage::FirstClause => &mut self.first_clause_ms,
            Stage::FirstPcm => &mut self.first_pcm_ms,
            Stage::FirstSample => &mut self.first_sample_ms,
        }
    }
}

impl Timeline {
    /// Takes the next event of the talk. Turns that are discarded leave no trace in `turns`.
    pub fn push(&mut self, envelope: &Envelope) {
        self.events.push(envelope.clone());
        match &envelope.event {
            Event::TurnStarted { turn, user_text, .. } => {
                self.turn(*turn).user_text.clone_from(user_text);
            }
            Event::TurnDiscarded { turn } => self.turns.retain(|times| times.turn != turn.0),
            Event::TurnCompleted { turn, content, interrupted } => {
                let times = self.turn(*turn);
                times.reply_text.clone_from(content);
                times.interrupted = *interrupted;
            }
            Event::TurnFailed { turn, error } => self.turn(*turn).error = Some(error.clone()),
            Event::Stage { turn, stage, at_ms } => {
                self.turn(*turn).stage(*stage).get_or_insert(*at_ms);
            }
            _ => {}
        }
    }

    fn turn(&mut self, turn: TurnId) -> &mut TurnTimes {
        let at = self.turns.iter().position(|times| times.turn == turn.0).unwrap_or_else(|| {
            self.turns.push(TurnTimes { turn: turn.0, ..TurnTimes::default() });
            self.turns.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "`at` was found in or appended to `turns`")]
        &mut self.turns[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::contracts::TurnSource;
    use crate::kernel::ids::SessionId;

    fn timeline(events: Vec<Event>) -> Timeline {
        let mut timeline = Timeline::default();
        for (seq, event) in (1..).zip(events) {
            let session = SessionId::fresh();
            timeline.push(&Envelope { seq, session, at_ms: seq as f64, event });
        }
        timeline
    }

    fn started(turn: u64, draft: bool) -> Event {
        let source = TurnSource::Voice;
        Event::TurnStarted { turn: TurnId(turn), source, user_text: format!("said {turn}"), draft }
    }

    #[test]
    fn a_discarded_draft_is_not_a_turn_and_the_first_moment_of_a_stage_counts() {
        let stage = |at_ms| Event::Stage { turn: TurnId(2), stage: Stage::FirstToken, at_ms };
        let talk = timeline(vec![
            started(1, true),
            Event::TurnDiscarded { turn: TurnId(1) },
            started(2, true),
            stage(7.0),
            stage(9.0),
            Event::TurnCompleted { turn: TurnId(2), content: "yes".into(), interrupted: true },
        ]);
        assert_eq!(talk.turns.len(), 1);
        let turn = &talk.turns[0];
        assert_eq!((turn.turn, turn.user_text.as_str()), (2, "said 2"));
        assert_eq!((turn.first_token_ms, turn.first_sample_ms), (Some(7.0), None));
        assert_eq!((turn.reply_text.as_str(), turn.interrupted), ("yes", true));
        assert_eq!(talk.events.len(), 6);
    }
}
