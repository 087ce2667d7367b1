//! The vault: credentials named in graphs. Secrets are sealed before they are stored.

use auth::envelope::{Place, preview, seal};
use auth::keyring::{KeyRing, KeyringError};
use kernel::{Random, Secret};
use secrecy::ExposeSecret as _;
use store::{
    AuditEntry, AuditTarget, Changes, CredentialChange, NewCredential, SealedSecret, StoredCredential,
    first_place,
};
use uuid::Uuid;
use wire::{AuditAction, ErrorCode};

use crate::{Decision, Refusal, Requester};

/// The keys that seal secrets.
#[derive(Clone, Copy)]
pub struct Vault<'a> {
    /// The service's keys.
    pub ring: &'a KeyRing,
    /// Source of data keys.
    pub random: &'a dyn Random,
}

impl Vault<'_> {
    fn sealed(&self, place: Place<'_>, secret: &Secret) -> Decision<SealedSecret> {
        let text = secret.expose_secret();
        let envelope = seal(self.ring, place, text.as_bytes(), self.random).map_err(unsealed)?;
        Ok(SealedSecret { envelope, preview: preview(text) })
    }
}

/// A credential to create.
pub struct New {
    /// Its id.
    pub id: Uuid,
    /// Its workspace.
    pub workspace: Uuid,
    /// The name in graphs.
    pub name: String,
    /// The provider that it is for.
    pub provider: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// The secret.
    pub secret: Secret,
    /// The creator.
    pub created_by: Option<String>,
}

/// Changes to a credential; `None` leaves a field unchanged.
pub struct CredentialUpdate {
    /// The provider that it is for.
    pub provider: Option<Option<String>>,
    /// A description for people.
    pub description: Option<Option<String>>,
    /// The new secret.
    pub secret: Option<Secret>,
}

/// Creates a credential.
///
/// # Errors
/// [`ErrorCode::CredentialNameTaken`], [`ErrorCode::WorkspaceForbidden`] if the workspace was deleted meanwhile.
pub async fn create(
    changes: &mut Changes,
    by: Requester<'_>,
    vault: Vault<'_>,
    new: New,
) -> Decision<StoredCredential> {
    let New { id, workspace, name, provider, description, secret, created_by } = new;
    let secret = vault.sealed(first_place(workspace, id), &secret)?;
    if !changes.hold_workspace(workspace).await? {
        return Err(Refusal::new(ErrorCode::WorkspaceForbidden));
    }
    let workspace_id = workspace;
    let new = NewCredential { id, workspace_id, name, provider, description, secret, created_by };
    let made = changes.create_credential(new).await?;
    changes.audit(&entry(by, AuditAction::CredentialCreated, &made)).await?;
    Ok(made)
}

/// Changes a credential: its secret, and the fields that describe it.
///
/// # Errors
/// [`ErrorCode::CredentialNotFound`].
pub async fn change(
    changes: &mut Changes,
    by: Requester<'_>,
    vault: Vault<'_>,
    id: Uuid,
    wanted: CredentialUpdate,
) -> Decision<StoredCredential> {
    let gone = || Refusal::new(ErrorCode::CredentialNotFound);
    let locked = changes.lock_credential(id).await?.ok_or_else(gone)?;
    let action =
        if wanted.secret.is_some() { AuditAction::CredentialRotated } else { AuditAction::CredentialChanged };
    let place = locked.place(locked.version.saturating_add(1));
    let secret = wanted.secret.map(|secret| vault.sealed(place, &secret)).transpose()?;
    let change = CredentialChange { provider: wanted.provider, description: wanted.description, secret };
    let changed = changes.change_credential(&locked, change).await?;
    changes.audit(&entry(by, action, &changed)).await?;
    Ok(changed)
}

/// Deletes a credential permanently.
///
/// # Errors
/// [`ErrorCode::CredentialNotFound`].
pub async fn delete(changes: &mut Changes, by: Requester<'_>, credential: &StoredCredential) -> Decision<()> {
    if !changes.delete_credential(credential.id).await? {
        return Err(Refusal::new(ErrorCode::CredentialNotFound));
    }
    Ok(changes.audit(&entry(by, AuditAction::CredentialDeleted, credential)).await?)
}

/// The refusal for a sealed value that does not open. It names a missing key and hides every other reason.
#[must_use]
pub fn unsealed(error: KeyringError) -> Refusal {
    let refused = match &error {
        KeyringError::Missing(_) => {
            let message = format!("The vault cannot be read: {error}.");
            Refusal::new(ErrorCode::VaultKeyMissing).with_message(message)
        }
        _ => Refusal::new(ErrorCode::Internal),
    };
    Refusal { cause: Some(error.to_string()), ..refused }
}

fn entry(by: Requester<'_>, action: AuditAction, of: &StoredCredential) -> AuditEntry {
    let target = AuditTarget { kind: "credential", id: of.id.to_string() };
    by.audit(action, target, Some(of.workspace_id), Some(of.name.clone()))
}
