//! The header `Idempotency-Key`.

use actix_web::HttpRequest;
use wire::ErrorCode;

use super::error::{ApiError, ApiResult};

/// Characters of the longest key.
const LONGEST: usize = 255;

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
