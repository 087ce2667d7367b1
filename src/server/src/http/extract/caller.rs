//! The caller of an API route, judged by type: a handler that does not name a scope cannot reach the store.
//!
//! Credentials are not checked yet, and the service starts only where nobody else can reach it (`auth::exposure`), so
//! every caller has every scope.

use std::future::{Ready, ready};
use std::marker::PhantomData;
use std::net::IpAddr;

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use store::{DEFAULT_WORKSPACE, Store, StoredWorkflow, WorkflowRef};
use uuid::Uuid;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, cors};

/// A scope that a route asks for.
pub(in crate::http) trait Scope: 'static {
    /// Whether it lets the caller change something.
    const WRITES: bool;
}

/// List and view workflows.
pub(in crate::http) struct WorkflowsRead;
/// Create, change and publish workflows.
pub(in crate::http) struct WorkflowsWrite;

/// Start and stop runs.
pub(in crate::http) struct WorkflowsExecute;

impl Scope for WorkflowsExecute {
    const WRITES: bool = true;
}
impl Scope for WorkflowsRead {
    const WRITES: bool = false;
}
impl Scope for WorkflowsWrite {
    const WRITES: bool = true;
}

/// Somebody who has scope `S`.
pub(in crate::http) struct Caller<S> {
    app: Data<App>,
    address: Option<IpAddr>,
    scope: PhantomData<S>,
}

impl<S: Scope> FromRequest for Caller<S> {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let app = request.app_data::<Data<App>>().cloned();
        // HTTP/1.0 has no Host, and no browser speaks it.
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        ready(match app {
            Some(app) if host.is_some_and(|host| !app.is_known_as(host)) => {
                Err(ApiError::new(ErrorCode::HostMismatch))
            }
            // A browser sends a form to whoever it can reach, and on an open service that is all it takes.
            Some(app) if S::WRITES && cors::is_denied(&app, request) => {
                Err(ApiError::new(ErrorCode::OriginMismatch))
            }
            Some(app) => {
                let address = request.peer_addr().map(|peer| peer.ip().to_canonical());
                Ok(Self { app, address, scope: PhantomData })
            }
            None => Err(ApiError::new(ErrorCode::Internal).with_cause("no application data")),
        })
    }
}

impl<S> Caller<S> {
    pub(in crate::http) fn store(&self) -> &Store {
        self.app.store()
    }

    pub(in crate::http) fn app(&self) -> &App {
        &self.app
    }

    /// What tells callers apart: the address, as long as nobody has a name.
    pub(in crate::http) fn identity(&self) -> String {
        self.address.map(|address| format!("address:{address}")).unwrap_or_default()
    }

    /// Who is noted as the author of a change; nobody is known yet.
    pub(in crate::http) fn name(&self) -> Option<&str> {
        None
    }

    /// The workspace the caller works in.
    pub(in crate::http) async fn workspace(&self) -> ApiResult<Uuid> {
        let found = self.store().workspace_id(DEFAULT_WORKSPACE).await?;
        found.ok_or_else(|| ApiError::new(ErrorCode::Internal).with_cause("the default workspace is gone"))
    }

    /// The workflow that a path names.
    pub(in crate::http) async fn workflow(&self, name: &str) -> ApiResult<StoredWorkflow> {
        let workspace = self.workspace().await?;
        let found = self.store().workflow(&WorkflowRef::parse(name), workspace).await?;
        found.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))
    }
}
