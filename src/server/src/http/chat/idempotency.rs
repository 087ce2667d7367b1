//! The `Idempotency-Key` of a chat request.

use actix_web::HttpRequest;
use actors::chat::IdempotencyKey;
use auth::visitor::Visitor;
use ring::digest::{SHA256, digest};
use wire::ErrorCode;

use super::access::Access;
use crate::http::error::{ApiError, ApiResult};

const LONGEST: usize = 255;

/// A visitor's keys.
pub(super) fn scope_of(access: &Access, visitor: &Visitor) -> String {
    format!("chat|{}|visitor:{}", access.workflow(), visitor.id())
}

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
    let scope = match access.visitor() {
        Some(visitor) => scope_of(access, visitor),
        None => {
            let address = request.peer_addr().map(|peer| peer.ip().to_canonical().to_string());
            format!("chat|{}|address:{}", access.workflow(), address.unwrap_or_default())
        }
    };
    Ok(Some(IdempotencyKey {
        scope,
        also: None,
        key: text.to_owned(),
        digest: digest(&SHA256, body).as_ref().to_vec(),
    }))
}
