use proptest::prelude::*;

use super::*;
use crate::kernel::ports::Role;

fn queue() -> TurnQueue {
    TurnQueue::new(History::default(), true)
}

fn begin(turn: u64, text: &str, draft: bool) -> Input {
    let source = if draft { TurnSource::Voice } else { TurnSource::Page };
    Input::Command(TurnCommand::Begin { turn: TurnId(turn), text: text.into(), source, draft })
}

fn confirm(turn: u64) -> Input {
    Input::Command(TurnCommand::Confirm(TurnId(turn)))
}

fn discard(turn: u64) -> Input {
    Input::Command(TurnCommand::Discard(TurnId(turn)))
}

fn text(turn: u64, text: &str) -> Input {
    Input::Reply(TurnId(turn), Some(Ok(ChatDelta::Text(text.into()))))
}

fn done(turn: u64) -> Input {
    Input::Reply(TurnId(turn), Some(Ok(ChatDelta::Done(StopReason::End))))
}

fn broken(turn: u64) -> Input {
    let error = ChatError::Unavailable("the model is down".into());
    Input::Reply(TurnId(turn), Some(Err(error)))
}

fn spoken(turn: u64, text: &str, complete: bool) -> Input {
    Input::Spoken(TurnId(turn), Heard { text: text.into(), complete })
}

fn stop(turn: Option<u64>) -> Input {
    Input::Interrupt(turn.map(TurnId), InterruptCause::Request)
}

/// Actions in short words.
fn show(actions: Vec<Action>) -> Vec<String> {
    actions
        .into_iter()
        .map(|action| match action {
            Action::Publish(event) => match event {
                Event::TurnStarted { turn, draft: true, .. } => format!("draft {turn}"),
                Event::TurnStarted { turn, .. } => format!("started {turn}"),
                Event::TurnConfirmed { turn } => format!("confirmed {turn}"),
                Event::TurnDiscarded { turn } => format!("discarded {turn}"),
                Event::TokenEmitted { turn, delta } => format!("token {turn} {delta}"),
                Event::ReplyGenerated { turn } => format!("whole {turn}"),
                Event::TurnCompleted { turn, content, interrupted } => {
                    format!("completed {turn} {content}{}", if interrupted { "…" } else { "" })
                }
                Event::TurnFailed { turn, error } => format!("failed {turn} {error}"),
                Event::Stage { turn, at_ms, .. } => format!("first token {turn} at {at_ms}"),
                Event::Notice(notice) => format!("notice {}", notice.code),
                other => format!("{other:?}"),
            },
            Action::Write(entry) => format!(
                "write {} {:?} {}{}",
                entry.turn,
                entry.kind,
                entry.text,
                if entry.interrupted { "…" } else { "" }
            ),
            Action::Ask(turn) => format!("ask {turn}"),
            Action::Cancel(turn) => format!("cancel {turn}"),
            Action::Warm => "warm".into(),
        })
        .collect()
}

/// Runs inputs at one time each and compares what comes out.
#[track_caller]
fn check(queue: &mut TurnQueue, steps: &[(f64, Input, &[&str])]) {
    for (at, input, expected) in steps {
        assert_eq!(show(queue.step(*at, input.clone())), *expected, "after {input:?} at {at}");
    }
}

#[test]
fn a_typed_turn_from_begin_to_end() {
    check(
        &mut queue(),
        &[
            (
                0.0,
                begin(1, "hello", false),
                &["write 1 User hello", "started 1", "confirmed 1", "ask 1"],
            ),
            (5.0, text(1, "[happy] Hi"), &["first token 1 at 5", "token 1 [happy] Hi"]),
            (6.0, text(1, "!"), &["token 1 !"]),
            (7.0, done(1), &["whole 1"]),
            (900.0, spoken(1, "Hi!", true), &["write 1 Assistant Hi!", "completed 1 Hi!", "warm"]),
            (901.0, spoken(1, "Hi!", true), &[]),
        ],
    );
}

