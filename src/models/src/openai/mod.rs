//! `openai/<model>` and compatible endpoints: `POST <base>/chat/completions`, `<base>/embeddings` and
//! `<base>/audio/transcriptions`.
//!
//! Requests an event stream and forwards the text piece by piece. Also accepts a single JSON document instead of the
//! stream. Source: `docs/adr/0006-models.md`.

mod answer;
mod body;
mod embeddings;
mod transcription;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::{Clock, Secret};
use net::Client;

use self::answer::OpenAiAnswer;
use super::transport::{Body, Endpoint, KeyAs, Sending, body_of};
use super::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelRequest, Pieces, TranscribeRequest,
    Transcript,
};

/// OpenAI's base URL.
pub(super) const BASE: &str = "https://api.openai.com/v1";

/// An OpenAI-compatible endpoint.
pub struct OpenAi(pub(super) Endpoint);

impl OpenAi {
    /// Creates an endpoint at `base_url`, which ends in `/v1` as for OpenAI's clients. Without a key, no
    /// `Authorization` is sent.
    ///
    /// # Errors
    /// [`super::ModelErrorKind::NotConfigured`] if `base_url` is not an http or https URL.
    pub fn new(
        client: Client,
        base_url: &str,
        key: Option<Secret>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ModelError> {
        Endpoint::new(client, base_url, key, KeyAs::Bearer, clock).map(Self)
    }

    /// Sets the timeouts: until the head, and between two chunks.
    #[must_use]
    pub fn patience(mut self, head: Duration, idle: Duration) -> Self {
        self.0.patience(head, idle);
        self
    }
}

#[async_trait]
impl Model for OpenAi {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let (body, ()) = body_of(request, |request| (body::write(request), ())).await?;
        let sending = Sending {
            path: &["chat", "completions"],
            query: None,
            headers: &[],
            body,
            idempotency_key: request.idempotency_key.as_deref(),
        };
        self.0.converse(sending, OpenAiAnswer::default(), pieces).await
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        let sending = Sending {
            path: &["embeddings"],
            query: None,
            headers: &[],
            body: Body::Json(embeddings::write(request)),
            idempotency_key: request.idempotency_key.as_deref(),
        };
        let document = self.0.document(sending).await?;
        embeddings::read(document, request.texts.len()).map_err(|why| self.0.bad(&why))
    }

    async fn transcribe(&self, request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        let sending = Sending {
            path: &["audio", "transcriptions"],
            query: None,
            headers: &[],
            body: Body::Form(transcription::write(request)?),
            idempotency_key: None,
        };
        let document = self.0.document(sending).await?;
        transcription::read(document).map_err(|why| self.0.bad(&why))
    }
}
