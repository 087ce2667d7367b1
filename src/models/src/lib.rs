//! Language models behind one trait.
//!
//! A graph names a model as `<provider>/<model>`. A provider makes one request for each call; retries, limits and the
//! journal are the engine's.

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

pub use self::anthropic::Anthropic;
pub use self::configured::{Dialect, EndpointSettings, ModelSettings};
pub use self::gemini::Gemini;
pub use self::openai::OpenAi;
pub use self::part::{FileKind, FileRef, Image, Part};
pub use self::price::{Price, Prices, cost, list_price, rounded, sees_images};
pub use self::transcription::{TranscribeRequest, Transcript, can_transcribe};
pub use message::{
    EmbedRequest, Embeddings, Message, ModelAnswer, ModelRequest, Role, Tool, ToolCall, Usage,
};

/// A call of a model failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What went wrong.
    pub kind: ModelErrorKind,
    /// For the run's record: what the endpoint said, never a key.
    pub message: String,
    /// How long the endpoint asks to wait.
    pub retry_after: Option<Duration>,
}

/// What went wrong with a call of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelErrorKind {
    /// No endpoint or key is configured for the provider.
    NotConfigured,
    /// 429.
    RateLimited,
    /// 503 or 529: too many requests of all clients.
    Overloaded,
    /// No connection, a broken one, 408, 425 or another 5xx.
    Unavailable,
    /// Any other refusal of the endpoint: another request would be refused too.
    Rejected,
    /// The answer cannot be understood.
    BadAnswer,
    /// The endpoint's address may not be called from a workflow.
    EgressRefused,
}

impl ModelErrorKind {
    /// Whether the same request may go well later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::RateLimited | Self::Overloaded | Self::Unavailable)
    }

    /// Its stable code.
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

/// Takes the pieces of an answer as they come.
#[async_trait]
pub trait Pieces: Send + Sync {
    /// The next piece of the text; waits when the receiver cannot keep up.
    async fn piece(&self, text: &str);
}

/// Takes no pieces: for answers that no reader watches.
pub struct NoPieces;

#[async_trait]
impl Pieces for NoPieces {
    async fn piece(&self, _text: &str) {}
}

/// A provider of models.
#[async_trait]
pub trait Model: Send + Sync {
    /// Makes one call and yields the whole answer, whose text went to `pieces` as it came. Dropping the future ends the
    /// call and its connection.
    ///
    /// # Errors
    /// [`ModelError`]; pieces may have been handed over before.
    async fn call(&self, request: &ModelRequest, pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError>;

    /// Makes vectors of texts, one request for all of them.
    ///
    /// # Errors
    /// [`ModelError`]; [`ModelErrorKind::Rejected`] where the provider makes none.
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
    /// [`ModelError`]; [`ModelErrorKind::Rejected`] if the provider transcribes none, see [`can_transcribe`].
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

/// The provider that needs no endpoint: the built-in model.
pub const PRACTICE: &str = "practice";

/// The names of all providers.
pub const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", PRACTICE];

/// Whether a text is `<provider>/<model>` with a known provider. Only a call shows if the endpoint has the model.
#[must_use]
pub fn is_model_name(text: &str) -> bool {
    text.split_once('/').is_some_and(|(provider, model)| PROVIDERS.contains(&provider) && !model.is_empty())
}

/// The providers there are, by the name that stands before the `/`. Cheap to clone.
#[derive(Clone, Default)]
pub struct Models {
    providers: BTreeMap<&'static str, Arc<dyn Model>>,
    /// What sends to endpoints that graphs name.
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

    /// Lets graphs name endpoints of their own. The client says which addresses may be called.
    #[must_use]
    pub fn with_endpoints(mut self, outbound: Client, clock: Arc<dyn Clock>) -> Self {
        self.outbound = Some((outbound, clock));
        self
    }

    /// The provider of `<provider>/<model>`, and the name behind the `/`.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`], naming the providers there are.
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

    /// The same at an endpoint that is not the operator's; without an address at the provider's own.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] where the provider or the address is none.
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
