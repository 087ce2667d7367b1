//! Request ids, shown in the `X-Request-Id` response header, in every log line and in 5xx bodies.

use std::future::Future;

tokio::task_local! {
    static REQUEST_ID: String;
}

/// Returns the current request's id.
pub(crate) fn current() -> Option<String> {
    REQUEST_ID.try_with(Clone::clone).ok()
}

/// Runs a future under this request id.
pub(super) async fn with<F: Future>(id: String, work: F) -> F::Output {
    REQUEST_ID.scope(id, work).await
}

/// Keeps the request id for work that continues after the response.
pub(crate) async fn kept<F: Future>(work: F) -> F::Output {
    match current() {
        Some(id) => REQUEST_ID.scope(id, work).await,
        None => work.await,
    }
}
