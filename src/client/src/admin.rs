//! Service tokens and the audit trail.

use serde_json::json;
use wire::operations::tokens;
use wire::{
    AuditRecord, CreateServiceToken, CreatedServiceToken, IssuedServiceToken, Listed, RotateServiceToken,
    ServiceTokenRecord,
};

use crate::{Client, ClientError, Part};

/// A filter for audit trail rows; unset fields match all.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// The action, as `noun.verb`.
    pub action: Option<String>,
    /// The actor's id.
    pub actor: Option<String>,
    /// `success` or `denied`.
    pub outcome: Option<String>,
}

/// Calls fail as [`crate::Answer::ok`] does. No error repeats a secret.
impl Client {
    /// `POST /api/admin/service-tokens`: creates a service token. Its secret cannot be shown again.
    ///
    /// # Errors
    /// See above.
    pub async fn create_service_token(
        &self,
        new: &CreateServiceToken,
    ) -> Result<CreatedServiceToken, ClientError> {
        self.change(&tokens::CREATE, &[], Some(new)).await?.ok_secret()
    }

    /// `GET /api/admin/service-tokens`: a list page, newest first; optionally only tokens with one status.
    ///
    /// # Errors
    /// See above.
    pub async fn service_tokens(
        &self,
        status: Option<&str>,
        part: &Part,
    ) -> Result<Listed<ServiceTokenRecord>, ClientError> {
        let mut query = part.query();
        query.extend(status.map(|status| ("status", status.to_owned())));
        self.read(&tokens::LIST, &[], &query).await?.ok()
    }

    /// `GET /api/admin/service-tokens/{id}`: one service token.
    ///
    /// # Errors
    /// See above.
    pub async fn service_token(&self, id: &str) -> Result<ServiceTokenRecord, ClientError> {
        self.read(&tokens::READ, &[id], &[]).await?.ok()
    }

    /// `POST /api/admin/service-tokens/{id}/rotate`: replaces a token's secret; the new one is shown only here.
    ///
    /// # Errors
    /// See above.
    pub async fn rotate_service_token(
        &self,
        id: &str,
        rotate: &RotateServiceToken,
    ) -> Result<IssuedServiceToken, ClientError> {
        self.change(&tokens::ROTATE, &[id], Some(rotate)).await?.ok_secret()
    }

    /// `POST /api/admin/service-tokens/{id}/revoke`: revokes a token, which is rejected from then on. Idempotent.
    ///
    /// # Errors
    /// See above.
    pub async fn revoke_service_token(
        &self,
        id: &str,
        reason: &str,
    ) -> Result<ServiceTokenRecord, ClientError> {
        let body = json!({"reason": reason});
        self.change(&tokens::REVOKE, &[id], Some(&body)).await?.ok()
    }

    /// `GET /api/admin/audit`: an audit trail page, newest first.
    ///
    /// # Errors
    /// See above.
    pub async fn audit_trail(
        &self,
        filter: &AuditFilter,
        part: &Part,
    ) -> Result<Listed<AuditRecord>, ClientError> {
        let mut query = part.query();
        let given = [("action", &filter.action), ("actor", &filter.actor), ("outcome", &filter.outcome)];
        query.extend(given.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
        self.read(&tokens::AUDIT, &[], &query).await?.ok()
    }
}
