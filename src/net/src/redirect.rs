//! Redirect handling.

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Method, StatusCode};
use url::Url;

use crate::{NetError, Request};

/// Headers that are kept when a redirect changes the origin. Any other header may be secret: in addition to
/// `Authorization` and `Cookie`, API keys use arbitrary header names.
const HARMLESS: [&str; 8] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "content-type",
    "if-modified-since",
    "if-none-match",
    "range",
    "user-agent",
];

/// Returns the redirect target; `None` if the response is not a redirect.
///
/// # Errors
/// If the target is not a valid address, or leads from https to plain http.
pub(crate) fn target(status: StatusCode, headers: &HeaderMap, from: &Url) -> Result<Option<Url>, NetError> {
    let moved = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = headers.get(LOCATION).filter(|_| moved) else { return Ok(None) };
    let bad = |what: &str| NetError::refused(format!("a redirect {what}"));
    let location = location.to_str().map_err(|_| bad("to an address that is not valid"))?;
    let to = from.join(location).map_err(|_| bad("to an address that is not valid"))?;
    if from.scheme() == "https" && to.scheme() != "https" {
        return Err(bad("from https to plain http"));
    }
    Ok(Some(to))
}

/// Whether a redirect leads to the same origin and keeps method and body.
pub(crate) fn keeps_request(status: StatusCode, from: &Url, to: &Url) -> bool {
    matches!(status.as_u16(), 307 | 308) && from.origin() == to.origin()
}

/// Builds the request to the redirect target.
pub(crate) fn next(mut request: Request, status: StatusCode, from: &Url, to: &Url) -> Request {
    let becomes_get = match status.as_u16() {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body = Bytes::new();
        request.headers.remove(CONTENT_TYPE);
    }
    if from.origin() != to.origin() {
        let kept = request.headers.iter().filter(|(name, _)| HARMLESS.contains(&name.as_str()));
        request.headers = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
    }
    request
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(from: &str, to: &str) -> Result<Option<Url>, NetError> {
        let headers = HeaderMap::from_iter([(LOCATION, to.parse().unwrap())]);
        target(StatusCode::FOUND, &headers, &Url::parse(from).unwrap())
    }

    #[test]
    fn a_redirect_never_leaves_https() {
        assert!(judge("https://a.test/", "http://a.test/").is_err());
        assert!(judge("https://a.test/", "HTTP://b.test/").is_err());
        for to in ["https://b.test/", "/x", "//b.test/"] {
            assert!(judge("https://a.test/", to).unwrap().is_some(), "{to}");
        }
        assert!(judge("http://a.test/", "http://b.test/").unwrap().is_some());
    }

    #[test]
    fn only_307_and_308_within_an_origin_keep_the_request() {
        let keeps = |status: u16, to: &str| {
            let from = Url::parse("https://a.test/mcp").unwrap();
            keeps_request(StatusCode::from_u16(status).unwrap(), &from, &Url::parse(to).unwrap())
        };
        assert!(keeps(307, "https://a.test/mcp/") && keeps(308, "https://a.test:443/x?y"));
        assert!(!keeps(302, "https://a.test/mcp/") && !keeps(303, "https://a.test/"));
        for other in ["https://b.test/mcp", "https://a.test:8443/mcp", "https://www.a.test/mcp"] {
            assert!(!keeps(308, other), "{other}");
        }
    }

    #[test]
    fn other_statuses_do_not_redirect() {
        let headers = HeaderMap::from_iter([(LOCATION, "/x".parse().unwrap())]);
        let from = Url::parse("http://a.test/").unwrap();
        for status in [StatusCode::CREATED, StatusCode::NOT_MODIFIED, StatusCode::MULTIPLE_CHOICES] {
            assert_eq!(target(status, &headers, &from).unwrap(), None);
        }
        assert_eq!(target(StatusCode::FOUND, &HeaderMap::new(), &from).unwrap(), None);
    }
}
