//! Reads request bodies with limits on size, time and depth.

use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::error::PayloadError;
use actix_web::http::header;
use actix_web::web::{self, Bytes, BytesMut, Payload};
use futures_util::StreamExt;
use futures_util::stream::{self, LocalBoxStream};
use kernel::Clock;
use kernel::json::Numbers;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wire::{ErrorCode, FieldError, UniqueJson};

use super::chat::Pace;
use super::error::{ApiError, ApiResult};
use super::guard;

/// Maximum bytes of an ordinary body.
pub(super) const BODY_LIMIT: usize = 1 << 20;
/// Maximum bytes of a workflow version.
pub(super) const VERSION_LIMIT: usize = 8 << 20;
/// Maximum bytes of a body with dataset cases.
pub(super) const CASES_LIMIT: usize = 64 << 20;
/// Maximum time for a body to arrive. Large bodies get an upload's time and minimum rate.
const ARRIVAL: Duration = Duration::from_secs(30);
const ARRIVAL_OF_LARGE: Duration = Duration::from_secs(600);

/// A body whose first bytes have arrived.
pub(super) type ArrivingBody = LocalBoxStream<'static, Result<Bytes, PayloadError>>;

/// Joins the first bytes of a body with the rest.
pub(super) fn rejoined(first: Option<Result<Bytes, PayloadError>>, rest: Payload) -> ArrivingBody {
    stream::iter(first).chain(rest).boxed_local()
}

/// Reads the whole body. Its bytes are charged to its sender from arrival until they leave memory.
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

/// Maximum nesting depth of arrays and objects.
const DEEPEST: usize = 128;

/// Parses the body as any JSON value; refuses more than 128 levels.
pub(super) fn json(body: &[u8]) -> ApiResult<Value> {
    json_of("request body", body)
}

/// Like [`json`], but refuses duplicate members.
pub(super) fn unique_json(body: &[u8]) -> ApiResult<Value> {
    let UniqueJson(value) = document("request body", body)?;
    check_numbers("request body", body)?;
    Ok(value)
}

/// Like [`unique_json`], but leaves it to the caller to refuse numbers that would be rounded.
pub(super) fn unique_json_of_record(body: &[u8]) -> ApiResult<Value> {
    document("request body", body).map(|UniqueJson(value)| value)
}

/// Like [`json`], for another document that errors call `what`.
pub(super) fn json_of(what: &str, text: &[u8]) -> ApiResult<Value> {
    let value = document(what, text)?;
    check_numbers(what, text)?;
    Ok(value)
}

/// Refuses numbers that cannot be represented exactly.
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
    // The library's own limit is one level lower than ours.
    reader.disable_recursion_limit();
    let document = T::deserialize(&mut reader).and_then(|document| reader.end().map(|()| document));
    document.or_else(|error| not_json(&format!("is not valid JSON: {error}.")))
}

/// Whether at most [`DEEPEST`] brackets are open at once. A parser that stops at the first error never goes deeper than
/// this count.
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

/// Parses the body as any JSON value and checks its content type.
pub(super) fn any(request: &HttpRequest, body: &[u8]) -> ApiResult<Value> {
    check_type(request, body)?;
    json(body)
}

fn check_type(request: &HttpRequest, body: &[u8]) -> ApiResult<()> {
    // An empty body is reported as such, not as a missing content type.
    if !body.trim_ascii().is_empty() && !is_json(request) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
    }
    Ok(())
}

/// Parses the body as a JSON object.
pub(super) fn object(request: &HttpRequest, body: &[u8]) -> ApiResult<Map<String, Value>> {
    members(any(request, body)?)
}

/// Like [`object`], but refuses duplicate members.
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

/// Like [`object`], but parses a large body on another thread, so that the worker stays free for other requests.
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

/// Like [`object`], but the body is optional: whitespace counts as no body, whatever its content type.
pub(super) fn object_or_nothing(request: &HttpRequest, body: &[u8]) -> ApiResult<Map<String, Value>> {
    if body.trim_ascii().is_empty() { Ok(Map::new()) } else { object(request, body) }
}

pub(super) fn is_json(request: &HttpRequest) -> bool {
    is_of_type(request, "application/json")
}

/// Whether the body is an HTML form.
pub(super) fn is_form(request: &HttpRequest) -> bool {
    is_of_type(request, "application/x-www-form-urlencoded")
}

/// Whether the body has this content type, given in lower case; parameters are ignored.
pub(super) fn is_of_type(request: &HttpRequest, wanted: &str) -> bool {
    let mut kinds = request.headers().get_all(header::CONTENT_TYPE);
    let (kind, None) = (kinds.next(), kinds.next()) else { return false };
    let kind = kind.and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or(kind).trim().to_ascii_lowercase());
    kind.as_deref() == Some(wanted)
}
