//! The token endpoint: our client authentication, and its answers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kernel::Secret;
use secrecy::ExposeSecret;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use crate::jwt::json;

/// An answer without an identity token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token endpoint's response has no identity token")]
pub struct BadTokenAnswer;

/// The credentials of a `Basic` Authorization header. Both parts are form-encoded first, so a colon in the id does not
/// shift the separator (RFC 6749, 2.3.1).
#[must_use]
pub fn basic_credentials(client_id: &str, secret: &Secret) -> Secret {
    let encode = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    STANDARD.encode(format!("{}:{}", encode(client_id), encode(secret.expose_secret()))).into()
}

/// Tokens received for a code.
pub struct Tokens {
    /// Identifies the user who signed in.
    pub identity: Secret,
    /// Opens the userinfo endpoint. Used only if that is needed, and never stored.
    pub access: Option<Secret>,
}

impl Tokens {
    /// Parses a successful answer.
    ///
    /// # Errors
    /// [`BadTokenAnswer`], which contains no answer text.
    pub fn parse(body: &[u8]) -> Result<Self, BadTokenAnswer> {
        let members = json::object(body).ok_or(BadTokenAnswer)?;
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let is_bearer = text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer"));
        Ok(Self {
            identity: text("id_token").ok_or(BadTokenAnswer)?.into(),
            access: text("access_token").filter(|_| is_bearer).map(Secret::from),
        })
    }
}

/// Error codes of RFC 6749 (4.1.2.1, 5.2) and OpenID Connect Core (3.1.2.6).
const ERRORS: [&str; 13] = [
    "access_denied",
    "invalid_client",
    "invalid_grant",
    "invalid_request",
    "invalid_scope",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "server_error",
    "temporarily_unavailable",
    "login_required",
    "interaction_required",
    "consent_required",
];

/// Maps a provider's error to a known one; other provider texts are never repeated.
#[must_use]
pub fn known_error(error: &str) -> &'static str {
    ERRORS.into_iter().find(|known| *known == error).unwrap_or("another error")
}

/// The error code in a token endpoint's answer.
#[must_use]
pub fn error_of(body: &[u8]) -> &'static str {
    let members = json::object(body).unwrap_or_default();
    members.get("error").and_then(Value::as_str).map_or("no error code", known_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_id_and_secret_are_encoded_before_they_are_joined() {
        let basic = basic_credentials("desk:1", &"a b%ü:".into());
        let plain = STANDARD.decode(basic.expose_secret()).unwrap();
        assert_eq!(plain, b"desk%3A1:a+b%25%C3%BC%3A");
    }

    #[test]
    fn only_known_error_codes_are_repeated() {
        assert_eq!(known_error("access_denied"), "access_denied");
        assert_eq!(known_error("<script>\n"), "another error");
        assert_eq!(error_of(br#"{"error":"invalid_grant","error_description":"<b>"}"#), "invalid_grant");
        assert_eq!(error_of(b"<html>"), "no error code");
    }

    #[test]
    fn a_token_response_has_one_identity_token() {
        let read = |text: &str| {
            let tokens = Tokens::parse(text.as_bytes())?;
            let text = |token: &Secret| token.expose_secret().to_owned();
            Ok((text(&tokens.identity), tokens.access.as_ref().map(text)))
        };
        let both = r#"{"access_token":"a","id_token":"i","token_type":"bearer"}"#;
        assert_eq!(read(both), Ok(("i".to_owned(), Some("a".to_owned()))));
        let bound = r#"{"access_token":"a","id_token":"i","token_type":"DPoP"}"#;
        assert_eq!(read(bound), Ok(("i".to_owned(), None)));
        for bad in ["", "[]", "{}", r#"{"id_token":1}"#, r#"{"id_token":"a","id_token":"b"}"#] {
            assert_eq!(read(bad), Err(BadTokenAnswer), "{bad}");
        }
    }
}
