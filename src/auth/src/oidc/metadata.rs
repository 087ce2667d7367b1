//! A provider's metadata (`/.well-known/openid-configuration`).

use serde_json::{Map, Value};
use url::{Host, Url};

use crate::jwt::json;

/// Maximum bytes of an address.
const LONGEST: usize = 2000;

/// A provider with usable metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The endpoint to which browsers are sent.
    pub authorization_endpoint: Url,
    /// The endpoint that exchanges a code.
    pub token_endpoint: Url,
    /// The address of its key set.
    pub jwks_uri: Url,
    /// The endpoint with more user claims than the identity token.
    pub userinfo_endpoint: Option<Url>,
    /// The method by which we authenticate there.
    pub client_auth: ClientAuth,
    /// Whether it sends its issuer when a browser returns (RFC 9207).
    pub sends_issuer: bool,
}

/// The method by which a client presents its secret (RFC 6749, 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAuth {
    /// `client_secret_basic`.
    Basic,
    /// `client_secret_post`.
    Post,
}

/// Unusable metadata. The text is for the log and contains no metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadMetadata {
    /// Not JSON, or duplicate names.
    #[error("it is not a JSON object")]
    NotJson,
    /// It describes another issuer.
    #[error("its issuer differs from SERVICE_OIDC_ISSUER")]
    OtherIssuer,
    /// An address is missing, or would send a browser or a secret over plain HTTP.
    #[error("its {0} is not an https address (or http on loopback)")]
    Address(&'static str),
    /// It does not support PKCE with SHA-256.
    #[error("its code_challenge_methods_supported lacks S256")]
    NoPkce,
    /// It does not authenticate clients by their secret.
    #[error(
        "its token_endpoint_auth_methods_supported has neither client_secret_basic nor client_secret_post"
    )]
    NoClientSecret,
    /// It does not support the code flow, the only one that we use.
    #[error("its response_types_supported lacks code")]
    NoCode,
}

impl Metadata {
    /// An issuer's metadata address (OpenID Connect Discovery 1.0, 4).
    #[must_use]
    pub fn address(issuer: &str) -> String {
        format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
    }

    /// Parses metadata that was fetched from this issuer.
    ///
    /// # Errors
    /// [`BadMetadata`].
    pub fn parse(text: &[u8], issuer: &str) -> Result<Self, BadMetadata> {
        let members = json::object(text).ok_or(BadMetadata::NotJson)?;
        if members.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(BadMetadata::OtherIssuer);
        }
        if !lists(&members, "code_challenge_methods_supported", "S256") {
            return Err(BadMetadata::NoPkce);
        }
        if !lists(&members, "response_types_supported", "code") {
            return Err(BadMetadata::NoCode);
        }
        let methods = "token_endpoint_auth_methods_supported";
        let client_auth = if lists(&members, methods, "client_secret_basic") {
            ClientAuth::Basic
        } else if lists(&members, methods, "client_secret_post") {
            ClientAuth::Post
        } else {
            return Err(BadMetadata::NoClientSecret);
        };
        Ok(Self {
            authorization_endpoint: address(&members, "authorization_endpoint")?,
            token_endpoint: address(&members, "token_endpoint")?,
            jwks_uri: address(&members, "jwks_uri")?,
            userinfo_endpoint: match members.get("userinfo_endpoint") {
                Some(_) => Some(address(&members, "userinfo_endpoint")?),
                None => None,
            },
            client_auth,
            sends_issuer: members.get("authorization_response_iss_parameter_supported")
                == Some(&Value::Bool(true)),
        })
    }
}

/// Whether a list contains `wanted`; a missing list may contain anything.
fn lists(members: &Map<String, Value>, name: &str, wanted: &str) -> bool {
    match members.get(name) {
        None => true,
        Some(Value::Array(items)) => items.iter().any(|item| item.as_str() == Some(wanted)),
        Some(_) => false,
    }
}

/// An address without user and fragment, over https or on this machine.
fn address(members: &Map<String, Value>, name: &'static str) -> Result<Url, BadMetadata> {
    let bad = BadMetadata::Address(name);
    let text = members.get(name).and_then(Value::as_str).filter(|text| text.len() <= LONGEST).ok_or(bad)?;
    let url = Url::parse(text).map_err(|_| bad)?;
    let safe = match url.scheme() {
        "https" => url.host().is_some(),
        "http" => url.host().is_some_and(|host| is_loopback(&host)),
        _ => false,
    };
    let plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if safe && plain { Ok(url) } else { Err(bad) }
}

