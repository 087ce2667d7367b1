//! The vault's credentials.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, delete, get, json, operations, patch, post};
use crate::{CreateCredential, CredentialRecord, ErrorCode, Listed, Scope, UpdateCredential, VaultRotation};

operations! {
    LIST = get("/api/credentials", "list_credentials", "Lists the credentials of the workspace, newest first.")
        .needs(Scope::VaultRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<CredentialRecord>))])
        .errors(&[ErrorCode::VaultKeyMissing]);

    CREATE = post("/api/credentials", "create_credential", "Creates a credential.")
        .needs(Scope::VaultWrite)
        .repeatable()
        .body(json!(CreateCredential, examples::CREATE))
        .answers(&[Answer::new(201, json!(CredentialRecord, examples::RECORD))])
        .errors(&[ErrorCode::VaultKeyMissing, ErrorCode::CredentialNameTaken]);

    UPDATE = patch(
        "/api/credentials/{id}",
        "update_credential",
        "Replaces the secret of a credential, or changes `provider` and `description`.",
    )
    .needs(Scope::VaultWrite)
    .repeatable()
    .body(json!(UpdateCredential, examples::UPDATE))
    .answers(&[Answer::new(200, json!(CredentialRecord))])
    .errors(&[ErrorCode::VaultKeyMissing, ErrorCode::CredentialNotFound]);

    DELETE = delete("/api/credentials/{id}", "delete_credential", "Deletes a credential permanently.")
        .needs(Scope::VaultWrite)
        .repeatable()
        .answers(&[Answer::empty(204)])
        .errors(&[ErrorCode::VaultKeyMissing, ErrorCode::CredentialNotFound]);

    ROTATE = post(
        "/api/admin/vault/rotate",
        "rotate_vault_key",
        "Re-encrypts a part of the secrets with the active key. For callers with the scope in every workspace.",
    )
    .needs(Scope::VaultWrite)
    .answers(&[Answer::new(200, json!(VaultRotation, examples::ROTATION))])
    .errors(&[ErrorCode::VaultKeyMissing]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "name": "stripe",
  "secret": "sk_test_4eC39HqLyjWDarjtT1x4",
  "provider": "stripe",
  "description": "Test account"
}"#;

    pub(super) const RECORD: &str = r#"{
  "id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "name": "stripe",
  "provider": "stripe",
  "description": "Test account",
  "preview": "sk_…x4",
  "created_at": "2026-11-22T09:00:00.000000Z",
  "updated_at": "2026-11-22T09:00:00.000000Z"
}"#;

    pub(super) const UPDATE: &str = r#"{
  "secret": "sk_test_8aB21KpMzkXEbskuU2y5",
  "description": null
}"#;

    pub(super) const ROTATION: &str = r#"{
  "active": "2026-11",
  "rewrapped": 1000,
  "remaining": 240
}"#;
}
