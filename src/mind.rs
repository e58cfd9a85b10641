//! Mind: the queue of turns, the conversation, and what of it was really heard.

pub mod history;
pub mod queue;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::settings::Llm;
use crate::kernel::bus::{Bus, Events};
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::contracts::{Event, GetHistory, HistoryEntry, InterruptCause, TurnCommand};
use crate::kernel::host::Module;
use crate::kernel::ids::TurnId;
use crate::kernel::ports::{
    ChatDelta, ChatError, ChatMessage, ChatModel, ChatRequest, ChatStream, Journal, JournalEntry,
    SystemPrompt,
};

use history::History;
use queue::{Action, Input, TurnQueue};

/// Tokens that are left free beside the prompt and the reply, because prompts are measured by
/// estimate.
const SPARE_TOKENS: u32 = 128;

/// How long a stopping mind waits for the voice to say what was heard of the running turn.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What a mind is made of.
pub struct MindParts {
    /// Writes the replies.
    pub model: Arc<dyn ChatModel>,
    /// Keeps the talk.
    pub journal: Arc<dyn Journal>,
    /// Says who Alice is.
    pub prompt: Arc<dyn SystemPrompt>,
    /// Length and liveliness of replies, and the context that prompts must fit.
    pub settings: Llm,
    /// The transcript of the session that is resumed; empty for a new one.
    pub resumed: Vec<JournalEntry>,
    /// A voice room runs, with or without sound, and says of each turn what was heard. Without one,
    /// what was made counts as heard.
    pub voice_present: bool,
}

/// The mind. Takes [`TurnCommand`]s and answers [`GetHistory`] while it runs.
pub struct Mind {
    parts: Option<MindParts>,
    running: Option<Running>,
}

struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Mind {
    /// A mind that begins with [`Module::start`].
    pub fn new(parts: MindParts) -> Self {
        Self { parts: Some(parts), running: None }
    }
}

impl Module for Mind {
    fn name(&self) -> &'static str {
        "mind"
    }

    fn start<'a>(&'a mut self, bus: &'a Bus) -> BoxFuture<'a, anyhow::Result<()>> {
        Box::pin(async move {
            let parts = self.parts.take().ok_or_else(|| anyhow::anyhow!("it ran before"))?;
            let commands = bus.commands::<TurnCommand>()?;
            let (ask, questions) = mpsc::channel::<(GetHistory, oneshot::Sender<_>)>(64);
            bus.provide(move |question: GetHistory| {
                let ask = ask.clone();
                async move {
                    let (answer, answered) = oneshot::channel();
                    // A mind that has stopped remembers nothing.
                    let _ = ask.send((question, answer)).await;
                    answered.await.unwrap_or_default()
                }
            })?;
            let (stop, stopped) = oneshot::channel();
            let history = History::rebuild(parts.resumed.iter().cloned());
            let runner = Runner {
                queue: TurnQueue::new(history, parts.voice_present),
                events: bus.subscribe("mind", concerns),
                clock: Arc::clone(bus.clock()),
                bus: bus.clone(),
                session: CancellationToken::new(),
                request: None,
                warming: None,
                parts,
            };
            let task = tokio::spawn(runner.run(commands, questions, stopped));
            self.running = Some(Running { stop, task });
            Ok(())
        })
    }

    fn stop(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let Some(Running { stop, task }) = self.running.take() else { return };
            // The task may have ended by itself, when the bus went away.
            let _ = stop.send(());
            if let Err(error) = task.await {
                tracing::error!(%error, "the mind failed");
            }
        })
    }
}

/// The events that move the queue.
fn concerns(event: &Event) -> bool {
    input(event).is_some()
}

fn input(event: &Event) -> Option<Input> {
    match event {
        Event::Interrupted { turn, cause } => Some(Input::Interrupt(*turn, *cause)),
        Event::SpeakingEnded { turn, heard } => Some(Input::Spoken(*turn, heard.clone())),
        Event::SegmentReady(_)
        | Event::SegmentStarted { .. }
        | Event::SegmentProgress { .. }
        | Event::SegmentWaiting { .. }
        | Event::SegmentFinished { .. }
        | Event::SegmentSkipped { .. }
        | Event::SpeakingStarted { .. } => event.turn().map(Input::VoiceAlive),
        _ => None,
    }
}

/// Does what the queue says. One token tree: the session's token, one for each turn, one for each of
/// its requests.
struct Runner {
    parts: MindParts,
    queue: TurnQueue,
    events: Events,
    bus: Bus,
    clock: Arc<dyn Clock>,
    session: CancellationToken,
    request: Option<Request>,
    warming: Option<JoinHandle<()>>,
}

/// The reply that is being made.
struct Request {
    turn: TurnId,
    /// The turn's token; the request's own is its child.
    cancel: CancellationToken,
    stream: ChatStream,
}

