//! Service tokens: made, listed, shown, rotated, revoked.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use auth::role::Role;
use auth::scope::{Scope, ScopeSet};
use auth::service_token::{TokenDigest, fresh};
use chrono::TimeDelta;
use secrecy::ExposeSecret;
use store::{AuditTarget, Cause, Changes, NewServiceToken, ServiceTokenStatus, StoredServiceToken};
use uuid::Uuid;
use wire::{CreateServiceToken, ErrorCode, IssuedServiceToken, Listed, ServiceTokenRecord};

use super::{reach, records, requests};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Asked, Caller, TokensRead, TokensWrite};
use crate::http::idempotency::Reply;
use crate::http::paging::Part;
use crate::http::query::Params;

/// In a cursor.
const LIST: &str = "service-tokens";

/// 201 with the secret, which no later answer shows again.
pub(super) async fn create(change: Change<TokensWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let wanted = change.wanted(requests::create)?;
    if let Err(refused) = reach::check(caller, &wanted.scopes, &wanted.workspaces).await {
        return Err(caller.denied(refused).await);
    }
    let workspace = reach::only(caller, &wanted.workspaces).await?;
    let id = caller.app().new_id()?;
    let secret = fresh(id, caller.app().random())?;
    let new = new_token(caller, id, wanted, TokenDigest::of(secret.expose_secret()));
    let entry = caller.audit("service_token.created", target(id), workspace, None);
    let now = caller.app().clock().now();
    let answer = change
        .make(async |changes| {
            hold(changes, caller, &new.scopes, &new.workspaces, None).await?;
            let token = records::token(changes.create_service_token(new).await?, now);
            changes.audit(&entry).await?;
            let secret = secret.expose_secret().to_owned();
            Ok(Reply::made(true, &IssuedServiceToken { secret, token })?.secret())
        })
        .await;
    caller.app().gate().tokens_changed();
    answer
}

fn new_token(
    caller: &Caller<TokensWrite>,
    id: Uuid,
    wanted: CreateServiceToken,
    digest: TokenDigest,
) -> NewServiceToken {
    let now = caller.app().clock().now();
    NewServiceToken {
        id,
        name: wanted.name,
        scopes: wanted.scopes,
        workspaces: wanted.workspaces,
        cause: Cause::of(caller.principal()),
        issued_at: now,
        expires_at: wanted.expires_in.map(|seconds| now + TimeDelta::seconds(seconds)),
        digest,
    }
}

