//! A token's header, parsed before its signature is checked.

use serde_json::{Map, Value};

use super::json;

/// Maximum header bytes as JSON.
const MOST_BYTES: usize = 1024;
/// Maximum key id characters.
const MOST_KEY_ID: usize = 128;
/// Members that choose a key, or change what is signed or how it is parsed. No accepted token needs them.
const REFUSED: [&str; 7] = ["crit", "b64", "jku", "jwk", "x5u", "x5c", "zip"];
/// `typ` of access tokens, in any case (RFC 7515, 4.1.9); the long form is RFC 9068's.
const ACCESS: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];

/// A signature algorithm of access tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// HMAC with SHA-256, under a secret.
    Hs256,
    /// RSA (PKCS #1 v1.5) with SHA-256, under a key of a key set.
    Rs256,
}

/// `typ` of an identity token (OpenID Connect Core 1.0, 2), in any case.
const IDENTITY: &str = "JWT";

/// A token's purpose. A token never passes for another purpose, because the `typ` differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `typ` is absent or one of [`ACCESS`].
    Access,
    /// `typ` is absent or [`IDENTITY`]: a provider's statement about a user who signs in there. Audience, issuer and
    /// nonce keep other tokens from passing for one.
    Identity,
    /// `typ` is exactly this.
    Own(&'static str),
}

/// A header problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// The header is not acceptable.
    Malformed,
    /// Its `alg` is unknown.
    UnknownAlgorithm,
}

/// A valid header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TokenHeader {
    pub(crate) algorithm: Algorithm,
    /// Letters, digits and `._:-`; only used for comparison.
    pub(crate) key_id: Option<String>,
}

impl TokenHeader {
    /// Parses the header's JSON. Reports an unknown textual `alg` before any other problem.
    pub(super) fn read(bytes: &[u8], purpose: Purpose) -> Result<Self, BadHeader> {
        let members = if bytes.len() <= MOST_BYTES { json::object(bytes) } else { None };
        let members = members.ok_or(BadHeader::Malformed)?;
        let algorithm = match members.get("alg") {
            Some(Value::String(name)) => match name.as_str() {
                "HS256" => Algorithm::Hs256,
                "RS256" => Algorithm::Rs256,
                _ => return Err(BadHeader::UnknownAlgorithm),
            },
            _ => return Err(BadHeader::Malformed),
        };
        if REFUSED.iter().any(|name| members.contains_key(*name)) || !fits(&members, purpose) {
            return Err(BadHeader::Malformed);
        }
        let key_id = match members.get("kid") {
            None => None,
            Some(Value::String(id)) if is_key_id(id) => Some(id.clone()),
            Some(_) => return Err(BadHeader::Malformed),
        };
        Ok(Self { algorithm, key_id })
    }
}

fn fits(members: &Map<String, Value>, purpose: Purpose) -> bool {
    let kind = members.get("typ");
    match (purpose, kind) {
        (Purpose::Access | Purpose::Identity, None) => true,
        (Purpose::Access, Some(Value::String(kind))) => {
            ACCESS.iter().any(|known| known.eq_ignore_ascii_case(kind))
        }
        (Purpose::Identity, Some(Value::String(kind))) => kind.eq_ignore_ascii_case(IDENTITY),
        (Purpose::Own(own), Some(Value::String(kind))) => kind == own,
        _ => false,
    }
}

/// Whether a text can be a key id.
pub(super) fn is_key_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    (1..=MOST_KEY_ID).contains(&id.len()) && id.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Result<TokenHeader, BadHeader> {
        TokenHeader::read(header.as_bytes(), Purpose::Access)
    }

    #[test]
    fn access_token_types_are_case_insensitive() {
        for typ in
            ["", r#","typ":"JWT""#, r#","typ":"jwt""#, r#","typ":"AT+JWT""#, r#","typ":"application/at+jwt""#]
        {
            let header = read(&format!(r#"{{"alg":"HS256","kid":"a.b_c:d-1"{typ}}}"#));
            let expected = TokenHeader { algorithm: Algorithm::Hs256, key_id: Some("a.b_c:d-1".to_owned()) };
            assert_eq!(header, Ok(expected), "{typ}");
        }
    }

    #[test]
    fn an_access_token_is_not_an_identity_token() {
        let identity = |header: &str| TokenHeader::read(header.as_bytes(), Purpose::Identity).is_ok();
        assert!(identity(r#"{"alg":"RS256"}"#) && identity(r#"{"alg":"RS256","typ":"jwt"}"#));
        for typ in ["at+jwt", "application/at+jwt", "logout+jwt", "secevent+jwt", "chat+jwt", ""] {
            assert!(!identity(&format!(r#"{{"alg":"RS256","typ":"{typ}"}}"#)), "{typ}");
        }
    }

    #[test]
    fn a_private_token_type_is_compared_exactly() {
        let is_chat_token =
            |header: &str| TokenHeader::read(header.as_bytes(), Purpose::Own("chat+jwt")).is_ok();
        assert!(is_chat_token(r#"{"alg":"HS256","typ":"chat+jwt"}"#));
        for other in [
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"HS256","typ":"JWT"}"#,
            r#"{"alg":"HS256","typ":"Chat+JWT"}"#,
            r#"{"alg":"HS256","typ":["chat+jwt"]}"#,
        ] {
            assert!(!is_chat_token(other), "{other}");
        }
    }

    #[test]
    fn an_unknown_algorithm_differs_from_a_malformed_header() {
        for alg in
            ["none", "None", "NONE", "", "hs256", "HS384", "RS384", "PS256", "ES256", "EdDSA", "HS256 "]
        {
            let header = format!(r#"{{"alg":"{alg}","jku":"https://example.com"}}"#);
            assert_eq!(read(&header), Err(BadHeader::UnknownAlgorithm), "{alg}");
        }
        for header in [r#"{}"#, r#"{"alg":null}"#, r#"{"alg":["HS256"]}"#, r#"{"ALG":"HS256"}"#] {
            assert_eq!(read(header), Err(BadHeader::Malformed), "{header}");
        }
    }

    #[test]
    fn length_and_key_ids_are_bounded() {
        let padded = |length: usize| format!(r#"{{"alg":"HS256","x":"{}"}}"#, "x".repeat(length - 22));
        assert_eq!(padded(MOST_BYTES).len(), MOST_BYTES);
        assert!(read(&padded(MOST_BYTES)).is_ok());
        assert_eq!(read(&padded(MOST_BYTES + 1)), Err(BadHeader::Malformed));
        assert!(is_key_id(&"k".repeat(MOST_KEY_ID)));
        for id in ["", &"k".repeat(MOST_KEY_ID + 1), "a b", "a/b", "a'b", "é", "a\0", "../../dev/null"] {
            assert!(!is_key_id(id), "{id}");
        }
    }
}
