//! Several models behind one: the first that can answers, and the person is told when it changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::breaker::Breaker;
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::contracts::{Engines, Event, Notice, NoticeLevel};
use crate::kernel::ports::{ChatDelta, ChatError, ChatMessage, ChatModel, ChatRequest, ChatStream};

/// Takes the events of a chain: notices, and the model in use. `app` publishes them on the bus.
pub type Notify = Arc<dyn Fn(Event) + Send + Sync>;

/// Deltas that may wait for the reader.
const QUEUE: usize = 256;

/// Models in the order of preference.
///
/// A model that fails before it said a word is followed by the next one in the same reply; after
/// that the reply ends with the error, since two halves of two replies make no sense. A model that
/// failed is left alone for a growing while ([`Breaker`]) and then preferred again.
pub struct Chain {
    shared: Arc<Shared>,
}

struct Shared {
    models: Vec<Arc<dyn ChatModel>>,
    clock: Arc<dyn Clock>,
    notify: Notify,
    state: Mutex<State>,
}

struct State {
    breakers: Vec<Breaker>,
    /// What each model said when it failed last.
    reasons: Vec<String>,
    current: usize,
}

impl Chain {
    /// A chain of these models. An empty one answers every request with an error.
    pub fn new(models: Vec<Arc<dyn ChatModel>>, clock: Arc<dyn Clock>, notify: Notify) -> Self {
        let state = State {
            breakers: vec![Breaker::default(); models.len()],
            reasons: vec![String::new(); models.len()],
            current: 0,
        };
        Self { shared: Arc::new(Shared { models, clock, notify, state: Mutex::new(state) }) }
    }
}

impl ChatModel for Chain {
    fn name(&self) -> String {
        self.shared.current().map_or_else(|| "none".into(), |model| model.name())
    }

    fn tags_feelings(&self) -> bool {
        self.shared.current().is_some_and(|model| model.tags_feelings())
    }

