//! Reads request cookies by their exact bytes. `HttpRequest::cookies` percent-decodes names and trims all Unicode
//! whitespace. A page on a neighbouring host could then set a cookie whose name decodes to a `__Host-` name, which
//! browsers would refuse.

use actix_web::HttpRequest;
use actix_web::http::header::COOKIE;

/// Names and values of all cookies that are valid UTF-8, oldest first as browsers send them.
///
/// Source: RFC 6265, section 4.2.
pub(super) fn all(request: &HttpRequest) -> impl Iterator<Item = (&str, &str)> {
    let headers = request.headers().get_all(COOKIE);
    headers.flat_map(|value| value.as_bytes().split(|byte| *byte == b';')).filter_map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?.trim_matches([' ', '\t']);
        pair.split_once('=')
    })
}

/// All values of a cookie.
fn named<'r>(request: &'r HttpRequest, name: &str) -> impl Iterator<Item = &'r str> {
    all(request).filter(move |(other, _)| *other == name).map(|(_, value)| value)
}

/// The value of a cookie. Duplicates count as none: another party has set one of them.
pub(super) fn only<'r>(request: &'r HttpRequest, name: &str) -> Option<&'r str> {
    let mut values = named(request, name);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// The value of the first cookie with this name.
pub(super) fn first<'r>(request: &'r HttpRequest, name: &str) -> Option<&'r str> {
    named(request, name).next()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;
    use actix_web::test::TestRequest;

    use super::*;

    fn request_with_cookies(lines: &[&[u8]]) -> HttpRequest {
        let mut request = TestRequest::default();
        for line in lines {
            request = request.append_header((COOKIE, HeaderValue::from_bytes(line).unwrap()));
        }
        request.to_http_request()
    }

    #[test]
    fn a_cookie_is_found_by_the_exact_bytes_of_its_name() {
        let found = |line: &[u8]| only(&request_with_cookies(&[line]), "__Host-a").map(str::to_owned);
        for line in ["__Host-a=1", "b=2; __Host-a=1", "\t __Host-a=1 ;b", ";;=;__Host-a=1"] {
            assert_eq!(found(line.as_bytes()).as_deref(), Some("1"), "{line}");
        }
        for line in [
            "__Host%2Da=1",
            "%5F%5FHost-a=1",
            "\u{a0}__Host-a=1",
            "\u{2003}__Host-a=1",
            "\u{85}__Host-a=1",
            "__Host-a\u{a0}=1",
            "__Host-a =1",
            "__host-a=1",
            "__Host-a",
            "b=__Host-a=1",
        ] {
            assert_eq!(found(line.as_bytes()), None, "{line}");
        }
        assert_eq!(found(b"b=\xff; __Host-a=1").as_deref(), Some("1"), "the others are read all the same");
        assert_eq!(found(b"__Host-a=a=b%20").as_deref(), Some("a=b%20"));
    }

    #[test]
    fn duplicate_cookies_are_ignored_across_header_lines() {
        let twice = request_with_cookies(&[b"a=1; b=2", b"a=3"]);
        assert_eq!((only(&twice, "a"), only(&twice, "b"), first(&twice, "a")), (None, Some("2"), Some("1")));
    }
}
