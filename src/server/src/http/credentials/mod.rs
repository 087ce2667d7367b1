//! The vault: credentials that graphs name. Secrets are never returned.

mod requests;
mod rotation;

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use auth::keyring::KeyRing;
use control::vault::{self, Vault};
use store::StoredCredential;
use uuid::Uuid;
use wire::operations::vault as operations;
use wire::{CredentialRecord, ErrorCode, Listed};

use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::guard::{Caller, RouteScope, VaultRead, VaultWrite};
use super::idempotency::ChangeReply;
use super::paging::PageQuery;
use super::routes::Routes;
use super::{App, time};

/// The list's name in cursors.
const LIST: &str = "credentials";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST, list)
        .on(&operations::CREATE, create)
        .on(&operations::UPDATE, update)
        .on(&operations::DELETE, delete)
        .on(&operations::ROTATE, rotation::rotate)
        .register(config);
}

/// The vault keys; an error if none are configured.
fn ring(app: &App) -> ApiResult<&KeyRing> {
    app.vault().ok_or_else(|| ApiError::new(ErrorCode::VaultKeyMissing))
}

fn keys(app: &App) -> ApiResult<Vault<'_>> {
    Ok(Vault { ring: ring(app)?, random: app.random() })
}

/// Lists the newest first.
async fn list(caller: Caller<VaultRead>, request: HttpRequest) -> ApiResult<Json<Listed<CredentialRecord>>> {
    ring(caller.app())?;
    let workspace = caller.workspace().await?;
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, LIST)?;
    let mut found = caller.store().credentials(workspace, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |credential| credential.id);
    Ok(Json(Listed { data: found.into_iter().map(record).collect(), next_cursor }))
}

/// Responds with 201 and everything but the secret.
async fn create(change: Change<VaultWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let keys = keys(caller.app())?;
    let workspace = caller.workspace().await?;
    let wanted = change.wanted(requests::create)?;
    let new = vault::New {
        id: caller.app().new_id()?,
        workspace,
        name: wanted.name,
        provider: wanted.provider,
        description: wanted.description,
        secret: wanted.secret,
        created_by: caller.name(),
    };
    change
        .make(async |changes| {
            let made = vault::create(changes, caller.requester(), keys, new).await?;
            ChangeReply::made(true, &record(made))
        })
        .await
}

/// Updates a credential's secret and description fields.
async fn update(change: Change<VaultWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let keys = keys(caller.app())?;
    let known = find(caller, &id).await?;
    let wanted = change.wanted(requests::update)?;
    change
        .make(async |changes| {
            let changed = vault::change(changes, caller.requester(), keys, known.id, wanted).await?;
            ChangeReply::ok(&record(changed))
        })
        .await
}

/// Responds with 204. The secret cannot be restored.
async fn delete(change: Change<VaultWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    ring(caller.app())?;
    let known = find(caller, &id).await?;
    change.wants_no_more()?;
    change.delete(async |changes| vault::delete(changes, caller.requester(), &known).await).await
}

/// Finds a credential by id, in a workspace that the caller can access.
async fn find<S: RouteScope>(caller: &Caller<S>, id: &str) -> ApiResult<StoredCredential> {
    let not_found = || ApiError::new(ErrorCode::CredentialNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let found = caller.store().credential(id).await?.ok_or_else(not_found)?;
    caller.enter_workspace_of(found.workspace_id).await?;
    Ok(found)
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
