//! The typed bus: events for everyone, commands for one, requests with an answer.
//!
//! Every subscriber has a queue and a task of its own, so a slow or failing handler harms no other.
//! One lock orders all publishers: what was published first is first in every queue, whichever
//! thread it came from. What is published before [`Bus::start`] is kept and delivered then.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::clock::{BoxFuture, Clock};
use super::contracts::{Envelope, Event};
use super::ids::SessionId;

/// How many events may wait for one subscriber. A live talk has some hundred a second at most, so a
/// queue this full belongs to a handler that is stuck; it loses events, the others do not.
pub const QUEUE_LIMIT: usize = 65_536;

/// How many commands of one type may wait for their handler.
pub const COMMAND_LIMIT: usize = 4_096;

/// A message for exactly one handler.
pub trait Command: Send + 'static {}

/// A question that exactly one provider answers.
pub trait Request: Send + 'static {
    /// What the provider answers.
    type Reply: Send + 'static;
    /// How long the asker waits, unless it says otherwise with [`Bus::request_within`].
    const TIMEOUT: Duration = Duration::from_secs(30);
}

/// Why a command or a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// Nobody handles this message type.
    #[error("nothing in this Alice handles `{0}`")]
    Unavailable(&'static str),
    /// The provider did not answer in time.
    #[error("no answer to `{0}` within {1:?}")]
    TimedOut(&'static str, Duration),
    /// The provider panicked or dropped the question.
    #[error("the handler of `{0}` failed")]
    HandlerFailed(&'static str),
    /// Too many commands wait for the handler.
    #[error("too many `{0}` are waiting")]
    Busy(&'static str),
    /// A second handler for a message type that already has one.
    #[error("`{0}` already has a handler")]
    AlreadyProvided(&'static str),
}

type Answer = Box<dyn Any + Send>;
type Handler = Arc<dyn Fn(Answer) -> BoxFuture<'static, Answer> + Send + Sync>;

/// The bus of one Alice. Cheap to clone; clones are the same bus.
#[derive(Clone)]
pub struct Bus {
    clock: Arc<dyn Clock>,
    session: SessionId,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    started: bool,
    next_event: u64,
    next_subscriber: u64,
    early: Vec<Arc<Envelope>>,
    subscribers: Vec<Subscriber>,
    handlers: HashMap<TypeId, Handler>,
    commands: HashMap<TypeId, Box<dyn Any + Send>>,
}

struct Subscriber {
    id: u64,
    name: &'static str,
    wants: fn(&Event) -> bool,
    queue: mpsc::Sender<Arc<Envelope>>,
    overflowing: bool,
}

/// Receives the events that a subscriber asked for, in the order of publication.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Arc<Envelope>>);

impl Events {
    /// The next event; `None` when the bus is gone.
    pub async fn next(&mut self) -> Option<Arc<Envelope>> {
        self.0.recv().await
    }

    /// The next event if one waits.
    pub fn try_next(&mut self) -> Option<Arc<Envelope>> {
        self.0.try_recv().ok()
    }

    /// [`Events::next`] for threads without a runtime.
    pub fn blocking_next(&mut self) -> Option<Arc<Envelope>> {
        self.0.blocking_recv()
    }
}

impl Bus {
    /// A bus whose events carry `session` unless they are published for another one.
    pub fn new(clock: Arc<dyn Clock>, session: SessionId) -> Self {
        Self { clock, session, shared: Arc::default() }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The clock that stamps the events.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// The session that events belong to by default.
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Begins to deliver; what was published before goes out first.
    pub fn start(&self) {
        let mut shared = self.shared();
        shared.started = true;
        for event in std::mem::take(&mut shared.early) {
            shared.deliver(&event);
        }
    }

    /// Publishes an event of the bus's own session. Never blocks; may be called from any thread.
    pub fn publish(&self, event: Event) {
        self.publish_for(self.session.clone(), event);
    }

    /// Publishes an event of another session.
    pub fn publish_for(&self, session: SessionId, event: Event) {
        let mut shared = self.shared();
        shared.next_event += 1;
        let envelope = Arc::new(Envelope {
            seq: shared.next_event,
            session,
            at_ms: self.clock.now_ms(),
            event,
        });
        if shared.started {
            shared.deliver(&envelope);
        } else {
            shared.early.push(envelope);
        }
    }

    /// A queue of the events for which `wants` answers yes. Dropping it ends the subscription.
    /// `name` is used in logs.
    pub fn subscribe(&self, name: &'static str, wants: fn(&Event) -> bool) -> Events {
        let (queue, events) = mpsc::channel(QUEUE_LIMIT);
        let mut shared = self.shared();
        shared.next_subscriber += 1;
        let id = shared.next_subscriber;
        shared.subscribers.push(Subscriber { id, name, wants, queue, overflowing: false });
        Events(events)
    }

    /// Runs `handle` for each event that `wants` accepts, one after another, on a task of its own. A
    /// handler that panics is logged and goes on with the next event.
    pub fn on<F, R>(
        &self,
        name: &'static str,
        wants: fn(&Event) -> bool,
        handle: F,
    ) -> JoinHandle<()>
    where
        F: Fn(Arc<Envelope>) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send,
    {
        let mut events = self.subscribe(name, wants);
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let seq = event.seq;
                let call = AssertUnwindSafe(async { handle(event).await });
                if call.catch_unwind().await.is_err() {
                    tracing::error!(subscriber = name, seq, "event handler panicked");
                }
            }
        })
    }

    /// Registers the one provider of a request type.
    ///
    /// # Errors
    /// [`BusError::AlreadyProvided`] when there is one.
    pub fn provide<Q, F, R>(&self, answer: F) -> Result<(), BusError>
    where
        Q: Request,
        F: Fn(Q) -> R + Send + Sync + 'static,
        R: Future<Output = Q::Reply> + Send + 'static,
    {
        self.register(TypeId::of::<Q>(), type_name::<Q>(), move |question: Q| {
            let reply = answer(question);
            async move { Box::new(reply.await) as Answer }
        })
    }

    /// The queue of a command type, in the order of [`Bus::send`]. There is one for each type, held
    /// by its one handler.
    ///
    /// # Errors
    /// [`BusError::AlreadyProvided`] when another handler holds it.
    pub fn commands<C: Command>(&self) -> Result<mpsc::Receiver<C>, BusError> {
        let mut shared = self.shared();
        let held = shared.commands.get(&TypeId::of::<C>()).is_some_and(|queue| {
            queue.downcast_ref::<mpsc::Sender<C>>().is_some_and(|queue| !queue.is_closed())
        });
        if held {
            return Err(BusError::AlreadyProvided(type_name::<C>()));
        }
        let (queue, commands) = mpsc::channel::<C>(COMMAND_LIMIT);
        shared.commands.insert(TypeId::of::<C>(), Box::new(queue));
        Ok(commands)
    }

    /// Hands a command to its handler; does not wait for it. May be called from any thread.
    ///
    /// # Errors
    /// [`BusError::Unavailable`] when nothing handles it, [`BusError::Busy`] when too many wait.
    pub fn send<C: Command>(&self, command: C) -> Result<(), BusError> {
        let name = type_name::<C>();
        let queue = self
            .shared()
            .commands
            .get(&TypeId::of::<C>())
            .and_then(|queue| queue.downcast_ref::<mpsc::Sender<C>>().cloned())
            .ok_or(BusError::Unavailable(name))?;
        queue.try_send(command).map_err(|refused| match refused {
            mpsc::error::TrySendError::Closed(_) => BusError::Unavailable(name),
            mpsc::error::TrySendError::Full(_) => BusError::Busy(name),
        })
    }

    fn register<M, F, R>(&self, id: TypeId, name: &'static str, call: F) -> Result<(), BusError>
    where
        M: Send + 'static,
        F: Fn(M) -> R + Send + Sync + 'static,
        R: Future<Output = Answer> + Send + 'static,
    {
        let mut shared = self.shared();
        if shared.handlers.contains_key(&id) {
            return Err(BusError::AlreadyProvided(name));
        }
        let handler: Handler = Arc::new(move |message: Answer| match message.downcast::<M>() {
            Ok(message) => Box::pin(call(*message)),
            // The map is keyed by the message's own type, so this arm is not reached; an answer of
            // the wrong type makes the asker say that the handler failed.
            Err(other) => Box::pin(async move { other }),
        });
        shared.handlers.insert(id, handler);
        Ok(())
    }

    /// Asks the provider of `Q` and waits for its answer, for [`Request::TIMEOUT`] at most.
    ///
    /// # Errors
    /// At once when there is no provider; else when it is late or fails.
    pub async fn request<Q: Request>(&self, question: Q) -> Result<Q::Reply, BusError> {
        self.request_within(question, Q::TIMEOUT).await
    }

    /// [`Bus::request`] with a time-out of the asker's own.
    ///
    /// # Errors
    /// As [`Bus::request`].
    pub async fn request_within<Q: Request>(
        &self,
        question: Q,
        timeout: Duration,
    ) -> Result<Q::Reply, BusError> {
        let name = type_name::<Q>();
        let answer = self.call(TypeId::of::<Q>(), name, Box::new(question))?;
        tokio::select! {
            answer = answer => match answer.map(|answer| answer.downcast::<Q::Reply>()) {
                Ok(Ok(reply)) => Ok(*reply),
                _ => Err(BusError::HandlerFailed(name)),
            },
            () = self.clock.sleep(timeout) => Err(BusError::TimedOut(name, timeout)),
        }
    }

    fn call(
        &self,
        id: TypeId,
        name: &'static str,
        message: Answer,
    ) -> Result<JoinHandle<Answer>, BusError> {
        let handler =
            self.shared().handlers.get(&id).cloned().ok_or(BusError::Unavailable(name))?;
        let runtime =
            tokio::runtime::Handle::try_current().map_err(|_| BusError::Unavailable(name))?;
        Ok(runtime.spawn(async move { handler(message).await }))
    }
}

impl Shared {
    fn deliver(&mut self, envelope: &Arc<Envelope>) {
        let mut gone = Vec::new();
        for subscriber in &mut self.subscribers {
            if !(subscriber.wants)(&envelope.event) {
                continue;
            }
            match subscriber.queue.try_send(Arc::clone(envelope)) {
                Ok(()) => subscriber.overflowing = false,
                Err(mpsc::error::TrySendError::Closed(_)) => gone.push(subscriber.id),
                Err(mpsc::error::TrySendError::Full(_)) => {
                    if !std::mem::replace(&mut subscriber.overflowing, true) {
                        tracing::error!(
                            subscriber = subscriber.name,
                            "event queue full, events are lost to this subscriber"
                        );
                    }
                }
            }
        }
        self.subscribers.retain(|subscriber| !gone.contains(&subscriber.id));
    }
}

#[cfg(test)]
#[path = "bus_tests.rs"]
mod tests;