#[test]
fn turns_wait_for_each_other() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "one", false));
    check(
        &mut queue,
        &[
            (1.0, begin(2, "two", false), &["write 2 User two"]),
            (2.0, begin(3, "three", false), &["write 3 User three"]),
            (3.0, text(1, "a"), &["first token 1 at 3", "token 1 a"]),
            (4.0, done(1), &["whole 1"]),
            (
                5.0,
                spoken(1, "a", true),
                &["write 1 Assistant a", "completed 1 a", "started 2", "confirmed 2", "ask 2"],
            ),
            (
                6.0,
                broken(2),
                &[
                    "write 2 Meta no reply: the model is down",
                    "failed 2 the model is down",
                    "started 3",
                    "confirmed 3",
                    "ask 3",
                ],
            ),
        ],
    );
    let prompt = queue.prompt("s".into(), 1000);
    assert_eq!(prompt.last().unwrap().content, "two\nthree");
}

#[test]
fn a_draft_writes_nothing_until_it_is_confirmed() {
    let mut queue = queue();
    check(
        &mut queue,
        &[
            (0.0, begin(1, "what is", true), &["draft 1", "ask 1"]),
            (9.0, text(1, "It"), &["token 1 It"]),
            (10.0, stop(None), &[]),
        ],
    );
    assert_eq!(queue.entries(&GetHistory { limit: 9 }), []);
    check(
        &mut queue,
        &[
            (20.0, confirm(1), &["confirmed 1", "write 1 User what is", "first token 1 at 9"]),
            (21.0, confirm(1), &[]),
            (22.0, discard(1), &[]),
        ],
    );
    assert_eq!(queue.entries(&GetHistory { limit: 9 }).len(), 1);
}

#[test]
fn a_discarded_draft_leaves_no_trace() {
    let mut queue = queue();
    check(
        &mut queue,
        &[
            (0.0, begin(1, "what", true), &["draft 1", "ask 1"]),
            (1.0, text(1, "It"), &["token 1 It"]),
            (2.0, done(1), &["whole 1"]),
            (3.0, discard(1), &["cancel 1", "discarded 1"]),
            (4.0, text(1, "late"), &[]),
            (5.0, begin(2, "what time", true), &["draft 2", "ask 2"]),
        ],
    );
    assert_eq!(queue.prompt("s".into(), 100).len(), 2);
}

#[test]
fn a_draft_that_fails_says_so_only_when_it_counts() {
    check(
        &mut queue(),
        &[
            (0.0, begin(1, "x", true), &["draft 1", "ask 1"]),
            (1.0, broken(1), &[]),
            (
                2.0,
                confirm(1),
                &[
                    "confirmed 1",
                    "write 1 User x",
                    "write 1 Meta no reply: the model is down",
                    "failed 1 the model is down",
                ],
            ),
        ],
    );
}

#[test]
fn a_draft_does_not_run_beside_a_turn_and_does_not_hold_up_a_confirmed_one() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "one", false));
    check(
        &mut queue,
        &[
            (1.0, begin(2, "draft", true), &[]),
            (2.0, begin(3, "typed", false), &["write 3 User typed"]),
            (
                3.0,
                spoken(1, "", true),
                &["cancel 1", "completed 1 …", "started 3", "confirmed 3", "ask 3"],
            ),
            (4.0, confirm(2), &["write 2 User draft"]),
            (
                5.0,
                broken(3),
                &[
                    "write 3 Meta no reply: the model is down",
                    "failed 3 the model is down",
                    "started 2",
                    "confirmed 2",
                    "ask 2",
                ],
            ),
        ],
    );
}

#[test]
fn interrupted_turns_keep_what_was_heard() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "tell", false));
    queue.step(1.0, text(1, "Once upon a time"));
    check(
        &mut queue,
        &[
            (2.0, stop(Some(7)), &[]),
            (3.0, stop(None), &["cancel 1"]),
            (4.0, text(1, " more"), &[]),
            (
                5.0,
                spoken(1, "Once upon", false),
                &["write 1 Assistant Once upon…", "completed 1 Once upon…", "warm"],
            ),
        ],
    );
    let prompt = queue.prompt("s".into(), 1000);
    assert_eq!(prompt.last().unwrap().role, Role::Assistant);
    assert_eq!(prompt.last().unwrap().content, "Once upon");
}