fn is_loopback(host: &Host<&str>) -> bool {
    match host {
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.is_loopback(),
        Host::Domain(name) => *name == "localhost" || name.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ISSUER: &str = "https://id.example";

    fn read(changes: Value) -> Result<Metadata, BadMetadata> {
        let mut all = json!({
            "issuer": ISSUER, "authorization_endpoint": "https://id.example/authorize?a=b",
            "token_endpoint": "https://id.example/token", "jwks_uri": "https://keys.example/",
        });
        for (name, value) in changes.as_object().unwrap() {
            if value.is_null() {
                all.as_object_mut().unwrap().remove(name);
            } else {
                all[name] = value.clone();
            }
        }
        Metadata::parse(all.to_string().as_bytes(), ISSUER)
    }

    #[test]
    fn a_trailing_slash_is_not_doubled() {
        for issuer in ["https://id.example/a", "https://id.example/a/"] {
            assert_eq!(Metadata::address(issuer), "https://id.example/a/.well-known/openid-configuration");
        }
    }

    #[test]
    fn missing_members_have_the_standard_defaults() {
        let read = read(json!({})).unwrap();
        assert_eq!((read.client_auth, read.sends_issuer), (ClientAuth::Basic, false));
        assert_eq!(read.authorization_endpoint.as_str(), "https://id.example/authorize?a=b");
    }

    #[test]
    fn declared_methods_are_used() {
        let auth = |methods: Value| {
            read(json!({"token_endpoint_auth_methods_supported": methods})).map(|read| read.client_auth)
        };
        assert_eq!(auth(json!(["client_secret_post", "client_secret_basic"])), Ok(ClientAuth::Basic));
        assert_eq!(auth(json!(["private_key_jwt", "client_secret_post"])), Ok(ClientAuth::Post));
        assert_eq!(auth(json!(["private_key_jwt"])), Err(BadMetadata::NoClientSecret));
        let pkce = |methods: Value| read(json!({"code_challenge_methods_supported": methods})).map(|_| ());
        assert_eq!(pkce(json!(["plain", "S256"])), Ok(()));
        for methods in [json!(["plain"]), json!([]), json!("S256"), json!({})] {
            assert_eq!(pkce(methods), Err(BadMetadata::NoPkce));
        }
        assert_eq!(read(json!({"response_types_supported": ["id_token"]})), Err(BadMetadata::NoCode));
        let issuer = |says: Value| read(json!({"authorization_response_iss_parameter_supported": says}));
        assert!(issuer(json!(true)).unwrap().sends_issuer && !issuer(json!("true")).unwrap().sends_issuer);
    }

    #[test]
    fn the_issuer_must_match_exactly() {
        for issuer in ["https://id.example/", "https://ID.example", "https://evil.example", ""] {
            assert_eq!(read(json!({"issuer": issuer})), Err(BadMetadata::OtherIssuer), "{issuer}");
        }
        assert_eq!(read(json!({"issuer": null})), Err(BadMetadata::OtherIssuer));
        assert_eq!(read(json!({"issuer": [ISSUER]})), Err(BadMetadata::OtherIssuer));
        assert_eq!(Metadata::parse(b"[]", ISSUER), Err(BadMetadata::NotJson));
        assert_eq!(Metadata::parse(b"{\"issuer\":1,\"issuer\":2}", ISSUER), Err(BadMetadata::NotJson));
    }

    #[test]
    fn every_endpoint_uses_https_or_loopback() {
        assert_eq!(read(json!({})).unwrap().userinfo_endpoint, None);
        for name in ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"] {
            let with = |value: Value| {
                let mut changes = Map::new();
                changes.insert(name.to_owned(), value);
                read(Value::Object(changes)).map(|_| ())
            };
            for good in [
                "https://id.example:8443/x?y=z",
                "http://127.0.0.1:9/x",
                "http://[::1]/",
                "http://localhost/",
            ] {
                assert_eq!(with(json!(good)), Ok(()), "{name} {good}");
            }
            for bad in [
                json!("http://id.example/"),
                json!("http://localhost.evil.example/"),
                json!("javascript:alert(1)"),
                json!("https://user:secret@id.example/"),
                json!("https://id.example/#x"),
                json!("/token"),
                json!(""),
                json!(7),
                json!(["https://id.example/"]),
                json!(format!("https://id.example/{}", "x".repeat(LONGEST))),
            ] {
                assert_eq!(with(bad.clone()), Err(BadMetadata::Address(name)), "{name} {bad}");
            }
        }
    }
}
