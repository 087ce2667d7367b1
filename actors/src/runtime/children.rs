//! Child tasks of actors: they run foreign code.
//!
//! They run on a runtime separate from the arbiters. A panic becomes a value, deadlines are enforced, and all children
//! end with the actor life that started them.

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

/// The result of a child task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildExit<T> {
    /// It returned a value.
    Done(T),
    /// It panicked.
    Panicked(String),
    /// It exceeded its time limit.
    TimedOut,
    /// It was cut off because its actor's life ended.
    Cut,
}

/// Starts child tasks within one actor life.
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

    /// Starts a task on the separate runtime. `limit`: its maximum duration, if bounded.
    pub fn spawn<F>(
        &self,
        limit: Option<Duration>,
        work: F,
    ) -> impl Future<Output = ChildExit<F::Output>> + use<F>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Boxed at once: a turn's driver is large, and every wrapper around it would copy it.
        let task = self.guarded(limit, Box::pin(work)).in_current_span();
        let joined = self.tracker.spawn_on(task, &self.runtime);
        async move { joined.await.unwrap_or(ChildExit::Cut) }
    }

    /// Starts a task on the actor's own thread, interleaved with its polls: for work that only waits and yields, such
    /// as driving a turn. Saves two thread switches.
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

    /// Returns a guard that cuts off all children when dropped: a guardian's future may itself be dropped.
    pub(super) fn cut_on_drop(&self) -> DropGuard {
        self.life.clone().drop_guard()
    }

    /// Ends all children and waits for them.
    pub(super) async fn end(&self) {
        self.life.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
