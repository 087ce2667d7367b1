//! The header `Idempotency-Key`, and requests that change something once however often they come.
//!
//! The answer that a key stands for is committed by the transaction of the change itself, so neither is ever there
//! without the other: a request that dies on its way leaves its key free, and one whose answer is lost is answered the
//! same again. Only successes are kept. A refused request has changed nothing, and its key may be used again, with
//! another body too.

use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use ring::digest::{SHA256, digest};
use serde::Serialize;
use store::{Begun, Changes, RequestKey, Reserved, Store, StoredAnswer};
use wire::ErrorCode;

use super::error::{ApiError, ApiResult};
use super::extract::Caller;

/// Characters of the longest key.
const LONGEST: usize = 255;
/// Of an answer that was given before.
pub(super) const REPLAYED: (&str, &str) = ("Idempotency-Replayed", "true");

/// The request's key, if it has one.
pub(super) fn key(request: &HttpRequest) -> ApiResult<Option<String>> {
    let mut values = request.headers().get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let good = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_graphic());
    if !good || values.next().is_some() {
        return Err(ApiError::new(ErrorCode::IdempotencyKeyInvalid));
    }
    Ok(Some(text.to_owned()))
}

/// Keys of different callers, methods and paths never meet. The path counts as it was sent: what it names may have
/// another name by the time of the retry.
pub(super) fn scope<S>(caller: &Caller<S>, request: &HttpRequest) -> String {
    format!("{} {}|{}", request.method(), request.path(), caller.identity())
}

/// A request that changes something: once, where it has a key.
pub(super) struct Once {
    store: Store,
    key: Option<RequestKey>,
}

impl Once {
    /// The request with its key, if it has one.
    pub(super) fn of<S>(caller: &Caller<S>, request: &HttpRequest, body: &[u8]) -> ApiResult<Self> {
        let key = key(request)?.map(|key| RequestKey {
            scope: scope(caller, request),
            key,
            digest: digest(&SHA256, body).as_ref().to_vec(),
        });
        Ok(Self { store: caller.store().clone(), key })
    }

    /// The answer that the request was given before. It is looked for before anything else is: what the request names
    /// may be gone by now, or take no more changes.
    pub(super) async fn answered(&self) -> ApiResult<Option<HttpResponse>> {
        let Some(key) = &self.key else { return Ok(None) };
        match self.store.answered(key).await? {
            Reserved::New => Ok(None),
            Reserved::Same(answer) => Ok(Some(replayed(answer))),
            Reserved::Different => Err(ApiError::new(ErrorCode::IdempotencyKeyReused)),
        }
    }

    /// Makes the changes, all or none, and the answer with them.
    pub(super) async fn change(
        self,
        make: impl AsyncFnOnce(&mut Changes) -> ApiResult<Reply>,
    ) -> ApiResult<HttpResponse> {
        let begun = match self.key {
            Some(key) => self.store.begin_request(key).await?,
            None => Begun::New(Box::new(self.store.begin().await?)),
        };
        let mut changes = match begun {
            Begun::New(changes) => changes,
            Begun::Answered(answer) => return Ok(replayed(answer)),
            Begun::Reused => return Err(ApiError::new(ErrorCode::IdempotencyKeyReused)),
            Begun::InProgress => {
                let refused = ApiError::new(ErrorCode::IdempotencyInProgress);
                return Err(refused.with_header("Retry-After", "1"));
            }
        };
        match make(&mut changes).await {
            Ok(Reply(answer)) => {
                changes.commit(Some(&answer)).await?;
                Ok(head(&answer).body(answer.body))
            }
            Err(error) => {
                changes.roll_back().await;
                Err(error)
            }
        }
    }
}

/// What a change is answered with.
pub(super) struct Reply(StoredAnswer);

impl Reply {
    /// 200.
    pub(super) fn ok(body: &impl Serialize) -> ApiResult<Self> {
        Self::new(StatusCode::OK, body)
    }

    /// 201 for something new, 200 otherwise.
    pub(super) fn made(new: bool, body: &impl Serialize) -> ApiResult<Self> {
        Self::new(if new { StatusCode::CREATED } else { StatusCode::OK }, body)
    }

    fn new(status: StatusCode, body: &impl Serialize) -> ApiResult<Self> {
        let body = serde_json::to_string(body)
            .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
        Ok(Self(StoredAnswer { status: status.as_u16(), body }))
    }
}

fn replayed(answer: StoredAnswer) -> HttpResponse {
    head(&answer).insert_header(REPLAYED).body(answer.body)
}

fn head(answer: &StoredAnswer) -> HttpResponseBuilder {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    response.content_type(ContentType::json());
    response
}
