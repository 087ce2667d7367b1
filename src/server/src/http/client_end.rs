//! When the client of a connection has closed its side.

use actix_web::HttpRequest;
use tokio_util::sync::CancellationToken;

/// Is set when a client sends no more bytes. The HTTP library writes on then, since the client may still read; it learns at a later
/// write that the client has left.
#[derive(Clone, Default)]
pub(crate) struct ClientEnd(CancellationToken);

impl ClientEnd {
    /// The one of a request's connection.
    pub(super) fn of(request: &HttpRequest) -> Self {
        request.conn_data::<Self>().cloned().unwrap_or_default()
    }

    pub(crate) fn set(&self) {
        self.0.cancel();
    }

    /// Waits for it.
    pub(super) async fn reached(&self) {
        self.0.cancelled().await;
    }
}
