//! Who may create, see and change a service token: a caller grants and reaches no more than they have.

use auth::principal::Place;
use auth::scope::ScopeSet;
use store::StoredServiceToken;
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Asked, Caller};

/// The caller has all of these scopes in all of these workspaces, and the one that the route asks for.
pub(super) async fn check<S: Asked>(
    caller: &Caller<S>,
    scopes: &[String],
    workspaces: &[String],
) -> ApiResult<()> {
    let wanted = ScopeSet::of_texts(scopes).union([S::SCOPE].into_iter().collect());
    refuse_missing(caller.principal().scopes().missing(wanted))?;
    if caller.principal().workspaces().is_none() {
        return Ok(());
    }
    let closed = || ApiError::new(ErrorCode::WorkspaceForbidden);
    // No workspace means all of them, which is more than a restricted caller has.
    if workspaces.is_empty() {
        return Err(closed());
    }
    let found = caller.store().workspaces_named(workspaces).await?;
    for name in workspaces {
        let is_named = |slug: &str, id: String| name == slug || name.eq_ignore_ascii_case(&id);
        let workspace = found.iter().find(|found| is_named(&found.slug, found.id.to_string()));
        let workspace = workspace.ok_or_else(closed)?;
        let place = Place { id: workspace.id, slug: &workspace.slug };
        let held = caller.principal().scopes_in(place).ok_or_else(closed)?;
        refuse_missing(held.missing(wanted))?;
    }
    Ok(())
}

pub(super) fn refuse_missing(missing: ScopeSet) -> ApiResult<()> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::MissingScope).with_message(format!("Missing required scopes: {missing}")))
}

/// The caller may see the token: they have the route's scope in all of its workspaces.
pub(super) async fn sees<S: Asked>(caller: &Caller<S>, token: &StoredServiceToken) -> ApiResult<bool> {
    match check(caller, &[], &token.workspaces).await {
        Ok(()) => Ok(true),
        Err(refused) if matches!(refused.code(), ErrorCode::WorkspaceForbidden | ErrorCode::MissingScope) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The workspace of a token that is good for one alone: its administrators read of it in the audit trail.
pub(super) async fn only<S>(caller: &Caller<S>, workspaces: &[String]) -> ApiResult<Option<Uuid>> {
    if workspaces.is_empty() {
        return Ok(None);
    }
    Ok(match caller.store().workspaces_named(workspaces).await?.as_slice() {
        [only] => Some(only.id),
        _ => None,
    })
}
