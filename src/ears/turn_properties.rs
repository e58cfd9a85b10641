//! What must hold for every sequence of inputs.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Frames { count: u8, speech: f32, rms_db: f32 },
    Idle(f64),
    Answer { complete: Option<f32> },
    Words { text: Option<&'static str>, own: bool, backchannel: bool },
    Thinking,
    Sounding,
    Over,
    Interrupted(bool),
    Mute(bool),
    PushToTalk(bool),
    Source(Option<EchoPath>),
    End,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let speech = prop_oneof![Just(0.02f32), Just(0.4), Just(0.6), Just(0.95), 0.0f32..1.0];
    let words = prop_oneof![
        Just(None),
        Just(Some("")),
        Just(Some("hello")),
        Just(Some("hello there and")),
        Just(Some("what is this?"))
    ];
    let source = prop_oneof![
        Just(None),
        Just(Some(EchoPath::None)),
        Just(Some(EchoPath::Cancelled)),
        Just(Some(EchoPath::Open)),
        Just(Some(EchoPath::HalfDuplex))
    ];
    let step = prop_oneof![
        30 => (1u8..40, speech, -70.0f32..-10.0)
            .prop_map(|(count, speech, rms_db)| Step::Frames { count, speech, rms_db }),
        2 => (0.0f64..1500.0).prop_map(Step::Idle),
        10 => proptest::option::of(0.0f32..1.0).prop_map(|complete| Step::Answer { complete }),
        12 => (words, any::<bool>(), any::<bool>())
            .prop_map(|(text, own, back)| Step::Words { text, own: own && back, backchannel: back }),
        2 => Just(Step::Thinking),
        6 => Just(Step::Sounding),
        4 => Just(Step::Over),
        2 => any::<bool>().prop_map(Step::Interrupted),
        1 => any::<bool>().prop_map(Step::Mute),
        2 => any::<bool>().prop_map(Step::PushToTalk),
        1 => source.prop_map(Step::Source),
        1 => Just(Step::End),
    ];
    proptest::collection::vec(step, 1..80)
}

/// Checks each action against what may follow what.
#[derive(Default)]
struct Ledger {
    /// Turns that were begun: `true` while a draft.
    turns: HashMap<TurnId, bool>,
    drafts: usize,
    jobs: Vec<u64>,
    ask: Option<u64>,
    reply: Option<TurnId>,
    ducked: bool,
    in_speech: bool,
    state: Option<ListenState>,
    cap: u64,
}

impl Ledger {
    fn check(&mut self, machine: &TurnMachine, action: &Action) {
        match action {
            Action::State(state) => {
                assert_ne!(self.state, Some(*state), "the same state twice");
                self.state = Some(*state);
            }
            Action::SpeechStarted => assert!(!std::mem::replace(&mut self.in_speech, true)),
            Action::SpeechEnded { end, .. } => {
                assert!(std::mem::replace(&mut self.in_speech, false));
                assert!(*end <= machine.heard());
            }
            Action::AskEndOfTurn { ask, from, to } => {
                assert!(from < to && to - from <= samples(8_000.0));
                self.ask = Some(*ask);
            }
            Action::Transcribe { job, from, to } => {
                assert!(from <= to && *to <= machine.heard());
                assert!(to - from <= self.cap + samples(6_000.0), "capture past the cap");
                self.jobs.push(*job);
            }
            Action::CancelTranscribe(job) => self.jobs.retain(|other| other != job),
            Action::Endpoint | Action::Partial(_) => assert!(self.in_speech),
            Action::Begin { turn, draft, text } => {
                assert!(!text.trim().is_empty());
                assert!(self.turns.insert(*turn, *draft).is_none(), "a turn begins once");
                self.drafts += usize::from(*draft);
                assert!(self.drafts <= 1, "two live drafts");
            }
            Action::Confirm(turn) | Action::Discard(turn) => {
                let draft = self.turns.insert(*turn, false);
                assert_eq!(draft, Some(true), "only a live draft is confirmed or discarded");
                self.drafts -= 1;
            }
            Action::Final { turn, .. } => {
                assert_eq!(self.turns.get(turn), Some(&false), "final words of a live turn");
                self.reply = Some(*turn);
            }
            Action::Reopen(turn) => assert_eq!(self.turns.get(turn), Some(&false)),
            Action::Duck(on) => assert_ne!(std::mem::replace(&mut self.ducked, *on), *on),
            Action::Interrupt(turn) => assert!(turn.0 > 0),
        }
    }
}

