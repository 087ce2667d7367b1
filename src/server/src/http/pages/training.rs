//! A workflow's training page: `/workflows/{id}/training`.

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use auth::scope::Scope;
use minijinja::context;
use serde_json::json;
use wire::ErrorCode;

use super::{html, sign_in};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{PageCaller, WorkflowsRead};

/// The relative path to the service's home page.
const ROOT: &str = "../../";
/// The page's style sheets, in order.
const STYLES: [&str; 4] = ["base.css", "training/page.css", "training/results.css", "training/curve.css"];

/// Serves the page, a redirect to sign-in if required, or an explanation.
pub(super) async fn page(
    caller: ApiResult<PageCaller<WorkflowsRead>>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let shown = match caller {
        Ok(caller) => show(&caller, &name).await,
        Err(refused) => Err(refused),
    };
    match shown {
        Err(refused) if refused.code() == ErrorCode::MissingToken => {
            let uri = request.uri();
            let here = uri.path_and_query().map_or(uri.path(), |here| here.as_str());
            let login = sign_in::login_address(here);
            let mut answer = HttpResponse::SeeOther();
            sign_in::private(answer.insert_header((LOCATION, login)).finish())
        }
        Err(refused) => closed(refused),
        shown => shown,
    }
}

async fn show(caller: &PageCaller<WorkflowsRead>, name: &str) -> ApiResult<HttpResponse> {
    let workflow = caller.workflow(name).await?;
    let workspace = caller.store().workspace(workflow.workspace_id).await?;
    let workspace = workspace.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
    let may = |scope| caller.may_in(scope, &workspace);
    let record = json!({
        "id": workflow.id.to_string(),
        "handle": workflow.handle,
        "name": workflow.name,
        "may_execute": may(Scope::WorkflowsExecute),
        "may_write": may(Scope::WorkflowsWrite),
        "user": caller.email,
    });
    let filling =
        context! { record => record.to_string(), name => workflow.name, root => ROOT, styles => STYLES };
    let page = html::page(StatusCode::OK, "training.html", filling)?;
    if caller.email.is_some() { sign_in::private(page) } else { Ok(page) }
}

fn closed(refused: ApiError) -> ApiResult<HttpResponse> {
    let (title, text) = match refused.code() {
        // Workflows in other workspaces get the same page, so that callers cannot probe which ones exist.
        ErrorCode::WorkflowNotFound | ErrorCode::WorkspaceForbidden => (
            "Workflow not found",
            "The address may be wrong, the workflow was removed, or it belongs to a workspace that you are not a member of.",
        ),
        ErrorCode::MissingScope => (
            "You may not see workflows",
            "Your account is not a member of a workspace. Ask an administrator of the workspace for an invitation.",
        ),
        ErrorCode::WorkspaceRequired => (
            "Several workflows have this handle",
            "Open the page with the id of the workflow, which `callboard workflow list` shows.",
        ),
        code if code.status() < 500 => ("The page cannot be shown", "The service has refused the request."),
        _ => (
            "The page is not available right now",
            "The service is not available. Nothing is lost; try again in a moment.",
        ),
    };
    let refused = match refused.code() {
        ErrorCode::WorkspaceForbidden => ApiError::new(ErrorCode::WorkflowNotFound),
        _ => refused,
    };
    html::closed(&refused, title, text, ROOT)
}
