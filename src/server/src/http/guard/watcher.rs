//! A caller who continues to read: judged when they begin, and again and again for as long as they read.

use std::ops::Deref;
use std::time::Duration;

use actix_web::HttpRequest;
use kernel::Secret;
use secrecy::ExposeSecret;
use uuid::Uuid;

use super::credential::{self, Credential};
use super::{Asked, Caller};
use crate::http::error::ApiResult;

/// A member who is removed reads on for no more than 5 s.
const USER: Duration = Duration::from_secs(4);
/// A token that is revoked is good for an open connection for less than a minute.
const TOKEN: Duration = Duration::from_secs(40);

/// A caller, and the token that they showed.
pub(in crate::http) struct Watcher<S> {
    caller: Caller<S>,
    token: Option<Secret>,
}

impl<S: Asked> Watcher<S> {
    pub(super) fn new(caller: Caller<S>, credential: &Credential<'_>) -> Self {
        let token = match credential {
            Credential::Bearer(token) => Some(Secret::from(token.as_ref())),
            _ => None,
        };
        Self { caller, token }
    }

    /// The caller of a request, who reads its answer for a while.
    pub(in crate::http) fn of(caller: Caller<S>, request: &HttpRequest) -> Self {
        Self::new(caller, &credential::read(request.headers()))
    }

    /// How long a judgement is good for.
    pub(in crate::http) fn judged_for(&self) -> Duration {
        if self.caller.principal().user_id().is_some() { USER } else { TOKEN }
    }

    /// Whether they would still be let in, in this workspace.
    pub(in crate::http) async fn check_again(&mut self, workspace: Uuid) -> ApiResult<()> {
        let token = self.token.as_ref().map(ExposeSecret::expose_secret);
        let principal = self.caller.app().gate().judge_again(token).await?;
        self.caller.became(principal);
        self.caller.check().await?;
        self.caller.enter_workspace_of(workspace).await
    }

    /// Comes to its end when they would not be let in any more.
    pub(in crate::http) async fn shut_out(mut self, workspace: Uuid) {
        loop {
            self.caller.app().clock().sleep(self.judged_for()).await;
            if let Err(refused) = self.check_again(workspace).await {
                let code = refused.code();
                // A database that does not answer is no reason: it is asked again.
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
