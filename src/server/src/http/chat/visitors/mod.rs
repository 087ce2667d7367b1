//! Lets visitors export and erase their data.

mod erase;
mod export;

use actix_web::{HttpRequest, HttpResponse};
use control::visitors;
use store::ChatVisitor;
use wire::ErrorCode;

use super::access::{self, ChatAccess};
use super::limits::StreamPlace;
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Anyone;
use crate::http::query::Params;
use crate::http::request_id;
pub(in crate::http) use erase::erase;
pub(in crate::http) use export::export;

pub(super) async fn export_own(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let (access, visitors) = visitor(&app, &request).await?;
    let place: StreamPlace = app.chat_limits().stream(access.session(None).as_deref(), None)?;
    Ok(export(&app, visitors, place))
}

pub(super) async fn erase_own(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let (access, visitors) = visitor(&app, &request).await?;
    access.check_origin(&app, &request)?;
    let id = request_id::current();
    let requested = app
        .store()
        .change(async |changes| {
            let mut requested = Vec::new();
            for visitor in &visitors {
                let workspace = access.workspace();
                requested.push(visitors::erase_own(changes, workspace, visitor, id.as_deref()).await?);
            }
            Ok(requested)
        })
        .await?;
    erase(&app, &requested).await
}

/// The caller as visitors; an unknown caller is refused.
async fn visitor(app: &App, request: &HttpRequest) -> ApiResult<(ChatAccess, Vec<ChatVisitor>)> {
    let mut query = Params::from_request(request);
    let workflow = access::workflow_named(query.text("workflow_id").as_deref())?;
    ApiError::refuse(query.finish())?;
    app.chat_limits().check_address(app.client_address(request))?;
    let access = ChatAccess::judge(app, request, workflow).await?;
    app.chat_limits().check_workflow(workflow)?;
    if let Some(session) = access.session(None) {
        app.chat_limits().check_session(&session)?;
    }
    let visitors = access.visitors();
    if visitors.is_empty() {
        return Err(ApiError::new(ErrorCode::ChatVisitorUnknown));
    }
    Ok((access, visitors))
}
