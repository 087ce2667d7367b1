//! What binds a sign-in to the browser that began it: a cookie for each, so that sign-ins in several tabs do not end one another.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use auth::app_sign_in::SIGN_IN_LIFE;

use crate::http::session::{host_cookie, only};

const PREFIX: &str = "__Host-svc_login_";
/// Bytes of the digest of the state that the name of a cookie has.
const TAG: usize = 8;
/// Sign-ins of a browser that are under way; the oldest ones make room for another one.
const MAX_STARTED: usize = 5;

/// The secret of the sign-in with this state.
pub(super) fn secret(request: &HttpRequest, state_digest: &[u8]) -> Option<String> {
    only(request, &name(state_digest))
}

/// The cookie of a new sign-in.
pub(super) fn cookie(state_digest: &[u8], secret: &str) -> Cookie<'static> {
    host_cookie(name(state_digest), secret, Duration::seconds(SIGN_IN_LIFE.num_seconds()))
}

/// Takes away the cookie of a sign-in.
pub(super) fn no_cookie(state_digest: &[u8]) -> Cookie<'static> {
    host_cookie(name(state_digest), "", Duration::ZERO)
}

/// Takes away the cookies of all sign-ins.
pub(super) fn no_cookies(request: &HttpRequest) -> Vec<Cookie<'static>> {
    names(request).into_iter().map(|name| host_cookie(name, "", Duration::ZERO)).collect()
}

/// Takes away the oldest cookies if there is no room for one more. Browsers send older ones first.
///
/// Source: RFC 6265, section 5.4.
pub(super) fn make_room(request: &HttpRequest) -> Vec<Cookie<'static>> {
    let mut cookies = no_cookies(request);
    cookies.truncate((cookies.len() + 1).saturating_sub(MAX_STARTED));
    cookies
}

fn name(state_digest: &[u8]) -> String {
    let tag: Vec<u8> = state_digest.iter().copied().take(TAG).collect();
    format!("{PREFIX}{}", hex::encode(tag))
}

/// The cookies of sign-ins that the request has.
fn names(request: &HttpRequest) -> Vec<String> {
    let Ok(cookies) = request.cookies() else { return Vec::new() };
    let names = cookies.iter().map(Cookie::name).filter(|name| is_name(name));
    names.map(str::to_owned).collect()
}

fn is_name(name: &str) -> bool {
    let is_tag = |tag: &str| tag.len() == 2 * TAG && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.strip_prefix(PREFIX).is_some_and(is_tag)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn the_oldest_sign_ins_make_room_for_a_new_one() {
        let digest = |n: u8| [n; 32];
        let with = |count: u8| {
            let cookies =
                (0..count).map(|n| format!("{}=x", name(&digest(n)))).collect::<Vec<_>>().join("; ");
            TestRequest::default().insert_header(("cookie", cookies)).to_http_request()
        };
        let dropped =
            |count: u8| make_room(&with(count)).iter().map(|cookie| cookie.name().to_owned()).collect();
        let (four, five, seven): (Vec<_>, Vec<_>, Vec<_>) = (dropped(4), dropped(5), dropped(7));
        assert_eq!(four, [""; 0]);
        assert_eq!(five, [name(&digest(0))]);
        assert_eq!(seven, [name(&digest(0)), name(&digest(1)), name(&digest(2))]);
        assert_eq!(no_cookies(&with(7)).len(), 7);
        assert_eq!(secret(&with(2), &digest(1)).as_deref(), Some("x"));
        assert_eq!(secret(&with(2), &digest(2)), None);
    }

    #[test]
    fn other_cookies_are_left_alone() {
        let cookies =
            "__Host-svc_login_x=1; __Host-svc_login_0123456789abcdeg=1; __Host-svc_app=1; __Host-svc_login=1";
        let request = TestRequest::default().insert_header(("cookie", cookies)).to_http_request();
        assert!(no_cookies(&request).is_empty());
    }
}
