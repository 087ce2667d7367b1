//! Rules for keys and tokens.

use super::{bad, good, refuses};
use crate::Algorithm;

#[test]
fn key_sets_and_algorithms_are_validated() {
    let set = r#"{"keys":[{"kty":"RSA","n":"x","e":"AQAB"}]}"#;
    let other = r#"{"keys":[{"kty":"RSA","n":"y","e":"AQAB"}]}"#;
    let both = [("SERVICE_AUTH_JWKS", set), ("SERVICE_AUTH_JWKS_STATIC", set)];
    assert_eq!(good(&both).auth.credential_configured(), Some("SERVICE_AUTH_JWKS_STATIC"));
    assert_eq!(bad(&[("SERVICE_AUTH_JWKS", set), ("SERVICE_AUTH_JWKS_STATIC", other)]).len(), 1);
    let private = r#"{"keys":[{"kty":"oct","k":"x"}]}"#;
    refuses("SERVICE_AUTH_JWKS", &["[]", "{}", r#"{"keys":[]}"#, r#"{"keys":[1]}"#, "{", private]);
    good(&[("SERVICE_AUTH_JWKS_URL", "http://127.0.0.1:9/jwks")]);
    refuses("SERVICE_AUTH_JWKS_URL", &["http://id.example/jwks", "id.example"]);
    let algorithms = |text: &str| good(&[("SERVICE_AUTH_ALLOWED_ALGORITHMS", text)]).auth.allowed_algorithms;
    assert_eq!(algorithms("HS256"), [Algorithm::Hs256]);
    assert_eq!(algorithms(r#"["RS256"]"#), [Algorithm::Rs256]);
    refuses("SERVICE_AUTH_ALLOWED_ALGORITHMS", &["none", "RS384", "hs256", ",", "RS256,none"]);
}

#[test]
fn credentials_are_named_in_order() {
    let set = r#"{"keys":[{"kty":"RSA","n":"x","e":"AQAB"}]}"#;
    let mut pairs = vec![("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", "token")];
    let name = |pairs: &[(&str, &str)]| good(pairs).auth.credential_configured().unwrap();
    assert_eq!(name(&pairs), "SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN");
    pairs.push(("SERVICE_AUTH_JWKS", set));
    assert_eq!(name(&pairs), "SERVICE_AUTH_JWKS");
    pairs.push(("SERVICE_AUTH_JWKS_URL", "https://id.example/jwks"));
    assert_eq!(name(&pairs), "SERVICE_AUTH_JWKS_URL");
    pairs.push(("SERVICE_AUTH_JWT_SECRET", "s"));
    assert_eq!(name(&pairs), "SERVICE_AUTH_JWT_SECRET");
}

#[test]
fn the_bootstrap_token_is_validated() {
    let expires = |text: &str| {
        good(&[("SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT", text)])
            .auth
            .bootstrap
            .expires_at
            .unwrap()
            .to_rfc3339()
    };
    for text in [
        "2030-01-31T12:00:00Z",
        "2030-01-31T13:00:00+01:00",
        "2030-01-31T13:00:00+0100",
        "2030-01-31 12:00:00",
        "1896091200",
        "1896091200.9",
    ] {
        assert_eq!(expires(text), "2030-01-31T12:00:00+00:00", "{text}");
    }
    assert_eq!(expires("2030-01-31"), "2030-01-31T00:00:00+00:00");
    refuses(
        "SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT",
        &["tomorrow", "2030-13-01", "-1", "1896091200000", "NaN"],
    );
    let scopes =
        |text: &str| good(&[("SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES", text)]).auth.bootstrap.scopes.unwrap();
    for text in [
        "vault:read,admin:tokens:read",
        "vault:read admin:tokens:read",
        r#"["vault:read", "admin:tokens:read"]"#,
    ] {
        assert_eq!(scopes(text), ["vault:read", "admin:tokens:read"], "{text}");
    }
    refuses("SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES", &["all", "*", "[1]", "[]", "vault:", ", ,"]);
    refuses("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", &["two words", "new\nline", "ä"]);
    assert_eq!(good(&[("SERVICE_AUTH_AUDIENCE", "a, b")]).auth.audience, ["a", "b"]);
}

#[test]
fn vault_keys_are_validated() {
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let json = |active: &str, key: &str| {
        format!(r#"{{"active":"{active}","keys":{{"2026":"{key}","old":"{key}"}}}}"#)
    };
    let keys = good(&[("SERVICE_VAULT_KEYS", &json("2026", key))]).vault.keys.unwrap();
    assert_eq!((keys.active.as_str(), keys.keys.len(), keys.keys["old"].expose()[31]), ("2026", 2, 31));
    good(&[("SERVICE_VAULT_KEYS", &json("old", key.trim_end_matches('=')))]);
    let (missing, short, odd) = (json("new", key), json("2026", "AAEC"), json("2026", "not base64!"));
    let more = format!(r#"{{"active":"a","keys":{{"a":"{key}"}},"more":1}}"#);
    refuses(
        "SERVICE_VAULT_KEYS",
        &["{}", key, "[]", &missing, &short, &odd, &more, r#"{"active":"a","keys":{}}"#],
    );
    assert!(bad(&[("SERVICE_VAULT_KEYS", &short)])[0].wrong.contains("for key `2026`"));
    assert!(bad(&[("SERVICE_VAULT_KEYS", &missing)])[0].wrong.contains("key `new`"));
}
