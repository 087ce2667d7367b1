//! Refusals of callers who are known.

use actix_web::HttpRequest;
use auth::principal::Denied;
use control::{Decision, Refusal};
use store::{AuditEntry, AuditTarget, Outcome, StoreError};
use uuid::Uuid;
use wire::{AuditAction, ErrorCode};

use super::Caller;
use super::scopes::Asked;
use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id;

/// The answer.
pub(super) fn answer(denied: Denied) -> ApiError {
    match denied {
        Denied::Scopes(missing) => Refusal::missing(missing).into(),
        Denied::Workspace => ApiError::new(ErrorCode::WorkspaceForbidden),
    }
}

/// Method and pattern of the route that was asked for, which holds nothing of anybody.
pub(super) fn route(request: &HttpRequest) -> String {
    let pattern = request.match_pattern();
    format!("{} {}", request.method(), pattern.as_deref().unwrap_or_default())
}

impl<S: Asked> Caller<S> {
    /// What came of something; a refusal that a change has come to is noted here, behind the change, which held a
    /// connection of its own.
    pub(in crate::http) async fn noted<T>(&self, answer: ApiResult<T>) -> ApiResult<T> {
        match answer {
            Err(refused) if refused.code() == ErrorCode::MissingScope => Err(self.denied(refused).await),
            answer => answer,
        }
    }

    /// The refusal of a caller who may not, noted in the audit trail.
    pub(in crate::http) async fn allowed<T>(&self, decided: Decision<T>) -> ApiResult<T> {
        match decided {
            Ok(allowed) => Ok(allowed),
            Err(refused) => Err(self.denied(refused.into()).await),
        }
    }

    /// Notes in the audit trail that the caller was kept from a change; answers the refusal.
    pub(in crate::http) async fn denied(&self, error: ApiError) -> ApiError {
        self.denied_in(None, error).await
    }

    /// The same, of a change in this workspace; `None`: in the one that the request names, else the caller's only one. A
    /// change of an app is always noted in the workspace of the app, whose auditors read who tried.
    pub(in crate::http) async fn denied_in(&self, workspace: Option<Uuid>, error: ApiError) -> ApiError {
        if !S::WRITES || self.principal().is_anonymous() || !self.app().gate().limiter().may_audit_denial() {
            return error;
        }
        match self.audit_denial(workspace, error.code().as_str()).await {
            Ok(()) => error,
            // No refusal without a trace.
            Err(failed) => failed.into(),
        }
    }

    async fn audit_denial(&self, workspace: Option<Uuid>, code: &str) -> Result<(), StoreError> {
        // A name of no app is the caller's text, which does not belong in the audit trail.
        let app = match self.named_app() {
            Some(name) => self.store().app(name).await?,
            None => None,
        };
        let (target, workspace, reason) = match app {
            // The route is part of the reason: the app does not tell what the caller tried.
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
            outcome: Outcome::Denied,
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
