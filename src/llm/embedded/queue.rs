//! What waits for the embedded model. It has one context, so it does one thing at a time.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::kernel::ports::{ChatDelta, ChatError, ChatMessage, ChatRequest};

/// Where the deltas of a reply go.
pub type Out = mpsc::Sender<Result<ChatDelta, ChatError>>;

/// One thing to do.
#[derive(Debug)]
pub enum Job {
    /// Load the model and say how it went.
    Load(oneshot::Sender<Result<(), String>>),
    /// Bring these messages into the cache. The sender is dropped when that is done.
    Warm(Vec<ChatMessage>, oneshot::Sender<()>),
    /// Reply.
    Chat(Chat),
}

/// A request for a reply.
#[derive(Debug)]
pub struct Chat {
    /// What to answer.
    pub request: ChatRequest,
    /// Cancelled when the caller no longer wants it.
    pub cancel: CancellationToken,
    /// Where the reply goes. It has room for every delta of the reply.
    pub out: Out,
}

impl Chat {
    /// Whether nobody wants this reply any more.
    pub fn is_unwanted(&self) -> bool {
        self.cancel.is_cancelled() || self.out.is_closed()
    }

    /// Sends one delta or the error. When the reader is gone the next step sees it.
    pub fn send(&self, delta: Result<ChatDelta, ChatError>) {
        let _ = self.out.try_send(delta);
    }
}

/// Jobs in the order in which they came.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job. A newer warming replaces an older one that still waits.
    pub fn push(&self, job: Job) {
        let mut state = self.state();
        if matches!(job, Job::Warm(..)) {
            state.jobs.retain(|waiting| !matches!(waiting, Job::Warm(..)));
        }
        if !state.closed {
            state.jobs.push_back(job);
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next job; `None` when the queue is closed.
    pub fn pop(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Lets those leave that no longer want a reply. Called all the time while a job runs.
    pub fn sweep(&self) {
        self.state().jobs.retain(|job| match job {
            Job::Chat(chat) if chat.is_unwanted() => {
                chat.send(Err(ChatError::Cancelled));
                false
            }
            _ => true,
        });
    }

    /// Whether somebody waits for a reply.
    pub fn has_chat(&self) -> bool {
        self.state().jobs.iter().any(|job| matches!(job, Job::Chat(_)))
    }

    /// Ends it: the waiting jobs are dropped, and so is what is pushed later.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.jobs.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.state().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat() -> (Job, CancellationToken, mpsc::Receiver<Result<ChatDelta, ChatError>>) {
        let (out, stream) = mpsc::channel(4);
        let cancel = CancellationToken::new();
        let request = ChatRequest { messages: vec![], max_tokens: 1, temperature: 0.0 };
        (Job::Chat(Chat { request, cancel: cancel.clone(), out }), cancel, stream)
    }

    #[test]
    fn the_cancelled_leave_at_once_and_the_others_keep_their_order() {
        let queue = Queue::default();
        let (first, cancel, mut first_stream) = chat();
        let (second, _second_cancel, second_stream) = chat();
        let (third, _third_cancel, mut third_stream) = chat();
        [first, second, third].into_iter().for_each(|job| queue.push(job));
        cancel.cancel();
        drop(second_stream);
        queue.sweep();
        assert_eq!(first_stream.try_recv(), Ok(Err(ChatError::Cancelled)));
        assert!(third_stream.try_recv().is_err());
        let Some(Job::Chat(left)) = queue.pop() else { panic!("the third one") };
        left.send(Err(ChatError::Cancelled));
        assert!(third_stream.try_recv().is_ok());
        assert!(!queue.has_chat());
    }

    #[test]
    fn only_the_newest_warming_waits() {
        let queue = Queue::default();
        let (done, mut first) = oneshot::channel();
        queue.push(Job::Warm(vec![], done));
        let (done, mut second) = oneshot::channel();
        queue.push(Job::Warm(vec![], done));
        assert_eq!(first.try_recv(), Err(oneshot::error::TryRecvError::Closed));
        assert_eq!(second.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }

    #[test]
    fn closing_ends_those_who_wait() {
        let queue = Queue::default();
        let (job, _cancel, mut stream) = chat();
        queue.push(job);
        queue.close();
        assert!(queue.pop().is_none());
        assert_eq!(stream.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
        let (job, _cancel, mut stream) = chat();
        queue.push(job);
        assert_eq!(stream.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
    }
}
