//! Time, injected: rooms ask a [`Clock`], tests turn a [`FakeClock`] by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

/// A boxed future, for traits that are used as objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where time comes from. Every stamp of one process is taken from one clock.
pub trait Clock: Send + Sync + 'static {
    /// Time since the clock was made.
    fn now(&self) -> Duration;

    /// Completes when `wait` has passed on this clock.
    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()>;

    /// [`Clock::now`] in milliseconds, the unit of every stamp in events and timelines.
    fn now_ms(&self) -> f64 {
        self.now().as_secs_f64() * 1000.0
    }
}

/// The clock of a running Alice: monotonic, from the moment it was made.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl Default for SystemClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        // Made when it is awaited: the caller's thread may have no runtime.
        Box::pin(async move { tokio::time::sleep(wait).await })
    }
}

/// A clock that stands still until a test moves it.
#[derive(Debug, Default)]
pub struct FakeClock(Mutex<FakeTime>);

#[derive(Debug, Default)]
struct FakeTime {
    now: Duration,
    sleepers: Vec<(Duration, oneshot::Sender<()>)>,
}

impl FakeClock {
    /// A clock at zero.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    fn time(&self) -> MutexGuard<'_, FakeTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves time on and wakes every sleeper whose time has come, in the order of their times.
    pub fn advance(&self, by: Duration) {
        let mut time = self.time();
        time.now += by;
        let now = time.now;
        let (mut due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut time.sleepers).into_iter().partition(|(at, _)| *at <= now);
        time.sleepers = rest;
        drop(time);
        due.sort_by_key(|(at, _)| *at);
        for (_, wake) in due {
            // A sleeper that was dropped no longer cares.
            let _ = wake.send(());
        }
    }
}

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        self.time().now
    }

    fn sleep(&self, wait: Duration) -> BoxFuture<'static, ()> {
        let (wake, woken) = oneshot::channel();
        let mut time = self.time();
        let at = time.now + wait;
        if wait.is_zero() {
            let _ = wake.send(());
        } else {
            time.sleepers.push((at, wake));
        }
        Box::pin(async move {
            let _ = woken.await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn fake_sleepers_wake_when_their_time_has_come() {
        let clock = FakeClock::shared();
        let short = tokio::spawn(clock.sleep(Duration::from_millis(10)));
        let long = tokio::spawn(clock.sleep(Duration::from_millis(20)));
        clock.advance(Duration::from_millis(10));
        short.await.unwrap();
        assert!(!long.is_finished());
        clock.advance(Duration::from_millis(10));
        long.await.unwrap();
        assert_eq!(clock.now_ms(), 20.0);
    }
}
