//! Models that the settings of a chat name, and what they use.

use std::sync::Arc;

use engine::NodeError;
use engine::ports::Credentials;
use models::{EndpointSettings, Model, ModelError, Usage};
use store::ChatUsageSum;
use uuid::Uuid;

use super::Chat;
use crate::run::CredentialsOf;

/// A model that a setting names cannot be used.
#[derive(Debug)]
pub(super) enum EndpointError {
    /// Its key cannot be read.
    Credential(NodeError),
    /// There is no such model.
    Model(ModelError),
}

/// The model that a setting names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// `<provider>/<model>`.
    pub(super) model: &'a str,
    /// The secret in the vault that is the endpoint's key.
    pub(super) credential: Option<&'a str>,
    /// Another endpoint than the operator's.
    pub(super) base_url: Option<&'a str>,
}

impl Chat {
    /// The model, and its name behind the provider's.
    pub(super) async fn model(
        &self,
        workspace: Uuid,
        named: Named<'_>,
    ) -> Result<(Arc<dyn Model>, String), EndpointError> {
        let models = &self.ports.models;
        if named.credential.is_none() && named.base_url.is_none() {
            let (model, name) = models.find(named.model).map_err(EndpointError::Model)?;
            return Ok((Arc::clone(model), name.to_owned()));
        }
        let mut endpoint =
            EndpointSettings { base_url: named.base_url.map(str::to_owned), ..EndpointSettings::default() };
        if let Some(credential) = named.credential {
            let vault = CredentialsOf {
                workspace,
                store: &self.ports.store,
                reads: self.ports.reads.of(workspace),
                ring: self.ports.vault.as_ref(),
            };
            let secrets = vault.resolve(&[credential.to_owned()]).await;
            endpoint.api_key = secrets.map_err(EndpointError::Credential)?.pop();
        }
        let (model, name) = models.find_at(named.model, endpoint).map_err(EndpointError::Model)?;
        Ok((model, name.to_owned()))
    }

    /// Counts a call outside of runs. `chat`: the workflow, and the session that pays.
    pub(super) async fn count(&self, chat: (Uuid, &str), model: &str, usage: Usage) {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let used = ChatUsageSum {
            calls: 1,
            input_tokens: whole(usage.input_tokens),
            output_tokens: whole(usage.output_tokens),
            usd: models::cost(model, usage).unwrap_or_default(),
        };
        if let Err(error) = self.ports.store.add_chat_usage(chat, self.ports.writer, used).await {
            tracing::warn!(%error, "failed to count a call of a model");
        }
    }
}