/// The newest first; `?status=` leaves others out.
pub(super) async fn list(
    caller: Caller<TokensRead>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<ServiceTokenRecord>>> {
    let mut query = Params::of(&request);
    let part: Part<Uuid> = Part::of(&mut query, LIST);
    let status = query.text("status");
    let wanted = status.as_deref().and_then(ServiceTokenStatus::parse);
    if status.is_some() && wanted.is_none() {
        let names = ServiceTokenStatus::ALL.map(ServiceTokenStatus::as_str).join(", ");
        query.note("status", "choice", format!("must be one of {names}"));
    }
    ApiError::refuse(query.finish())?;
    let mut found = seen(&caller, wanted, &part).await?;
    let next_cursor = part.cut(LIST, &mut found, |token| token.id);
    let now = caller.app().clock().now();
    let data = found.into_iter().map(|token| records::token(token, now)).collect();
    Ok(Json(Listed { data, next_cursor }))
}

/// As many tokens as the part wants, of those that the caller may see.
async fn seen(
    caller: &Caller<TokensRead>,
    status: Option<ServiceTokenStatus>,
    part: &Part<Uuid>,
) -> ApiResult<Vec<StoredServiceToken>> {
    let (mut seen, mut before) = (Vec::new(), part.after);
    let wanted = usize::try_from(part.wanted()).unwrap_or(usize::MAX);
    loop {
        let more = caller.store().service_tokens(status, before, part.wanted()).await?;
        let last = more.len() < wanted;
        before = more.last().map(|token| token.id);
        for token in more {
            if seen.len() < wanted && reach::sees(caller, &token).await? {
                seen.push(token);
            }
        }
        if last || seen.len() >= wanted {
            return Ok(seen);
        }
    }
}

pub(super) async fn show(
    caller: Caller<TokensRead>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<ServiceTokenRecord>> {
    let token = found(&caller, &id).await?;
    ApiError::refuse(Params::of(&request).finish())?;
    Ok(Json(records::token(token, caller.app().clock().now())))
}

/// Gives the token another secret, shown this once; the ones before stay good for `overlap_seconds`.
pub(super) async fn rotate(change: Change<TokensWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let token = found(caller, &id).await?;
    let wanted = change.wanted_if_any(requests::rotate)?;
    // The caller who receives the secret has what the token has.
    if let Err(refused) = reach::check(caller, &token.scopes, &token.workspaces).await {
        return Err(caller.denied(refused).await);
    }
    let secret = fresh(token.id, caller.app().random())?;
    let digest = TokenDigest::of(secret.expose_secret());
    let now = caller.app().clock().now();
    let old_until = now + TimeDelta::seconds(wanted.overlap_seconds);
    let workspace = reach::only(caller, &token.workspaces).await?;
    let entry = caller.audit("service_token.rotated", target(token.id), workspace, None);
    change
        .make(async |changes| {
            hold(changes, caller, &token.scopes, &token.workspaces, Some(token.id)).await?;
            let cause = Cause::of(caller.principal());
            let rotated = changes.rotate_service_token(token.id, digest, &cause, old_until).await?;
            let rotated = rotated.ok_or_else(|| ApiError::new(ErrorCode::ServiceTokenNotActive))?;
            changes.audit(&entry).await?;
            let secret = secret.expose_secret().to_owned();
            Ok(Reply::ok(&IssuedServiceToken { secret, token: records::token(rotated, now) })?.secret())
        })
        .await
}

/// Keeps the caller's rights as they are until the change is done: what ends with them then finds what they make here.
async fn hold(
    changes: &mut Changes,
    caller: &Caller<TokensWrite>,
    scopes: &[String],
    workspaces: &[String],
    rotated: Option<Uuid>,
) -> ApiResult<()> {
    // The workspaces first, as what ends with a member does: the two never wait for each other's tokens.
    let locked = changes.lock_members_of(workspaces).await?;
    if !changes.hold_cause(&Cause::of(caller.principal()), rotated).await? {
        return Err(ApiError::new(ErrorCode::InvalidToken));
    }
    let Some(user) = caller.principal().user_id() else { return Ok(()) };
    let wanted = ScopeSet::of_texts(scopes).union([Scope::TokensWrite].into_iter().collect());
    for workspace in locked {
        let role = changes.member(workspace, user).await?.and_then(|member| Role::parse(&member.role));
        let held = role.map_or(ScopeSet::NONE, Role::scopes);
        reach::refuse_missing(held.missing(wanted))?;
    }
    Ok(())
}

/// 200 with the record.
pub(super) async fn revoke(change: Change<TokensWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    end(change, &id, Reply::ok).await
}

/// The same, answered with 204.
pub(super) async fn delete(change: Change<TokensWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    end(change, &id, |_| Ok(Reply::nothing())).await
}

async fn end(
    change: Change<TokensWrite>,
    id: &str,
    reply: impl FnOnce(&ServiceTokenRecord) -> ApiResult<Reply>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let token = found(caller, id).await?;
    let reason = change.wanted_if_any(requests::revoke)?;
    let workspace = reach::only(caller, &token.workspaces).await?;
    let entry = caller.audit("service_token.revoked", target(token.id), workspace, Some(reason.clone()));
    let now = caller.app().clock().now();
    let answer = change
        .make(async |changes| {
            let revoked = changes.revoke_service_token(token.id, &reason).await?;
            let (revoked, was_good) =
                revoked.ok_or_else(|| ApiError::new(ErrorCode::ServiceTokenNotFound))?;
            if was_good {
                changes.audit(&entry).await?;
            }
            reply(&records::token(revoked, now))
        })
        .await;
    caller.app().gate().tokens_changed();
    answer
}

/// The token that a path names, where the caller may see it.
async fn found<S: Asked>(caller: &Caller<S>, id: &str) -> ApiResult<StoredServiceToken> {
    let not_found = || ApiError::new(ErrorCode::ServiceTokenNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let token = caller.store().service_token(id).await?.ok_or_else(not_found)?;
    if reach::sees(caller, &token).await? {
        return Ok(token);
    }
    Err(caller.denied(ApiError::new(ErrorCode::WorkspaceForbidden)).await)
}

fn target(id: Uuid) -> AuditTarget {
    AuditTarget { kind: "service_token", id: id.to_string() }
}
