//! Fetches the key set that SERVICE_AUTH_JWKS_URL names.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use auth::jwt::jwks::{FetchFailed, KeySource, MOST_BYTES};
use kernel::Clock;
use net::{Client, ClientError, Limits, Method, Request, StatusCode, Url};

/// An address of the operator's: no guard, and no redirects.
pub(super) struct Fetched {
    url: Url,
    client: Client,
    limits: Limits,
}

impl Fetched {
    pub(super) fn new(url: Url, timeout: Duration, clock: &Arc<dyn Clock>) -> Result<Self, ClientError> {
        let limits = Limits {
            head: timeout,
            total: Some(timeout),
            idle: timeout,
            rate: None,
            body_bytes: u64::try_from(MOST_BYTES).unwrap_or(u64::MAX),
            redirects: 0,
            ..Limits::default()
        };
        Ok(Self { url, client: Client::operator(Arc::clone(clock))?, limits })
    }
}

#[async_trait]
impl KeySource for Fetched {
    async fn fetch(&self) -> Result<Vec<u8>, FetchFailed> {
        let failed = |error: net::NetError| FetchFailed(error.to_string());
        let request = Request::new(Method::GET, self.url.as_str())
            .header("accept", "application/jwk-set+json, application/json")
            .map_err(failed)?;
        let answer = self.client.send(request, &self.limits).await.map_err(failed)?;
        if answer.status() != StatusCode::OK {
            return Err(FetchFailed(format!("the answer's status is {}", answer.status())));
        }
        Ok(answer.bytes().await.map_err(failed)?.to_vec())
    }
}
