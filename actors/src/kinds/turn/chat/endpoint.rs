//! Models named in chat settings, and their usage.

use std::sync::Arc;

use engine::NodeError;
use engine::ports::{Credentials, Spending};
use models::{EndpointSettings, Model, ModelError};
use uuid::Uuid;
use wire::ModelBinding;

use super::Chat;
use crate::run::CredentialsOf;
use crate::run::budget::usage_sum;

/// A model named in a setting cannot be used.
#[derive(Debug)]
pub(super) enum EndpointError {
    /// Its key cannot be read.
    Credential(NodeError),
    /// The model is unknown, or its endpoint is not configured.
    Model(ModelError),
}

impl Chat {
    /// Returns the model, and its name without the provider.
    pub(super) async fn model(
        &self,
        workspace: Uuid,
        binding: &ModelBinding,
    ) -> Result<(Arc<dyn Model>, String), EndpointError> {
        let models = &self.ports.models;
        if binding.credential.is_none() && binding.base_url.is_none() {
            let (model, name) = models.find(&binding.model).map_err(EndpointError::Model)?;
            return Ok((Arc::clone(model), name.to_owned()));
        }
        let mut endpoint =
            EndpointSettings { base_url: binding.base_url.clone(), ..EndpointSettings::default() };
        if let Some(credential) = &binding.credential {
            let vault = CredentialsOf {
                workspace,
                store: &self.ports.store,
                reads: self.ports.reads.for_workspace(workspace),
                ring: self.ports.vault.as_ref(),
            };
            let secrets = vault.resolve(std::slice::from_ref(credential)).await;
            endpoint.api_key = secrets.map_err(EndpointError::Credential)?.pop();
        }
        let (model, name) = models.find_at(&binding.model, endpoint).map_err(EndpointError::Model)?;
        Ok((model, name.to_owned()))
    }

    /// Records the usage of a call outside runs, if any. `session` pays.
    pub(super) async fn count(&self, workflow: Uuid, session: &str, used: &Spending) {
        if used.calls == 0 {
            return;
        }
        let (store, writer) = (&self.ports.store, self.ports.writer);
        if let Err(error) = store.add_chat_usage(workflow, session, writer, usage_sum(used)).await {
            tracing::warn!(%error, "failed to record the usage of a model");
        }
    }
}
