//! Reading request bodies: bounded in size, time and depth.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::header;
use actix_web::web::{self, Bytes, BytesMut, Payload};
use futures_util::StreamExt;
use kernel::Clock;
use kernel::json::Numbers;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wire::{ErrorCode, FieldError, UniqueJson};

use super::chat::Pace;
use super::error::{ApiError, ApiResult};
use super::guard;

/// Bytes of an ordinary body.
pub(super) const BODY_LIMIT: usize = 1 << 20;
/// Bytes of a workflow version.
pub(super) const VERSION_LIMIT: usize = 8 << 20;
/// Bytes of a body with the cases of a dataset.
pub(super) const CASES_LIMIT: usize = 64 << 20;
/// How long a body may take to arrive. A large one has the time of an upload, at the rate of one.
const ARRIVAL: Duration = Duration::from_secs(30);
const ARRIVAL_OF_LARGE: Duration = Duration::from_secs(600);

/// The whole body. Its bytes count for its sender as they arrive, and as long as they are in memory.
pub(super) async fn read(
    request: &HttpRequest,
    mut payload: Payload,
    limit: usize,
    clock: &dyn Clock,
) -> ApiResult<Bytes> {
    let encoding = request.headers().get(header::CONTENT_ENCODING).map(|name| name.as_bytes());
    if encoding.is_some_and(|name| !name.is_empty() && !name.eq_ignore_ascii_case(b"identity")) {
        let message = "The request body must not be compressed: omit the header Content-Encoding.";
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType).with_message(message));
    }
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()).and_then(|length| length.parse().ok());
    if declared.is_some_and(|declared: usize| declared > limit) {
        return Err(ApiError::new(ErrorCode::TooLarge));
    }
    let app = guard::app_of(request)?;
    let mut reservation = app.body_budget().begin(guard::sender(app, request));
    let mut pace = (limit > VERSION_LIMIT).then(|| Pace::new(clock));
    let most = if pace.is_some() { ARRIVAL_OF_LARGE } else { ARRIVAL };
    let reading = async {
        let mut body = BytesMut::new();
        loop {
            let next = match &mut pace {
                Some(pace) => pace.next(&mut payload).await?,
                None => payload.next().await,
            };
            let Some(chunk) = next else { break };
            let chunk = chunk.map_err(|error| {
                ApiError::new(ErrorCode::InvalidJson)
                    .with_message("The request body ended early.")
                    .with_cause(error)
            })?;
            if body.len() + chunk.len() > limit {
                return Err(ApiError::new(ErrorCode::TooLarge));
            }
            let overloaded = |full| ApiError::new(ErrorCode::Overloaded).with_cause(full);
            reservation.grow(body.len() + chunk.len()).map_err(overloaded)?;
            body.extend_from_slice(&chunk);
        }
        Ok(reservation.hold(body.freeze()))
    };
    let read = kernel::timeout(clock, most, reading).await;
    read.unwrap_or_else(|| Err(ApiError::new(ErrorCode::RequestTimeout)))
}

/// Arrays and objects that may stand within each other.
const DEEPEST: usize = 128;

/// The body as JSON of any shape; deeper than 128 levels is refused.
pub(super) fn json(body: &[u8]) -> ApiResult<Value> {
    json_of("request body", body)
}

/// The same; a body that repeats a member of an object is refused.
pub(super) fn unique_json(body: &[u8]) -> ApiResult<Value> {
    let UniqueJson(value) = document("request body", body)?;
    check_numbers("request body", body)?;
    Ok(value)
}

/// The same; numbers that would be rounded are the caller's to refuse.
pub(super) fn unique_json_of_record(body: &[u8]) -> ApiResult<Value> {
    document("request body", body).map(|UniqueJson(value)| value)
}

/// The same as [`json`] for other documents, called `what`.
pub(super) fn json_of(what: &str, text: &[u8]) -> ApiResult<Value> {
    let value = document(what, text)?;
    check_numbers(what, text)?;
    Ok(value)
}