#[test]
fn nothing_heard_keeps_only_the_users_words() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "tell", false));
    queue.step(1.0, text(1, "Once"));
    check(
        &mut queue,
        &[
            (3.0, stop(Some(1)), &["cancel 1"]),
            (5.0, spoken(1, " ", false), &["completed 1 …", "warm"]),
        ],
    );
    assert_eq!(queue.prompt("s".into(), 1000).len(), 2);
}

#[test]
fn a_reply_that_was_heard_whole_before_the_stop_is_not_marked() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "tell", false));
    queue.step(1.0, text(1, "Once."));
    queue.step(2.0, done(1));
    check(
        &mut queue,
        &[
            (3.0, stop(None), &[]),
            (
                4.0,
                spoken(1, "Once.", true),
                &["write 1 Assistant Once.", "completed 1 Once.", "warm"],
            ),
        ],
    );
}

#[test]
fn a_waiting_turn_can_be_stopped_and_so_can_one_that_has_not_come_yet() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "one", false));
    queue.step(0.0, begin(2, "two", false));
    let stopped = |turn| {
        [
            format!("started {turn}"),
            format!("confirmed {turn}"),
            format!("failed {turn} stopped before it was answered"),
        ]
    };
    assert_eq!(show(queue.step(1.0, stop(Some(2)))), stopped(2));
    assert_eq!(show(queue.step(2.0, stop(Some(3)))), [""; 0]);
    let late = show(queue.step(3.0, begin(3, "three", false)));
    assert_eq!(late[0], "write 3 User three");
    assert_eq!(late[1..], stopped(3));
    assert_eq!(queue.running(), Some(TurnId(1)));
}

#[test]
fn a_stream_that_breaks_keeps_what_was_said() {
    for end in [broken(1), Input::Reply(TurnId(1), None)] {
        let mut queue = queue();
        queue.step(0.0, begin(1, "x", false));
        queue.step(1.0, text(1, "Half"));
        check(
            &mut queue,
            &[
                (2.0, end, &["whole 1", "notice reply_cut"]),
                (
                    3.0,
                    spoken(1, "Half", true),
                    &["write 1 Assistant Half", "completed 1 Half", "warm"],
                ),
            ],
        );
    }
}

#[test]
fn a_turn_without_a_word_of_reply_fails_and_says_why() {
    let thought = || Input::Reply(TurnId(1), Some(Ok(ChatDelta::Thinking("hm".into()))));
    let over = |reason| Input::Reply(TurnId(1), Some(Ok(ChatDelta::Done(reason))));
    for (inputs, why) in [
        (vec![over(StopReason::End)], "empty"),
        (vec![text(1, " \n"), over(StopReason::End)], "empty"),
        (vec![over(StopReason::Filtered)], "refused"),
        (vec![thought(), over(StopReason::Length)], "llm.max_tokens"),
        (vec![Input::Reply(TurnId(1), None)], "broke off"),
    ] {
        let mut queue = queue();
        queue.step(0.0, begin(1, "x", false));
        let last = inputs.into_iter().map(|input| show(queue.step(1.0, input))).last().unwrap();
        assert!(last.iter().any(|a| a.starts_with("failed 1") && a.contains(why)), "{last:?}");
        assert_eq!(queue.running(), None);
    }
}

#[test]
fn a_dead_voice_does_not_hold_up_the_talk() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "x", false));
    queue.step(1.0, text(1, "[sad] Said."));
    assert_eq!(queue.deadline(), None, "the model has its own time-outs");
    queue.step(2.0, done(1));
    assert_eq!(queue.deadline(), Some(15_002.0));
    queue.step(10_000.0, Input::VoiceAlive(TurnId(1)));
    check(
        &mut queue,
        &[
            (24_999.0, Input::Tick, &[]),
            (
                25_000.0,
                Input::Tick,
                &["notice voice_silent", "write 1 Assistant Said.", "completed 1 Said.", "warm"],
            ),
            (25_001.0, spoken(1, "Said.", true), &[]),
        ],
    );
}

