//! `anthropic/<model>`: `POST <base>/v1/messages`, answered as an event stream.
//!
//! Source: `docs/adr/0006-models.md`; Anthropic's Messages API, version 2023-06-01.

mod answer;
mod body;

use async_trait::async_trait;

use self::answer::AnthropicAnswer;
use super::transport::{Endpoint, KeyAs, Sending, body_of};
use super::{Model, ModelAnswer, ModelError, ModelRequest, Pieces};

/// The default base URL.
pub(super) const BASE: &str = "https://api.anthropic.com";
/// The header for the key.
pub(super) const KEY_AS: KeyAs = KeyAs::Header("x-api-key");
const VERSION: &str = "2023-06-01";

/// An Anthropic endpoint.
pub(super) struct Anthropic(Endpoint);

impl Anthropic {
    /// Sends requests to `endpoint`, whose URL may end in `/v1`.
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self(endpoint.versioned("v1"))
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
        self.0.converse(sending, AnthropicAnswer::new(answers_by), pieces).await
    }
}
