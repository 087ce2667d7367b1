//! The only source of time.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};

/// A wait that ends when the clock reaches its time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Wall time, monotonic time and waiting.
pub trait Clock: Send + Sync + 'static {
    /// The wall clock, UTC. May leap; never use it to measure a duration.
    fn now(&self) -> DateTime<Utc>;
    /// Time since an arbitrary start. Never decreases.
    fn monotonic(&self) -> Duration;
    /// Waits for `duration` of monotonic time.
    fn sleep(&self, duration: Duration) -> Sleep;
}

/// Runs `future` for at most `limit`; returns `None` on timeout.
pub async fn timeout<F: Future>(clock: &dyn Clock, limit: Duration, future: F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        // A future that never pauses uses up its task's budget in every poll; the timeout fires nonetheless.
        () = tokio::task::unconstrained(clock.sleep(limit)) => None,
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct SystemClock {
    started: std::time::Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub fn new() -> Self {
        Self { started: std::time::Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock")]
impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[cfg(feature = "test-util")]
pub use manual::ManualClock;

#[cfg(feature = "test-util")]
mod manual {
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tokio::sync::oneshot;

    use chrono::TimeDelta;

    use super::{Clock, DateTime, Duration, Sleep, Utc};

    /// A clock that only tests advance.
    #[derive(Clone)]
    pub struct ManualClock {
        inner: Arc<Mutex<ManualTime>>,
    }

    struct ManualTime {
        start: DateTime<Utc>,
        elapsed: Duration,
        leaped: TimeDelta,
        waiting: Vec<(Duration, oneshot::Sender<()>)>,
    }

    impl ManualClock {
        /// A clock that starts at `start`.
        #[must_use]
        pub fn new(start: DateTime<Utc>) -> Self {
            Self {
                inner: Arc::new(Mutex::new(ManualTime {
                    start,
                    elapsed: Duration::ZERO,
                    leaped: TimeDelta::zero(),
                    waiting: Vec::new(),
                })),
            }
        }

        /// Advances by `by` and wakes all waits that are due.
        pub fn advance(&self, by: Duration) {
            let due = {
                let mut inner = self.inner.lock();
                inner.elapsed += by;
                let now = inner.elapsed;
                let (due, waiting) =
                    std::mem::take(&mut inner.waiting).into_iter().partition(|(at, _)| *at <= now);
                inner.waiting = waiting;
                let due: Vec<(Duration, oneshot::Sender<()>)> = due;
                due
            };
            for (_, wake) in due {
                let _ = wake.send(());
            }
        }

        /// Moves the wall clock forward or back; monotonic time is unaffected.
        pub fn leap(&self, by: TimeDelta) {
            self.inner.lock().leaped += by;
        }

        /// Counts waits that are neither due nor dropped.
        #[must_use]
        pub fn sleepers(&self) -> usize {
            let mut inner = self.inner.lock();
            inner.waiting.retain(|(_, wake)| !wake.is_closed());
            inner.waiting.len()
        }
    }

    impl Clock for ManualClock {
        fn now(&self) -> DateTime<Utc> {
            let inner = self.inner.lock();
            inner.start + inner.elapsed + inner.leaped
        }

        fn monotonic(&self) -> Duration {
            self.inner.lock().elapsed
        }

        fn sleep(&self, duration: Duration) -> Sleep {
            let (wake, woken) = oneshot::channel();
            {
                let mut inner = self.inner.lock();
                let at = inner.elapsed.saturating_add(duration);
                if at > inner.elapsed {
                    inner.waiting.push((at, wake));
                }
            }
            Box::pin(async move {
                let _ = woken.await;
            })
        }
    }
}

/// An instant in RFC 3339 with microseconds and `Z`, as on the wire and in rows.
#[must_use]
pub fn timestamp(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Micros, true)
}
