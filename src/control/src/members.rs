//! Workspace members: checks who may grant or revoke a role, and ends the rights that depend on it.

use auth::principal::Principal;
use auth::role::Role;
use auth::scope::Scope;
use chrono::{DateTime, TimeDelta, Utc};
use store::{
    Added, AddedMember, AuditEntry, AuditTarget, Changes, NewMail, NewMember, StoredMember, StoredWorkspace,
};
use uuid::Uuid;
use wire::{AuditAction, ErrorCode};

use crate::{Decision, Refusal, Requester, place, rights};

/// Period in which the service retries an invitation.
const SENDING: TimeDelta = TimeDelta::days(1);
/// Maximum mails that a workspace may send within [`COUNTED`].
const MOST_INVITATIONS: i64 = 100;
const COUNTED: TimeDelta = TimeDelta::hours(1);
/// Maximum mails that one account may receive within [`COUNTED`].
const MOST_RECEIVED: i64 = 5;
/// Seconds after which an invitation may succeed.
const TRY_AGAIN: i64 = 600;

/// A person to add.
pub struct Invited<'a> {
    /// Their mail address.
    pub email: &'a str,
    /// Their role.
    pub role: Role,
    /// The id of the invitation mail and its sealed content; `None` if no mail server is configured.
    pub letter: Option<(Uuid, Vec<u8>)>,
    /// The time of the request.
    pub now: DateTime<Utc>,
}

/// Checks that the caller may grant this role.
///
/// # Errors
/// [`ErrorCode::MissingScope`].
pub fn check_gives(by: Requester<'_>, workspace: &StoredWorkspace, role: Role) -> Decision<()> {
    if by.principal.may_give(role, place(workspace)) { Ok(()) } else { Err(lacking(role)) }
}

/// Adds or invites a person. A member who already has this role is left unchanged; a person already invited with it is
/// invited again.
///
/// # Errors
/// [`ErrorCode::MemberHasOtherRole`], [`ErrorCode::TooManyInvitations`], [`ErrorCode::MissingScope`] if the caller lost
/// the right meanwhile.
pub async fn add(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: &StoredWorkspace,
    invited: Invited<'_>,
) -> Decision<AddedMember> {
    let Invited { email, role, letter, now } = invited;
    lock(changes, by, workspace).await?.check(role)?;
    let new = NewMember { workspace: workspace.id, email, role: role.as_str() };
    let made = changes.add_member(new).await?;
    match made.added {
        Added::OtherRole => return Err(Refusal::new(ErrorCode::MemberHasOtherRole)),
        Added::Known => return Ok(made),
        Added::New | Added::Again => {}
    }
    let member = &made.member;
    let sent = changes.invitations_since(workspace.id, by.principal.actor(), now - COUNTED).await?;
    let received = changes.invitations_of(member.user_id, now - COUNTED).await?;
    if sent >= MOST_INVITATIONS || received >= MOST_RECEIVED {
        return Err(Refusal::new(ErrorCode::TooManyInvitations).retry_after(TRY_AGAIN));
    }
    if let Some((id, content)) = letter {
        let expires_at = now + SENDING;
        changes.queue_mail(NewMail { id, recipient: email, content, expires_at }).await?;
    }
    let action =
        if member.invited_until.is_some() { AuditAction::MemberInvited } else { AuditAction::MemberAdded };
    changes.audit(&entry(by, action, workspace, member.user_id, format!("as {role}"))).await?;
    Ok(made)
}

/// Changes a member's role. It applies from their next request; tokens that they created there and could no longer
/// create are revoked.
///
/// # Errors
/// [`ErrorCode::MemberNotFound`], [`ErrorCode::LastOwner`], [`ErrorCode::MissingScope`].
pub async fn change_role(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: &StoredWorkspace,
    user: Uuid,
    role: Role,
) -> Decision<StoredMember> {
    let giver = lock(changes, by, workspace).await?;
    let mut member = found(changes, workspace, user).await?;
    giver.check(role_of(&member))?;
    giver.check(role)?;
    if member.role != role.as_str() {
        check_owned(changes, &member, workspace).await?;
        if !changes.change_role(workspace.id, user, role.as_str()).await? {
            return Err(Refusal::new(ErrorCode::MemberNotFound));
        }
        rights::end(changes, by, workspace, user, Some(role)).await?;
        let reason = format!("from {} to {role}", member.role);
        changes.audit(&entry(by, AuditAction::MemberRoleChanged, workspace, user, reason)).await?;
        role.as_str().clone_into(&mut member.role);
    }
    Ok(member)
}

