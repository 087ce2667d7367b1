//! The uploader of a file: a caller who may chat with the workflow, or, without a workflow, any caller with a
//! credential or cookie.

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::http::header;
use auth::principal::Principal;
use control::uploads::Uploader;
use store::{DEFAULT_WORKSPACE, OwnerKind};
use uuid::Uuid;
use wire::{ErrorCode, FieldError};

use super::super::access::ChatAccess;
use super::super::cookie;
use crate::body_budget::Sender;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Credential, credential};
use crate::http::query::Params;
use crate::http::{App, cors, session};

/// The header that names the workflow.
const WORKFLOW: &str = "x-workflow-id";

/// Session prefix for authenticated callers without a workflow.
const CALLER: &str = "caller:";
/// Session prefixes of authenticated callers.
const AUTHENTICATED: [&str; 3] = [CALLER, "session:", "user:"];

/// Authenticates the caller of a direct upload.
pub(super) async fn judge(app: &App, request: &HttpRequest) -> ApiResult<Uploader> {
    app.chat_limits().check_address(app.client_address(request))?;
    let named = workflow(request)?;
    let named = match named {
        Some(workflow) => Some(workflow),
        None => session_workflow(app, request),
    };
    match named {
        Some(workflow) => {
            let access = ChatAccess::judge(app, request, workflow).await?;
            access.check_origin(app, request)?;
            app.chat_limits().check_workflow(workflow)?;
            if let Some(session) = access.session(None) {
                app.chat_limits().check_session(&session)?;
            }
            of_chat(app, request, &access)
        }
        None => without_workflow(app, request).await,
    }
}

/// The uploader for a caller who may chat with a workflow that accepts files.
pub(super) fn of_chat(app: &App, request: &HttpRequest, access: &ChatAccess) -> ApiResult<Uploader> {
    if !access.uploads() {
        return Err(ApiError::new(ErrorCode::AttachmentUploadsOff));
    }
    let session = access.name().unwrap_or_else(|| by_address(app, request));
    // A browser without a cookie may upload several files at once; the message that references them assigns the owner.
    let (owner_kind, owner_id) =
        access.new_owner().map_or((OwnerKind::Anyone, None), |owner| (owner.kind, owner.id));
    Ok(Uploader {
        workspace: access.workspace(),
        workflow: Some(access.workflow()),
        owner_kind,
        owner_id,
        session,
        network: network_of(app, request),
    })
}

/// The sender to whom an upload in this session is charged.
pub(super) fn sender(app: &App, request: &HttpRequest, session: &str) -> Sender {
    if AUTHENTICATED.iter().any(|prefix| session.starts_with(prefix)) {
        Sender::Known(session.to_owned())
    } else {
        Sender::Stranger(auth::peer::network(app.client_address(request)))
    }
}

async fn without_workflow(app: &App, request: &HttpRequest) -> ApiResult<Uploader> {
    let address = app.client_address(request);
    let anyone = |workspace, session| {
        let network = network_of(app, request);
        Uploader {
            workspace,
            workflow: None,
            owner_kind: OwnerKind::Anyone,
            owner_id: None,
            session,
            network,
        }
    };
    if request.headers().contains_key(header::AUTHORIZATION) {
        let principal = app.gate().judge(credential(request.headers()), address).await?;
        let session = match principal.is_anonymous() {
            true => by_address(app, request),
            false => format!("{CALLER}{}", principal.actor().name()),
        };
        return Ok(anyone(workspace_of(app, &principal).await?, session));
    }
    let owner = match session::signed_in(app, request).await? {
        Some(user) => Some((OwnerKind::User, user.user.to_string())),
        None => cookie::read(app, request).map(|visitor| (OwnerKind::Visitor, visitor.id().to_owned())),
    };
    if let Some((owner_kind, id)) = owner {
        if cors::is_foreign(app, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        let workspace = default_workspace(app).await?;
        let session = format!("{}:{id}", owner_kind.as_str());
        app.chat_limits().check_session(&session)?;
        let uploader = Uploader {
            workspace,
            workflow: None,
            owner_kind,
            owner_id: Some(id),
            session,
            network: network_of(app, request),
        };
        return Ok(uploader);
    }
    // Open services accept everyone; others return the missing requirement.
    app.gate().judge(Credential::None, address).await?;
    if cors::is_denied(app, request) {
        return Err(ApiError::new(ErrorCode::OriginMismatch));
    }
    Ok(anyone(default_workspace(app).await?, by_address(app, request)))
}

/// The caller's first workspace, else `default`.
async fn workspace_of(app: &App, principal: &Principal) -> ApiResult<Uuid> {
    if let Some(names) = principal.workspaces()
        && let Some(first) = app.store().workspaces_named(&names).await?.first()
    {
        return Ok(first.id);
    }
    default_workspace(app).await
}

/// The workspace `default`. If it was deleted, the request must name a workflow.
async fn default_workspace(app: &App) -> ApiResult<Uuid> {
    let found = app.store().workspace_id(DEFAULT_WORKSPACE).await?;
    found.ok_or_else(|| ApiError::new(ErrorCode::ChatWorkflowIdRequired))
}

/// The limit key shared by all sessions in the client's network.
pub(in crate::http::chat) fn network_of(app: &App, request: &HttpRequest) -> String {
    format!("network:{}", auth::peer::network(app.client_address(request)))
}

fn by_address(app: &App, request: &HttpRequest) -> String {
    format!("address:{}", auth::peer::network(app.client_address(request)))
}

/// The workflow named in the query or header.
fn workflow(request: &HttpRequest) -> ApiResult<Option<Uuid>> {
    let mut params = Params::from_request(request);
    let queried = params.text("workflow_id");
    ApiError::refuse(params.finish())?;
    let headed = request.headers().get(WORKFLOW).map(|value| value.to_str().unwrap_or("\0"));
    let named = match (queried, headed) {
        (Some(queried), Some(headed)) if queried != headed => {
            let message = "names another workflow than the header X-Workflow-Id";
            let problem = FieldError::new("/workflow_id", "conflict", message);
            return Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]));
        }
        (Some(queried), _) => Cow::Owned(queried),
        (None, Some(headed)) => Cow::Borrowed(headed),
        (None, None) => return Ok(None),
    };
    let id = Uuid::parse_str(&named).map_err(|_| ApiError::new(ErrorCode::ChatWorkflowIdInvalid))?;
    Ok(Some(id))
}

/// The workflow of the request's session token, if it is valid.
fn session_workflow(app: &App, request: &HttpRequest) -> Option<Uuid> {
    let Credential::Bearer(token) = credential(request.headers()) else { return None };
    let sessions = app.tokens().chat.as_ref()?;
    sessions.verify(&token, app.clock().now()).ok().map(|session| session.workflow)
}
