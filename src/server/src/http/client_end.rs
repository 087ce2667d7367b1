//! Signals that a connection's client has closed its side.

use actix_web::HttpRequest;
use tokio_util::sync::CancellationToken;

/// Set when a client sends no more bytes. The HTTP library then keeps writing, since the client may still read, and
/// notices only on a later write that the client has left.
#[derive(Clone, Default)]
pub(crate) struct ClientEnd(CancellationToken);

impl ClientEnd {
    /// The signal of a request's connection.
    pub(super) fn for_request(request: &HttpRequest) -> Self {
        request.conn_data::<Self>().cloned().unwrap_or_default()
    }

    pub(crate) fn set(&self) {
        self.0.cancel();
    }

    /// Waits for the signal.
    pub(super) async fn reached(&self) {
        self.0.cancelled().await;
    }
}
