//! The caller of a WebSocket, authenticated at the handshake and re-checked periodically while it is open.

use std::ops::{Deref, DerefMut};

use actix_web::HttpRequest;
use auth::scope::Scope;
use wire::ErrorCode;

use super::watcher::Watcher;
use super::{Caller, WorkflowsExecute, app_of, handshake};
use crate::http::cors;
use crate::http::error::{ApiError, ApiResult};

/// A WebSocket caller who may run workflows.
pub(in crate::http) struct SocketCaller(Watcher<WorkflowsExecute>);

impl SocketCaller {
    /// Authenticates the handshake. Cookies are ignored, so a page cannot act in its viewer's name.
    pub(in crate::http) async fn at_handshake(request: &HttpRequest) -> ApiResult<Self> {
        if cors::is_foreign(app_of(request)?, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        let caller = Caller::with(request, handshake::read(request)).await?;
        Ok(Self(Watcher::new(caller, &handshake::read(request))))
    }

    /// Checks that the caller may also read workflows.
    pub(in crate::http) async fn check_reads(&self) -> ApiResult<()> {
        self.check_also(Scope::WorkflowsRead).await
    }
}

impl Deref for SocketCaller {
    type Target = Watcher<WorkflowsExecute>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for SocketCaller {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