/// No number changes its value on the way in.
fn check_numbers(what: &str, text: &[u8]) -> ApiResult<()> {
    kernel::json::check_numbers(text, Numbers::Values).map_err(|number| {
        ApiError::new(ErrorCode::InvalidJson)
            .with_message(format!("The {what} cannot be kept exactly: {number}."))
    })
}

fn document<T: DeserializeOwned>(what: &str, text: &[u8]) -> ApiResult<T> {
    let not_json = |problem: &str| {
        Err(ApiError::new(ErrorCode::InvalidJson).with_message(format!("The {what} {problem}")))
    };
    if text.trim_ascii().is_empty() {
        return not_json("is empty; it must be a JSON document.");
    }
    if text.starts_with(b"\xef\xbb\xbf") {
        return not_json("begins with a byte order mark; send UTF-8 without one.");
    }
    if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
        return not_json("is UTF-16; send UTF-8 without a byte order mark.");
    }
    if !is_flat_enough(text) {
        return not_json(&format!("is deeper than {DEEPEST} levels."));
    }
    let mut reader = serde_json::Deserializer::from_slice(text);
    // Its own limit is one level lower than ours.
    reader.disable_recursion_limit();
    let document = T::deserialize(&mut reader).and_then(|document| reader.end().map(|()| document));
    document.or_else(|error| not_json(&format!("is not valid JSON: {error}.")))
}

/// Whether no more than [`DEEPEST`] brackets are open at once. A parser that stops at the first error never gets
/// deeper than this count says.
fn is_flat_enough(body: &[u8]) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return false;
        }
    }
    true
}

/// The body as JSON of any shape, which it has to say of itself.
pub(super) fn any(request: &HttpRequest, body: &[u8]) -> ApiResult<Value> {
    check_type(request, body)?;
    json(body)
}

fn check_type(request: &HttpRequest, body: &[u8]) -> ApiResult<()> {
    // That there is no body says more than that it has no type.
    if !body.trim_ascii().is_empty() && !is_json(request) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
    }
    Ok(())
}

/// The body as the object of a request.
pub(super) fn object(request: &HttpRequest, body: &[u8]) -> ApiResult<Map<String, Value>> {
    members(any(request, body)?)
}

/// The same; a body that repeats a member is refused.
pub(super) fn unique_object(request: &HttpRequest, body: &[u8]) -> ApiResult<Map<String, Value>> {
    check_type(request, body)?;
    members(unique_json(body)?)
}

fn members(value: Value) -> ApiResult<Map<String, Value>> {
    match value {
        Value::Object(members) => Ok(members),
        _ => {
            let problem = FieldError::new("", "type", "must be an object");
            Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]))
        }
    }
}

/// The same of a body that may be large: a worker has other requests to answer while it is parsed.
pub(super) async fn large_object(request: &HttpRequest, body: Bytes) -> ApiResult<Map<String, Value>> {
    if body.len() <= BODY_LIMIT {
        return object(request, &body);
    }
    if !is_json(request) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
    }
    let parsed = web::block(move || json(&body)).await;
    members(parsed.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))??)
}

/// The same where a request may do without a body: one of white space is none, whatever type it claims to be.
pub(super) fn object_or_nothing(request: &HttpRequest, body: &[u8]) -> ApiResult<Map<String, Value>> {
    if body.trim_ascii().is_empty() { Ok(Map::new()) } else { object(request, body) }
}

pub(super) fn is_json(request: &HttpRequest) -> bool {
    is_of_type(request, "application/json")
}

/// Whether a page sends a form.
pub(super) fn is_form(request: &HttpRequest) -> bool {
    is_of_type(request, "application/x-www-form-urlencoded")
}

/// Whether the body is of this type, in lower case; its parameters do not count.
pub(super) fn is_of_type(request: &HttpRequest, wanted: &str) -> bool {
    let mut kinds = request.headers().get_all(header::CONTENT_TYPE);
    let (kind, None) = (kinds.next(), kinds.next()) else { return false };
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim().to_ascii_lowercase());
    kind.as_deref() == Some(wanted)
}
