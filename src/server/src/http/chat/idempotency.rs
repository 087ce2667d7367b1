//! The `Idempotency-Key` for chat requests.
//!
//! A caller without a cookie is identified only by the key and by an address, which an office or all users of a proxy
//! may share. A retry therefore receives the cookie of the first response only if its key is hard to guess, and only
//! while that response may count as lost. Otherwise it gets the stream without a cookie and continues by thread id.

use actix_web::HttpRequest;
use actors::kinds::turn::chat::IdempotencyKey;
use auth::visitor::Visitor;
use chrono::TimeDelta;
use ring::digest::{SHA256, digest};
use store::{OwnerKind, StoredThread};

use super::access::ChatAccess;
use crate::http::App;
use crate::http::error::ApiResult;
use crate::http::idempotency;

/// Minimum characters of a key that cannot be guessed by chance. All common random ids are this long.
const SECRET: usize = 20;
/// The time during which a response may count as lost.
const LOST_FOR: TimeDelta = TimeDelta::minutes(10);

/// Whether the key distinguishes its caller from others without a cookie.
pub(super) fn is_secret(key: &str) -> bool {
    key.len() >= SECRET
}

/// The visitor created by the first of the repeated requests, if the retry may receive its cookie.
pub(super) fn first_visitor(app: &App, begun: StoredThread) -> Option<Visitor> {
    let fresh = app.clock().now() - begun.created_at < LOST_FOR;
    let owner = begun.owner_id.filter(|_| fresh && begun.owner_kind == OwnerKind::Visitor);
    owner.map(Visitor::of_thread)
}

/// The scope of a caller's keys.
pub(super) fn scope_of(access: &ChatAccess, name: &str) -> String {
    format!("chat|{}|{name}", access.workflow())
}

/// Returns the request's key, if any. Keys of different callers never collide: the cookie identifies a caller, or else
/// the address.
pub(super) fn key(
    app: &App,
    request: &HttpRequest,
    access: &ChatAccess,
    body: &[u8],
) -> ApiResult<Option<IdempotencyKey>> {
    let Some(key) = idempotency::key(request)? else { return Ok(None) };
    let name = access.name().unwrap_or_else(|| format!("address:{}", app.client_address(request)));
    let scope = scope_of(access, &name);
    Ok(Some(IdempotencyKey { scope, also: None, key, digest: digest(&SHA256, body).as_ref().to_vec() }))
}