#[test]
fn a_dead_voice_after_a_stop_leaves_nothing_made_up() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "x", false));
    queue.step(1.0, text(1, "Said."));
    queue.step(2.0, stop(None));
    check(
        &mut queue,
        &[
            (2_500.0, stop(None), &[]),
            (3_002.0, Input::Tick, &["notice voice_silent", "completed 1 …", "warm"]),
        ],
    );
}

#[test]
fn a_forgotten_draft_does_not_hold_up_typed_turns() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "x", true));
    assert_eq!(queue.deadline(), None);
    queue.step(1_000.0, begin(2, "typed", false));
    check(
        &mut queue,
        &[(
            21_000.0,
            Input::Tick,
            &["cancel 1", "discarded 1", "started 2", "confirmed 2", "ask 2"],
        )],
    );
}

#[test]
fn without_a_voice_what_was_made_counts() {
    let mut queue = TurnQueue::new(History::default(), false);
    queue.step(0.0, begin(1, "x", false));
    queue.step(1.0, text(1, "[happy] Hi."));
    check(
        &mut queue,
        &[(2.0, done(1), &["whole 1", "write 1 Assistant Hi.", "completed 1 Hi.", "warm"])],
    );
    queue.step(3.0, begin(2, "y", false));
    queue.step(4.0, text(2, "Half"));
    check(
        &mut queue,
        &[(5.0, stop(None), &["cancel 2", "write 2 Assistant Half…", "completed 2 Half…", "warm"])],
    );
}

#[test]
fn closing_ends_what_runs_and_begins_nothing() {
    let mut queue = queue();
    queue.step(0.0, begin(1, "x", false));
    queue.step(0.0, begin(2, "y", false));
    queue.step(1.0, text(1, "Half"));
    check(
        &mut queue,
        &[
            (2.0, Input::Close, &["cancel 1", "completed 1 …"]),
            (3.0, begin(3, "late", false), &["write 3 User late"]),
        ],
    );
    assert_eq!(queue.running(), None);
}

