use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::config::{Home, Settings};
use crate::kernel::clock::BoxFuture;
use crate::kernel::ports::{
    ChatDelta, ChatError, ChatMessage, ChatModel, ChatRequest, ChatStream, StopReason,
};

/// A model that says back what it was told, in pieces. `fail` makes it fail, and to `wait` it begins
/// and does not end before it is cancelled.
struct Parrot;

impl ChatModel for Parrot {
    fn name(&self) -> String {
        "parrot".into()
    }

    fn chat(&self, request: ChatRequest, cancel: CancellationToken) -> ChatStream {
        let (reply, stream) = mpsc::channel(4);
        let text = request.messages.last().map(|m| m.content.clone()).unwrap_or_default();
        tokio::spawn(async move {
            if text.ends_with("fail") {
                let _ = reply.send(Err(ChatError::Unavailable("no model answers".into()))).await;
                return;
            }
            for piece in ["[hap", "py] You said: ", &text, ". "] {
                let _ = reply.send(Ok(ChatDelta::Text(piece.into()))).await;
            }
            if text.ends_with("wait") {
                cancel.cancelled().await;
            } else {
                let _ = reply.send(Ok(ChatDelta::Done(StopReason::End))).await;
            }
        });
        stream
    }

    fn warm(&self, _: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

struct Said {
    out: String,
    notes: String,
    end: End,
}

/// Alice as `alice chat` puts her together, but for her model and her home.
async fn house() -> (Alice, Watched, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut plan = Plan::text();
    plan.model = Some(Arc::new(Parrot));
    let watched = watch(&mut plan);
    let home = Home::at(folder.path());
    let alice = Alice::start(home, Settings::default(), plan).await.unwrap();
    (alice, watched, folder)
}

async fn chat(look: Look, interactive: bool, typed: Vec<Typed>) -> Said {
    let (alice, events, _folder) = house().await;
    let talk = Talk::new(&alice, events, look, interactive);
    let (typing, input) = mpsc::channel(16);
    for typed in typed {
        typing.send(typed).await.unwrap();
    }
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    let run = talk.run(input, &mut out, &mut notes);
    let end = tokio::time::timeout(Duration::from_secs(10), run).await.expect("it ends").unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { out: text(out), notes: text(notes), end }
}

fn lines(lines: &[&str]) -> Vec<Typed> {
    lines.iter().map(|line| Typed::Line((*line).into())).chain([Typed::End]).collect()
}

#[tokio::test]
async fn a_pipe_is_answered_line_by_line_without_tags() {
    let said = chat(Look::default(), false, lines(&["one", "", "  two "])).await;
    assert_eq!(said.out, "You said: one.\nYou said: two.\n");
    assert_eq!((said.notes.as_str(), said.end), ("", End::Answered));
}

#[tokio::test]
async fn a_turn_without_a_reply_is_said_beside_the_output() {
    let said = chat(Look::default(), false, lines(&["fail", "/quit", "never"])).await;
    assert_eq!(said.out, "");
    assert_eq!(said.notes, "error: no model answers\n");
    assert_eq!(said.end, End::Unanswered);
}

#[tokio::test]
async fn json_prints_one_object_a_turn() {
    let look = Look { json: true, ..Look::default() };
    let said = chat(look, false, lines(&["one", "fail"])).await;
    let mut turns: Vec<serde_json::Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for turn in &mut turns {
        let session = turn.as_object_mut().unwrap().remove("session").unwrap();
        SessionId::parse(session.as_str().unwrap()).expect("an id that `--resume` takes");
    }
    let expected = [
        serde_json::json!({"turn": 1, "user_text": "one",
            "reply_text": "You said: one.", "interrupted": false, "error": null}),
        serde_json::json!({"turn": 2, "user_text": "fail",
            "reply_text": "", "interrupted": false, "error": "no model answers"}),
    ];
    assert_eq!(turns, expected);
}

#[tokio::test]
async fn a_reply_can_be_stopped_by_command_and_by_ctrl_c() {
    for stop in [Typed::Line("/stop".into()), Typed::Interrupt] {
        let look = Look { prompt: true, ..Look::default() };
        let (alice, watched, _folder) = house().await;
        let mut shown = alice.bus().subscribe("test", |e| matches!(e, Event::SegmentReady(_)));
        let talk = Talk::new(&alice, watched, look, true);
        let (typing, input) = mpsc::channel(16);
        typing.send(Typed::Line("wait".into())).await.unwrap();
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        let person = async {
            shown.next().await.unwrap();
            typing.send(stop).await.unwrap();
            typing.send(Typed::Line("on".into())).await.unwrap();
            typing.send(Typed::Line("/bye".into())).await.unwrap();
            typing.send(Typed::End).await.unwrap();
        };
        let (end, ()) = tokio::join!(talk.run(input, &mut out, &mut notes), person);
        assert_eq!(end.unwrap(), End::Answered);
        let (out, notes) = (String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap());
        assert!(out.starts_with("> You said:"), "{out}");
        assert!(out.contains("on."), "the talk goes on: {out}");
        assert!(notes.starts_with("stopped\n"), "{notes}");
        assert!(notes.contains("there is no `/bye`"), "{notes}");
    }
}

#[tokio::test]
async fn ctrl_c_twice_leaves_and_in_a_pipe_once() {
    let twice = vec![Typed::Interrupt, Typed::Interrupt];
    let said = chat(Look { prompt: true, ..Look::default() }, true, twice).await;
    assert_eq!(said.end, End::Interrupted);
    assert!(said.notes.contains("again"));
    let once = chat(Look::default(), false, vec![Typed::Interrupt]).await;
    assert_eq!(once.end, End::Interrupted);
}

#[tokio::test]
async fn what_went_wrong_before_the_talk_is_shown() {
    let (alice, events, _folder) = house().await;
    for (level, text) in [(NoticeLevel::Info, "fine"), (NoticeLevel::Warning, "worse")] {
        let hint = Some("do this".to_owned());
        let notice = Notice { level, code: "test", text: text.into(), hint };
        alice.bus().publish(Event::Notice(notice));
    }
    let talk = Talk::new(&alice, events, Look::default(), false);
    let (typing, input) = mpsc::channel(4);
    typing.send(Typed::Line("hi".into())).await.unwrap();
    typing.send(Typed::End).await.unwrap();
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    talk.run(input, &mut out, &mut notes).await.unwrap();
    assert_eq!(String::from_utf8(notes).unwrap(), "warning: worse (do this)\n");
}

#[tokio::test]
async fn a_notice_in_a_terminal_gets_a_line_of_its_own() {
    let (alice, events, _folder) = house().await;
    let look = Look { prompt: true, ..Look::default() };
    let mut talk = Talk::new(&alice, events, look, true);
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    talk.ask(&mut out).unwrap();
    let notice = Notice { level: NoticeLevel::Error, code: "test", text: "bad".into(), hint: None };
    talk.show(&Event::Notice(notice), &mut out, &mut notes).unwrap();
    talk.ask(&mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "> \n> ");
    assert_eq!(String::from_utf8(notes).unwrap(), "error: bad\n");
}

#[test]
fn only_single_words_are_commands() {
    assert!(is_command("/stop") && is_command("/bye"));
    assert!(!is_command("/usr/bin is full") && !is_command("1/2") && !is_command("/ 2"));
}
