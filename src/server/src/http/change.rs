//! A request that changes something: who asks, what they ask for, and once where it has a key.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::InternalError;
use actix_web::web::{self, Bytes};
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use serde_json::{Map, Value};
use store::Changes;
use wire::FieldError;

use super::body::{self, BODY_LIMIT};
use super::error::{ApiError, ApiResult};
use super::fields;
use super::guard::{Asked, Caller};
use super::idempotency::{Once, Reply};
use super::query::Params;

/// How long a caller's judgement is good for.
const JUDGED_FOR: Duration = Duration::from_secs(2);

/// The caller, judged, with a body of at most `LIMIT` bytes. A request that was answered before is answered the same
/// again, and its handler does not hear of it.
pub(super) struct Change<S, const LIMIT: usize = BODY_LIMIT> {
    pub(super) caller: Caller<S>,
    request: HttpRequest,
    body: Bytes,
    once: Once,
}

impl<S: Asked, const LIMIT: usize> FromRequest for Change<S, LIMIT> {
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
            // Who takes their time with the body is judged by what they are when it is there.
            let caller = match clock.monotonic().saturating_sub(began) {
                waited if waited < JUDGED_FOR => caller,
                _ => Caller::<S>::extract(&request).await?,
            };
            let once = Once::of(&caller, &request, &body)?;
            match once.answered().await? {
                None => Ok(Self { caller, request, body, once }),
                // Only so can an extractor answer.
                Some(answer) => Err(InternalError::from_response("answered before", answer).into()),
            }
        })
    }
}

impl<S, const LIMIT: usize> Change<S, LIMIT> {
    /// What the body asks for. The query says nothing.
    pub(super) fn wanted<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        Params::of(&self.request).and(read(&body::object(&self.request, &self.body)?))
    }

    /// The same; a body that repeats a member is refused.
    pub(super) fn wanted_unique<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        Params::of(&self.request).and(read(&body::unique_object(&self.request, &self.body)?))
    }

    /// The same of a request whose body may be empty: what it needs is missing then.
    pub(super) fn wanted_unique_if_any<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        if self.body.trim_ascii().is_empty() {
            return Params::of(&self.request).and(read(&Map::new()));
        }
        self.wanted_unique(read)
    }

    /// The same as [`Self::wanted`] where there need not be a body.
    pub(super) fn wanted_if_any<T>(
        &self,
        read: impl FnOnce(&Map<String, Value>) -> Result<T, Vec<FieldError>>,
    ) -> ApiResult<T> {
        Params::of(&self.request).and(read(&body::object_or_nothing(&self.request, &self.body)?))
    }

    /// The body itself, which may be any JSON. The query says nothing.
    pub(super) fn value(&self) -> ApiResult<Value> {
        ApiError::refuse(Params::of(&self.request).finish())?;
        body::any(&self.request, &self.body)
    }

    /// The request, where its media type or its query says something.
    pub(super) fn request(&self) -> &HttpRequest {
        &self.request
    }

    /// The body as it was sent.
    pub(super) fn bytes(&self) -> &Bytes {
        &self.body
    }

    /// Everything is said by the path.
    pub(super) fn wants_no_more(&self) -> ApiResult<()> {
        self.wanted_if_any(fields::nothing)
    }

    /// Scheme, host and port that addresses in the answer begin with.
    pub(super) fn public_base(&self) -> String {
        self.caller.app().public_base(&self.request)
    }

    /// The same for links in mail, where that may be said.
    pub(super) fn link_base(&self) -> Option<String> {
        self.caller.app().link_base(&self.request)
    }

    /// Makes the changes, all or none, and the answer with them.
    pub(super) async fn make(
        &self,
        make: impl AsyncFnOnce(&mut Changes) -> ApiResult<Reply>,
    ) -> ApiResult<HttpResponse> {
        self.once.change(make).await
    }
}
