//! Whoever is at the other end of a websocket: judged at the handshake, and again and again while it is open.

use std::ops::Deref;

use actix_web::HttpRequest;
use auth::scope::Scope;
use kernel::Secret;
use secrecy::ExposeSecret;
use uuid::Uuid;
use wire::ErrorCode;

use super::credential::Credential;
use super::{Caller, WorkflowsExecute, app_of, handshake};
use crate::http::cors;
use crate::http::error::{ApiError, ApiResult};

/// Somebody who may run workflows, on a websocket.
pub(in crate::http) struct SocketCaller {
    caller: Caller<WorkflowsExecute>,
    token: Option<Secret>,
}

impl SocketCaller {
    /// Judges the handshake. Cookies count for nothing, so that no page speaks in the name of whoever looks at it.
    pub(in crate::http) async fn at_handshake(request: &HttpRequest) -> ApiResult<Self> {
        if cors::is_foreign(app_of(request)?, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        let credential = handshake::read(request);
        let token = match &credential {
            Credential::Bearer(token) => Some(Secret::from(token.as_ref())),
            _ => None,
        };
        let caller = Caller::with(request, credential).await?;
        Ok(Self { caller, token })
    }

    /// Whether they would still be let in, to a workflow of this workspace.
    pub(in crate::http) async fn check_again(&mut self, workspace: Uuid) -> ApiResult<()> {
        let token = self.token.as_ref().map(ExposeSecret::expose_secret);
        let principal = self.caller.app().gate().judge_again(token).await?;
        self.caller.became(principal);
        self.caller.check().await?;
        self.caller.enter_workspace_of(workspace).await
    }

    /// Whether they may also read workflows.
    pub(in crate::http) async fn check_reads(&self) -> ApiResult<()> {
        self.caller.check_also(Scope::WorkflowsRead).await
    }
}

impl Deref for SocketCaller {
    type Target = Caller<WorkflowsExecute>;

    fn deref(&self) -> &Self::Target {
        &self.caller
    }
}
