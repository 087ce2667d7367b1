//! The caller of an API route, authorized by type: a handler that names no scope cannot reach the store.

use std::future::Future;
use std::marker::PhantomData;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use auth::principal::{Denied, Place, Principal};
use auth::scope::{Scope, ScopeSet};
use control::Requester;
use store::{Store, StoredWorkspace};
use wire::ErrorCode;

use super::credential::{self, Credential};
use super::scopes::RouteScope;
use super::sender::note_sender;
use super::{app_of, denial, place};
use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, cors, request_id};

/// A caller with the scope `S` in some workspace.
pub(in crate::http) struct Caller<S> {
    app: App,
    principal: Principal,
    address: IpAddr,
    route: String,
    /// The app name in the route's path.
    named_app: Option<String>,
    request_id: Option<String>,
    /// `X-Workspace`.
    named: Option<String>,
    scope: PhantomData<S>,
}

impl<S: RouteScope> FromRequest for Caller<S> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Self::for_request(&request).await })
    }
}

impl<S: RouteScope> Caller<S> {
    async fn for_request(request: &HttpRequest) -> ApiResult<Self> {
        Self::with(request, credential::read(request.headers())).await
    }

    /// Authenticates the caller by this credential.
    pub(super) async fn with(request: &HttpRequest, credential: Credential<'_>) -> ApiResult<Self> {
        let app = app_of(request)?.clone();
        let address = app.client_address(request);
        let principal = app.gate().judge(credential, address).await?;
        if principal.is_anonymous() {
            check_open(&app, request, S::WRITES)?;
        }
        Self::who_is(request, app, principal).await
    }

    /// Creates the caller for an authenticated principal.
    pub(super) async fn who_is(request: &HttpRequest, app: App, principal: Principal) -> ApiResult<Self> {
        let address = app.client_address(request);
        let named = request.headers().get("x-workspace").map(|slug| slug.to_str().unwrap_or("\0").to_owned());
        let route = denial::route(request);
        let named_app = request.match_info().get("app").map(str::to_owned);
        let caller = Self {
            app,
            principal,
            address,
            route,
            named_app,
            request_id: request_id::current(),
            named,
            scope: PhantomData,
        };
        caller.check().await?;
        if let Some(name) = caller.name() {
            note_sender(request, name);
        }
        Ok(caller)
    }

    /// Checks that the caller may act in this workspace.
    pub(super) async fn enter(&self, place: Place<'_>) -> ApiResult<()> {
        match self.principal.may_in(S::SCOPE, place) {
            Ok(()) => Ok(()),
            Err(denied) => Err(self.denied_in(Some(place.id), denial::answer(denied)).await),
        }
    }

    /// Replaces the principal after the caller's identity or rights have changed.
    pub(super) fn became(&mut self, principal: Principal) {
        self.principal = principal;
    }

    /// Checks that the caller still has the route's scopes somewhere. The refusal names all missing scopes.
    pub(super) async fn check(&self) -> ApiResult<()> {
        let required = [S::SCOPE].into_iter().chain(S::ALSO.iter().copied());
        let missing: ScopeSet = required.filter(|scope| self.principal.may(*scope).is_err()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(self.denied(denial::answer(Denied::Scopes(missing))).await)
    }

    /// Checks a further scope that the route requires.
    pub(in crate::http) async fn check_also(&self, scope: Scope) -> ApiResult<()> {
        match self.principal.may(scope) {
            Ok(()) => Ok(()),
            Err(denied) => Err(self.denied(denial::answer(denied)).await),
        }
    }

    /// Checks a further scope in a workspace.
    pub(in crate::http) async fn check_also_in(
        &self,
        scope: Scope,
        workspace: &StoredWorkspace,
    ) -> ApiResult<()> {
        match self.principal.may_in(scope, place(workspace)) {
            Ok(()) => Ok(()),
            Err(denied) => Err(self.denied_in(Some(workspace.id), denial::answer(denied)).await),
        }
    }
}

/// Checks the host and origin of a request that needs no credential.
fn check_open(app: &App, request: &HttpRequest, writes: bool) -> ApiResult<()> {
    if !app.is_asked_by_name(request) {
        return Err(ApiError::new(ErrorCode::HostMismatch));
    }
    // A browser sends a form to any host it can reach, and an open service requires nothing else.
    if writes && cors::is_denied(app, request) {
        return Err(ApiError::new(ErrorCode::OriginMismatch));
    }
    Ok(())
}

impl<S> Caller<S> {
    pub(in crate::http) fn store(&self) -> &Store {
        self.app.store()
    }

    pub(in crate::http) fn app(&self) -> &App {
        &self.app
    }

    pub(in crate::http) fn principal(&self) -> &Principal {
        &self.principal
    }

    pub(in crate::http) fn address(&self) -> IpAddr {
        self.address
    }

    pub(super) fn route(&self) -> &str {
        &self.route
    }

    /// The app name in the route's path. It is caller input and may name no app.
    pub(super) fn named_app(&self) -> Option<&str> {
        self.named_app.as_deref()
    }

    /// The `X-Workspace` header, if present.
    pub(in crate::http) fn named_workspace(&self) -> Option<&str> {
        self.named.as_deref()
    }

    /// A key that distinguishes callers: their identity, or their address if the service does not authenticate them.
    pub(in crate::http) fn identity(&self) -> String {
        if self.principal.is_anonymous() {
            format!("address:{}", self.address)
        } else {
            self.principal.actor().name()
        }
    }

    /// The author recorded for a change; `None` if the service does not authenticate callers.
    pub(in crate::http) fn name(&self) -> Option<String> {
        (!self.principal.is_anonymous()).then(|| self.principal.actor().name())
    }

    /// The caller as passed to decisions in `control`.
    pub(in crate::http) fn requester(&self) -> Requester<'_> {
        Requester {
            principal: &self.principal,
            address: self.address,
            request_id: self.request_id.as_deref(),
        }
    }
}

/// The peer address. Requests without a connection exist only in tests and count as loopback.
pub(in crate::http) fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |peer| peer.ip())
}
