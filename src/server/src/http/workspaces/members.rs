//! Who belongs to a workspace, and as what: listed, added, given another role, removed.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use auth::principal::Principal;
use auth::role::Role;
use auth::scope::Scope;
use auth::sign_in::Letter;
use chrono::TimeDelta;
use store::{Added, AuditEntry, AuditTarget, Changes, NewMail, NewMember, StoredMember, StoredWorkspace};
use uuid::Uuid;
use wire::{ErrorCode, Listed, MemberRecord};

use super::{records, requests, rights};
use crate::http::App;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, MembersRemove, WorkspacesRead, WorkspacesWrite, place};
use crate::http::idempotency::Reply;
use crate::http::paging::Part;
use crate::http::query::Params;

/// In a cursor.
const LIST: &str = "members";
/// How long it is tried to send an invitation.
const SENDING: TimeDelta = TimeDelta::days(1);
/// Mail that a workspace may send within [`COUNTED`].
const MOST_INVITATIONS: i64 = 100;
const COUNTED: TimeDelta = TimeDelta::hours(1);
/// Mail that one account may be sent so within [`COUNTED`].
const MOST_RECEIVED: i64 = 5;
/// Seconds until it is worth trying again.
const TRY_AGAIN: i64 = 600;

/// Members and invited, in the order of their accounts.
pub(super) async fn list(
    caller: Caller<WorkspacesRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<MemberRecord>>> {
    let workspace = caller.workspace_called(&name).await?;
    let mut query = Params::of(&request);
    let part: Part<Uuid> = Part::of(&mut query, LIST);
    ApiError::refuse(query.finish())?;
    let mut found = caller.store().members(workspace.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |member| member.user_id);
    let now = caller.app().clock().now();
    let data = found.into_iter().map(|member| records::member(member, now)).collect();
    Ok(Json(Listed { data, next_cursor }))
}

/// 201 and a mail to a new member; 200 for one who is invited once more, or is a member with this role already.
pub(super) async fn add(change: Change<WorkspacesWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace_called(&name).await?;
    let wanted = change.wanted(requests::add_member)?;
    let (email, role) = (wanted.email.as_str(), wanted.role);
    if !caller.principal().may_give(role, place(&workspace)) {
        return Err(caller.denied(lacking(role)).await);
    }
    let (now, mail) = (caller.app().clock().now(), caller.app().new_id()?);
    let letter = invitation(&change, &workspace, role, mail)?;
    let answer = change
        .make(async |changes| {
            lock(changes, caller, &workspace).await?.check(role)?;
            let new = NewMember { workspace: workspace.id, email, role: role.as_str() };
            let store::AddedMember { added, member } = changes.add_member(new).await?;
            match added {
                Added::OtherRole => return Err(ApiError::new(ErrorCode::MemberHasOtherRole)),
                Added::Known => return Reply::ok(&records::member(member, now)),
                Added::New | Added::Again => {}
            }
            let by = caller.principal().actor();
            let sent = changes.invitations_since(workspace.id, by, now - COUNTED).await?;
            let received = changes.invitations_of(member.user_id, now - COUNTED).await?;
            if sent >= MOST_INVITATIONS || received >= MOST_RECEIVED {
                let refused = ApiError::new(ErrorCode::TooManyInvitations);
                return Err(refused.retry_after(TRY_AGAIN));
            }
            // Where there is no mail, the inviter informs them.
            if caller.app().config().offers_mail_sign_in() {
                let expires_at = now + SENDING;
                let new = NewMail { id: mail, recipient: email, content: letter, expires_at };
                changes.queue_mail(new).await?;
            }
            let action = if member.invited_until.is_some() { "member.invited" } else { "member.added" };
            let reason = format!("as {role}");
            changes.audit(&entry(caller, action, &workspace, member.user_id, reason)).await?;
            Reply::made(added == Added::New, &records::member(member, now))
        })
        .await;
    if answer.is_ok() {
        caller.app().system().mail().committed();
    }
    caller.noted(answer).await
}

/// The sealed letter.
fn invitation(
    change: &Change<WorkspacesWrite>,
    workspace: &StoredWorkspace,
    role: Role,
    mail: Uuid,
) -> ApiResult<Vec<u8>> {
    let (app, base) = (change.caller.app(), change.link_base());
    let service = App::name_in_mail(base.as_deref());
    let login = base.as_ref().map(|base| format!("{base}/login"));
    let letter = Letter::invitation(service, &workspace.name, role, login);
    let sealed = letter.seal(&app.sign_in().letters, mail, app.random());
    sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}

/// 200 with the record. It counts from their next request on; tokens that they made there and could not make any more are
/// revoked.
pub(super) async fn change_role(
    change: Change<WorkspacesWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (name, user) = &*path;
    let workspace = caller.workspace_called(name).await?;
    let user = user_id(user)?;
    let role = change.wanted(requests::change_role)?;
    let now = caller.app().clock().now();
    let answer = change
        .make(async |changes| {
            let giver = lock(changes, caller, &workspace).await?;
            let mut member = found(changes, &workspace, user).await?;
            giver.check(role_of(&member))?;
            giver.check(role)?;
            if member.role != role.as_str() {
                check_owned(changes, &member, &workspace).await?;
                if !changes.change_role(workspace.id, user, role.as_str()).await? {
                    return Err(ApiError::new(ErrorCode::MemberNotFound));
                }
                rights::end(changes, caller, &workspace, user, Some(role)).await?;
                let reason = format!("from {} to {role}", member.role);
                let entry = entry(caller, "member.role_changed", &workspace, user, reason);
                changes.audit(&entry).await?;
                role.as_str().clone_into(&mut member.role);
            }
            Reply::ok(&records::member(member, now))
        })
        .await;
    caller.noted(answer).await
}

/// Answers 204. Their next request is refused, what they have open is closed, and tokens that they made there are revoked.
/// Anybody may leave.
pub(super) async fn remove(
    change: Change<MembersRemove>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (name, user) = &*path;
    let workspace = caller.workspace_called(name).await?;
    let user = user_id(user)?;
    let leaves = caller.principal().user_id() == Some(user);
    if !leaves {
        caller.check_also_in(Scope::WorkspacesWrite, &workspace).await?;
    }
    change.wants_no_more()?;
    let answer = change
        .make(async |changes| {
            let giver = lock(changes, caller, &workspace).await?;
            let member = found(changes, &workspace, user).await?;
            if !leaves {
                giver.check(role_of(&member))?;
            }
            check_owned(changes, &member, &workspace).await?;
            if !changes.remove_member(workspace.id, user).await? {
                return Err(ApiError::new(ErrorCode::MemberNotFound));
            }
            rights::end(changes, caller, &workspace, user, None).await?;
            let reason = format!("was {}", member.role);
            changes.audit(&entry(caller, "member.removed", &workspace, user, reason)).await?;
            Ok(Reply::nothing())
        })
        .await;
    caller.noted(answer).await
}

fn user_id(text: &str) -> ApiResult<Uuid> {
    Uuid::parse_str(text).map_err(|_| ApiError::new(ErrorCode::MemberNotFound))
}

/// A caller who gives and takes roles: as they were when they asked, and as they are now.
struct Giver<'a> {
    principal: &'a Principal,
    workspace: &'a StoredWorkspace,
    /// What a user is in the workspace now.
    own: Option<Role>,
}

