//! What binds a sign-in to the browser that began it: a cookie for each, so that sign-ins in several tabs do not end one another, and one of
//! a constant name for the latest of them.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use auth::app_sign_in::SIGN_IN_LIFE;

use crate::http::cookies;
use crate::http::session::host_cookie;

/// The cookie of the latest sign-in; those of each sign-in have a tag behind it.
const NAME: &str = "__Host-svc_login";
/// Bytes of the digest of the state that the name of a cookie has.
const TAG: usize = 8;
/// Sign-ins of a browser that are under way; the oldest ones make room for another one.
const MAX_STARTED: usize = 5;

/// The secret of the sign-in with this state.
pub(super) fn secret(request: &HttpRequest, state_digest: &[u8]) -> Option<String> {
    cookies::only(request, &tagged(state_digest)).or_else(|| cookies::only(request, NAME)).map(str::to_owned)
}

/// The cookies of a new sign-in.
pub(super) fn new_cookies(state_digest: &[u8], secret: &str) -> [Cookie<'static>; 2] {
    let life = Duration::seconds(SIGN_IN_LIFE.num_seconds());
    [NAME.to_owned(), tagged(state_digest)].map(|name| host_cookie(name, secret, life))
}

/// Removes the cookies of a sign-in. Other sign-ins that are under way keep theirs.
pub(super) fn no_cookies_of(state_digest: &[u8]) -> [Cookie<'static>; 2] {
    [NAME.to_owned(), tagged(state_digest)].map(|name| host_cookie(name, "", Duration::ZERO))
}

/// Removes the cookies of all sign-ins.
pub(super) fn no_cookies(request: &HttpRequest) -> Vec<Cookie<'static>> {
    let latest = cookies::first(request, NAME).map(|_| NAME.to_owned());
    latest.into_iter().chain(names(request)).map(|name| host_cookie(name, "", Duration::ZERO)).collect()
}

/// Removes the oldest cookies if a further one would exceed the maximum. Browsers send older ones first.
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

/// The cookies of sign-ins that the request has, but that of the latest.
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

    fn with(cookies: &str) -> HttpRequest {
        TestRequest::default().insert_header(("cookie", cookies)).to_http_request()
    }

    /// A request with the cookies of so many sign-ins.
    fn started(count: u8) -> HttpRequest {
        let tagged = (0..count).map(|n| format!("{}=of {n}", tagged(&digest(n))));
        with(&tagged.chain([format!("{NAME}=of the latest")]).collect::<Vec<_>>().join("; "))
    }

    #[test]
    fn the_oldest_sign_ins_make_room_for_a_new_one() {
        let dropped =
            |count| make_room(&started(count)).iter().map(|cookie| cookie.name().to_owned()).collect();
        let (four, five, seven): (Vec<_>, Vec<_>, Vec<_>) = (dropped(4), dropped(5), dropped(7));
        assert_eq!(four, [""; 0]);
        assert_eq!(five, [tagged(&digest(0))]);
        assert_eq!(seven, [0, 1, 2].map(|n| tagged(&digest(n))));
        assert_eq!(no_cookies(&started(7)).len(), 8);
    }

    #[test]
    fn a_sign_in_is_found_by_its_state_or_is_the_latest() {
        let of = |request: &HttpRequest, n| secret(request, &digest(n));
        assert_eq!(of(&started(2), 1).as_deref(), Some("of 1"));
        assert_eq!(of(&started(2), 2).as_deref(), Some("of the latest"));
        assert_eq!(of(&with(""), 1), None);
        assert_eq!(of(&with(&format!("{NAME}=a; {NAME}=b")), 1), None);
        let names = new_cookies(&digest(1), "x").map(|cookie| cookie.name().to_owned());
        assert_eq!(names, [NAME.to_owned(), tagged(&digest(1))]);
        assert_eq!(no_cookies_of(&digest(1)).map(|cookie| cookie.name().to_owned()), names);
    }

    #[test]
    fn other_cookies_are_left_alone() {
        let request = with(
            "__Host-svc_login_x=1; __Host-svc_login_0123456789abcdeg=1; __Host-svc_app=1; __Host-svc_logins=1",
        );
        assert!(no_cookies(&request).is_empty());
    }
}
