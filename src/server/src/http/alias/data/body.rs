//! Record change bodies.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::web::{Bytes, Payload};
use engine::records::{RecordFault, record_text};
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use wire::{ErrorCode, FieldError};

use super::super::error::{AliasError, AliasResult};
use super::super::visitor::Visitor;
use super::access::CollectionAccess;
use crate::http::body;
use crate::http::error::ApiError;

/// Maximum body bytes: a record of 64 KiB may be written less compactly than it is stored.
const MAX_BODY: usize = 128 << 10;
/// The merge patch media type.
pub(super) const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Reads the raw body, which must have this media type.
///
/// # Errors
/// `record_too_large`, `unsupported_media_type`, `bad_request` for a body that does not arrive.
pub(super) async fn read(
    visitor: &Visitor,
    request: &HttpRequest,
    payload: Payload,
    media_type: &str,
) -> AliasResult<Bytes> {
    let read = body::read(request, payload, MAX_BODY, &**visitor.clock()).await.map_err(refused)?;
    if !body::is_of_type(request, media_type) {
        return Err(ErrorCode::AppUnsupportedMediaType.into());
    }
    Ok(read)
}

/// Reads a raw JSON body.
pub(super) async fn read_json(
    visitor: &Visitor,
    request: &HttpRequest,
    payload: Payload,
) -> AliasResult<Bytes> {
    read(visitor, request, payload, JSON).await
}

fn refused(error: ApiError) -> AliasError {
    let code = match error.code() {
        ErrorCode::TooLarge => ErrorCode::RecordTooLarge,
        ErrorCode::UnsupportedMediaType => ErrorCode::AppUnsupportedMediaType,
        ErrorCode::InvalidJson | ErrorCode::RequestTimeout => ErrorCode::AppBadRequest,
        _ => return error.into(),
    };
    code.into()
}

/// Parses the body as any JSON value.
///
/// # Errors
/// `invalid_json`.
pub(super) fn json(body: &[u8]) -> AliasResult<Value> {
    body::unique_json_of_record(body).map_err(|_| ErrorCode::AppInvalidJson.into())
}

/// Parses an object that has `data` and no members other than these.
///
/// # Errors
/// `invalid_json`, `record_invalid`.
pub(super) fn members(body: &[u8], known: &[&str]) -> AliasResult<Map<String, Value>> {
    let Value::Object(members) = json(body)? else {
        return Err(invalid(vec![FieldError::new("", "type", "must be an object")]));
    };
    let unknown = members.keys().filter(|name| !known.contains(&name.as_str()));
    let mut problems: Vec<FieldError> = unknown
        .map(|name| {
            let pointer = format!("/{}", wire::escape(name));
            FieldError::new(pointer, "unknown_field", format!("is not known; allowed: {}", known.join(", ")))
        })
        .collect();
    if !members.contains_key("data") {
        problems.push(FieldError::new("/data", "required", "is required"));
    }
    if problems.is_empty() { Ok(members) } else { Err(invalid(problems)) }
}

/// Reads the member `version`.
///
/// # Errors
/// `record_invalid` if it is not a positive whole number.
pub(super) fn version(members: &Map<String, Value>) -> AliasResult<Option<i64>> {
    let Some(version) = members.get("version") else { return Ok(None) };
    match version.as_i64().filter(|version| *version >= 1) {
        Some(version) => Ok(Some(version)),
        None => Err(invalid(vec![FieldError::new("/version", "type", "must be a whole number from 1")])),
    }
}

/// Validates data without the collection schema and returns it as stored.
///
/// # Errors
/// `record_too_large`, `record_invalid`.
pub(super) fn form(data: &Value) -> AliasResult<String> {
    record_text(data, None).map_err(fault)
}

/// Validates data against the collection schema on a blocking thread, so that no request waits.
///
/// # Errors
/// `record_invalid`.
pub(super) async fn check_schema(access: &Arc<CollectionAccess>, data: &Arc<Value>) -> AliasResult<()> {
    if access.collection().is_none_or(|collection| collection.schema.is_none()) {
        return Ok(());
    }
    let (access, data) = (Arc::clone(access), Arc::clone(data));
    let checked = spawn_blocking(move || {
        let schema = access.collection().and_then(|collection| collection.schema.as_ref());
        record_text(&data, schema).map(drop)
    });
    let checked = checked.await.map_err(|error| ApiError::new(ErrorCode::AppInternal).with_cause(error))?;
    checked.map_err(fault)
}

fn fault(fault: RecordFault) -> AliasError {
    match fault {
        RecordFault::TooLarge => ErrorCode::RecordTooLarge.into(),
        RecordFault::Invalid(problems) => invalid(problems),
    }
}

fn invalid(problems: Vec<FieldError>) -> AliasError {
    ApiError::problems(ErrorCode::RecordInvalid, problems).into()
}
