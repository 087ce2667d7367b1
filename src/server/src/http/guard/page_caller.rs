//! A caller who opens a page: a browser sends the cookie of its sign-in, and no credential of the API.

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};
use auth::scope::Scope;
use store::StoredWorkspace;
use wire::ErrorCode;

use super::{Asked, Caller, app_of, credential, place};
use crate::http::error::{ApiError, ApiResult};
use crate::http::session;

/// A caller who has the scope `S`, by a credential or as the user who is signed in on the browser. It is for pages that only read: no
/// cookie authorizes a change.
pub(in crate::http) struct PageCaller<S> {
    caller: Caller<S>,
    /// The mail address of the signed-in user; `None` if the page needs no sign-in.
    pub(in crate::http) email: Option<String>,
}

impl<S: Asked> FromRequest for PageCaller<S> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        Box::pin(async move { Self::of(&request).await })
    }
}

impl<S: Asked> PageCaller<S> {
    async fn of(request: &HttpRequest) -> ApiResult<Self> {
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

    /// Whether the caller has another scope in a workspace, so that the page offers what needs it.
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
