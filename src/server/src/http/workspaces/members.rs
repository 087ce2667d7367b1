//! Lists, adds, updates and removes workspace members.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use auth::scope::Scope;
use auth::sign_in::Letter;
use control::members;
use store::{Added, StoredWorkspace};
use uuid::Uuid;
use wire::{ErrorCode, Listed, MemberRecord};

use super::requests::Invited;
use super::{records, requests};
use crate::http::App;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, MembersRemove, RouteScope, WorkspacesRead, WorkspacesWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::PageQuery;

/// The list's name in cursors.
const LIST: &str = "members";

/// Lists members and invited people by account.
pub(super) async fn list(
    caller: Caller<WorkspacesRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<MemberRecord>>> {
    let workspace = caller.workspace_called(&name).await?;
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, LIST)?;
    let mut found = caller.store().members(workspace.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |member| member.user_id);
    let now = caller.app().clock().now();
    let data = found.into_iter().map(|member| records::member(member, now)).collect();
    Ok(Json(Listed { data, next_cursor }))
}

/// Responds with 201 and sends an email to a new member; 200 for a repeated invitation or an existing member with this
/// role.
pub(super) async fn add(change: Change<WorkspacesWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace_called(&name).await?;
    let wanted = change.wanted(requests::add_member)?;
    caller.allowed(members::check_gives(caller.requester(), &workspace, wanted.role)).await?;
    let (now, letter) = (caller.app().clock().now(), letter(&change, &workspace, &wanted)?);
    let invited = members::Invited { email: wanted.email.as_str(), role: wanted.role, letter, now };
    let answer = change
        .make(async |changes| {
            let made = members::add(changes, caller.requester(), &workspace, invited).await?;
            ChangeReply::made(made.added == Added::New, &records::member(made.member, now))
        })
        .await;
    if answer.is_ok() {
        caller.app().system().mail().committed();
    }
    caller.noted(answer).await
}

/// The sealed email, if a mail server is configured.
fn letter(
    change: &Change<WorkspacesWrite>,
    workspace: &StoredWorkspace,
    invited: &Invited,
) -> ApiResult<Option<(Uuid, Vec<u8>)>> {
    let (app, base) = (change.caller.app(), change.link_base());
    if !app.config().offers_mail_sign_in() {
        return Ok(None);
    }
    let id = app.new_id()?;
    let service = App::name_in_mail(base.as_deref());
    let login = base.as_ref().map(|base| format!("{base}/login"));
    let letter = Letter::invitation(service, &workspace.name, invited.role, login);
    let sealed = letter.seal(&app.sign_in().letters, id, app.random());
    let sealed = sealed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    Ok(Some((id, sealed)))
}

/// Responds with 200 and the record.
pub(super) async fn change_role(
    change: Change<WorkspacesWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (workspace, user) = named(caller, &path).await?;
    let role = change.wanted(requests::change_role)?;
    let now = caller.app().clock().now();
    let answer = change
        .make(async |changes| {
            let member = members::change_role(changes, caller.requester(), &workspace, user, role).await?;
            ChangeReply::ok(&records::member(member, now))
        })
        .await;
    caller.noted(answer).await
}

/// Responds with 204.
pub(super) async fn remove(
    change: Change<MembersRemove>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (workspace, user) = named(caller, &path).await?;
    if caller.principal().user_id() != Some(user) {
        caller.check_also_in(Scope::WorkspacesWrite, &workspace).await?;
    }
    change.wants_no_more()?;
    let answer = change
        .delete(async |changes| members::remove(changes, caller.requester(), &workspace, user).await)
        .await;
    caller.noted(answer).await
}

/// Finds the workspace that a path names, and reads the user's id.
async fn named<S: RouteScope>(
    caller: &Caller<S>,
    path: &Path<(String, String)>,
) -> ApiResult<(StoredWorkspace, Uuid)> {
    let (name, user) = &**path;
    let workspace = caller.workspace_called(name).await?;
    let user = Uuid::parse_str(user).map_err(|_| ApiError::new(ErrorCode::MemberNotFound))?;
    Ok((workspace, user))
}
