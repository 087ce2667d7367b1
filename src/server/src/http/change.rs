//! A request that changes data: its caller, its body, and its idempotency key, if any.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::InternalError;
use actix_web::web::{self, Bytes};
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use control::Decision;
use serde_json::{Map, Value};
use store::Changes;
use wire::FieldError;

use super::body::{self, BODY_LIMIT};
use super::error::{ApiError, ApiResult};
use super::fields;
use super::guard::{Caller, RouteScope};
use super::idempotency::{ChangeReply, Once};
use super::query::Params;

/// Maximum age of the caller's authentication after the body has arrived.
const JUDGED_FOR: Duration = Duration::from_secs(2);

/// An authenticated caller with a body of at most `LIMIT` bytes. A repeated request with an idempotency key gets the
/// stored response and never reaches its handler.
pub(super) struct Change<S, const LIMIT: usize = BODY_LIMIT> {
    pub(super) caller: Caller<S>,
    request: HttpRequest,
    body: Bytes,
    once: Once,
}

impl<S: RouteScope, const LIMIT: usize> FromRequest for Change<S, LIMIT> {
    type Error = actix_web::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self, actix_web::Error>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let caller = Caller::<S>::extract(&request).await?;
            let payload = web::Payload::from_request(&request, &mut payload).await?;
            let clock = Arc::clone(caller.app().clock());
            let began = clock.monotonic();
            let body = body::read(&request, payload, LIMIT, &*clock).await?;
            // While a slow body arrives, the caller's rights may change, so they are checked again.
            let caller = match clock.monotonic().saturating_sub(began) {
                waited if waited < JUDGED_FOR => caller,
                _ => Caller::<S>::extract(&request).await?,
            };
            let once = Once::for_request(&caller, &request, &body)?;
            match once.answered().await? {
                None => Ok(Self { caller, request, body, once }),
                // An extractor can respond only through an error.
                Some(answer) => Err(InternalError::from_response("answered before", answer).into()),
            }
        })
    }
}

impl<S, const LIMIT: usize> Change<S, LIMIT> {
    /// Parses the body. Query parameters are refused.
    pub(super) fn wanted<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        Params::from_request(&self.request).and(read(&body::object(&self.request, &self.body)?))
    }

    /// Like [`Self::wanted`], but refuses duplicate members.
    pub(super) fn wanted_unique<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        Params::from_request(&self.request).and(read(&body::unique_object(&self.request, &self.body)?))
    }

    /// Like [`Self::wanted_unique`], but an empty body counts as an empty object.
    pub(super) fn wanted_unique_if_any<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        if self.body.trim_ascii().is_empty() {
            return Params::from_request(&self.request).and(read(&Map::new()));
        }
        self.wanted_unique(read)
    }

    /// Like [`Self::wanted`], but the body is optional.
    pub(super) fn wanted_if_any<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        Params::from_request(&self.request).and(read(&body::object_or_nothing(&self.request, &self.body)?))
    }

    /// Returns the body as any JSON value. Query parameters are refused.
    pub(super) fn value(&self) -> ApiResult<Value> {
        ApiError::refuse(Params::from_request(&self.request).finish())?;
        body::any(&self.request, &self.body)
    }

    /// The request, for handlers that need its media type or query.
    pub(super) fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// The body as sent.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// Refuses any body members and query parameters.
    pub(super) fn wants_no_more(&self) -> ApiResult<()> {
        self.wanted_if_any(fields::nothing)
    }

    /// The scheme, host and port for URLs in the response.
    pub(super) fn public_base(&self) -> String {
        self.caller.app().public_base(&self.request)
    }

    /// The base URL for links in emails, if it is trustworthy.
    pub(super) fn link_base(&self) -> Option<String> {
        self.caller.app().link_base(&self.request)
    }

    /// Applies all changes or none, and stores the response in the same transaction.
    pub(super) async fn make(
        &self,
        make: impl AsyncFnOnce(&mut Changes) -> ApiResult<ChangeReply>,
    ) -> ApiResult<HttpResponse> {
        self.once.change(make).await
    }

    /// Applies a change that responds with 204.
    pub(super) async fn delete(
        &self,
        delete: impl AsyncFnOnce(&mut Changes) -> Decision<()>,
    ) -> ApiResult<HttpResponse> {
        self.make(async |changes| {
            delete(changes).await?;
            Ok(ChangeReply::nothing())
        })
        .await
    }
}
