//! Who may chat with a workflow.
//!
//! A bearer is judged alone. Session tokens, logins and their cookies are not served yet: a bearer is never good, and
//! a login never there.

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
use crate::http::{App, body, cors};

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

/// Whether anybody may chat with the workflow.
pub(in crate::http) fn check_published(workflow: &StoredWorkflow) -> ApiResult<()> {
    if workflow.archived_at.is_some() {
        Err(ApiError::new(ErrorCode::WorkflowNotFound))
    } else if !workflow.is_public {
        Err(ApiError::new(ErrorCode::ChatNotPublished))
    } else if workflow.require_login {
        Err(ApiError::new(ErrorCode::ChatLoginRequired))
    } else {
        Ok(())
    }
}

/// Somebody who may chat with a workflow.
pub(super) struct Access {
    runnable: Runnable,
    visitor: Option<Visitor>,
}

impl Access {
    /// Judges a request for a workflow's chat.
    pub(super) async fn judge(app: &App, request: &HttpRequest, workflow: Uuid) -> ApiResult<Self> {
        if request.headers().contains_key(header::AUTHORIZATION) {
            return Err(ApiError::new(ErrorCode::ChatSessionInvalid));
        }
        let runnable = app.chat().runnable(workflow).await?;
        let runnable = runnable.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
        check_published(&runnable.workflow)?;
        Ok(Self { runnable, visitor: cookie::read(app, request) })
    }

    /// What a cookie authenticates is not done for a page of another origin, nor for a form.
    pub(super) fn check_write(&self, app: &App, request: &HttpRequest) -> ApiResult<()> {
        self.check_origin(app, request)?;
        if self.visitor.is_some() && !body::is_json(request) {
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
        }
        Ok(())
    }

    pub(super) fn check_origin(&self, app: &App, request: &HttpRequest) -> ApiResult<()> {
        if self.visitor.is_some() && cors::is_foreign(app, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        Ok(())
    }

    /// The thread of this id, under the same rules.
    pub(super) async fn thread_named(&self, app: &App, id: &str) -> ApiResult<StoredThread> {
        let id = ThreadId::parse(id).map_err(|_| ApiError::new(ErrorCode::ThreadNotFound))?;
        self.thread(app, id).await
    }

    /// The thread must be of this workflow and not of another visitor. Without a cookie its id is enough.
    pub(super) async fn thread(&self, app: &App, id: ThreadId) -> ApiResult<StoredThread> {
        let thread = app.chat().thread(id).await?;
        let thread = thread.filter(|thread| thread.workflow_id == self.runnable.workflow.id);
        let thread = thread.ok_or_else(|| ApiError::new(ErrorCode::ThreadNotFound))?;
        self.owns(&thread)?;
        Ok(thread)
    }

    /// A thread of this workflow must not be of another visitor.
    pub(super) fn owns(&self, thread: &StoredThread) -> ApiResult<()> {
        match (&self.visitor, &thread.owner_id) {
            (Some(visitor), Some(owner)) if visitor.id() != owner => {
                Err(ApiError::new(ErrorCode::ThreadNotFound))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn workflow(&self) -> Uuid {
        self.runnable.workflow.id
    }

    pub(super) fn workspace(&self) -> Uuid {
        self.runnable.workflow.workspace_id
    }

    pub(super) fn visitor(&self) -> Option<&Visitor> {
        self.visitor.as_ref()
    }

    pub(super) fn version(&self) -> ApiResult<Arc<LoadedVersion>> {
        self.runnable.version.clone().ok_or_else(|| ApiError::new(ErrorCode::WorkflowNoVersion))
    }
}
