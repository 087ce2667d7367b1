//! The caller at the other end of a websocket: judged at the handshake, and again and again while it is open.

use std::ops::{Deref, DerefMut};

use actix_web::HttpRequest;
use auth::scope::Scope;
use wire::ErrorCode;

use super::watcher::Watcher;
use super::{Caller, WorkflowsExecute, app_of, handshake};
use crate::http::cors;
use crate::http::error::{ApiError, ApiResult};

/// A caller who may run workflows, on a websocket.
pub(in crate::http) struct SocketCaller(Watcher<WorkflowsExecute>);

impl SocketCaller {
    /// Judges the handshake. Cookies count for nothing, so that no page acts in the name of the user who views it.
    pub(in crate::http) async fn at_handshake(request: &HttpRequest) -> ApiResult<Self> {
        if cors::is_foreign(app_of(request)?, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        let caller = Caller::with(request, handshake::read(request)).await?;
        Ok(Self(Watcher::new(caller, &handshake::read(request))))
    }

    /// Whether they may also read workflows.
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
