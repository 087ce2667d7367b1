//! Re-seals all secrets with the ring's active key, one batch per request.
//!
//! Rows are re-wrapped one by one while readers continue to read them. An interrupted caller resumes with the next
//! request. A row that changes meanwhile gets the active key through that change.

use actix_web::HttpResponse;
use auth::envelope::rewrap;
use auth::keyring::KeyRing;
use control::vault::unsealed;
use store::AuditTarget;
use wire::{AuditAction, ErrorCode, VaultRotation};

use super::ring;
use crate::http::App;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::VaultWrite;
use crate::http::idempotency::ChangeReply;

/// Secrets per request.
const PART: i64 = 200;

/// Rotates keys. Only for callers with access to all workspaces, because the ring belongs to the whole service.
pub(super) async fn rotate(change: Change<VaultWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    if caller.principal().workspaces().is_some() {
        return Err(caller.denied(ApiError::new(ErrorCode::WorkspaceForbidden)).await);
    }
    let ring = ring(caller.app())?;
    change.wants_no_more()?;
    let mut rewrapped = rewrap_part(caller.app(), ring).await?;
    rewrapped += caller.store().reseal_service_keys(ring).await.map_err(|error| match error {
        store::StoreError::Key(error) => ApiError::from(unsealed(error)),
        other => other.into(),
    })?;
    let remaining = remaining(caller.app(), ring).await?;
    let target = AuditTarget { kind: "vault_key", id: ring.active().to_owned() };
    let entry = caller.requester().audit(
        AuditAction::VaultRotated,
        target,
        None,
        Some(format!("{rewrapped} rewrapped")),
    );
    let answer = VaultRotation { active: ring.active().to_owned(), rewrapped, remaining };
    change
        .make(async |changes| {
            if rewrapped > 0 {
                changes.audit(&entry).await?;
            }
            ChangeReply::ok(&answer)
        })
        .await
}

async fn rewrap_part(app: &App, ring: &KeyRing) -> ApiResult<u64> {
    let mut rewrapped = 0;
    for found in app.store().credentials_not_under(ring.active(), None, PART).await? {
        let key = rewrap(ring, found.place(), &found.envelope.key, app.random()).map_err(unsealed)?;
        rewrapped += u64::from(app.store().rewrap_credential(&found, key).await?);
    }
    Ok(rewrapped)
}

async fn remaining(app: &App, ring: &KeyRing) -> ApiResult<u64> {
    let keys = app.store().credential_keys().await?;
    let others = keys.into_iter().filter(|(id, _)| id != ring.active());
    Ok(others.map(|(_, count)| u64::try_from(count).unwrap_or_default()).sum())
}
