//! Child tasks of an actor: where foreign code runs.
//!
//! They run on a runtime apart from the arbiters. A panic is a value, a deadline is kept, and all of them end with
//! the actor's life that started them.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kernel::Clock;
use tokio::runtime::Handle as Runtime;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::exit::panic_text;

/// How a child task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildExit<T> {
    /// With a value.
    Done(T),
    /// It panicked.
    Panicked(String),
    /// It took longer than it was given.
    TimedOut,
    /// It was cut off because its actor's life ended.
    Cut,
}

/// Starts child tasks for one life of an actor.
#[derive(Clone)]
pub struct Children {
    tracker: TaskTracker,
    life: CancellationToken,
    runtime: Runtime,
    clock: Arc<dyn Clock>,
}

impl Children {
    pub(super) fn new(runtime: Runtime, clock: Arc<dyn Clock>) -> Self {
        Self { tracker: TaskTracker::new(), life: CancellationToken::new(), runtime, clock }
    }

    /// Starts a task on threads of its own. `limit`: how long it may take, if bounded.
    pub fn spawn<F>(
        &self,
        limit: Option<Duration>,
        work: F,
    ) -> impl Future<Output = ChildExit<F::Output>> + use<F>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Boxed at once: what drives a turn is large, and every wrapper around it would copy it.
        let task = self.guarded(limit, Box::pin(work)).in_current_span();
        let joined = self.tracker.spawn_on(task, &self.runtime);
        async move { joined.await.unwrap_or(ChildExit::Cut) }
    }

    /// Starts a task on the actor's own thread, beside its polls: for work that only waits and gives way, such as
    /// driving a turn. It spares two changes of thread.
    pub fn spawn_here<F>(
        &self,
        limit: Option<Duration>,
        work: F,
    ) -> impl Future<Output = ChildExit<F::Output>> + use<F>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        let task = self.guarded(limit, Box::pin(work)).in_current_span();
        let joined = self.tracker.spawn_local(task);
        async move { joined.await.unwrap_or(ChildExit::Cut) }
    }

    fn guarded<F: Future>(
        &self,
        limit: Option<Duration>,
        work: F,
    ) -> impl Future<Output = ChildExit<F::Output>> + use<F> {
        let (life, clock) = (self.life.clone(), Arc::clone(&self.clock));
        async move {
            let guarded = AssertUnwindSafe(work).catch_unwind();
            let limited = async {
                match limit {
                    Some(limit) => kernel::timeout(&*clock, limit, guarded).await,
                    None => Some(guarded.await),
                }
            };
            tokio::select! {
                biased;
                () = life.cancelled() => ChildExit::Cut,
                ended = limited => match ended {
                    Some(Ok(value)) => ChildExit::Done(value),
                    Some(Err(payload)) => ChildExit::Panicked(panic_text(&*payload)),
                    None => ChildExit::TimedOut,
                },
            }
        }
    }

    /// Cuts every child off when the guard is dropped: a guardian may be dropped itself.
    pub(super) fn cut_on_drop(&self) -> DropGuard {
        self.life.clone().drop_guard()
    }

    /// Ends every child and waits until they have.
    pub(super) async fn end(&self) {
        self.life.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
