//! Vault secrets for nodes that make outbound calls. Each call reads them again, so a rotation takes effect at once.

use std::sync::Arc;

use async_trait::async_trait;
use auth::envelope::open;
use auth::keyring::{KeyRing, KeyringError};
use engine::NodeError;
use engine::ports::Credentials;
use kernel::Secret;
use store::{SealedCredential, Store};
use uuid::Uuid;
use wire::ErrorCode;

use super::shares::WorkspaceShare;

/// Secrets in one workspace.
pub(crate) struct CredentialsOf<'a> {
    pub(crate) workspace: Uuid,
    pub(crate) store: &'a Store,
    pub(crate) reads: WorkspaceShare,
    pub(crate) ring: Option<&'a Arc<KeyRing>>,
}

#[async_trait]
impl Credentials for CredentialsOf<'_> {
    async fn resolve(&self, names: &[String]) -> Result<Vec<Secret>, NodeError> {
        let Some(ring) = self.ring else {
            let code = ErrorCode::VaultKeyMissing;
            return Err(NodeError::new(code, "the vault has no key; set SERVICE_VAULT_KEYS"));
        };
        let found = self.sealed(names).await?;
        names.iter().map(|name| opened(ring, name, &found)).collect()
    }

    async fn those_there(&self, names: &[String]) -> Result<Vec<Secret>, NodeError> {
        let Some(ring) = self.ring else { return Ok(Vec::new()) };
        let found = self.sealed(names).await?;
        Ok(names.iter().filter_map(|name| opened(ring, name, &found).ok()).collect())
    }
}

impl CredentialsOf<'_> {
    async fn sealed(&self, names: &[String]) -> Result<Vec<SealedCredential>, NodeError> {
        let _permit = self.reads.permit().await;
        self.store.sealed_credentials(self.workspace, names).await.map_err(|error| {
            tracing::warn!(%error, "failed to read the vault");
            NodeError::retryable(error.code(), error.code().message())
        })
    }
}

fn opened(ring: &KeyRing, name: &str, found: &[SealedCredential]) -> Result<Secret, NodeError> {
    let missing = || {
        let message = format!("this workspace has no credential '{name}'");
        NodeError::new(ErrorCode::CredentialMissing, message)
    };
    let sealed = found.iter().find(|sealed| sealed.name == name).ok_or_else(missing)?;
    open(ring, sealed.place(), &sealed.envelope).map_err(|error| {
        kernel::warn_once_a_minute!("vault.not_opened", %error, credential = %sealed.id, "failed to decrypt a secret of the vault");
        let code = match error {
            KeyringError::Missing(_) => ErrorCode::VaultKeyMissing,
            _ => ErrorCode::Internal,
        };
        NodeError::new(code, error.to_string())
    })
}
