use proptest::prelude::*;

use super::*;

fn heard(text: &str, complete: bool) -> Option<Heard> {
    Some(Heard { text: text.into(), complete })
}

fn shown(messages: &[ChatMessage]) -> Vec<String> {
    messages.iter().map(|m| format!("{:?}: {}", m.role, m.content)).collect()
}

fn talk() -> History {
    let mut history = History::default();
    history.push(TurnId(1), "hello".into(), heard("Hi!", true));
    history
}

#[test]
fn a_model_sees_system_exchanges_and_the_new_words() {
    assert_eq!(
        shown(&talk().messages("be kind".into(), Some("how are you"), 1000)),
        ["System: be kind", "User: hello", "Assistant: Hi!", "User: how are you"]
    );
}

#[test]
fn words_without_an_answer_join_the_next_ones() {
    let mut history = talk();
    history.push(TurnId(2), "are you".into(), None);
    history.push(TurnId(3), "still".into(), heard("  ", false));
    assert_eq!(
        shown(&history.messages("s".into(), Some("there"), 1000)),
        ["System: s", "User: hello", "Assistant: Hi!", "User: are you\nstill\nthere"]
    );
    assert_eq!(history.entries(9).len(), 4, "no empty reply is kept");
}

#[test]
fn a_model_learns_that_it_was_cut_short() {
    let mut history = talk();
    history.push(TurnId(2), "a story".into(), heard("Once upon", false));
    let messages = history.messages("s".into(), Some("stop"), 1000);
    let last = &messages[4..];
    assert_eq!(shown(last), ["Assistant: Once upon", "User: [I cut you off there.]\nstop"]);
    assert_eq!(
        history.messages("s".into(), Some("停"), 1000)[5].content,
        "［我刚才打断了你。］\n停"
    );
    assert!(history.entries(1)[0].interrupted);
}

#[test]
fn the_oldest_exchanges_leave_the_prompt_in_one_go_and_it_begins_the_same_for_many_turns() {
    let mut history = History::default();
    let mut beginnings = Vec::new();
    for turn in 1..=40 {
        let user = format!("question number {turn:04} {}", "x".repeat(60));
        history.push(TurnId(turn), user, heard(&"y".repeat(80), true));
        let messages = history.messages("s".into(), Some("now"), 600);
        assert_eq!(messages[1].role, Role::User);
        let total: f32 = messages.iter().map(|m| estimate(&m.content)).sum();
        assert!(total <= 600.0, "{total}");
        beginnings.push(messages[1].content.clone());
    }
    beginnings.dedup();
    assert!(beginnings.len() <= 7, "{} beginnings in 40 turns", beginnings.len());
    assert_eq!(history.entries(1000).len(), 80, "a person still sees all");
}

#[test]
fn chinese_takes_more_room() {
    assert!(estimate(&"好".repeat(40)) > 4.0 * estimate(&"a".repeat(40)));
}

#[test]
fn a_transcript_gives_the_same_conversation() {
    let line = |turn, kind, text: &str, interrupted| JournalEntry {
        turn: TurnId(turn),
        kind,
        text: text.into(),
        source: None,
        interrupted,
    };
    use EntryKind::*;
    // The second question was written while the first was being answered.
    let history = History::rebuild([
        line(1, User, "one", false),
        line(2, User, "two", false),
        line(1, Assistant, "first", true),
        line(2, Assistant, "second", false),
        line(3, User, "three", false),
        line(3, Meta, "no reply: down", false),
        line(9, Assistant, "its question was torn", false),
    ]);
    let seen: Vec<_> =
        history.entries(99).into_iter().map(|e| (e.turn.0, e.text, e.interrupted)).collect();
    let expected = [
        (1, "one", false),
        (1, "first", true),
        (2, "two", false),
        (2, "second", false),
        (3, "three", false),
        (9, "its question was torn", false),
    ];
    assert_eq!(seen, expected.map(|(turn, text, cut)| (turn, text.to_owned(), cut)));
}

#[test]
fn only_emotion_tags_are_taken_out() {
    for (raw, clean) in [
        ("[happy] Hello there.", "Hello there."),
        ("Hi! [Sad]Oh no. [1] [note", "Hi! Oh no. [1] [note"),
        ("[[happy]]", "[]"),
        ("", ""),
    ] {
        assert_eq!(without_tags(raw), clean, "{raw}");
    }
}

proptest! {
    #[test]
    fn roles_alternate_and_what_fits_is_kept(
        turns in proptest::collection::vec(("[a-z好 ]{0,40}", proptest::option::of("[a-z好]{0,40}"), any::<bool>()), 0..30),
        room in 0_usize..400,
    ) {
        let mut history = History::default();
        for (turn, (user, reply, complete)) in turns.iter().enumerate() {
            let heard = reply.clone().map(|text| Heard { text, complete: *complete });
            history.push(TurnId(turn as u64), user.clone(), heard);
            let messages = history.messages("system".into(), Some("now"), room);
            prop_assert_eq!(messages[0].role, Role::System);
            for (place, message) in messages.iter().enumerate().skip(1) {
                let expected = if place % 2 == 1 { Role::User } else { Role::Assistant };
                prop_assert_eq!(message.role, expected);
            }
            let last = messages.last().unwrap();
            prop_assert_eq!(last.role, Role::User);
            prop_assert!(last.content.ends_with("now"));
            prop_assert_eq!(history.messages("system".into(), Some("now"), room), messages);
        }
    }
}
