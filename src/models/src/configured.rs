//! The configured model providers.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Clock, Secret};
use net::Client;

use super::anthropic::{self, Anthropic};
use super::gemini::{self, Gemini};
use super::transport::{Endpoint, KeyAs};
use super::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Models, OpenAi,
    Pieces, TranscribeRequest, Transcript, openai,
};

/// An endpoint's base URL, API key and answer limit.
#[derive(Debug, Clone, Default)]
pub struct EndpointSettings {
    /// The base URL.
    pub base_url: Option<String>,
    /// The API key.
    pub api_key: Option<Secret>,
    /// Maximum answer bytes; large by default.
    pub most_bytes: Option<u64>,
}

/// The operator's endpoint settings per provider.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// `SERVICE_MODEL_BASE_URL`, which ends in `/v1` as for OpenAI's clients, and `SERVICE_MODEL_API_KEY`.
    pub openai: EndpointSettings,
    /// `SERVICE_ANTHROPIC_BASE_URL` and `SERVICE_ANTHROPIC_API_KEY`.
    pub anthropic: EndpointSettings,
    /// `SERVICE_GEMINI_BASE_URL` and `SERVICE_GEMINI_API_KEY`.
    pub gemini: EndpointSettings,
}

/// An endpoint's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `openai/<model>`.
    OpenAi,
    /// `anthropic/<model>`.
    Anthropic,
    /// `gemini/<model>`.
    Gemini,
}

impl Dialect {
    /// All dialects with their prefix before the `/`.
    pub const ALL: [(&'static str, Self); 3] =
        [("openai", Self::OpenAi), ("anthropic", Self::Anthropic), ("gemini", Self::Gemini)];

    /// Fills in the provider's default base URL if none is set.
    pub(super) fn or_own(self, settings: EndpointSettings) -> EndpointSettings {
        let own = match self {
            Self::OpenAi => openai::BASE,
            Self::Anthropic => anthropic::BASE,
            Self::Gemini => gemini::BASE,
        };
        EndpointSettings { base_url: settings.base_url.or_else(|| Some(own.to_owned())), ..settings }
    }

    /// Creates the model at an endpoint: the operator's, or one whose URL and key another party provides. `client`
    /// decides which addresses may be called.
    ///
    /// Without a URL and a key, the model returns an error that names the missing setting on each call.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] if the URL is not valid.
    pub fn at(
        self,
        settings: EndpointSettings,
        client: Client,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Model>, ModelError> {
        let EndpointSettings { base_url, api_key, most_bytes } = settings;
        let base = match (self, &base_url, &api_key) {
            (_, Some(base), _) => base.as_str(),
            (Self::Anthropic, None, Some(_)) => anthropic::BASE,
            (Self::Gemini, None, Some(_)) => gemini::BASE,
            (Self::OpenAi, None, _) => return Ok(Arc::new(NotSet("SERVICE_MODEL_BASE_URL"))),
            (Self::Anthropic, None, None) => return Ok(Arc::new(NotSet("SERVICE_ANTHROPIC_API_KEY"))),
            (Self::Gemini, None, None) => return Ok(Arc::new(NotSet("SERVICE_GEMINI_API_KEY"))),
        };
        let key_as = match self {
            Self::OpenAi => KeyAs::Bearer,
            Self::Anthropic => anthropic::KEY_AS,
            Self::Gemini => gemini::KEY_AS,
        };
        let endpoint = Endpoint::new(client, base, api_key, key_as, clock)?.bounded(most_bytes);
        Ok(match self {
            Self::OpenAi => Arc::new(OpenAi(endpoint)),
            Self::Anthropic => Arc::new(Anthropic::new(endpoint)),
            Self::Gemini => Arc::new(Gemini::new(endpoint)),
        })
    }
}

impl Models {
    /// Every provider at the operator's endpoints. Pass the operator client ([`Client::operator`]): users do not choose
    /// these URLs.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] if a URL is not valid.
    pub fn configured(
        settings: ModelSettings,
        operator: &Client,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, ModelError> {
        let ModelSettings { openai, anthropic, gemini } = settings;
        let mut models = Self::default();
        for ((name, dialect), settings) in Dialect::ALL.into_iter().zip([openai, anthropic, gemini]) {
            models = models.with(name, dialect.at(settings, operator.clone(), Arc::clone(clock))?);
        }
        Ok(models)
    }
}

/// A missing endpoint, and the variable that configures it.
struct NotSet(&'static str);

impl NotSet {
    fn error(&self) -> ModelError {
        ModelError {
            kind: ModelErrorKind::NotConfigured,
            message: format!("{} is not set; practice/<skill> needs no endpoint", self.0),
            retry_after: None,
        }
    }
}

#[async_trait]
impl Model for NotSet {
    async fn call(&self, _request: &ModelRequest, _pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        Err(self.error())
    }

    async fn embed(&self, _request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        Err(self.error())
    }

    async fn transcribe(&self, _request: &TranscribeRequest) -> Result<Transcript, ModelError> {
        Err(self.error())
    }
}
