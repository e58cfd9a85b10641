//! What speakers that live by the clock have in common: a task that brings them up to it.

use std::ops::Deref;
use std::sync::{Arc, Weak};

use tokio::sync::Notify;

use crate::kernel::clock::BoxFuture;

/// A speaker that has something to do when time has passed.
pub(super) trait Paced: Send + Sync + 'static {
    /// Does what is due, and says how long nothing will be; `None` when there is nothing to wait for.
    fn keep_up(&self) -> Option<BoxFuture<'static, ()>>;
}

/// Owns a speaker and calls [`Paced::keep_up`] when it wants to be called, until this is dropped.
pub(super) struct Pacer<S> {
    speaker: Arc<S>,
    wake: Arc<Notify>,
}

impl<S: Paced> Pacer<S> {
    /// Begins. Must be called inside a tokio runtime.
    pub(super) fn start(speaker: S) -> Self {
        let pacer = Self::idle(speaker);
        tokio::spawn(follow(Arc::downgrade(&pacer.speaker), Arc::clone(&pacer.wake)));
        pacer
    }

    /// For a speaker that needs no clock: it is never called.
    pub(super) fn idle(speaker: S) -> Self {
        Self { speaker: Arc::new(speaker), wake: Arc::new(Notify::new()) }
    }

    /// The speaker may have something to do sooner than it said.
    pub(super) fn wake(&self) {
        self.wake.notify_one();
    }

    /// The speaker for others, who do not keep it, and what wakes it.
    pub(super) fn share(&self) -> (Weak<S>, Arc<Notify>) {
        (Arc::downgrade(&self.speaker), Arc::clone(&self.wake))
    }
}

impl<S> Deref for Pacer<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.speaker
    }
}

impl<S> Drop for Pacer<S> {
    fn drop(&mut self) {
        // The task finds that the speaker is gone.
        self.wake.notify_one();
    }
}

async fn follow<S: Paced>(speaker: Weak<S>, wake: Arc<Notify>) {
    loop {
        let Some(wait) = speaker.upgrade().map(|speaker| speaker.keep_up()) else { return };
        match wait {
            Some(wait) => tokio::select! {
                () = wait => {}
                () = wake.notified() => {}
            },
            None => wake.notified().await,
        }
    }
}
