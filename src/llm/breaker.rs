//! How long a model that failed is left alone.

use std::time::Duration;

use crate::kernel::ports::ChatError;

/// The wait after a first failure.
const FIRST: Duration = Duration::from_secs(5);

/// The longest wait by the number of failures.
const LONGEST: Duration = Duration::from_secs(300);

/// The longest wait that a server can ask for.
const ASKED: Duration = Duration::from_secs(3600);

/// A circuit breaker: each failure in a row doubles the wait, one reply ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    failures: u32,
    until: Option<Duration>,
}

impl Breaker {
    /// When the model may be tried again; `None`: now. `now` is the time of the caller's clock.
    pub fn closed_until(&self, now: Duration) -> Option<Duration> {
        self.until.filter(|until| *until > now)
    }

    /// The model failed.
    pub fn failed(&mut self, now: Duration, error: &ChatError) {
        let asked = match error {
            ChatError::Limited { retry_after, .. } => retry_after.unwrap_or_default().min(ASKED),
            _ => Duration::ZERO,
        };
        let own = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now + own.max(asked));
    }

    /// The model replied.
    pub fn replied(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_grows_and_one_reply_ends_it() {
        let mut breaker = Breaker::default();
        let broken = ChatError::Unavailable(String::new());
        let mut now = Duration::from_secs(100);
        for wait in [5, 10, 20, 40, 80, 160, 300, 300] {
            assert_eq!(breaker.closed_until(now), None);
            breaker.failed(now, &broken);
            let until = now + Duration::from_secs(wait);
            assert_eq!(breaker.closed_until(now), Some(until));
            assert_eq!(breaker.closed_until(until), None);
            now = until;
        }
        breaker.replied();
        breaker.failed(now, &broken);
        assert_eq!(breaker.closed_until(now), Some(now + Duration::from_secs(5)));
    }

    #[test]
    fn a_server_that_says_when_is_believed_within_reason() {
        for (asked, wait) in [(2, 5), (60, 60), (86_400, 3600)] {
            let mut breaker = Breaker::default();
            let retry_after = Some(Duration::from_secs(asked));
            let limited = ChatError::Limited { text: String::new(), retry_after };
            breaker.failed(Duration::ZERO, &limited);
            assert_eq!(breaker.closed_until(Duration::ZERO), Some(Duration::from_secs(wait)));
        }
    }
}
