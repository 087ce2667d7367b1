//! `gemini/<model>`: `POST <base>/v1beta/models/<model>:streamGenerateContent?alt=sse`, `:batchEmbedContents`, and
//! `:generateContent` for transcription.
//!
//! The key is sent as a header, never in the URL, because URLs appear in logs. Source: `docs/adr/0006-models.md`;
//! Google's Gemini API, v1beta.

mod answer;
mod body;
mod embeddings;
mod transcription;

use async_trait::async_trait;

use self::answer::GeminiAnswer;
use super::transport::{Body, Endpoint, KeyAs, Sending, body_of};
use super::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelRequest, NoPieces, Pieces,
    TranscribeRequest, Transcript,
};

/// The default base URL.
pub(super) const BASE: &str = "https://generativelanguage.googleapis.com";
/// The header for the key.
pub(super) const KEY_AS: KeyAs = KeyAs::Header("x-goog-api-key");

/// A Gemini endpoint.
pub(super) struct Gemini(Endpoint);

impl Gemini {
    /// Sends requests to `endpoint`, whose URL may end in a version.
    pub(super) fn new(endpoint: Endpoint) -> Self {
        Self(endpoint.versioned("v1beta"))
    }
}

/// `models/<model>`, unless the name already contains a resource type: `tunedModels/…`.
fn resource(model: &str) -> String {
    if model.contains('/') { model.to_owned() } else { format!("models/{model}") }
}

#[async_trait]
impl Model for Gemini {
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        let (body, ()) = body_of(request, |request| (body::write(request), ())).await?;
        let method = format!("{}:streamGenerateContent", resource(&request.model));
        let sending = Sending {
            path: &method.split('/').collect::<Vec<_>>(),
            query: Some("alt=sse"),
            headers: &[],
            body,
            idempotency_key: request.idempotency_key.as_deref(),
        };
        self.0.converse(sending, GeminiAnswer::default(), pieces).await
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        let resource = resource(&request.model);
        let method = format!("{resource}:batchEmbedContents");
        let sending = Sending {
            path: &method.split('/').collect::<Vec<_>>(),
            query: None,
            headers: &[],
            body: Body::Json(embeddings::write(request, &resource)),
            idempotency_key: request.idempotency_key.as_deref(),
        };
        let document = self.0.document(sending).await?;
        embeddings::read(document, request).map_err(|why| self.0.bad(&why))
    }

    async fn transcribe(&self, request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        let method = format!("{}:generateContent", resource(&request.model));
        let sending = Sending {
            path: &method.split('/').collect::<Vec<_>>(),
            query: None,
            headers: &[],
            body: Body::Json(transcription::write(request)),
            idempotency_key: None,
        };
        let answer = self.0.converse(sending, GeminiAnswer::default(), &NoPieces).await?;
        transcription::read(answer).map_err(|why| self.0.bad(&why))
    }
}
