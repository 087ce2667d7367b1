//! Service tokens: a caller grants and reaches only what they have, and their tokens end with their rights.

use auth::principal::Place;
use auth::role::Role;
use auth::scope::{Scope, ScopeSet};
use auth::service_token::TokenDigest;
use chrono::{DateTime, Utc};
use store::{AuditTarget, Cause, Changes, NewServiceToken, ServiceTokenStatus, Store, StoredServiceToken};
use uuid::Uuid;
use wire::{AuditAction, ErrorCode};

use crate::{Decision, Refusal, Requester};

/// Checks that the caller has all these scopes in all these workspaces, and the scope that the operation needs.
///
/// # Errors
/// [`ErrorCode::MissingScope`], [`ErrorCode::WorkspaceForbidden`].
pub async fn check_reach(
    store: &Store,
    by: Requester<'_>,
    needed: Scope,
    scopes: &[String],
    workspaces: &[String],
) -> Decision<()> {
    let wanted = ScopeSet::of_texts(scopes).union([needed].into_iter().collect());
    refuse_missing(by.principal.scopes().missing(wanted))?;
    if by.principal.workspaces().is_none() {
        return Ok(());
    }
    let closed = || Refusal::new(ErrorCode::WorkspaceForbidden);
    // An empty list means all workspaces, more than a restricted caller has.
    if workspaces.is_empty() {
        return Err(closed());
    }
    let found = store.workspaces_named(workspaces).await?;
    for name in workspaces {
        let is_named = |slug: &str, id: String| name == slug || name.eq_ignore_ascii_case(&id);
        let workspace = found.iter().find(|found| is_named(&found.slug, found.id.to_string()));
        let workspace = workspace.ok_or_else(closed)?;
        let place = Place { id: workspace.id, slug: &workspace.slug };
        let held = by.principal.scopes_in(place).ok_or_else(closed)?;
        refuse_missing(held.missing(wanted))?;
    }
    Ok(())
}

fn refuse_missing(missing: ScopeSet) -> Decision<()> {
    if missing.is_empty() { Ok(()) } else { Err(Refusal::missing(missing)) }
}

/// Whether the caller may see the token: they have the scope that the operation needs in all of its workspaces.
///
/// # Errors
/// If the database does not answer.
pub async fn sees(
    store: &Store,
    by: Requester<'_>,
    needed: Scope,
    token: &StoredServiceToken,
) -> Decision<bool> {
    match check_reach(store, by, needed, &[], &token.workspaces).await {
        Ok(()) => Ok(true),
        Err(refused) if matches!(refused.code, ErrorCode::WorkspaceForbidden | ErrorCode::MissingScope) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Returns at most `wanted` tokens after `before` that the caller may see, the newest first.
///
/// # Errors
/// If the database does not answer.
pub async fn seen(
    store: &Store,
    by: Requester<'_>,
    needed: Scope,
    status: Option<ServiceTokenStatus>,
    mut before: Option<Uuid>,
    wanted: i64,
) -> Decision<Vec<StoredServiceToken>> {
    let most = usize::try_from(wanted).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    loop {
        let more = store.service_tokens(status, before, wanted).await?;
        let last = more.len() < most;
        before = more.last().map(|token| token.id);
        for token in more {
            if found.len() < most && sees(store, by, needed, &token).await? {
                found.push(token);
            }
        }
        if last || found.len() >= most {
            return Ok(found);
        }
    }
}

/// The workspace of a token limited to one: its administrators see the token in their audit trail.
///
/// # Errors
/// If the database does not answer.
pub async fn only_workspace(store: &Store, workspaces: &[String]) -> Decision<Option<Uuid>> {
    if workspaces.is_empty() {
        return Ok(None);
    }
    Ok(match store.workspaces_named(workspaces).await?.as_slice() {
        [only] => Some(only.id),
        _ => None,
    })
}

/// Creates a token. `workspace`: see [`only_workspace`].
///
/// # Errors
/// [`ErrorCode::MissingScope`], [`ErrorCode::InvalidToken`] if the caller lost the right meanwhile.
pub async fn create(
    changes: &mut Changes,
    by: Requester<'_>,
    new: NewServiceToken,
    workspace: Option<Uuid>,
) -> Decision<StoredServiceToken> {
    hold(changes, by, &new.scopes, &new.workspaces, None).await?;
    let made = changes.create_service_token(new).await?;
    changes.audit(&by.audit(AuditAction::ServiceTokenCreated, target(made.id), workspace, None)).await?;
    Ok(made)
}

/// Adds a new secret to a token; the previous ones stay valid until `old_until`.
///
/// # Errors
/// [`ErrorCode::ServiceTokenNotActive`], and as [`create`].
pub async fn rotate(
    changes: &mut Changes,
    by: Requester<'_>,
    token: &StoredServiceToken,
    secret: TokenDigest,
    old_until: DateTime<Utc>,
    workspace: Option<Uuid>,
) -> Decision<StoredServiceToken> {
    hold(changes, by, &token.scopes, &token.workspaces, Some(token.id)).await?;
    let cause = Cause::from_principal(by.principal);
    let rotated = changes.rotate_service_token(token.id, secret, &cause, old_until).await?;
    let rotated = rotated.ok_or_else(|| Refusal::new(ErrorCode::ServiceTokenNotActive))?;
    changes.audit(&by.audit(AuditAction::ServiceTokenRotated, target(token.id), workspace, None)).await?;
    Ok(rotated)
}

/// Revokes a token. Idempotent.
///
/// # Errors
/// [`ErrorCode::ServiceTokenNotFound`].
pub async fn revoke(
    changes: &mut Changes,
    by: Requester<'_>,
    id: Uuid,
    reason: &str,
    workspace: Option<Uuid>,
) -> Decision<StoredServiceToken> {
    let revoked = changes.revoke_service_token(id, reason).await?;
    let (revoked, was_good) = revoked.ok_or_else(|| Refusal::new(ErrorCode::ServiceTokenNotFound))?;
    if was_good {
        let reason = Some(reason.to_owned());
        changes.audit(&by.audit(AuditAction::ServiceTokenRevoked, target(id), workspace, reason)).await?;
    }
    Ok(revoked)
}

/// Holds the caller's rights until the change is done: a later loss of rights then also ends the tokens created here.
async fn hold(
    changes: &mut Changes,
    by: Requester<'_>,
    scopes: &[String],
    workspaces: &[String],
    rotated: Option<Uuid>,
) -> Decision<()> {
    // Locks the workspaces first, as when a member's rights end: the two never wait for each other's tokens.
    let locked = changes.lock_members_of(workspaces).await?;
    if !changes.hold_cause(&Cause::from_principal(by.principal), rotated).await? {
        return Err(Refusal::new(ErrorCode::InvalidToken));
    }
    let Some(user) = by.principal.user_id() else { return Ok(()) };
    let wanted = ScopeSet::of_texts(scopes).union([Scope::TokensWrite].into_iter().collect());
    for workspace in locked {
        let role = changes.member(workspace, user).await?.and_then(|member| Role::parse(&member.role));
        let held = role.map_or(ScopeSet::NONE, Role::scopes);
        refuse_missing(held.missing(wanted))?;
    }
    Ok(())
}

fn target(id: Uuid) -> AuditTarget {
    AuditTarget { kind: "service_token", id: id.to_string() }
}
