//! A long-lived reader, authenticated at the start and re-checked periodically while it reads.

use std::ops::Deref;
use std::time::Duration;

use actix_web::HttpRequest;
use kernel::Secret;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::credential::{self, Credential};
use super::{Caller, RouteScope};
use crate::http::error::ApiResult;

/// A removed member can read for at most 5 s more.
const USER: Duration = Duration::from_secs(4);
/// A revoked token keeps an open connection for less than a minute.
const TOKEN: Duration = Duration::from_secs(40);

/// A caller with the token that they presented.
pub(in crate::http) struct Watcher<S> {
    caller: Caller<S>,
    token: Option<Secret>,
}

impl<S: RouteScope> Watcher<S> {
    pub(super) fn new(caller: Caller<S>, credential: &Credential<'_>) -> Self {
        let token = match credential {
            Credential::Bearer(token) => Some(Secret::from(token.as_ref())),
            _ => None,
        };
        Self { caller, token }
    }

    /// Watches the caller of a request with a long-lived response.
    pub(in crate::http) fn for_request(caller: Caller<S>, request: &HttpRequest) -> Self {
        Self::new(caller, &credential::read(request.headers()))
    }

    /// Maximum time between two checks.
    pub(in crate::http) fn judged_for(&self) -> Duration {
        if self.caller.principal().user_id().is_some() { USER } else { TOKEN }
    }

    /// Whether the caller may still read in this workspace.
    pub(in crate::http) async fn check_again(&mut self, workspace: Uuid) -> ApiResult<()> {
        let token = self.token.as_ref().map(ExposeSecret::expose_secret);
        let principal = self.caller.app().gate().judge_again(token).await?;
        self.caller.became(principal);
        self.caller.check().await?;
        self.caller.enter_workspace_of(workspace).await
    }

    /// Completes when the caller has lost access to the workspace.
    pub(in crate::http) async fn shut_out(mut self, workspace: Uuid) {
        loop {
            self.caller.app().clock().sleep(self.judged_for()).await;
            if let Err(refused) = self.check_again(workspace).await {
                let code = refused.code();
                // A database failure is not a reason to disconnect; the check is retried.
                if matches!(code.status(), 401 | 403) {
                    tracing::debug!(code = code.as_str(), "disconnected a reader that lost its access");
                    return;
                }
            }
        }
    }
}

impl<S> Deref for Watcher<S> {
    type Target = Caller<S>;

    fn deref(&self) -> &Caller<S> {
        &self.caller
    }
}
