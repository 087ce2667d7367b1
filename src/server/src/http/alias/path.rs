//! Decodes paths in request targets.

use actix_web::HttpRequest;
use wire::ErrorCode;

use super::alias_paths::PREFIX;
use super::error::AliasResult;

/// Decodes a file path once, without its leading slash; `None` if two programs could read it differently.
pub(super) fn decode(raw: &str) -> Option<String> {
    let raw = raw.strip_prefix('/').unwrap_or(raw);
    if raw.contains('\\') {
        return None;
    }
    decoded(raw, |byte| matches!(byte, 0 | b'\\' | b'/'))
}

/// Returns a path segment. Names, handles and ids contain no characters that need encoding.
///
/// # Errors
/// `bad_request` if the path cannot be decoded.
pub(super) fn segment<'a>(request: &'a HttpRequest, name: &str) -> AliasResult<&'a str> {
    if decoded(request.uri().path(), |_| false).is_some() {
        Ok(request.match_info().get(name).unwrap_or_default())
    } else {
        Err(ErrorCode::AppBadRequest.into())
    }
}

/// Checks that a service path's query can be decoded, whether or not the handler reads it. File paths are exempt,
/// because external links may add anything.
///
/// # Errors
/// `bad_request`.
pub(super) fn check_query(request: &HttpRequest) -> AliasResult<()> {
    if !request.path().starts_with(PREFIX) {
        return Ok(());
    }
    let query = request.uri().query().unwrap_or_default();
    decoded(query, |_| false).map(drop).ok_or_else(|| ErrorCode::AppBadRequest.into())
}

/// Percent-decodes text; `None` if the result is not UTF-8 or an encoded byte is refused.
fn decoded(raw: &str, is_refused: impl Fn(u8) -> bool) -> Option<String> {
    if !raw.contains('%') {
        return Some(raw.to_owned());
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let byte = (hex(rest.next()?)? << 4) | hex(rest.next()?)?;
        if is_refused(byte) {
            return None;
        }
        decoded.push(byte);
    }
    String::from_utf8(decoded).ok()
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_decoded_once() {
        for (raw, path) in [
            ("", ""),
            ("/", ""),
            ("/a.js", "a.js"),
            ("//a.js", "/a.js"),
            ("/dir/", "dir/"),
            ("/%61%2Ejs", "a.js"),
            ("/a%20b+c", "a b+c"),
            ("/%C3%A4", "ä"),
            ("/%252e", "%2e"),
            ("/%25252f", "%252f"),
        ] {
            assert_eq!(decode(raw).as_deref(), Some(path), "{raw}");
        }
    }

    #[test]
    fn an_ambiguous_path_is_rejected() {
        for raw in [
            "/%", "/%2", "/%2g", "/%zz", "/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b", "/a%00", "/%ff", "/%C3",
            "/%c0%af",
        ] {
            assert_eq!(decode(raw), None, "{raw}");
        }
    }

    #[test]
    fn a_route_path_decodes_to_utf_8() {
        for good in ["", "form", "%66orm", "a%2Fb", "%C3%A4"] {
            assert!(decoded(good, |_| false).is_some(), "{good}");
        }
        for bad in ["%", "%6", "%zz", "%FF", "a%C3"] {
            assert!(decoded(bad, |_| false).is_none(), "{bad}");
        }
    }
}