    fn chat(&self, request: ChatRequest, cancel: CancellationToken) -> ChatStream {
        let (out, stream) = mpsc::channel(QUEUE);
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move {
            if let Err(error) = shared.talk(request, &cancel, &out).await {
                // Nobody listens any more when this fails.
                let _ = out.send(Err(error)).await;
            }
        });
        stream
    }

    fn warm(&self, messages: Vec<ChatMessage>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let first = self.shared.order().first().copied();
            if let Some(model) = first.and_then(|index| self.shared.models.get(index)) {
                model.warm(messages).await;
            }
        })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn current(&self) -> Option<Arc<dyn ChatModel>> {
        let current = self.state().current;
        self.models.get(current).cloned()
    }

    /// The models to try now: those that are not left alone, in order; when all are, every one, the
    /// one that comes back first at the front.
    fn order(&self) -> Vec<usize> {
        let now = self.clock.now();
        let state = self.state();
        let mut all: Vec<_> =
            state.breakers.iter().map(|breaker| breaker.closed_until(now)).enumerate().collect();
        if all.iter().any(|(_, until)| until.is_none()) {
            all.retain(|(_, until)| until.is_none());
        } else {
            all.sort_by_key(|(_, until)| *until);
        }
        all.into_iter().map(|(index, _)| index).collect()
    }

    async fn talk(
        &self,
        request: ChatRequest,
        cancel: &CancellationToken,
        out: &mpsc::Sender<Result<ChatDelta, ChatError>>,
    ) -> Result<(), ChatError> {
        let mut failures = Vec::new();
        for index in self.order() {
            let Some(model) = self.models.get(index) else { continue };
            let (spoke, error) = match self.ask(index, model, &request, cancel, out).await {
                Asked::Done => return Ok(()),
                Asked::Failed { spoke, error } => (spoke, error),
            };
            if error == ChatError::Cancelled {
                return Err(error);
            }
            // The person is told by the notice of the stand-in, or by the turn's failure.
            tracing::info!(model = model.name(), %error, "language model failed");
            {
                let now = self.clock.now();
                let mut state = self.state();
                if let Some(breaker) = state.breakers.get_mut(index) {
                    breaker.failed(now, &error);
                }
                if let Some(reason) = state.reasons.get_mut(index) {
                    *reason = error.to_string();
                }
            }
            if spoke {
                return Err(self.advised(error));
            }
            failures.push(error);
        }
        Err(self.advised(together(failures)))
    }

    /// The error with what can be done about it now that no model took over.
    fn advised(&self, error: ChatError) -> ChatError {
        let stand_in = match self.models.len() {
            0 => return error,
            1 => ", or name another model in `llm.fallback`",
            _ => "",
        };
        let again = |text: String| format!("{text} (ask again{stand_in})");
        match error {
            ChatError::Unavailable(text) => ChatError::Unavailable(again(text)),
            ChatError::Garbled(text) => ChatError::Garbled(again(text)),
            ChatError::Limited { text, retry_after } => {
                let seconds = retry_after.map(|wait| format!("in {} s", wait.as_secs().max(1)));
                let when = seconds.as_deref().unwrap_or("later");
                let text = format!("{text} (ask again {when}{stand_in})");
                ChatError::Limited { text, retry_after }
            }
            // Its text says what to set.
            other @ (ChatError::Refused(_) | ChatError::Cancelled) => other,
        }
    }

    async fn ask(
        &self,
        index: usize,
        model: &Arc<dyn ChatModel>,
        request: &ChatRequest,
        cancel: &CancellationToken,
        out: &mpsc::Sender<Result<ChatDelta, ChatError>>,
    ) -> Asked {
        let mut stream = model.chat(request.clone(), cancel.clone());
        let mut spoke = false;
        loop {
            let delta = tokio::select! {
                biased;
                // Dropping the stream ends the model's work.
                () = out.closed() => return Asked::Done,
                delta = stream.recv() => delta,
            };
            let delta = match delta {
                Some(Ok(delta)) => delta,
                Some(Err(error)) => return Asked::Failed { spoke, error },
                None => {
                    let line = format!("`{}` stopped without a reply", model.name());
                    return Asked::Failed { spoke, error: ChatError::Unavailable(line) };
                }
            };
            let done = matches!(delta, ChatDelta::Done(_));
            if !spoke && !matches!(delta, ChatDelta::Thinking(_)) {
                spoke = true;
                self.replied(index);
            }
            if out.send(Ok(delta)).await.is_err() || done {
                return Asked::Done;
            }
        }
    }

    /// Notes that a model replied, and tells when it is another one than before.
    fn replied(&self, index: usize) {
        let (before, reason) = {
            let mut state = self.state();
            if let Some(breaker) = state.breakers.get_mut(index) {
                breaker.replied();
            }
            let before = std::mem::replace(&mut state.current, index);
            (before, state.reasons.get(before).cloned().unwrap_or_default())
        };
        if before == index {
            return;
        }
        let Some(model) = self.models.get(index) else { return };
        let name = model.name();
        let notice = if index < before {
            Notice {
                level: NoticeLevel::Info,
                code: "llm_back",
                text: format!("`{name}` answers again"),
                hint: None,
            }
        } else {
            Notice {
                level: NoticeLevel::Warning,
                code: "llm_fallback",
                text: format!("{reason}; `{name}` answers instead"),
                hint: None,
            }
        };
        (self.notify)(Event::Notice(notice));
        (self.notify)(Event::Engines(Engines { llm: Some(name), ..Engines::default() }));
    }
}

enum Asked {
    /// The reply is whole, or nobody wants it any more.
    Done,
    Failed {
        spoke: bool,
        error: ChatError,
    },
}

/// One error of all that were tried.
fn together(mut failures: Vec<ChatError>) -> ChatError {
    match failures.len() {
        0 => ChatError::Unavailable("there is no language model".into()),
        1 => failures.remove(0),
        _ => {
            let lines: Vec<String> = failures.iter().map(ToString::to_string).collect();
            ChatError::Unavailable(lines.join("; "))
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
