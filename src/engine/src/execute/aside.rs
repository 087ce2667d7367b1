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