fn input(step: &Step, ledger: &mut Ledger, ids: &TurnIds) -> Option<Input> {
    Some(match step {
        Step::Frames { .. } => return None,
        Step::Idle(ms) => Input::Idle(*ms),
        Step::Answer { complete } => Input::EndOfTurn { ask: ledger.ask?, complete: *complete },
        Step::Words { text, own, backchannel } => Input::Words {
            job: ledger.jobs.pop()?,
            text: text.map(str::to_owned),
            own: *own,
            backchannel: *backchannel,
        },
        Step::Thinking => {
            let turn = ids.next();
            ledger.reply = Some(turn);
            Input::Thinking(turn)
        }
        Step::Sounding => Input::Sounding(ledger.reply?),
        Step::Over => Input::Over(ledger.reply?),
        Step::Interrupted(named) => Input::Interrupted(ledger.reply.filter(|_| *named)),
        Step::Mute(on) => Input::Mute(*on),
        Step::PushToTalk(on) => Input::PushToTalk(*on),
        Step::Source(source) => Input::Source(*source),
        Step::End => Input::End,
    })
}

fn mode() -> impl Strategy<Value = ListenMode> {
    prop_oneof![
        4 => Just(ListenMode::Open),
        1 => Just(ListenMode::HalfDuplex),
        1 => Just(ListenMode::PushToTalk)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn every_talk_keeps_the_rules(
        steps in steps(),
        mode in mode(),
        speculate in any::<bool>(),
        model in any::<bool>(),
    ) {
        let ids = Arc::new(TurnIds::default());
        let mut config = TurnConfig::new(&settings::Ears::default(), model);
        config.mode = mode;
        config.speculate = speculate;
        config.max_turn = samples(6_000.0);
        let mut machine = TurnMachine::new(config, Arc::clone(&ids));
        let mut ledger = Ledger { cap: samples(6_000.0), ..Ledger::default() };
        let give = |machine: &mut TurnMachine, ledger: &mut Ledger, input: Input| {
            for action in machine.take(input) {
                ledger.check(machine, &action);
            }
            let kept = machine.heard() - machine.needs_from();
            // The cap, five seconds for a piece and twelve for the rest to be understood.
            assert!(kept <= ledger.cap + samples(18_000.0), "kept {kept} samples");
        };
        give(&mut machine, &mut ledger, Input::Source(Some(EchoPath::Cancelled)));
        for step in &steps {
            if let Step::Frames { count, speech, rms_db } = step {
                for _ in 0..*count {
                    let frame = Input::Frame { speech: *speech, rms_db: *rms_db };
                    give(&mut machine, &mut ledger, frame);
                }
            } else if let Some(input) = input(step, &mut ledger, &ids) {
                give(&mut machine, &mut ledger, input);
            }
        }
        // Whatever happened: after a minute of silence the ears are open and nothing is left over.
        give(&mut machine, &mut ledger, Input::Source(Some(EchoPath::Cancelled)));
        give(&mut machine, &mut ledger, Input::Mute(false));
        give(&mut machine, &mut ledger, Input::PushToTalk(false));
        for _ in 0..4_400 {
            give(&mut machine, &mut ledger, Input::Frame { speech: 0.01, rms_db: -50.0 });
        }
        let ready =
            if mode == ListenMode::PushToTalk { ListenState::Idle } else { ListenState::Listening };
        prop_assert_eq!(machine.state(), ready);
        prop_assert_eq!(ledger.drafts, 0);
        prop_assert!(!ledger.ducked && !ledger.in_speech);
    }
}
