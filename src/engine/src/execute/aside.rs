//! Work that may take long, away from the actors.

use wire::ErrorCode;

use crate::NodeError;

/// Does work away from the actors where that may take long.
pub(super) async fn aside<T: Send + 'static>(
    heavy: bool,
    work: impl FnOnce() -> Result<T, NodeError> + Send + 'static,
) -> Result<T, NodeError> {
    if !heavy {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(NodeError::new(ErrorCode::Internal, "a part of the step panicked")))
}
