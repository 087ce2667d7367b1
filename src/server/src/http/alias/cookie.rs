//! The anonymous visitor cookie.

use actix_web::HttpRequest;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use auth::app_handle;

use super::visitor::Visitor;
use crate::http::cookies;
use crate::http::error::ApiResult;

const NAME: &str = "__Host-svc_anon";
/// The maximum cookie lifetime in browsers.
const KEPT: Duration = Duration::days(400);

/// The cookie's SHA-256. Forged or duplicate cookies are ignored.
pub(super) fn read(visitor: &Visitor, request: &HttpRequest) -> Option<Vec<u8>> {
    let value = cookies::only(request, NAME)?;
    visitor.app_handles().is_genuine(visitor.served.id, value).then(|| app_handle::stored(value))
}

/// Creates a cookie for a new visitor.
pub(super) fn new(visitor: &Visitor) -> ApiResult<NewCookie> {
    Ok(NewCookie(visitor.app_handles().new_cookie(visitor.served.id, visitor.random())?))
}

/// A cookie that is not yet set in a browser.
pub(super) struct NewCookie(String);

impl NewCookie {
    /// The cookie's stored form.
    pub(super) fn stored(&self) -> Vec<u8> {
        app_handle::stored(&self.0)
    }

    /// The cookie to set.
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
