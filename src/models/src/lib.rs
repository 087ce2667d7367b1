//! Language models with a common trait.
//!
//! A graph names a model as `<provider>/<model>`. A provider sends one request per call; the engine handles retries,
//! limits and the journal.

mod anthropic;
mod configured;
mod encoded;
mod gemini;
mod message;
mod openai;
mod part;
mod price;
mod tape;
mod transcription;
pub(crate) mod transport;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::Clock;
use net::Client;
use serde::{Deserialize, Serialize};
use wire::ErrorCode;

pub use self::configured::{Dialect, EndpointSettings, ModelSettings};
pub use self::openai::OpenAi;
pub use self::part::{FileKind, FileRef, Image, Part};
pub use self::price::{Price, Prices, cost, list_price, rounded, sees_images};
pub use self::transcription::{TranscribeRequest, Transcript, can_transcribe};
pub use message::{
    EmbedRequest, Embeddings, Message, ModelAnswer, ModelRequest, Role, Tool, ToolCall, Usage,
};

/// A model call failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The failure class.
    pub kind: ModelErrorKind,
    /// Text for the run's record: the endpoint's message, never a key.
    pub message: String,
    /// The wait that the endpoint requests before a retry.
    pub retry_after: Option<Duration>,
}

/// Failure classes of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// No endpoint or key is configured for the provider.
    NotConfigured,
    /// Status 429.
    RateLimited,
    /// Status 503 or 529: the endpoint has too many requests from all clients.
    Overloaded,
    /// No connection, a broken connection, status 408, 425 or another 5xx.
    Unavailable,
    /// Any other refusal; a retry would be refused too.
    Rejected,
    /// The answer is not valid.
    BadAnswer,
    /// Workflows may not call the endpoint's address.
    EgressRefused,
}

impl ModelErrorKind {
    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded | Self::Unavailable)
    }

    /// The stable error code.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::NotConfigured => ErrorCode::ModelNotConfigured,
            Self::RateLimited => ErrorCode::ModelRateLimited,
            Self::Overloaded | Self::Unavailable => ErrorCode::ModelUnavailable,
            Self::Rejected => ErrorCode::ModelRejected,
            Self::BadAnswer => ErrorCode::ModelBadAnswer,
            Self::EgressRefused => ErrorCode::EgressRefused,
        }
    }
}

/// Receives the answer's text in pieces as they arrive.
#[async_trait]
pub trait Pieces: Send + Sync {
    /// Handles the next text piece; waits if the receiver cannot keep up.
    async fn piece(&self, text: &str);
}

/// Discards the pieces, for answers without a live reader.
pub struct NoPieces;

#[async_trait]
impl Pieces for NoPieces {
    async fn piece(&self, _text: &str) {}
}

/// A model provider.
#[async_trait]
pub trait Model: Send + Sync {
    /// Makes one call and returns the complete answer; its text is sent to `pieces` as it arrives. Dropping the future
    /// cancels the call and closes its connection.
    ///
    /// # Errors
    /// [`ModelError`]; pieces may already have been sent.
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError>;

    /// Embeds texts in one request.
    ///
    /// # Errors
    /// [`ModelError`]; [`ModelErrorKind::Rejected`] if the provider has no embeddings.
    async fn embed(&self, _request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        Err(ModelError {
            kind: ModelErrorKind::Rejected,
            message: "this provider has no embeddings; use openai/<model>, gemini/<model> or practice/embed"
                .to_owned(),
            retry_after: None,
        })
    }

    /// Transcribes a recording.
    ///
    /// # Errors
    /// [`ModelError`]; [`ModelErrorKind::Rejected`] if the provider has no transcription, see [`can_transcribe`].
    async fn transcribe(&self, _request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        Err(ModelError {
            kind: ModelErrorKind::Rejected,
            message:
                "this provider has no transcription; use openai/<model>, gemini/<model> or practice/transcribe"
                    .to_owned(),
            retry_after: None,
        })
    }
}

/// The built-in provider, which needs no endpoint.
pub const PRACTICE: &str = "practice";

/// All provider names.
pub const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", PRACTICE];

/// Whether a text is `<provider>/<model>` with a known provider. Only a call shows whether the endpoint has the model.
#[must_use]
pub fn is_model_name(text: &str) -> bool {
    text.split_once('/').is_some_and(|(provider, model)| PROVIDERS.contains(&provider) && !model.is_empty())
}

/// The available providers by the prefix before the `/`. Cheap to clone.
#[derive(Clone, Default)]
pub struct Models {
    providers: BTreeMap<&'static str, Arc<dyn Model>>,
    /// The client for endpoints that graphs name.
    outbound: Option<(Client, Arc<dyn Clock>)>,
    tape: Option<tape::Wrap>,
}

impl Models {
    /// Adds a provider.
    #[must_use]
    pub fn with(mut self, provider: &'static str, model: Arc<dyn Model>) -> Self {
        self.providers.insert(provider, model);
        self
    }

    /// Lets graphs name their own endpoints. The client decides which addresses may be called.
    #[must_use]
    pub fn with_endpoints(mut self, outbound: Client, clock: Arc<dyn Clock>) -> Self {
        self.outbound = Some((outbound, clock));
        self
    }

    /// Finds the provider of `<provider>/<model>`, and returns it with the model's name after the `/`.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`], naming the available providers.
    pub fn find<'a>(&self, name: &'a str) -> Result<(&Arc<dyn Model>, &'a str), ModelError> {
        let found = name
            .split_once('/')
            .and_then(|(provider, model)| Some((self.providers.get(provider)?, model)))
            .filter(|(_, model)| !model.is_empty());
        found.ok_or_else(|| ModelError {
            kind: ModelErrorKind::NotConfigured,
            message: format!("'{name}' is not a valid model; write one of {}", self.forms()),
            retry_after: None,
        })
    }

    /// Like [`Models::find`], at an endpoint that is not the operator's; the provider's default URL if none is set.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] if the provider is unknown or the URL is not valid.
    pub fn find_at<'a>(
        &self,
        name: &'a str,
        settings: EndpointSettings,
    ) -> Result<(Arc<dyn Model>, &'a str), ModelError> {
        let (_, model) = self.find(name)?;
        let provider = name.strip_suffix(model).unwrap_or_default().trim_end_matches('/');
        let found = Dialect::ALL.into_iter().find(|(known, _)| *known == provider);
        let (Some((provider, dialect)), Some((client, clock))) = (found, &self.outbound) else {
            let message = format!("{provider}/<model> has no endpoint that a graph can set");
            return Err(ModelError { kind: ModelErrorKind::NotConfigured, message, retry_after: None });
        };
        let made = dialect.at(dialect.or_own(settings), client.clone(), Arc::clone(clock))?;
        Ok((
            self.tape.as_ref().map_or_else(|| Arc::clone(&made), |wrap| wrap(provider, Arc::clone(&made))),
            model,
        ))
    }

    fn forms(&self) -> String {
        let forms: Vec<String> =
            self.providers.keys().map(|provider| format!("{provider}/<model>")).collect();
        forms.join(", ")
    }
}