impl Giver<'_> {
    /// A giver cannot give what they lack, and cannot take what they could not have given.
    fn check(&self, role: Role) -> ApiResult<()> {
        let gives = |own: Role| own >= role && own.scopes().contains(Scope::WorkspacesWrite);
        let still = self.principal.user_id().is_none() || self.own.is_some_and(gives);
        let may = still && self.principal.may_give(role, place(self.workspace));
        if may { Ok(()) } else { Err(lacking(role)) }
    }
}

/// Keeps the members as they are until the change is done, the caller among them.
async fn lock<'a, S>(
    changes: &mut Changes,
    caller: &'a Caller<S>,
    workspace: &'a StoredWorkspace,
) -> ApiResult<Giver<'a>> {
    if !changes.lock_members(workspace.id).await? {
        return Err(ApiError::new(ErrorCode::WorkspaceNotFound));
    }
    let principal = caller.principal();
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

async fn found(changes: &mut Changes, workspace: &StoredWorkspace, user: Uuid) -> ApiResult<StoredMember> {
    let member = changes.member(workspace.id, user).await?;
    member.ok_or_else(|| ApiError::new(ErrorCode::MemberNotFound))
}

/// Once a workspace has an owner, it keeps one.
async fn check_owned(
    changes: &mut Changes,
    member: &StoredMember,
    workspace: &StoredWorkspace,
) -> ApiResult<()> {
    let owns = member.role == Role::Owner.as_str() && member.invited_until.is_none();
    if owns && !changes.has_owner_beside(workspace.id, member.user_id).await? {
        return Err(ApiError::new(ErrorCode::LastOwner));
    }
    Ok(())
}

fn lacking(role: Role) -> ApiError {
    let message =
        format!("Missing required scopes: to assign or remove the role {role} you need all its scopes");
    ApiError::new(ErrorCode::MissingScope).with_message(message)
}

fn entry<S>(
    caller: &Caller<S>,
    action: &'static str,
    workspace: &StoredWorkspace,
    user: Uuid,
    reason: String,
) -> AuditEntry {
    let target = AuditTarget { kind: "user", id: user.to_string() };
    caller.audit(action, target, Some(workspace.id), Some(reason))
}
