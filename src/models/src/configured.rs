//! The providers that a service has from its configuration.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Clock, Secret};
use net::Client;

use super::{
    Anthropic, EmbedRequest, Embeddings, Gemini, Model, ModelAnswer, ModelError, ModelErrorKind,
    ModelRequest, Models, OpenAi, Pieces, TranscribeRequest, Transcript, anthropic, gemini, openai,
};

/// One endpoint: where it is, and the key that it wants.
#[derive(Debug, Clone, Default)]
pub struct EndpointSettings {
    /// Its address.
    pub base_url: Option<String>,
    /// Its key.
    pub api_key: Option<Secret>,
    /// Bytes of an answer; many unless given.
    pub most_bytes: Option<u64>,
}

/// What the operator set for the endpoints of each provider.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// `SERVICE_MODEL_BASE_URL`, which ends in `/v1` as OpenAI's clients have it, and `SERVICE_MODEL_API_KEY`.
    pub openai: EndpointSettings,
    /// `SERVICE_ANTHROPIC_BASE_URL` and `SERVICE_ANTHROPIC_API_KEY`.
    pub anthropic: EndpointSettings,
    /// `SERVICE_GEMINI_BASE_URL` and `SERVICE_GEMINI_API_KEY`.
    pub gemini: EndpointSettings,
}

/// A dialect that an endpoint speaks.
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
    /// All of them, by the name that stands before the `/`.
    pub const ALL: [(&'static str, Self); 3] =
        [("openai", Self::OpenAi), ("anthropic", Self::Anthropic), ("gemini", Self::Gemini)];

    /// The same settings; without an address with that of the provider itself.
    pub(super) fn or_own(self, settings: EndpointSettings) -> EndpointSettings {
        let own = match self {
            Self::OpenAi => openai::BASE,
            Self::Anthropic => anthropic::BASE,
            Self::Gemini => gemini::BASE,
        };
        EndpointSettings { base_url: settings.base_url.or_else(|| Some(own.to_owned())), ..settings }
    }

    /// The model behind an endpoint: the operator's, or one whose address and key another party names. `client` says
    /// which addresses may be called.
    ///
    /// Where there is neither address nor key, the provider is known and says what is missing when it is called.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] when the address is none.
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
        Ok(match self {
            Self::OpenAi => Arc::new(OpenAi::new(client, base, api_key, clock)?.bounded(most_bytes)),
            Self::Anthropic => Arc::new(Anthropic::new(client, base, api_key, clock)?.bounded(most_bytes)),
            Self::Gemini => Arc::new(Gemini::new(client, base, api_key, clock)?.bounded(most_bytes)),
        })
    }
}

impl Models {
    /// Every provider with an endpoint, as the operator set it. The client is the operator's face
    /// ([`Client::operator`]): the addresses are not a user's.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] when an address is none.
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

/// An endpoint that is not set, and the variable that would set it.
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
