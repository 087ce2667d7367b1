//! Client-side deadlines of the statements on pooled connections.
//!
//! A server that holds its connections open and sends nothing (a stopped process, a proxy that forwards no more) ends no
//! statement: `statement_timeout` is enforced by the server itself. The task that drives a connection closes it when a
//! deadline passes, and the statement fails as on any lost connection.

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

/// The limit of a statement outside requests: longer than the server's own `statement_timeout` of 30 s, whose error says
/// more.
pub(crate) const STATEMENT_LIMIT: Duration = Duration::from_secs(35);

tokio::task_local! {
    static LIMIT: Duration;
}

/// Runs work in which each statement has this limit.
pub async fn with_statement_limit<F: Future>(limit: Duration, work: F) -> F::Output {
    LIMIT.scope(limit, work).await
}

/// The deadline of the statement that a connection executes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Deadline {
    inner: Arc<Inner>,
}

struct Inner {
    clock: SystemClock,
    state: Mutex<State>,
    /// Wakes the task that waits for a later deadline.
    earlier: Notify,
    /// Cancelled when the connection is dropped.
    dropped: CancellationToken,
}

struct State {
    /// `None`: nothing uses the connection.
    ends: Option<Duration>,
    /// When the waiting task wakes by itself.
    wakes: Duration,
    is_executing: bool,
    is_disabled: bool,
    has_passed: bool,
}

impl Deadline {
    /// Drives a connection until it ends, is dropped, or a deadline passes. The connection that executes its statements must have the
    /// [`Deadline::watch`] returned with it.
    pub(crate) fn drive<S>(connection: Connection<Socket, S>) -> (Self, StatementWatch)
    where
        S: TlsStream + Unpin + Send + 'static,
    {
        let state = State {
            ends: None,
            wakes: Duration::MAX,
            is_executing: false,
            is_disabled: false,
            has_passed: false,
        };
        let inner = Inner {
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
                        tracing::debug!(%error, "a database connection broke");
                    }
                }
                () = driven.passed() => {
                    tracing::warn!("closed a database connection: no answer before the statement's deadline");
                }
                () = driven.inner.dropped.cancelled() => {}
            }
        });
        (deadline, watch)
    }

    /// Ends the use of the connection. Returns whether a statement was still executing.
    pub(crate) fn clear(&self) -> bool {
        let mut state = self.inner.state.lock();
        state.ends = None;
        std::mem::take(&mut state.is_executing)
    }

    /// Sets no more deadlines.
    pub(crate) fn disable(&self) {
        let mut state = self.inner.state.lock();
        (state.ends, state.is_disabled) = (None, true);
    }

    /// Whether a deadline has passed, after which the connection is closed.
    pub(crate) fn has_passed(&self) -> bool {
        self.inner.state.lock().has_passed
    }

    /// A statement begins, or has the first part of its answer: the rows that follow have the same time again.
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

/// Notes the beginning and the end of each statement. Dropped with its connection, whose driver ends then: a server that
/// is silent would keep the socket open.
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
