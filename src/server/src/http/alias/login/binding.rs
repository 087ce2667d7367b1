//! Binds a sign-in to the browser that started it. Each sign-in has its own cookie, so sign-ins in several tabs do not
//! cancel each other. The latest one also has a cookie with a constant name.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use auth::app_sign_in::SIGN_IN_LIFE;

use crate::http::cookies;
use crate::http::session::host_cookie;

/// The latest sign-in's cookie name; each sign-in's own cookie adds a tag.
const NAME: &str = "__Host-svc_login";
/// Bytes from the state digest that become the cookie tag.
const TAG: usize = 8;
/// Maximum concurrent sign-ins per browser; the oldest ones are evicted.
const MAX_STARTED: usize = 5;

/// The secret for the sign-in with this state.
pub(super) fn secret(request: &HttpRequest, state_digest: &[u8]) -> Option<String> {
    cookies::only(request, &tagged(state_digest)).or_else(|| cookies::only(request, NAME)).map(str::to_owned)
}

/// The cookies for a new sign-in.
pub(super) fn new_cookies(state_digest: &[u8], secret: &str) -> [Cookie<'static>; 2] {
    let life = Duration::seconds(SIGN_IN_LIFE.num_seconds());
    [NAME.to_owned(), tagged(state_digest)].map(|name| host_cookie(name, secret, life))
}

/// Removes a sign-in's cookies. Other pending sign-ins keep theirs.
pub(super) fn no_cookies_of(state_digest: &[u8]) -> [Cookie<'static>; 2] {
    [NAME.to_owned(), tagged(state_digest)].map(|name| host_cookie(name, "", Duration::ZERO))
}

/// Removes all sign-in cookies.
pub(super) fn no_cookies(request: &HttpRequest) -> Vec<Cookie<'static>> {
    let latest = cookies::first(request, NAME).map(|_| NAME.to_owned());
    latest.into_iter().chain(names(request)).map(|name| host_cookie(name, "", Duration::ZERO)).collect()
}

/// Removes the oldest cookies if another one would exceed the maximum. Browsers send older cookies first.
///
/// Source: RFC 6265, section 5.4.
pub(super) fn make_room(request: &HttpRequest) -> Vec<Cookie<'static>> {
    let mut names = names(request);
    names.truncate((names.len() + 1).saturating_sub(MAX_STARTED));
    names.into_iter().map(|name| host_cookie(name, "", Duration::ZERO)).collect()
}

fn tagged(state_digest: &[u8]) -> String {
    let tag: Vec<u8> = state_digest.iter().copied().take(TAG).collect();
    format!("{NAME}_{}", hex::encode(tag))
}

/// The request's tagged sign-in cookies, without the one for the latest sign-in.
fn names(request: &HttpRequest) -> Vec<String> {
    cookies::all(request).map(|(name, _)| name).filter(|name| is_tagged(name)).map(str::to_owned).collect()
}

fn is_tagged(name: &str) -> bool {
    let is_tag = |tag: &str| tag.len() == 2 * TAG && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(NAME).and_then(|rest| rest.strip_prefix('_')).is_some_and(is_tag)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    fn digest(n: u8) -> [u8; 32] {
        [n; 32]
    }

    fn request_with_cookies(cookies: &str) -> HttpRequest {
        TestRequest::default().insert_header(("cookie", cookies)).to_http_request()
    }

    /// A request with cookies for `count` sign-ins.
    fn started(count: u8) -> HttpRequest {
        let tagged = (0..count).map(|n| format!("{}=of {n}", tagged(&digest(n))));
        request_with_cookies(&tagged.chain([format!("{NAME}=of the latest")]).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn the_oldest_sign_ins_are_evicted_for_a_new_one() {
        let dropped =
            |count| make_room(&started(count)).iter().map(|cookie| cookie.name().to_owned()).collect();
        let (four, five, seven): (Vec<_>, Vec<_>, Vec<_>) = (dropped(4), dropped(5), dropped(7));
        assert_eq!(four, [""; 0]);
        assert_eq!(five, [tagged(&digest(0))]);
        assert_eq!(seven, [0, 1, 2].map(|n| tagged(&digest(n))));
        assert_eq!(no_cookies(&started(7)).len(), 8);
    }

    #[test]
    fn a_sign_in_is_selected_by_its_state_or_is_the_latest() {
        let of = |request: &HttpRequest, n| secret(request, &digest(n));
        assert_eq!(of(&started(2), 1).as_deref(), Some("of 1"));
        assert_eq!(of(&started(2), 2).as_deref(), Some("of the latest"));
        assert_eq!(of(&request_with_cookies(""), 1), None);
        assert_eq!(of(&request_with_cookies(&format!("{NAME}=a; {NAME}=b")), 1), None);
        let names = new_cookies(&digest(1), "x").map(|cookie| cookie.name().to_owned());
        assert_eq!(names, [NAME.to_owned(), tagged(&digest(1))]);
        assert_eq!(no_cookies_of(&digest(1)).map(|cookie| cookie.name().to_owned()), names);
    }

    #[test]
    fn other_cookies_are_left_alone() {
        let request = request_with_cookies(
            "__Host-svc_login_x=1; __Host-svc_login_0123456789abcdeg=1; __Host-svc_app=1; __Host-svc_logins=1",
        );
        assert!(no_cookies(&request).is_empty());
    }
}
