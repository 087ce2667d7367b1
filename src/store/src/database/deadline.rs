//! Client-side statement deadlines on pooled connections.
//!
//! A server that keeps its connections open and sends nothing (a stopped process, a proxy that no longer
//! forwards) never ends a statement: the server itself enforces `statement_timeout`. The task that drives a
//! connection closes it when a deadline passes, and the statement fails as on any lost connection.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use diesel::connection::{Instrumentation, InstrumentationEvent};
use kernel::{Clock, SystemClock};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{Connection, Socket};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The statement limit outside requests. It exceeds the server's `statement_timeout` (30 s), whose error is
/// more precise.
pub(crate) const STATEMENT_LIMIT: Duration = Duration::from_secs(35);

tokio::task_local! {
    static LIMIT: Duration;
}

/// Runs work in which each statement has this limit.
pub async fn with_statement_limit<F: Future>(limit: Duration, work: F) -> F::Output {
    LIMIT.scope(limit, work).await
}

/// The deadline for a connection's current statement. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Deadline {
    inner: Arc<DeadlineInner>,
}

struct DeadlineInner {
    clock: SystemClock,
    state: Mutex<DeadlineState>,
    /// Wakes the task that waits for a later deadline.
    earlier: Notify,
    /// Cancelled when the connection is dropped.
    dropped: CancellationToken,
}

struct DeadlineState {
    /// `None`: the connection is idle.
    ends: Option<Duration>,
    /// The time at which the waiting task wakes by itself.
    wakes: Duration,
    is_executing: bool,
    is_disabled: bool,
    has_passed: bool,
}

impl Deadline {
    /// Drives a connection until it ends, is dropped, or a deadline passes. The connection that executes the
    /// statements must own the [`StatementWatch`] returned here.
    pub(crate) fn drive<S>(connection: Connection<Socket, S>) -> (Self, StatementWatch)
    where
        S: TlsStream + Unpin + Send + 'static,
    {
        let state = DeadlineState {
            ends: None,
            wakes: Duration::MAX,
            is_executing: false,
            is_disabled: false,
            has_passed: false,
        };
        let inner = DeadlineInner {
            clock: SystemClock::new(),
            state: Mutex::new(state),
            earlier: Notify::new(),
            dropped: CancellationToken::new(),
        };
        let deadline = Self { inner: Arc::new(inner) };
        let watch = StatementWatch {
            deadline: deadline.clone(),
            _driver: deadline.inner.dropped.clone().drop_guard(),
        };
        let driven = deadline.clone();
        tokio::spawn(async move {
            tokio::select! {
                ended = connection => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "database connection broke");
                    }
                }
                () = driven.passed() => {
                    tracing::warn!("database connection closed: statement deadline exceeded");
                }
                () = driven.inner.dropped.cancelled() => {}
            }
        });
        (deadline, watch)
    }

    /// Marks the connection as idle. Returns whether a statement was still executing.
    pub(crate) fn clear(&self) -> bool {
        let mut state = self.inner.state.lock();
        state.ends = None;
        std::mem::take(&mut state.is_executing)
    }

    /// Turns deadlines off for this connection.
    pub(crate) fn disable(&self) {
        let mut state = self.inner.state.lock();
        (state.ends, state.is_disabled) = (None, true);
    }

    /// Whether a deadline has passed, after which the connection is closed.
    pub(crate) fn has_passed(&self) -> bool {
        self.inner.state.lock().has_passed
    }

    /// Starts the limit anew when a statement begins and when the first part of its answer arrives.
    fn extend(&self, is_executing: bool) {
        let limit = LIMIT.try_with(|limit| *limit).unwrap_or(STATEMENT_LIMIT);
        let ends = self.inner.clock.monotonic().saturating_add(limit);
        let mut state = self.inner.state.lock();
        if state.is_disabled {
            return;
        }
        (state.ends, state.is_executing) = (Some(ends), is_executing);
        if ends < state.wakes {
            self.inner.earlier.notify_one();
        }
    }

    async fn passed(&self) {
        while let Some(wait) = self.left() {
            tokio::select! {
                () = self.inner.clock.sleep(wait) => {}
                () = self.inner.earlier.notified() => {}
            }
        }
    }

    /// The time until the deadline; `None` if it has passed.
    fn left(&self) -> Option<Duration> {
        let mut state = self.inner.state.lock();
        let now = self.inner.clock.monotonic();
        state.has_passed = state.ends.is_some_and(|ends| ends <= now);
        state.wakes = state.ends.unwrap_or(Duration::MAX);
        (!state.has_passed).then(|| state.wakes.saturating_sub(now))
    }
}

/// Records the beginning and the end of each statement. Dropped with its connection, which also ends the
/// driver: otherwise a silent server would keep the socket open.
pub(crate) struct StatementWatch {
    deadline: Deadline,
    _driver: DropGuard,
}

impl Instrumentation for StatementWatch {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        match event {
            InstrumentationEvent::StartQuery { .. } => self.deadline.extend(true),
            InstrumentationEvent::FinishQuery { .. } => self.deadline.extend(false),
            _ => {}
        }
    }
}
