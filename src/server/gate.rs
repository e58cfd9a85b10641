//! Keeps drafts from viewers: while a turn is a draft nothing of it may be seen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::kernel::contracts::{Envelope, Event};
use crate::kernel::ids::TurnId;

/// Drafts that may be open at once; an older one was forgotten by whoever began it.
const OPEN_DRAFTS: usize = 4;

/// Holds the events of drafts back until they are confirmed, and drops those of discarded ones.
#[derive(Debug, Default)]
pub(super) struct DraftGate {
    held: BTreeMap<TurnId, Vec<Arc<Envelope>>>,
}

impl DraftGate {
    /// Takes the next event and returns what viewers may see now, in order.
    pub(super) fn pass(&mut self, envelope: Arc<Envelope>) -> Vec<Arc<Envelope>> {
        if let Event::TurnStarted { turn, draft: true, .. } = &envelope.event {
            self.held.insert(*turn, vec![envelope]);
            while self.held.len() > OPEN_DRAFTS {
                self.held.pop_first();
            }
            return Vec::new();
        }
        let Some(turn) = envelope.event.turn() else { return vec![envelope] };
        match &envelope.event {
            Event::TurnConfirmed { .. } => {
                let mut seen = self.held.remove(&turn).unwrap_or_default();
                seen.push(envelope);
                seen
            }
            Event::TurnDiscarded { .. } if self.held.remove(&turn).is_some() => Vec::new(),
            _ => match self.held.get_mut(&turn) {
                Some(held) => {
                    held.push(envelope);
                    Vec::new()
                }
                None => vec![envelope],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::contracts::TurnSource;
    use crate::kernel::ids::SessionId;

    fn pass(gate: &mut DraftGate, event: Event) -> usize {
        let session = SessionId::parse("gate").unwrap();
        gate.pass(Arc::new(Envelope { seq: 1, session, at_ms: 0.0, event })).len()
    }

    fn begin(turn: u64, draft: bool) -> Event {
        let (source, user_text) = (TurnSource::Voice, "hello".into());
        Event::TurnStarted { turn: TurnId(turn), source, user_text, draft }
    }

    fn token(turn: u64) -> Event {
        Event::TokenEmitted { turn: TurnId(turn), delta: "x".into() }
    }

    #[test]
    fn a_draft_is_seen_when_it_is_confirmed_and_never_when_it_is_discarded() {
        let mut gate = DraftGate::default();
        assert_eq!(pass(&mut gate, begin(1, true)), 0);
        assert_eq!(pass(&mut gate, token(1)), 0);
        assert_eq!(pass(&mut gate, Event::SpeechStarted), 1, "the rest goes on");
        assert_eq!(pass(&mut gate, Event::TurnDiscarded { turn: TurnId(1) }), 0);
        assert_eq!(pass(&mut gate, begin(2, true)), 0);
        assert_eq!(pass(&mut gate, token(2)), 0);
        assert_eq!(pass(&mut gate, Event::TurnConfirmed { turn: TurnId(2) }), 3);
        assert_eq!(pass(&mut gate, token(2)), 1);
        assert_eq!(pass(&mut gate, begin(3, false)), 1);
        assert_eq!(pass(&mut gate, Event::TurnDiscarded { turn: TurnId(3) }), 1);
    }

    #[test]
    fn forgotten_drafts_do_not_pile_up() {
        let mut gate = DraftGate::default();
        for turn in 1..100 {
            pass(&mut gate, begin(turn, true));
        }
        assert_eq!(gate.held.len(), OPEN_DRAFTS);
    }
}
