//! The caller of a page: a browser sends its sign-in cookie instead of an API credential.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use auth::scope::Scope;
use store::StoredWorkspace;
use wire::ErrorCode;

use super::{Caller, RouteScope, app_of, credential, place};
use crate::http::error::{ApiError, ApiResult};
use crate::http::session;

/// A caller with the scope `S`, authenticated by a credential or by the browser's sign-in cookie. For read-only pages:
/// a cookie authorizes no change.
pub(in crate::http) struct PageCaller<S> {
    caller: Caller<S>,
    /// The signed-in user's email address; `None` if the page needs no sign-in.
    pub(in crate::http) email: Option<String>,
}

impl<S: RouteScope> FromRequest for PageCaller<S> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Self::for_request(&request).await })
    }
}

impl<S: RouteScope> PageCaller<S> {
    async fn for_request(request: &HttpRequest) -> ApiResult<Self> {
        match Caller::with(request, credential::read(request.headers())).await {
            Ok(caller) => Ok(Self { caller, email: None }),
            Err(refused) if refused.code() == ErrorCode::MissingToken => {
                let app = app_of(request)?.clone();
                let user = session::signed_in(&app, request).await?.ok_or(refused)?;
                let principal = app.gate().user(user.user).await?;
                let caller = Caller::who_is(request, app, principal).await?;
                Ok(Self { caller, email: Some(user.email) })
            }
            Err(refused) => Err(refused),
        }
    }

    /// Whether the caller also has this scope in a workspace, so that the page offers the matching actions.
    pub(in crate::http) fn may_in(&self, scope: Scope, workspace: &StoredWorkspace) -> bool {
        self.caller.principal().may_in(scope, place(workspace)).is_ok()
    }
}

impl<S> Deref for PageCaller<S> {
    type Target = Caller<S>;

    fn deref(&self) -> &Caller<S> {
        &self.caller
    }
}
