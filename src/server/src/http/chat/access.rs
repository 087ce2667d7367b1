//! Who may chat with a workflow.
//!
//! A bearer is judged alone. Session tokens are not served yet: a bearer is never good. Where a login is required, the
//! caller is who is signed in, and otherwise the visitor of a cookie, or nobody in particular.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header;
use actors::plans::{LoadedVersion, Runnable};
use auth::visitor::Visitor;
use kernel::ThreadId;
use serde_json::Value;
use store::{StoredThread, StoredWorkflow};
use uuid::Uuid;
use wire::ErrorCode;

use super::cookie;
use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, body, cors, session};

/// The top-level `workflow_id`, before anything else is looked at.
pub(super) fn workflow_id(document: &Value) -> ApiResult<Uuid> {
    match document.get("workflow_id") {
        None | Some(Value::Null) => Err(ApiError::new(ErrorCode::ChatWorkflowIdRequired)),
        Some(Value::String(text)) if text.is_empty() => Err(ApiError::new(ErrorCode::ChatWorkflowIdRequired)),
        Some(Value::String(text)) => {
            Uuid::parse_str(text).map_err(|_| ApiError::new(ErrorCode::ChatWorkflowIdInvalid))
        }
        Some(_) => Err(ApiError::new(ErrorCode::ChatWorkflowIdInvalid)),
    }
}

/// Whether the workflow's chat is open: to anybody, or to whoever is signed in.
pub(in crate::http) fn check_published(workflow: &StoredWorkflow, signed_in: bool) -> ApiResult<()> {
    if workflow.archived_at.is_some() {
        Err(ApiError::new(ErrorCode::WorkflowNotFound))
    } else if !workflow.is_public {
        Err(ApiError::new(ErrorCode::ChatNotPublished))
    } else if workflow.require_login && !signed_in {
        Err(ApiError::new(ErrorCode::ChatLoginRequired))
    } else {
        Ok(())
    }
}

/// Who a caller is.
#[derive(Debug, Clone)]
enum Who {
    /// No cookie says.
    Anyone,
    /// An anonymous visitor.
    Visitor(Visitor),
    /// Somebody who is signed in.
    User(String),
}

/// Somebody who may chat with a workflow.
pub(super) struct Access {
    runnable: Runnable,
    who: Who,
}

impl Access {
    /// Judges a request for a workflow's chat.
    pub(super) async fn judge(app: &App, request: &HttpRequest, workflow: Uuid) -> ApiResult<Self> {
        if request.headers().contains_key(header::AUTHORIZATION) {
            return Err(ApiError::new(ErrorCode::ChatSessionInvalid));
        }
        let runnable = app.chat().runnable(workflow).await?;
        let runnable = runnable.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
        let who = if runnable.workflow.require_login {
            let user = session::signed_in(app, request).await?;
            user.map_or(Who::Anyone, |user| Who::User(user.user.to_string()))
        } else {
            cookie::read(app, request).map_or(Who::Anyone, Who::Visitor)
        };
        check_published(&runnable.workflow, matches!(who, Who::User(_)))?;
        Ok(Self { runnable, who })
    }

    fn has_cookie(&self) -> bool {
        !matches!(self.who, Who::Anyone)
    }

    /// What a cookie authenticates is not done for a page of another origin, nor for a form.
    pub(super) fn check_write(&self, app: &App, request: &HttpRequest) -> ApiResult<()> {
        self.check_origin(app, request)?;
        if self.has_cookie() && !body::is_json(request) {
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
        }
        Ok(())
    }

    pub(super) fn check_origin(&self, app: &App, request: &HttpRequest) -> ApiResult<()> {
        if self.has_cookie() && cors::is_foreign(app, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        Ok(())
    }

    /// The thread of this id, under the same rules.
    pub(super) async fn thread_named(&self, app: &App, id: &str) -> ApiResult<StoredThread> {
        let id = ThreadId::parse(id).map_err(|_| ApiError::new(ErrorCode::ThreadNotFound))?;
        self.thread(app, id).await
    }

    /// The thread must be of this workflow and not of somebody else. Without a cookie a visitor's id is enough.
    pub(super) async fn thread(&self, app: &App, id: ThreadId) -> ApiResult<StoredThread> {
        let thread = app.chat().thread(id).await?;
        let thread = thread.filter(|thread| thread.workflow_id == self.runnable.workflow.id);
        let thread = thread.ok_or_else(|| ApiError::new(ErrorCode::ThreadNotFound))?;
        self.owns(&thread)?;
        Ok(thread)
    }

    /// A thread of this workflow must not be of somebody else. What was said behind a login is its user's alone, also
    /// once the workflow asks for none any more.
    pub(super) fn owns(&self, thread: &StoredThread) -> ApiResult<()> {
        let of_user = thread.owner_kind == "user";
        let owns = match (&self.who, &thread.owner_id) {
            (Who::User(user), owner) => of_user && owner.as_ref() == Some(user),
            (Who::Visitor(visitor), Some(owner)) => !of_user && visitor.id() == owner,
            (Who::Visitor(_) | Who::Anyone, _) => !of_user,
        };
        if owns { Ok(()) } else { Err(ApiError::new(ErrorCode::ThreadNotFound)) }
    }

    pub(super) fn workflow(&self) -> Uuid {
        self.runnable.workflow.id
    }

    pub(super) fn workspace(&self) -> Uuid {
        self.runnable.workflow.workspace_id
    }

    /// Whose threads the caller's are: the kind of owner, and who.
    pub(super) fn owner(&self) -> Option<(&'static str, &str)> {
        match &self.who {
            Who::Anyone => None,
            Who::Visitor(visitor) => Some(("visitor", visitor.id())),
            Who::User(user) => Some(("user", user)),
        }
    }

    pub(super) fn version(&self) -> ApiResult<Arc<LoadedVersion>> {
        self.runnable.version.clone().ok_or_else(|| ApiError::new(ErrorCode::WorkflowNoVersion))
    }
}
