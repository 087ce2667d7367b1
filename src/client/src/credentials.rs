//! Credentials in the vault.

use serde_json::json;
use wire::operations::vault;
use wire::{CreateCredential, CredentialRecord, Listed, UpdateCredential, VaultRotation};

use crate::{Client, ClientError, Part};

/// Calls fail as [`crate::Answer::ok`] does. No response and no error contains a secret.
impl Client {
    /// `GET /api/credentials`: a list page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn credentials(&self, part: &Part) -> Result<Listed<CredentialRecord>, ClientError> {
        self.read(&vault::LIST, &[], &part.query()).await?.ok()
    }

    /// `POST /api/credentials`: creates a credential.
    ///
    /// # Errors
    /// See above.
    pub async fn create_credential(&self, new: &CreateCredential) -> Result<CredentialRecord, ClientError> {
        self.change(&vault::CREATE, &[], Some(new)).await?.ok()
    }

    /// `PATCH /api/credentials/{id}`: replaces a credential's secret, or changes its description.
    ///
    /// # Errors
    /// See above.
    pub async fn change_credential(
        &self,
        id: &str,
        change: &UpdateCredential,
    ) -> Result<CredentialRecord, ClientError> {
        self.change(&vault::UPDATE, &[id], Some(change)).await?.ok()
    }

    /// `DELETE /api/credentials/{id}`: deletes a credential permanently.
    ///
    /// # Errors
    /// See above.
    pub async fn delete_credential(&self, id: &str) -> Result<(), ClientError> {
        self.change(&vault::DELETE, &[id], None::<&()>).await?.done()
    }

    /// `POST /api/admin/vault/rotate`: re-encrypts a batch of secrets with the active key. Repeat while some remain.
    ///
    /// # Errors
    /// See above.
    pub async fn rotate_vault(&self) -> Result<VaultRotation, ClientError> {
        self.change(&vault::ROTATE, &[], Some(&json!({}))).await?.ok()
    }
}
