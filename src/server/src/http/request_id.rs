//! An id for each request: in the answer's `X-Request-Id`, in every log line, in the body of a 5xx.

use std::future::Future;

tokio::task_local! {
    static REQUEST_ID: String;
}

/// The id of the request that is being answered.
pub(crate) fn current() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

/// Does this under an id.
pub(super) async fn with<F: Future>(id: String, work: F) -> F::Output {
    REQUEST_ID.scope(id, work).await
}

/// Keeps the request's id for work that continues after the answer.
pub(crate) async fn kept<F: Future>(work: F) -> F::Output {
    match current() {
        Some(id) => REQUEST_ID.scope(id, work).await,
        None => work.await,
    }
}
