//! Creates, lists, shows, rotates and revokes service tokens.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use auth::scope::ScopeSet;
use auth::service_token::{TokenDigest, fresh};
use chrono::TimeDelta;
use control::{Requester, tokens};
use kernel::Secret;
use secrecy::ExposeSecret;
use store::{Cause, Changes, NewServiceToken, ServiceTokenStatus, StoredServiceToken};
use uuid::Uuid;
use wire::{
    AccessChange, CreateServiceToken, CreatedServiceToken, ErrorCode, IssuedServiceToken, Listed,
    ServiceTokenRecord,
};

use super::{records, requests};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, RouteScope, TokensRead, TokensWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::PageQuery;
use crate::http::query::{self, Params};

/// The list's name in cursors.
const LIST: &str = "service-tokens";

/// Responds with 201 and the secret, which no later response repeats.
pub(super) async fn create(change: Change<TokensWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let wanted = change.wanted(requests::create)?;
    let (store, by) = (caller.store(), caller.requester());
    let reach = tokens::check_reach(store, by, TokensWrite::SCOPE, &wanted.scopes, &wanted.workspaces);
    caller.allowed(reach.await).await?;
    let workspace = tokens::only_workspace(store, &wanted.workspaces).await?;
    let is_first = caller.app().gate().awaits_first_token().await?;
    let admin = (is_first && !is_admin(&wanted)).then(|| NewToken::new(caller, admin())).transpose()?;
    let new = NewToken::new(caller, wanted)?;
    let answer = change
        .make(async |changes| {
            let admin_token = match admin {
                Some(admin) => Some(admin.create(changes, by, None).await?),
                None => None,
            };
            let issued = new.create(changes, by, workspace).await?;
            let message = TURNED_ON.to_owned();
            let access_change = is_first.then_some(AccessChange { message, admin_token });
            Ok(ChangeReply::made(true, &CreatedServiceToken { issued, access_change })?.secret())
        })
        .await;
    caller.app().gate().tokens_changed();
    answer
}

/// The notice that the first service token changed access.
const TURNED_ON: &str = "This was the service's first service token: authentication is now required, and requests without a \
                         credential are refused.";

/// Whether the token grants everything that an open service allows.
fn is_admin(wanted: &CreateServiceToken) -> bool {
    let has_all = ScopeSet::of_texts(&wanted.scopes).missing(ScopeSet::all()).is_empty();
    has_all && wanted.workspaces.is_empty() && wanted.expires_in.is_none()
}

fn admin() -> CreateServiceToken {
    CreateServiceToken {
        name: Some("admin".to_owned()),
        scopes: ScopeSet::all().texts(),
        ..CreateServiceToken::default()
    }
}

/// A token to store, with its secret.
struct NewToken {
    secret: Secret,
    row: NewServiceToken,
}

impl NewToken {
    fn new(caller: &Caller<TokensWrite>, wanted: CreateServiceToken) -> ApiResult<Self> {
        let (app, now) = (caller.app(), caller.app().clock().now());
        let id = app.new_id()?;
        let secret = fresh(id, app.random())?;
        let row = NewServiceToken {
            id,
            name: wanted.name,
            scopes: wanted.scopes,
            workspaces: wanted.workspaces,
            cause: Cause::from_principal(caller.principal()),
            issued_at: now,
            expires_at: wanted.expires_in.map(|seconds| now + TimeDelta::seconds(seconds)),
            digest: TokenDigest::from_token(secret.expose_secret()),
        };
        Ok(Self { secret, row })
    }

    async fn create(
        self,
        changes: &mut Changes,
        by: Requester<'_>,
        workspace: Option<Uuid>,
    ) -> ApiResult<IssuedServiceToken> {
        let now = self.row.issued_at;
        let token = records::token(tokens::create(changes, by, self.row, workspace).await?, now);
        Ok(IssuedServiceToken { secret: self.secret.expose_secret().to_owned(), token })
    }
}

