//! Ends everything that depends on a member's rights: the tokens that they created in the workspace, the secrets that
//! they got by rotating others' tokens, and everything created with one of these.

use auth::role::Role;
use auth::scope::{Scope, ScopeSet};
use store::{AuditTarget, CauseSearch, Changes, StoredServiceToken, StoredWorkspace};
use uuid::Uuid;
use wire::AuditAction;

use crate::{Decision, Requester};

/// Ends tokens and secrets that the member could no longer create with the current role; `None`: they have left.
pub(crate) async fn end(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: &StoredWorkspace,
    user: Uuid,
    now: Option<Role>,
) -> Decision<()> {
    let held = now.map_or(ScopeSet::NONE, Role::scopes);
    let reason = match now {
        Some(role) => format!("the creator's role is now {role}"),
        None => "the creator has left the workspace".to_owned(),
    };
    let ends = |token: &StoredServiceToken| {
        let made = ScopeSet::of_texts(&token.scopes).union([Scope::TokensWrite].into_iter().collect());
        is_for(token, workspace) && !held.missing(made).is_empty()
    };
    let audit = |action, token: &StoredServiceToken| {
        let target = AuditTarget { kind: "service_token", id: token.id.to_string() };
        by.audit(action, target, Some(workspace.id), Some(reason.clone()))
    };
    let mut search = CauseSearch::for_maker(&format!("user:{user}"));
    while let Some(caused) = changes.next_caused(&mut search).await? {
        for token in caused.tokens.iter().filter(|token| ends(token)) {
            if let Some((token, true)) = changes.revoke_service_token(token.id, &reason).await? {
                changes.audit(&audit(AuditAction::ServiceTokenRevoked, &token)).await?;
            }
        }
        for secret in caused.secrets.iter().filter(|secret| ends(&secret.token)) {
            if changes.end_secret(&secret.digest).await? {
                changes.audit(&audit(AuditAction::ServiceTokenSecretEnded, &secret.token)).await?;
            }
        }
    }
    Ok(())
}

/// Whether a token is for this workspace, by id or slug.
fn is_for(token: &StoredServiceToken, workspace: &StoredWorkspace) -> bool {
    let id = workspace.id.to_string();
    token.workspaces.iter().any(|name| *name == workspace.slug || name.eq_ignore_ascii_case(&id))
}