type Question = (GetHistory, oneshot::Sender<Vec<HistoryEntry>>);

impl Runner {
    async fn run(
        mut self,
        mut commands: mpsc::Receiver<TurnCommand>,
        mut questions: mpsc::Receiver<Question>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        self.warm();
        loop {
            let wait = self.queue.deadline().map(|at_ms| {
                Duration::from_secs_f64((at_ms - self.clock.now_ms()).max(0.0) / 1000.0)
            });
            let input = tokio::select! {
                // In this order: an interruption was published before the command that follows it
                // was sent, and must be seen before it.
                biased;
                _ = &mut stopped => break,
                event = self.events.next() => match event {
                    Some(event) => input(&event.event),
                    None => break,
                },
                Some(command) = commands.recv() => Some(Input::Command(command)),
                Some((question, answer)) = questions.recv() => {
                    // An asker that is gone no longer cares.
                    let _ = answer.send(self.queue.entries(&question));
                    None
                }
                (turn, delta) = next_delta(&mut self.request) => Some(Input::Reply(turn, delta)),
                () = sleep(&self.clock, wait) => Some(Input::Tick),
            };
            if let Some(input) = input {
                self.step(input);
            }
        }
        self.close(commands).await;
    }

    fn step(&mut self, input: Input) {
        for action in self.queue.step(self.clock.now_ms(), input) {
            match action {
                Action::Publish(event) => self.bus.publish(event),
                Action::Write(entry) => self.parts.journal.append(entry),
                Action::Ask(turn) => self.ask(turn),
                Action::Cancel(turn) => {
                    if let Some(request) = self.request.take_if(|request| request.turn == turn) {
                        request.cancel.cancel();
                    }
                }
                Action::Warm => self.warm(),
            }
        }
    }

    fn prompt(&mut self) -> Vec<ChatMessage> {
        let Llm { context, max_tokens, .. } = self.parts.settings;
        let room = context.saturating_sub(max_tokens).saturating_sub(SPARE_TOKENS);
        let system = self.parts.prompt.system(self.parts.model.tags_feelings());
        self.queue.prompt(system, room as usize)
    }

    fn ask(&mut self, turn: TurnId) {
        if let Some(warming) = self.warming.take() {
            warming.abort();
        }
        let request = ChatRequest {
            messages: self.prompt(),
            max_tokens: self.parts.settings.max_tokens,
            temperature: self.parts.settings.temperature,
        };
        let cancel = self.session.child_token();
        let stream = self.parts.model.chat(request, cancel.child_token());
        self.request = Some(Request { turn, cancel, stream });
    }

    /// Lets the model get ready for the prompt that will follow.
    fn warm(&mut self) {
        let messages = self.prompt();
        let model = Arc::clone(&self.parts.model);
        let warming = tokio::spawn(async move { model.warm(messages).await });
        if let Some(before) = self.warming.replace(warming) {
            before.abort();
        }
    }

    /// Ends the running turn with what was heard of it, and sees the transcript onto the disk.
    async fn close(mut self, mut commands: mpsc::Receiver<TurnCommand>) {
        while let Some(event) = self.events.try_next() {
            input(&event.event).into_iter().for_each(|input| self.step(input));
        }
        if let Some(turn) = self.queue.running().filter(|_| self.parts.voice_present) {
            let cause = InterruptCause::Shutdown;
            self.bus.publish(Event::Interrupted { turn: Some(turn), cause });
            let late = self.clock.sleep(LAST_WORDS);
            tokio::pin!(late);
            while self.queue.running() == Some(turn) {
                tokio::select! {
                    biased;
                    Some(event) = self.events.next() => {
                        input(&event.event).into_iter().for_each(|input| self.step(input));
                    }
                    () = &mut late => break,
                    else => break,
                }
            }
        }
        self.step(Input::Close);
        // Words that nobody will answer any more are still kept.
        commands.close();
        while let Ok(command) = commands.try_recv() {
            self.step(Input::Command(command));
        }
        self.session.cancel();
        if let Some(warming) = self.warming.take() {
            warming.abort();
        }
        self.parts.journal.flush().await;
    }
}

/// The next piece of the reply; never, when none is being made.
async fn next_delta(
    request: &mut Option<Request>,
) -> (TurnId, Option<Result<ChatDelta, ChatError>>) {
    let Some(Request { turn, stream, .. }) = request else { return std::future::pending().await };
    let (turn, delta) = (*turn, stream.recv().await);
    if delta.is_none() {
        *request = None;
    }
    (turn, delta)
}

async fn sleep(clock: &Arc<dyn Clock>, wait: Option<Duration>) {
    match wait {
        Some(wait) => clock.sleep(wait).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "mind/mind_tests.rs"]
mod tests;
