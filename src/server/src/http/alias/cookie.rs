//! The cookie of a visitor who is not signed in.

use actix_web::HttpRequest;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use auth::app_handle;

use super::visitor::Visitor;
use crate::http::cookies;
use crate::http::error::ApiResult;

const NAME: &str = "__Host-svc_anon";
/// The longest that browsers keep a cookie.
const KEPT: Duration = Duration::days(400);

/// SHA-256 of the request's cookie. A forged cookie is ignored, and so are two.
pub(super) fn read(visitor: &Visitor, request: &HttpRequest) -> Option<Vec<u8>> {
    let value = cookies::only(request, NAME)?;
    visitor.app_handles().is_genuine(visitor.served.id, value).then(|| app_handle::stored(value))
}

/// A cookie for a new visitor.
pub(super) fn new(visitor: &Visitor) -> ApiResult<NewCookie> {
    Ok(NewCookie(visitor.app_handles().new_cookie(visitor.served.id, visitor.random())?))
}

/// A cookie that no browser has yet.
pub(super) struct NewCookie(String);

impl NewCookie {
    /// What is stored of it.
    pub(super) fn stored(&self) -> Vec<u8> {
        app_handle::stored(&self.0)
    }

    /// As it is set.
    pub(super) fn into_cookie(self) -> Cookie<'static> {
        Cookie::build(NAME, self.0)
            .path("/")
            .http_only(true)
            .secure(true)
            .same_site(SameSite::Lax)
            .max_age(KEPT)
            .finish()
    }
}
