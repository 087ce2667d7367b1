//! Requests to addresses that the operator configured.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Secret};
use net::{Client, ClientError, Limits, Method, NetError, Request, Response};

pub(super) struct Web {
    client: Client,
    clock: Arc<dyn Clock>,
}

/// Timeout for a plain response.
pub(super) const SOON: Duration = Duration::from_secs(5);
/// A buffered stream arrives in one piece after some seconds.
pub(super) const HELD_BACK: Duration = Duration::from_secs(15);
const TOTAL: Duration = Duration::from_secs(30);
const MOST_BYTES: u64 = 8 * 1024 * 1024;

impl Web {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Result<Self, ClientError> {
        Ok(Self { client: Client::operator(Arc::clone(&clock))?, clock })
    }

    /// Returns a client that connects to this address, whatever the name in a URL resolves to.
    pub(super) fn at(&self, address: SocketAddr) -> Result<Self, ClientError> {
        let clock = Arc::clone(&self.clock);
        Ok(Self { client: Client::operator_at(address, Arc::clone(&clock))?, clock })
    }

    /// Returns the response head within `limit`; the caller reads the body.
    pub(super) async fn get(
        &self,
        url: &str,
        limit: Duration,
        key: Option<&Secret>,
    ) -> Result<Response, NetError> {
        let mut request = Request::new(Method::GET, url);
        if let Some(key) = key {
            request = request.bearer(key)?;
        }
        let limits = Limits {
            head: limit,
            total: Some(TOTAL),
            body_bytes: MOST_BYTES,
            rate: None,
            ..Limits::default()
        };
        self.client.send(request, &limits).await
    }
}