#[derive(Clone, Debug)]
enum Happening {
    Step(Input),
    Wait(f64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let turn = 1_u64..6;
    prop_oneof![
        (turn.clone(), any::<bool>()).prop_map(|(t, draft)| Happening::Step(begin(t, "u", draft))),
        turn.clone().prop_map(|t| Happening::Step(confirm(t))),
        turn.clone().prop_map(|t| Happening::Step(discard(t))),
        turn.clone().prop_map(|t| Happening::Step(text(t, "a"))),
        turn.clone().prop_map(|t| Happening::Step(done(t))),
        turn.clone().prop_map(|t| Happening::Step(broken(t))),
        (turn.clone(), "[ab]{0,2}", any::<bool>())
            .prop_map(|(t, heard, all)| Happening::Step(spoken(t, &heard, all))),
        proptest::option::of(turn.clone()).prop_map(|t| Happening::Step(stop(t))),
        turn.prop_map(|t| Happening::Step(Input::VoiceAlive(TurnId(t)))),
        (0.0..30_000.0).prop_map(Happening::Wait),
    ]
}

proptest! {
    /// Whatever happens in whatever order: every turn ends once, nothing of a draft is written, and
    /// what waits is answered in the end.
    #[test]
    fn every_turn_ends_once(happenings in proptest::collection::vec(happening(), 0..60)) {
        let mut queue = queue();
        let (mut now, mut begun) = (0.0, BTreeSet::new());
        let mut all = Vec::new();
        for happening in happenings {
            let input = match happening {
                Happening::Wait(ms) => { now += ms; Input::Tick }
                // An id begins once.
                Happening::Step(Input::Command(TurnCommand::Begin { turn, .. })) if !begun.insert(turn) => continue,
                Happening::Step(input) => input,
            };
            all.extend(queue.step(now, input));
        }
        // Let everything come to its end: drafts are dropped, the model is done, the voice is lost.
        for turn in 1..6 {
            all.extend(queue.step(now, discard(turn)));
        }
        for _ in 0..20 {
            now += 60_000.0;
            for turn in 1..6 {
                all.extend(queue.step(now, done(turn)));
            }
            all.extend(queue.step(now + 30_000.0, Input::Tick));
        }
        prop_assert_eq!(queue.running(), None);

        // The running turn and whether it is a draft. A turn that was stopped while it waited starts
        // and fails beside the running one.
        let mut open: Option<(TurnId, bool)> = None;
        let mut written = BTreeSet::new();
        for action in &all {
            match action {
                Action::Publish(Event::TurnStarted { turn, draft, .. }) => {
                    open = open.or(Some((*turn, *draft)));
                }
                Action::Publish(Event::TurnConfirmed { turn }) => {
                    open = open.map(|(t, draft)| (t, draft && t != *turn));
                }
                Action::Publish(Event::TokenEmitted { turn, .. } | Event::ReplyGenerated { turn }) => {
                    prop_assert_eq!(open.map(|(t, _)| t), Some(*turn));
                }
                Action::Publish(Event::TurnDiscarded { turn }) => {
                    prop_assert_eq!(open.take(), Some((*turn, true)));
                }
                Action::Publish(Event::TurnCompleted { turn, .. }) => {
                    prop_assert_eq!(open.take(), Some((*turn, false)));
                }
                Action::Publish(Event::TurnFailed { turn, .. }) => {
                    open.take_if(|(t, _)| t == turn);
                }
                Action::Write(entry) if entry.kind == EntryKind::User => {
                    prop_assert!(written.insert(entry.turn), "{} written twice", entry.turn);
                }
                Action::Write(entry) => prop_assert!(written.contains(&entry.turn)),
                _ => {}
            }
        }
        prop_assert_eq!(open, None);
        let confirmed: Vec<_> = all.iter().filter_map(|a| match a {
            Action::Publish(Event::TurnConfirmed { turn }) => Some(*turn),
            _ => None,
        }).collect();
        let ended: Vec<_> = all.iter().filter_map(|a| match a {
            Action::Publish(Event::TurnCompleted { turn, .. } | Event::TurnFailed { turn, .. }) => Some(*turn),
            _ => None,
        }).collect();
        prop_assert_eq!(confirmed.iter().collect::<BTreeSet<_>>(), ended.iter().collect::<BTreeSet<_>>());
        prop_assert_eq!(confirmed.len(), ended.len());
        prop_assert_eq!(&written, &confirmed.into_iter().collect::<BTreeSet<_>>());
    }
}

#[test]
fn words_that_were_taken_back_do_not_stand_twice() {
    let orders = [[stop(Some(1)), discard(1)], [discard(1), stop(Some(1))]];
    for order in orders {
        let mut queue = queue();
        let mut written = Vec::new();
        let inputs = [begin(1, "What your country", false)]
            .into_iter()
            .chain(order)
            .chain([spoken(1, "", false), begin(2, "What your country can do.", false)]);
        for input in inputs {
            written.extend(queue.step(0.0, input).into_iter().filter_map(|action| match action {
                Action::Write(entry) => Some(entry),
                _ => None,
            }));
        }
        let said = queue.prompt("be brief".into(), 1000);
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(said[1].content, "What your country can do.");
        // The same after a resume.
        let entries = History::rebuild(written).entries(10);
        let texts: Vec<_> = entries.iter().map(|entry| entry.text.as_str()).collect();
        assert_eq!(texts, ["What your country can do."]);
    }
}

#[test]
fn a_turn_that_was_answered_aloud_is_not_taken_back() {
    let mut queue = queue();
    for input in [begin(1, "Hello", false), text(1, "Hi there"), discard(1), stop(Some(1))] {
        queue.step(0.0, input);
    }
    queue.step(0.0, spoken(1, "Hi", false));
    let entries = queue.entries(&GetHistory { limit: 10 });
    assert_eq!(entries.len(), 2, "{entries:?}");
}
