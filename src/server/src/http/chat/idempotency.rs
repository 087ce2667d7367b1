//! The `Idempotency-Key` of a chat request.
//!
//! Who has no cookie yet is known by nothing but an address, which a whole office or everybody behind a proxy may
//! share, and by the key. So a retry is given the cookie of the first answer only when its key is one that others do
//! not hit upon, and only for as long as an answer may count as lost: otherwise it gets the stream and no cookie, and
//! continues by the thread's id.

use actix_web::HttpRequest;
use actors::kinds::turn::chat::IdempotencyKey;
use auth::visitor::Visitor;
use chrono::TimeDelta;
use ring::digest::{SHA256, digest};
use store::{OwnerKind, StoredThread};

use super::access::Access;
use crate::http::App;
use crate::http::error::ApiResult;
use crate::http::idempotency;

/// Characters of a key that a caller cannot hit upon by chance, as every usual kind of random id has them.
const SECRET: usize = 20;
/// How long an answer may count as lost.
const LOST_FOR: TimeDelta = TimeDelta::minutes(10);

/// Whether the key tells its caller from others who have no cookie yet.
pub(super) fn is_secret(key: &str) -> bool {
    key.len() >= SECRET
}

/// The visitor that the first of equal requests made, when the retry may have its cookie.
pub(super) fn first_visitor(app: &App, begun: StoredThread) -> Option<Visitor> {
    let fresh = app.clock().now() - begun.created_at < LOST_FOR;
    let owner = begun.owner_id.filter(|_| fresh && begun.owner_kind == OwnerKind::Visitor);
    owner.map(Visitor::of_thread)
}

/// The scope of a caller's keys.
pub(super) fn scope_of(access: &Access, name: &str) -> String {
    format!("chat|{}|{name}", access.workflow())
}

/// The request's key, if it has one. Keys of different callers never meet: a caller is who its cookie says, or an address
/// where there is no cookie.
pub(super) fn key(
    app: &App,
    request: &HttpRequest,
    access: &Access,
    body: &[u8],
) -> ApiResult<Option<IdempotencyKey>> {
    let Some(key) = idempotency::key(request)? else { return Ok(None) };
    let name = access.name().unwrap_or_else(|| format!("address:{}", app.client_address(request)));
    let scope = scope_of(access, &name);
    Ok(Some(IdempotencyKey { scope, also: None, key, digest: digest(&SHA256, body).as_ref().to_vec() }))
}
