//! Reads a run by its handle.

use actix_web::{HttpRequest, HttpResponse};
use auth::app_handle;
use store::StoredAppRun;
use wire::ErrorCode;

use super::super::error::AliasResult;
use super::super::visitor::Visitor;
use super::releases::with_binding;
use super::{disclosure, segment};

pub(super) async fn show(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    let handle = segment(&request, "handle")?;
    let run = found(&visitor, handle).await?;
    with_binding(&visitor, &run, |binding| HttpResponse::Ok().json(disclosure::shown(handle, &run, binding)))
        .await
}

/// Finds a handle's run. An anonymous visitor's handle grants access by itself; a member's handle needs the same
/// member. In all other cases the run is not found.
pub(super) async fn found(visitor: &Visitor, handle: &str) -> AliasResult<StoredAppRun> {
    let not_found = || ErrorCode::AppPathNotFound;
    if !app_handle::is_handle(handle) {
        return Err(not_found().into());
    }
    let found = visitor.store().app_run(visitor.served.id, &app_handle::stored(handle)).await?;
    let run = found.ok_or_else(not_found)?;
    let reader = visitor.member.as_ref().map(|member| member.user);
    if run.user.is_some() && run.user != reader {
        return Err(not_found().into());
    }
    Ok(run)
}
