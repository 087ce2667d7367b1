//! Runs slow work outside the actors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::Value as View;
use sandbox::Sandbox;
use wire::ErrorCode;

use crate::NodeError;
use crate::meter;
use crate::template::functions::ids::Numbering;

/// Runs work, outside the actors if it is heavy.
pub(super) async fn aside<T: Send + 'static>(
    heavy: bool,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    if !heavy {
        return work();
    }
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(panicked()))
}

/// Fills templates. Work that exceeds the brief limit starts again outside the actors, in the workspace's share of
/// the threads. Dropping the future stops it.
pub(super) async fn filled<T: Send + 'static>(
    sandbox: &Sandbox,
    heavy: bool,
    view: View,
    numbering: Option<Numbering>,
    work: impl Fn(&View) -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    // Repeated work creates the same identifiers.
    let work = move || match &numbering {
        Some(numbering) => work(&numbering.scope(&view)),
        None => work(&view),
    };
    if !heavy && let Some(done) = meter::briefly(&work) {
        return done;
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let _cancel = CancelOnDrop(Arc::clone(&cancelled));
    let done = sandbox.compute(move || meter::fully(cancelled, work)).await;
    done.unwrap_or_else(|| Err(panicked()))
}

fn panicked() -> NodeError {
    NodeError::new(ErrorCode::Internal, "a part of the step panicked")
}

struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use parking_lot::Mutex;
    use sandbox::Options;
    use serde_json::json;
    use tokio::sync::mpsc;

    use super::*;
    use crate::meter::Excess;
    use crate::template::{fill, holds};

    fn scope() -> View {
        View::from_pairs([("inputs", View::from(1))])
    }

    #[tokio::test]
    async fn dropping_a_fill_stops_its_work() {
        let (begun, mut begins) = mpsc::unbounded_channel();
        let (done, mut ends) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            // Takes minutes without a limit.
            let slow = json!("{{ range(100000)|select('in', range(100000)|list)|list }}");
            let work = move |view: &View| {
                let _ = begun.send(());
                let filled = fill(&slow, view);
                let _ = done.send(meter::excess());
                filled
            };
            filled(&Sandbox::new(Options::own()), true, scope(), None, work).await
        });
        begins.recv().await.unwrap();
        task.abort();
        assert_eq!(ends.recv().await, Some(Some(Excess::Cancelled)));
    }

    #[tokio::test]
    async fn a_heavy_condition_leaves_the_thread() {
        let threads = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&threads);
        let work = move |view: &View| {
            seen.lock().push(thread::current().id());
            holds("range(3000)|select('in', range(500)|list)|list|length == 500", view)
        };
        let held = filled(&Sandbox::new(Options::own()), false, scope(), None, work).await;
        assert!(held.unwrap());
        let threads = threads.lock().clone();
        assert_eq!(threads.len(), 2, "brief, then complete");
        assert_eq!(threads[0], thread::current().id());
        assert_ne!(threads[1], threads[0]);
    }
}
