//! The providers that a service has from its configuration.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::{Clock, Secret};
use net::Client;

use super::{Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Models, OpenAi, Pieces, Practice};

/// What the operator set for the endpoint behind `openai/<model>`.
#[derive(Debug, Clone, Default)]
pub struct ModelSettings {
    /// `SERVICE_MODEL_BASE_URL`; ends in `/v1` as OpenAI's clients have it.
    pub base_url: Option<String>,
    /// `SERVICE_MODEL_API_KEY`.
    pub api_key: Option<Secret>,
}

impl Models {
    /// `openai/<model>` as the operator set it, and `practice/<skill>`. The client is the operator's face
    /// ([`Client::operator`]): the address is not one of a user's.
    ///
    /// Where no address is set, `openai/<model>` is known and says what is missing when it is called.
    ///
    /// # Errors
    /// [`ModelErrorKind::NotConfigured`] when the address is none.
    pub fn configured(
        settings: ModelSettings,
        operator: Client,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ModelError> {
        let openai: Arc<dyn Model> = match settings.base_url {
            Some(base) => Arc::new(OpenAi::new(operator, &base, settings.api_key, Arc::clone(&clock))?),
            None => Arc::new(NotSet),
        };
        Ok(Self::default().with("openai", openai).with("practice", Arc::new(Practice::new(clock))))
    }
}

/// An endpoint that has no address.
struct NotSet;

#[async_trait]
impl Model for NotSet {
    async fn call(&self, _request: &ModelRequest, _pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        Err(ModelError {
            kind: ModelErrorKind::NotConfigured,
            message: "SERVICE_MODEL_BASE_URL is not set; practice/<skill> needs no endpoint".to_owned(),
            retry_after: None,
        })
    }
}
