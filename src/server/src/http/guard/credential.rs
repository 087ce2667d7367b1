//! Reads the credential in the `Authorization` header.

use std::borrow::Cow;

use actix_web::http::header::{self, HeaderMap};

/// The contents of an `Authorization` header.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Credential<'a> {
    /// No header, or no token after `Bearer`.
    None,
    /// Another scheme.
    OtherScheme,
    /// A token, not yet verified.
    Bearer(Cow<'a, str>),
    /// Cannot be a token: non-ASCII bytes, or two headers.
    Unreadable,
}

/// Reads the credential.
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
    fn a_token_is_read_only_from_a_single_bearer_header() {
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
        assert_eq!(read_of(&[b"Bearer a b"]), "Bearer(\"a b\")", "an invalid value is treated as one token");
        assert_eq!(read_of(&[b"Bearer \xff"]), "Unreadable");
        assert_eq!(read_of(&[b"Bearer a", b"Bearer a"]), "Unreadable");
    }
}
