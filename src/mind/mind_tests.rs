use std::collections::VecDeque;
use std::sync::Mutex;

use super::*;
use crate::kernel::bus::Events;
use crate::kernel::clock::FakeClock;
use crate::kernel::contracts::{Envelope, Heard, TurnSource};
use crate::kernel::ids::SessionId;
use crate::kernel::ports::{EntryKind, Role, StopReason};

/// A model whose replies are written by the test: each question is kept, each reply is fed by hand.
#[derive(Default)]
struct Script {
    asked: Mutex<VecDeque<Asked>>,
    warmed: Mutex<Vec<Vec<ChatMessage>>>,
}

struct Asked {
    request: ChatRequest,
    cancel: CancellationToken,
    reply: mpsc::Sender<Result<ChatDelta, ChatError>>,
}

impl ChatModel for Script {
    fn name(&self) -> String {
        "script".into()
    }

    fn chat(&self, request: ChatRequest, cancel: CancellationToken) -> ChatStream {
        let (reply, stream) = mpsc::channel(16);
        self.asked.lock().unwrap().push_back(Asked { request, cancel, reply });
        stream
    }

    fn warm(&self, messages: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        self.warmed.lock().unwrap().push(messages);
        Box::pin(async {})
    }
}

impl Script {
    fn next(&self) -> Asked {
        self.asked.lock().unwrap().pop_front().expect("a question")
    }
}

#[derive(Default)]
struct Notebook(Mutex<Vec<JournalEntry>>);

impl Journal for Notebook {
    fn append(&self, entry: JournalEntry) {
        self.0.lock().unwrap().push(entry);
    }

    fn flush(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

struct Plain;

impl SystemPrompt for Plain {
    fn system(&self, tags: bool) -> String {
        format!("tags: {tags}")
    }
}

struct Room {
    bus: Bus,
    clock: Arc<FakeClock>,
    model: Arc<Script>,
    journal: Arc<Notebook>,
    mind: Mind,
    events: Events,
}

async fn room(resumed: Vec<JournalEntry>) -> Room {
    let clock = FakeClock::shared();
    let bus = Bus::new(clock.clone(), SessionId::fresh());
    let model = Arc::new(Script::default());
    let journal = Arc::new(Notebook::default());
    let mut mind = Mind::new(MindParts {
        model: model.clone(),
        journal: journal.clone(),
        prompt: Arc::new(Plain),
        settings: Llm::default(),
        resumed,
        voice_present: true,
    });
    let events = bus.subscribe("test", |_| true);
    bus.start();
    mind.start(&bus).await.unwrap();
    while model.warmed.lock().unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    Room { bus, clock, model, journal, mind, events }
}

impl Room {
    fn begin(&self, turn: u64, text: &str, draft: bool) {
        let (turn, text, source) = (TurnId(turn), text.into(), TurnSource::Voice);
        self.bus.send(TurnCommand::Begin { turn, text, source, draft }).unwrap();
    }

    /// Events up to the first that `last` accepts.
    async fn until(&mut self, last: fn(&Event) -> bool) -> Arc<Envelope> {
        loop {
            let event = self.events.next().await.expect("an event");
            if last(&event.event) {
                return event;
            }
        }
    }

    fn written(&self) -> Vec<(u64, EntryKind, String, bool)> {
        let entries = self.journal.0.lock().unwrap();
        entries.iter().map(|e| (e.turn.0, e.kind, e.text.clone(), e.interrupted)).collect()
    }
}

fn text(text: &str) -> Result<ChatDelta, ChatError> {
    Ok(ChatDelta::Text(text.into()))
}

#[tokio::test]
async fn a_turn_runs_and_what_was_heard_is_kept() {
    let mut room = room(Vec::new()).await;
    room.begin(1, "hello", false);
    room.until(|e| matches!(e, Event::TurnConfirmed { .. })).await;
    // The question is asked after its turn is announced.
    tokio::task::yield_now().await;
    let asked = room.model.next();
    assert_eq!(asked.request.messages[0].content, "tags: true");
    assert_eq!(asked.request.messages[1].content, "hello");
    asked.reply.send(text("Hi ")).await.unwrap();
    asked.reply.send(text("there.")).await.unwrap();
    asked.reply.send(Ok(ChatDelta::Done(StopReason::End))).await.unwrap();
    room.until(|e| matches!(e, Event::ReplyGenerated { .. })).await;
    let heard = Heard { text: "Hi there.".into(), complete: true };
    room.bus.publish(Event::SpeakingEnded { turn: TurnId(1), heard });
    room.until(|e| matches!(e, Event::TurnCompleted { interrupted: false, .. })).await;
    assert_eq!(
        room.written(),
        [
            (1, EntryKind::User, "hello".to_owned(), false),
            (1, EntryKind::Assistant, "Hi there.".to_owned(), false)
        ]
    );
    let history = room.bus.request(GetHistory { limit: 10 }).await.unwrap();
    assert_eq!(history.len(), 2);
    tokio::task::yield_now().await;
    room.mind.stop().await;
    let warmed = room.model.warmed.lock().unwrap();
    let lengths: Vec<_> = warmed.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1, 3], "at the start and after the turn");
}

