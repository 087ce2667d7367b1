//! What a request shows of itself: the header `Authorization`.

use std::borrow::Cow;

use actix_web::http::header::{self, HeaderMap};

/// What stands in the header.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Credential<'a> {
    /// There is no header, or no token behind `Bearer`.
    None,
    /// Another scheme.
    OtherScheme,
    /// A token, whatever it is worth.
    Bearer(Cow<'a, str>),
    /// Something that can be no token: bytes beyond ASCII, or two headers.
    Unreadable,
}

/// Reads it.
pub(in crate::http) fn read(headers: &HeaderMap) -> Credential<'_> {
    let mut values = headers.get_all(header::AUTHORIZATION);
    let Some(value) = values.next() else { return Credential::None };
    if values.next().is_some() {
        return Credential::Unreadable;
    }
    let Ok(text) = value.to_str() else { return Credential::Unreadable };
    let text = text.trim();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    let token = token.trim();
    match (scheme, token) {
        ("", _) => Credential::None,
        (scheme, _) if !scheme.eq_ignore_ascii_case("bearer") => Credential::OtherScheme,
        (_, "") => Credential::None,
        (_, token) => Credential::Bearer(token.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    #[test]
    fn only_one_bearer_header_holds_a_token() {
        let read_of = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
            }
            format!("{:?}", read(&headers))
        };
        assert_eq!(read_of(&[]), "None");
        for nothing in ["", " ", "Bearer", "Bearer ", "bearer   "] {
            assert_eq!(read_of(&[nothing.as_bytes()]), "None", "{nothing:?}");
        }
        for other in ["Basic abc", "token", "Bearerx abc", "Bearer\tabc"] {
            assert_eq!(read_of(&[other.as_bytes()]), "OtherScheme", "{other:?}");
        }
        for good in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert_eq!(read_of(&[good.as_bytes()]), "Bearer(\"abc\")", "{good:?}");
        }
        assert_eq!(read_of(&[b"Bearer a b"]), "Bearer(\"a b\")", "it is no good, and is judged as one token");
        assert_eq!(read_of(&[b"Bearer \xff"]), "Unreadable");
        assert_eq!(read_of(&[b"Bearer a", b"Bearer a"]), "Unreadable");
    }
}
