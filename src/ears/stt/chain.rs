//! Several recognisers behind one: the first that can answers, and the person is told when it
//! changes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::bail;
use tokio_util::sync::CancellationToken;

use crate::ears::{Stt, Transcription};
use crate::kernel::clock::{BoxFuture, Clock};
use crate::kernel::contracts::{Engines, Event, Notice, NoticeLevel};

/// Takes the events of a chain: notices, and the recogniser in use. `app` publishes them.
pub type Tell = Arc<dyn Fn(Event) + Send + Sync>;

/// How long a recogniser is left alone after a first failure; each one in a row doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(5);

/// The longest that it is left alone.
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// Recognisers in the order of preference.
///
/// When one fails the next one hears the same sound. One that failed is left alone for a growing
/// while and then preferred again. A cancelled job is nobody's failure.
pub struct Chain {
    engines: Vec<Arc<dyn Stt>>,
    clock: Arc<dyn Clock>,
    tell: Tell,
    state: Mutex<State>,
}

struct State {
    faults: Vec<Faults>,
    /// The one that answered last.
    current: usize,
}

/// What is known of a recogniser's failures.
#[derive(Clone, Default)]
struct Faults {
    /// In a row.
    count: u32,
    /// When it may be tried again.
    until: Duration,
    /// Why it failed last.
    reason: String,
}

impl Chain {
    /// A chain of these recognisers. An empty one answers with an error.
    pub fn new(engines: Vec<Arc<dyn Stt>>, clock: Arc<dyn Clock>, tell: Tell) -> Self {
        let state = State { faults: vec![Faults::default(); engines.len()], current: 0 };
        Self { engines, clock, tell, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engines to try now: those that are not left alone, in order; when all are, every one, the
    /// one that comes back first at the front.
    fn order(&self) -> Vec<usize> {
        let now = self.clock.now();
        let state = self.state();
        let mut all: Vec<_> = state.faults.iter().map(|faults| faults.until).enumerate().collect();
        if all.iter().any(|(_, until)| *until <= now) {
            all.retain(|(_, until)| *until <= now);
        } else {
            all.sort_by_key(|(_, until)| *until);
        }
        all.into_iter().map(|(index, _)| index).collect()
    }

    fn failed(&self, index: usize, reason: String) {
        let now = self.clock.now();
        if let Some(faults) = self.state().faults.get_mut(index) {
            let wait = FIRST_WAIT.saturating_mul(1 << faults.count.min(8)).min(LONGEST_WAIT);
            *faults = Faults { count: faults.count.saturating_add(1), until: now + wait, reason };
        }
    }

    /// Notes that a recogniser answered, and tells when it is another one than before.
    fn answered(&self, index: usize) {
        let (before, reason) = {
            let mut state = self.state();
            if let Some(faults) = state.faults.get_mut(index) {
                *faults = Faults::default();
            }
            let before = std::mem::replace(&mut state.current, index);
            (before, state.faults.get(before).map(|faults| faults.reason.clone()))
        };
        let Some(name) = self.engines.get(index).map(|engine| engine.name()) else { return };
        let (level, code, text) = match index.cmp(&before) {
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Less => {
                (NoticeLevel::Info, "stt_back", format!("`{name}` listens again"))
            }
            std::cmp::Ordering::Greater => {
                let reason = reason.unwrap_or_default();
                let text = format!("{reason}; `{name}` listens instead");
                (NoticeLevel::Warning, "stt_fallback", text)
            }
        };
        (self.tell)(Event::Notice(Notice { level, code, text, hint: None }));
        (self.tell)(Event::Engines(Engines { stt: Some(name), ..Engines::default() }));
    }
}

impl Stt for Chain {
    fn name(&self) -> String {
        let current = self.state().current;
        self.engines.get(current).map_or_else(|| "none".into(), |engine| engine.name())
    }

    fn transcribe(
        &self,
        audio: Vec<f32>,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, anyhow::Result<Transcription>> {
        Box::pin(async move {
            let mut reasons = Vec::new();
            for index in self.order() {
                let Some(engine) = self.engines.get(index) else { continue };
                let result = engine.transcribe(audio.clone(), cancel.clone()).await;
                match result {
                    Ok(words) => {
                        self.answered(index);
                        return Ok(words);
                    }
                    Err(_) if cancel.is_cancelled() => bail!("cancelled"),
                    Err(error) => {
                        let reason = format!("{error:#}");
                        tracing::warn!(engine = engine.name(), reason, "speech recogniser failed");
                        self.failed(index, reason.clone());
                        reasons.push(reason);
                    }
                }
            }
            if reasons.is_empty() {
                bail!("there is no speech recogniser");
            }
            bail!(reasons.join("; "))
        })
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