#[tokio::test]
async fn an_interruption_cancels_the_request() {
    let mut room = room(Vec::new()).await;
    room.begin(1, "tell me", false);
    room.until(|e| matches!(e, Event::TurnConfirmed { .. })).await;
    tokio::task::yield_now().await;
    let asked = room.model.next();
    asked.reply.send(text("Once")).await.unwrap();
    room.until(|e| matches!(e, Event::TokenEmitted { .. })).await;
    room.bus.publish(Event::Interrupted { turn: Some(TurnId(1)), cause: InterruptCause::BargeIn });
    // The next turn is asked right behind it, as a barge-in does.
    room.begin(2, "wait", true);
    asked.cancel.cancelled().await;
    let heard = Heard { text: "Once".into(), complete: false };
    room.bus.publish(Event::SpeakingEnded { turn: TurnId(1), heard });
    room.until(|e| matches!(e, Event::TurnStarted { draft: true, .. })).await;
    tokio::task::yield_now().await;
    let second = room.model.next();
    assert_eq!(second.request.messages.last().unwrap().content, "[I cut you off there.]\nwait");
    room.bus.send(TurnCommand::Discard(TurnId(2))).unwrap();
    second.cancel.cancelled().await;
    room.mind.stop().await;
    assert_eq!(
        room.written(),
        [
            (1, EntryKind::User, "tell me".to_owned(), false),
            (1, EntryKind::Assistant, "Once".to_owned(), true)
        ]
    );
}

#[tokio::test]
async fn a_resumed_session_goes_on() {
    let line = |kind, text: &str| JournalEntry {
        turn: TurnId(4),
        kind,
        text: text.into(),
        source: None,
        interrupted: false,
    };
    let resumed =
        vec![line(EntryKind::User, "my name is Bo"), line(EntryKind::Assistant, "Hi Bo.")];
    let mut room = room(resumed).await;
    room.begin(5, "who am I", false);
    room.until(|e| matches!(e, Event::TurnConfirmed { .. })).await;
    tokio::task::yield_now().await;
    let roles: Vec<_> = room.model.next().request.messages.iter().map(|m| m.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
    assert_eq!(room.written().len(), 1, "what was read is not written again");
}

#[tokio::test]
async fn stopping_waits_for_the_voice_but_not_for_ever() {
    let mut room = room(Vec::new()).await;
    room.begin(1, "hello", false);
    room.until(|e| matches!(e, Event::TurnConfirmed { .. })).await;
    let bus = room.bus.clone();
    let mut told = bus.subscribe("voice", |e| matches!(e, Event::Interrupted { .. }));
    let clock = room.clock.clone();
    let voice = tokio::spawn(async move {
        told.next().await.unwrap();
        // No answer comes.
        clock.advance(LAST_WORDS);
    });
    room.mind.stop().await;
    voice.await.unwrap();
    room.until(|e| matches!(e, Event::TurnCompleted { interrupted: true, .. })).await;
    assert_eq!(room.written(), [(1, EntryKind::User, "hello".to_owned(), false)]);
}

#[tokio::test]
async fn a_lost_voice_is_noticed_by_the_clock() {
    let mut room = room(Vec::new()).await;
    room.begin(1, "hello", false);
    room.until(|e| matches!(e, Event::TurnConfirmed { .. })).await;
    tokio::task::yield_now().await;
    let asked = room.model.next();
    asked.reply.send(text("Hi.")).await.unwrap();
    asked.reply.send(Ok(ChatDelta::Done(StopReason::End))).await.unwrap();
    room.until(|e| matches!(e, Event::ReplyGenerated { .. })).await;
    // The mind must be asleep before its alarm rings.
    tokio::task::yield_now().await;
    room.clock.advance(Duration::from_secs(15));
    room.until(|e| matches!(e, Event::Notice(n) if n.code == "voice_silent")).await;
    room.until(|e| matches!(e, Event::TurnCompleted { interrupted: false, .. })).await;
    room.mind.stop().await;
}
