//! The `Idempotency-Key` of a chat request.

use actix_web::HttpRequest;
use actors::chat::IdempotencyKey;
use ring::digest::{SHA256, digest};
use wire::ErrorCode;

use super::access::Access;
use crate::http::error::{ApiError, ApiResult};

const LONGEST: usize = 255;

/// The request's key, if it has one. Keys of different callers never meet: a caller is a visitor, or an address
/// where there is no cookie.
pub(super) fn key(request: &HttpRequest, access: &Access, body: &[u8]) -> ApiResult<Option<IdempotencyKey>> {
    let mut values = request.headers().get_all("idempotency-key");
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    let good = !text.is_empty() && text.len() <= LONGEST && text.bytes().all(|b| b.is_ascii_graphic());
    if !good || values.next().is_some() {
        return Err(ApiError::new(ErrorCode::IdempotencyKeyInvalid));
    }
    let caller = match access.visitor() {
        Some(visitor) => format!("visitor:{}", visitor.id()),
        None => {
            let address = request.peer_addr().map(|peer| peer.ip().to_canonical().to_string());
            format!("address:{}", address.unwrap_or_default())
        }
    };
    Ok(Some(IdempotencyKey {
        scope: format!("chat|{}|{caller}", access.workflow()),
        key: text.to_owned(),
        digest: digest(&SHA256, body).as_ref().to_vec(),
    }))
}
