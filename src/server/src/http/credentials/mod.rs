//! The vault: credentials that graphs name. Secrets go in and never come out.

mod requests;
mod rotation;

use actix_web::web::{self, Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use auth::envelope::{Place, preview, seal};
use auth::keyring::{KeyRing, KeyringError};
use kernel::Secret;
use secrecy::ExposeSecret;
use store::{
    AuditEntry, AuditTarget, CredentialChange, NewCredential, SealedSecret, StoredCredential, first_place,
};
use uuid::Uuid;
use wire::{CredentialRecord, ErrorCode, Listed};

use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::guard::{Asked, Caller, VaultRead, VaultWrite};
use super::idempotency::Reply;
use super::paging::Part;
use super::query::Params;
use super::{App, get, resource, time};

/// In a cursor.
const LIST: &str = "credentials";

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(
            resource("/api/credentials", "GET, HEAD, POST")
                .route(get().to(list))
                .route(web::post().to(create)),
        )
        .service(
            resource("/api/credentials/{id}", "DELETE, PATCH")
                .route(web::patch().to(update))
                .route(web::delete().to(delete)),
        )
        .service(resource("/api/admin/vault/rotate", "POST").route(web::post().to(rotation::rotate)));
}

/// The keys, without which there is no vault.
fn ring(app: &App) -> ApiResult<&KeyRing> {
    app.vault().ok_or_else(|| ApiError::new(ErrorCode::VaultKeyMissing))
}

/// The newest first.
async fn list(caller: Caller<VaultRead>, request: HttpRequest) -> ApiResult<Json<Listed<CredentialRecord>>> {
    ring(caller.app())?;
    let workspace = caller.workspace().await?;
    let mut query = Params::of(&request);
    let part: Part<Uuid> = Part::of(&mut query, LIST);
    ApiError::refuse(query.finish())?;
    let mut found = caller.store().credentials(workspace, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |credential| credential.id);
    Ok(Json(Listed { data: found.into_iter().map(record).collect(), next_cursor }))
}

/// 201 with everything but the secret.
async fn create(change: Change<VaultWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    ring(caller.app())?;
    let workspace = caller.workspace().await?;
    let wanted = change.wanted(requests::create)?;
    let id = caller.app().new_id()?;
    let new = NewCredential {
        id,
        workspace_id: workspace,
        name: wanted.name,
        provider: wanted.provider,
        description: wanted.description,
        secret: sealed(caller.app(), first_place(workspace, id), &wanted.secret)?,
        created_by: caller.name(),
    };
    change
        .make(async |changes| {
            if !changes.hold_workspace(workspace).await? {
                return Err(ApiError::new(ErrorCode::WorkspaceForbidden));
            }
            let made = changes.create_credential(new).await?;
            changes.audit(&entry(caller, "credential.created", &made)).await?;
            Reply::made(true, &record(made))
        })
        .await
}

/// Updates a credential: its secret, and the fields that describe it.
async fn update(change: Change<VaultWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    ring(caller.app())?;
    let known = find(caller, &id).await?;
    let wanted = change.wanted(requests::update)?;
    change
        .make(async |changes| {
            let gone = || ApiError::new(ErrorCode::CredentialNotFound);
            let locked = changes.lock_credential(known.id).await?.ok_or_else(gone)?;
            let action = match &wanted.secret {
                Some(_) => "credential.rotated",
                None => "credential.changed",
            };
            let place = locked.place(locked.version.saturating_add(1));
            let secret = wanted.secret.map(|secret| sealed(caller.app(), place, &secret)).transpose()?;
            let changed =
                CredentialChange { provider: wanted.provider, description: wanted.description, secret };
            let changed = changes.change_credential(&locked, changed).await?;
            changes.audit(&entry(caller, action, &changed)).await?;
            Reply::ok(&record(changed))
        })
        .await
}

/// 204. Nothing brings the secret back.
async fn delete(change: Change<VaultWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    ring(caller.app())?;
    let known = find(caller, &id).await?;
    change.wants_no_more()?;
    change
        .make(async |changes| {
            if !changes.delete_credential(known.id).await? {
                return Err(ApiError::new(ErrorCode::CredentialNotFound));
            }
            changes.audit(&entry(caller, "credential.deleted", &known)).await?;
            Ok(Reply::nothing())
        })
        .await
}

/// The credential of this id, in a workspace that the caller may be in.
async fn find<S: Asked>(caller: &Caller<S>, id: &str) -> ApiResult<StoredCredential> {
    let not_found = || ApiError::new(ErrorCode::CredentialNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let found = caller.store().credential(id).await?.ok_or_else(not_found)?;
    caller.enter_workspace_of(found.workspace_id).await?;
    Ok(found)
}

fn sealed(app: &App, place: Place<'_>, secret: &Secret) -> ApiResult<SealedSecret> {
    let text = secret.expose_secret();
    let envelope = seal(ring(app)?, place, text.as_bytes(), app.random()).map_err(unsealed)?;
    Ok(SealedSecret { envelope, preview: preview(text) })
}

/// A missing key is named; nothing else is told.
fn unsealed(error: KeyringError) -> ApiError {
    match error {
        KeyringError::Missing(_) => {
            let message = format!("The vault cannot be read: {error}.");
            ApiError::new(ErrorCode::VaultKeyMissing).with_message(message).with_cause(error)
        }
        other => ApiError::new(ErrorCode::Internal).with_cause(other),
    }
}

fn entry<S>(caller: &Caller<S>, action: &'static str, of: &StoredCredential) -> AuditEntry {
    let target = AuditTarget { kind: "credential", id: of.id.to_string() };
    caller.audit(action, target, Some(of.workspace_id), Some(of.name.clone()))
}

fn record(row: StoredCredential) -> CredentialRecord {
    CredentialRecord {
        id: row.id.to_string(),
        name: row.name,
        provider: row.provider,
        description: row.description,
        preview: row.preview,
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    }
}
