//! Refuses authenticated callers and records denials in the audit trail.

use actix_web::HttpRequest;
use auth::principal::Denied;
use control::{Decision, Refusal};
use store::{AuditEntry, AuditOutcome, AuditTarget, StoreError};
use uuid::Uuid;
use wire::{AuditAction, ErrorCode};

use super::Caller;
use super::scopes::RouteScope;
use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id;

/// Maps a denial to its error.
pub(super) fn answer(denied: Denied) -> ApiError {
    match denied {
        Denied::Scopes(missing) => Refusal::missing(missing).into(),
        Denied::Workspace => ApiError::new(ErrorCode::WorkspaceForbidden),
    }
}

/// The method and pattern of the requested route, which contain no user data.
pub(super) fn route(request: &HttpRequest) -> String {
    let pattern = request.match_pattern();
    format!("{} {}", request.method(), pattern.as_deref().unwrap_or_default())
}

impl<S: RouteScope> Caller<S> {
    /// Returns the result. Records a refusal in the audit trail after the change has released its connection.
    pub(in crate::http) async fn noted<T>(&self, answer: ApiResult<T>) -> ApiResult<T> {
        match answer {
            Err(refused) if refused.code() == ErrorCode::MissingScope => Err(self.denied(refused).await),
            answer => answer,
        }
    }

    /// Returns the decision's result, or its refusal after recording it in the audit trail.
    pub(in crate::http) async fn allowed<T>(&self, decided: Decision<T>) -> ApiResult<T> {
        match decided {
            Ok(allowed) => Ok(allowed),
            Err(refused) => Err(self.denied(refused.into()).await),
        }
    }

    /// Records a denied change in the audit trail and returns the refusal.
    pub(in crate::http) async fn denied(&self, error: ApiError) -> ApiError {
        self.denied_in(None, error).await
    }

    /// Like [`Self::denied`], for a change in this workspace. `None` selects the workspace that the request names, else
    /// the caller's only one.
    /// A denied app change is always recorded in the app's workspace, where its auditors look.
    pub(in crate::http) async fn denied_in(&self, workspace: Option<Uuid>, error: ApiError) -> ApiError {
        if !S::WRITES || self.principal().is_anonymous() || !self.app().gate().limiter().may_audit_denial() {
            return error;
        }
        match self.audit_denial(workspace, error.code().as_str()).await {
            Ok(()) => error,
            // A denial that cannot be recorded fails with the store's error.
            Err(failed) => failed.into(),
        }
    }

    async fn audit_denial(&self, workspace: Option<Uuid>, code: &str) -> Result<(), StoreError> {
        // An unknown app name is caller text, which does not belong in the audit trail.
        let app = match self.named_app() {
            Some(name) => self.store().app(name).await?,
            None => None,
        };
        let (target, workspace, reason) = match app {
            // The reason includes the route, because the app alone does not show the attempted action.
            Some(app) => {
                let target = AuditTarget { kind: "app", id: app.id.to_string() };
                (target, Some(app.workspace_id), format!("{code}: {}", self.route()))
            }
            None => {
                let target = AuditTarget { kind: "route", id: self.route().to_owned() };
                let workspace = match workspace {
                    Some(workspace) => Some(workspace),
                    None => self.workspace_asked_for().await?,
                };
                (target, workspace, code.to_owned())
            }
        };
        let entry = AuditEntry {
            actor: self.principal().actor().clone(),
            action: AuditAction::AuthDenied,
            target: Some(target),
            workspace,
            outcome: AuditOutcome::Denied,
            reason: Some(reason),
            address: Some(self.address().to_string()),
            request_id: request_id::current(),
        };
        self.store().audit(&entry).await
    }

    async fn workspace_asked_for(&self) -> Result<Option<Uuid>, StoreError> {
        let named = match self.named_workspace() {
            Some(slug) => self.store().workspace_with_slug(slug).await?,
            None => None,
        };
        if named.is_some() {
            return Ok(named.map(|workspace| workspace.id));
        }
        let Some(names) = self.principal().workspaces() else { return Ok(None) };
        Ok(match self.store().workspaces_named(&names).await?.as_slice() {
            [only] => Some(only.id),
            _ => None,
        })
    }
}