/// Lists the newest first, filtered by `?status=`.
pub(super) async fn list(
    caller: Caller<TokensRead>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<ServiceTokenRecord>>> {
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, LIST);
    let status = query.text("status");
    let wanted = status.as_deref().and_then(ServiceTokenStatus::parse);
    if status.is_some() && wanted.is_none() {
        let names = ServiceTokenStatus::ALL.map(ServiceTokenStatus::as_str).join(", ");
        query.note("status", "choice", format!("must be one of {names}"));
    }
    ApiError::refuse(query.finish())?;
    let (store, by, most) = (caller.store(), caller.requester(), part.wanted());
    let mut found = tokens::seen(store, by, TokensRead::SCOPE, wanted, part.after, most).await?;
    let next_cursor = part.cut(LIST, &mut found, |token| token.id);
    let now = caller.app().clock().now();
    let data = found.into_iter().map(|token| records::token(token, now)).collect();
    Ok(Json(Listed { data, next_cursor }))
}

pub(super) async fn show(
    caller: Caller<TokensRead>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<ServiceTokenRecord>> {
    let token = found(&caller, &id).await?;
    query::none(&request)?;
    Ok(Json(records::token(token, caller.app().clock().now())))
}

/// Replaces the token's secret and shows the new one once. Earlier secrets stay valid for `overlap_seconds`.
pub(super) async fn rotate(change: Change<TokensWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let token = found(caller, &id).await?;
    let wanted = change.wanted_if_any(requests::rotate)?;
    // The caller receives the secret and with it all rights of the token.
    let (store, by) = (caller.store(), caller.requester());
    let reach = tokens::check_reach(store, by, TokensWrite::SCOPE, &token.scopes, &token.workspaces);
    caller.allowed(reach.await).await?;
    let secret = fresh(token.id, caller.app().random())?;
    let digest = TokenDigest::from_token(secret.expose_secret());
    let now = caller.app().clock().now();
    let old_until = now + TimeDelta::seconds(wanted.overlap_seconds);
    let workspace = tokens::only_workspace(store, &token.workspaces).await?;
    change
        .make(async |changes| {
            let rotated = tokens::rotate(changes, by, &token, digest, old_until, workspace).await?;
            let secret = secret.expose_secret().to_owned();
            Ok(ChangeReply::ok(&IssuedServiceToken { secret, token: records::token(rotated, now) })?.secret())
        })
        .await
}

/// Responds with 200 and the record.
pub(super) async fn revoke(change: Change<TokensWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    end(change, &id, ChangeReply::ok).await
}

/// Like [`revoke`], but responds with 204.
pub(super) async fn delete(change: Change<TokensWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    end(change, &id, |_| Ok(ChangeReply::nothing())).await
}

async fn end(
    change: Change<TokensWrite>,
    id: &str,
    reply: impl FnOnce(&ServiceTokenRecord) -> ApiResult<ChangeReply>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let token = found(caller, id).await?;
    let reason = change.wanted_if_any(requests::revoke)?;
    let workspace = tokens::only_workspace(caller.store(), &token.workspaces).await?;
    let now = caller.app().clock().now();
    let answer = change
        .make(async |changes| {
            let revoked = tokens::revoke(changes, caller.requester(), token.id, &reason, workspace).await?;
            reply(&records::token(revoked, now))
        })
        .await;
    caller.app().gate().tokens_changed();
    answer
}

/// Finds the token that a path names, if the caller may see it.
async fn found<S: RouteScope>(caller: &Caller<S>, id: &str) -> ApiResult<StoredServiceToken> {
    let not_found = || ApiError::new(ErrorCode::ServiceTokenNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let token = caller.store().service_token(id).await?.ok_or_else(not_found)?;
    if tokens::sees(caller.store(), caller.requester(), S::SCOPE, &token).await? {
        return Ok(token);
    }
    Err(caller.denied(ApiError::new(ErrorCode::WorkspaceForbidden)).await)
}
