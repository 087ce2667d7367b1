//! The visitor's cookie.
//!
//! Over https it has the `__Host-` prefix and `Secure`, and works from listed pages on other sites. Over plain http not
//! every client would send such a cookie back, so it has no prefix there.

use actix_web::HttpRequest;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use auth::visitor::Visitor;

use crate::http::{App, cookies};

const NAME: &str = "callboard_visitor";
const SECURE_NAME: &str = "__Host-callboard_visitor";
/// The maximum cookie lifetime in browsers.
const KEPT: Duration = Duration::days(400);

/// Returns the request's visitor. A forged cookie counts as none.
pub(super) fn read(app: &App, request: &HttpRequest) -> Option<Visitor> {
    let name = if app.is_public_over_https(request) { SECURE_NAME } else { NAME };
    cookies::first(request, name).and_then(|cookie| app.visitors().read(cookie))
}

pub(super) fn make(app: &App, visitor: &Visitor, request: &HttpRequest) -> Cookie<'static> {
    let secure = app.is_public_over_https(request);
    let (name, same_site) = if secure { (SECURE_NAME, SameSite::None) } else { (NAME, SameSite::Lax) };
    Cookie::build(name, app.visitors().cookie(visitor))
        .path("/")
        .http_only(true)
        .secure(secure)
        .same_site(same_site)
        .max_age(KEPT)
        .finish()
}
