//! `anthropic/<model>`: `POST <base>/v1/messages`, answered as an event stream.
//!
//! Source: `docs/adr/0006-models.md`; Anthropic's Messages API, version 2023-06-01.

mod answer;
mod body;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Secret};
use net::Client;

use self::answer::Answer;
use super::transport::{Endpoint, KeyAs, Sending, body_of};
use super::{Model, ModelAnswer, ModelError, ModelRequest, Pieces};

/// The default base URL.
pub(super) const BASE: &str = "https://api.anthropic.com";
const VERSION: &str = "2023-06-01";

/// An Anthropic endpoint.
pub struct Anthropic(Endpoint);

impl Anthropic {
    /// Creates an endpoint at `base_url`, with or without a trailing `/v1`. The key is sent as `x-api-key`.
    ///
    /// # Errors
    /// [`super::ModelErrorKind::NotConfigured`] if `base_url` is not an http or https URL.
    pub fn new(
        client: Client,
        base_url: &str,
        key: Option<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ModelError> {
        let endpoint = Endpoint::new(client, base_url, key, KeyAs::Header("x-api-key"), clock)?;
        Ok(Self(endpoint.versioned("v1")))
    }

    /// Sets the maximum answer bytes.
    pub(super) fn bounded(self, most: Option<u64>) -> Self {
        Self(self.0.bounded(most))
    }

    /// Sets the timeouts: until the head, and between two chunks.
    #[must_use]
    pub fn patience(mut self, head: Duration, idle: Duration) -> Self {
        self.0.patience(head, idle);
        self
    }
}

#[async_trait]
impl Model for Anthropic {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let (body, answers_by) = body_of(request, body::write).await?;
        let sending = Sending {
            path: &["messages"],
            query: None,
            headers: &[("anthropic-version", VERSION)],
            body,
            idempotency_key: request.idempotency_key.as_deref(),
        };
        self.0.converse(sending, Answer::new(answers_by), pieces).await
    }
}