/// Removes a member, or withdraws an invitation. Any member may remove themselves. The removed member's next request is
/// rejected, their open connections are closed, and the tokens that they created there are revoked.
///
/// # Errors
/// [`ErrorCode::MemberNotFound`], [`ErrorCode::LastOwner`], [`ErrorCode::MissingScope`].
pub async fn remove(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: &StoredWorkspace,
    user: Uuid,
) -> Decision<()> {
    let giver = lock(changes, by, workspace).await?;
    let member = found(changes, workspace, user).await?;
    if by.principal.user_id() != Some(user) {
        giver.check(role_of(&member))?;
    }
    check_owned(changes, &member, workspace).await?;
    if !changes.remove_member(workspace.id, user).await? {
        return Err(Refusal::new(ErrorCode::MemberNotFound));
    }
    rights::end(changes, by, workspace, user, None).await?;
    let reason = format!("was {}", member.role);
    Ok(changes.audit(&entry(by, AuditAction::MemberRemoved, workspace, user, reason)).await?)
}

/// A caller who grants and revokes roles, with the rights at the time of the request and the current ones.
struct Giver<'a> {
    principal: &'a Principal,
    workspace: &'a StoredWorkspace,
    /// The user's current role in the workspace.
    own: Option<Role>,
}

impl Giver<'_> {
    /// A caller can neither grant a role that they lack nor revoke one that they could not grant.
    fn check(&self, role: Role) -> Decision<()> {
        let gives = |own: Role| own >= role && own.scopes().contains(Scope::WorkspacesWrite);
        let still = self.principal.user_id().is_none() || self.own.is_some_and(gives);
        let may = still && self.principal.may_give(role, place(self.workspace));
        if may { Ok(()) } else { Err(lacking(role)) }
    }
}

/// Locks the members, the caller included, until the change is done.
async fn lock<'a>(
    changes: &mut Changes,
    by: Requester<'a>,
    workspace: &'a StoredWorkspace,
) -> Decision<Giver<'a>> {
    if !changes.lock_members(workspace.id).await? {
        return Err(Refusal::new(ErrorCode::WorkspaceNotFound));
    }
    let principal = by.principal;
    let own = match principal.user_id() {
        Some(user) => changes.member(workspace.id, user).await?.and_then(|own| Role::parse(&own.role)),
        None => None,
    };
    Ok(Giver { principal, workspace, own })
}

/// Treats an unknown role as the highest.
fn role_of(member: &StoredMember) -> Role {
    Role::parse(&member.role).unwrap_or(Role::Owner)
}

async fn found(changes: &mut Changes, workspace: &StoredWorkspace, user: Uuid) -> Decision<StoredMember> {
    let member = changes.member(workspace.id, user).await?;
    member.ok_or_else(|| Refusal::new(ErrorCode::MemberNotFound))
}

/// Once a workspace has an owner, it keeps one.
async fn check_owned(
    changes: &mut Changes,
    member: &StoredMember,
    workspace: &StoredWorkspace,
) -> Decision<()> {
    let owns = member.role == Role::Owner.as_str() && member.invited_until.is_none();
    if owns && !changes.has_owner_beside(workspace.id, member.user_id).await? {
        return Err(Refusal::new(ErrorCode::LastOwner));
    }
    Ok(())
}

fn lacking(role: Role) -> Refusal {
    let message =
        format!("Missing required scopes: to assign or remove the role {role} you need all its scopes");
    Refusal::new(ErrorCode::MissingScope).with_message(message)
}

fn entry(
    by: Requester<'_>,
    action: AuditAction,
    workspace: &StoredWorkspace,
    user: Uuid,
    reason: String,
) -> AuditEntry {
    let target = AuditTarget { kind: "user", id: user.to_string() };
    by.audit(action, target, Some(workspace.id), Some(reason))
}
