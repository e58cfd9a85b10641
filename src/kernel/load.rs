//! Who is using the cores right now.
//!
//! Speech synthesis, recognition and the embedded language model run at the same time on few cores,
//! and llama.cpp's threads spin while they wait for each other: with a second busy job two of them
//! are several times slower than one. So the voice and the ears say when they compute, and the
//! language model takes fewer threads while they do.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the voice and ear computations that are running. Cheap to clone; clones share the count.
#[derive(Clone, Debug, Default)]
pub struct CoreLoad(Arc<AtomicUsize>);

impl CoreLoad {
    /// Says that a computation has begun; it ends when the guard is dropped.
    #[must_use]
    pub fn enter(&self) -> CoreGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        CoreGuard(Arc::clone(&self.0))
    }

    /// How many computations are running.
    pub fn running(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// How many threads the language model should use for its next step on a machine of `cores`:
    /// all of them when it is alone, one less for each voice computation, and never none.
    pub fn llm_threads(&self, cores: usize) -> usize {
        cores.saturating_sub(self.running()).max(1)
    }
}

/// Ends a computation of [`CoreLoad`] when dropped.
#[derive(Debug)]
pub struct CoreGuard(Arc<AtomicUsize>);

impl Drop for CoreGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_model_leaves_the_voice_its_core() {
        let load = CoreLoad::default();
        assert_eq!(load.llm_threads(2), 2);
        let speaking = load.enter();
        assert_eq!(load.llm_threads(2), 1);
        let hearing = load.enter();
        assert_eq!(load.llm_threads(2), 1);
        drop((speaking, hearing));
        assert_eq!(load.llm_threads(4), 4);
    }
}
