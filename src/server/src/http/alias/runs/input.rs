//! Reads and validates a run's input.

use actix_web::HttpRequest;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::Payload;
use actors::plans::LoadedVersion;
use kernel::Clock;
use serde_json::Value;
use wire::{ErrorCode, FieldError};

use super::super::error::{AliasError, AliasResult};
use super::super::served::ServedBinding;
use crate::http::body;
use crate::http::error::ApiError;

/// Maximum input bytes.
const LIMIT: usize = 64 << 10;

/// Reads the input, which must be an object.
pub(super) async fn read(request: &HttpRequest, payload: Payload, clock: &dyn Clock) -> AliasResult<Value> {
    let declared = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if declared.and_then(|length| length.parse().ok()).is_some_and(|length: usize| length > LIMIT) {
        return Err(ErrorCode::InputTooLarge.into());
    }
    let bytes = body::read(request, payload, LIMIT, clock).await.map_err(|error| unread(&error))?;
    if !body::is_json(request) {
        return Err(ErrorCode::AppUnsupportedMediaType.into());
    }
    let input = body::unique_json(&bytes).map_err(|_| AliasError::from(ErrorCode::AppInvalidJson))?;
    if input.is_object() {
        return Ok(input);
    }
    let problem = FieldError::new("", "type", "must be an object");
    Err(ApiError::problems(ErrorCode::InputInvalid, vec![problem]).into())
}

/// Validates an input against the binding's schema, then the workflow's schema.
pub(super) fn problems(input: &Value, binding: &ServedBinding, version: &LoadedVersion) -> Vec<FieldError> {
    let problems = binding.schema.as_ref().map(|schema| schema.problems(input, "")).unwrap_or_default();
    if problems.is_empty() { version.plan.check_inputs(input) } else { problems }
}

fn unread(error: &ApiError) -> AliasError {
    match error.code() {
        ErrorCode::TooLarge => ErrorCode::InputTooLarge.into(),
        ErrorCode::UnsupportedMediaType => ErrorCode::AppUnsupportedMediaType.into(),
        _ => ErrorCode::AppBadRequest.into(),
    }
}
