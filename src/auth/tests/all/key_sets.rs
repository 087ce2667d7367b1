//! The usable keys of a set, and the tokens they verify.

use std::sync::Arc;

use auth::jwt::jwks::{BadKeySet, CachedKeys, KeySet};
use auth::jwt::{AccessRules, Algorithm, Refusal, SignedBy};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use crate::rsa::RsaPair;
use crate::support::{encode, judge, payload, rules, sealed, set, token, unsigned};

fn usable(keys: &[Value]) -> usize {
    set(keys).len()
}

fn with(keys: &[Value]) -> AccessRules {
    AccessRules { keys: Some(Arc::new(CachedKeys::new(set(keys), None))), ..rules() }
}

async fn verdict(keys: &[Value], token: &str) -> Result<SignedBy, Refusal> {
    judge(with(keys), token).await.map(|claims| claims.signed_by).map_err(|refused| refused.why)
}

fn signed(pair: &RsaPair, kid: Option<&str>) -> String {
    let header = kid.map_or_else(|| json!({"alg": "RS256"}), |kid| json!({"alg": "RS256", "kid": kid}));
    pair.sign(&header.to_string(), &payload(json!({})))
}

/// A modulus with this many bits, without a private key.
fn modulus(bits: usize) -> String {
    let mut bytes = vec![0xFF; bits.div_ceil(8)];
    bytes[0] >>= bytes.len() * 8 - bits;
    encode(bytes)
}

#[test]
fn entries_for_other_purposes_are_left_out() {
    let key = RsaPair::first();
    for more in [
        json!({}),
        json!({"kid": "a", "use": "sig", "alg": "RS256", "key_ops": ["verify"], "x5t": "abc", "x5c": ["MIIB"]}),
        json!({"n": encode([&[0], URL_SAFE_NO_PAD.decode(key.modulus()).unwrap().as_slice()].concat())}),
        json!({"n": modulus(2048)}),
        json!({"n": modulus(8192)}),
        json!({"e": "Aw"}),
    ] {
        assert_eq!(usable(&[key.jwk(more.clone())]), 1, "{more}");
    }
    for more in [
        json!({"kty": "EC"}),
        json!({"kty": "oct"}),
        json!({"kty": "rsa"}),
        json!({"kty": null}),
        json!({"use": "enc"}),
        json!({"use": null}),
        json!({"use": ""}),
        json!({"use": "SIG"}),
        json!({"alg": "RS512"}),
        json!({"alg": "PS256"}),
        json!({"alg": ["RS256"]}),
        json!({"alg": "HS256"}),
        json!({"alg": "none"}),
        json!({"alg": ""}),
        json!({"alg": null}),
        json!({"key_ops": ["sign"]}),
        json!({"key_ops": ["encrypt"]}),
        json!({"key_ops": []}),
        json!({"key_ops": null}),
        json!({"key_ops": "verify"}),
        json!({"d": "AQAB"}),
        json!({"p": "AQAB"}),
        json!({"qi": null}),
        json!({"k": "c2VjcmV0"}),
        json!({"n": modulus(1024)}),
        json!({"n": modulus(2047)}),
        json!({"n": modulus(8193)}),
        json!({"n": ""}),
        json!({"n": "AAAA"}),
        json!({"n": format!("{}=", modulus(2048))}),
        json!({"n": 65537}),
        json!({"n": null}),
        json!({"e": "AQ"}),
        json!({"e": "AA"}),
        json!({"e": "Ag"}),
        json!({"e": "BAAAAAE"}),
        json!({"e": 65537}),
        json!({"kid": ""}),
        json!({"kid": 1}),
        json!({"kid": null}),
        json!({"kid": "../one"}),
        json!({"kid": "k".repeat(129)}),
    ] {
        assert_eq!(usable(&[key.jwk(more.clone())]), 0, "{more}");
    }
}

#[test]
fn invalid_key_sets_are_rejected() {
    let parse = |text: &str| KeySet::parse(text.as_bytes()).err();
    for text in [
        "",
        "null",
        "[]",
        "{",
        "<html>",
        r#"{"keys":[],"keys":[]}"#,
        r#"{"keys":[{"kty":"RSA","kty":"RSA"}]}"#,
    ] {
        assert_eq!(parse(text), Some(BadKeySet::NotJson), "{text}");
    }
    for text in ["{}", r#"{"keys":{}}"#, r#"{"keys":null}"#, r#"{"keys":["a"]}"#, r#"{"keys":[[]]}"#] {
        assert_eq!(parse(text), Some(BadKeySet::NoKeys), "{text}");
    }
    let several = |count: usize| json!({"keys": vec![json!({}); count]}).to_string();
    assert_eq!(parse(&several(100)), None);
    assert_eq!(parse(&several(101)), Some(BadKeySet::TooMany));
    assert!(KeySet::parse(br#"{"keys":[]}"#).unwrap().is_empty());
}

#[tokio::test]
async fn a_key_is_found_only_by_its_id() {
    let (first, second) = (RsaPair::first(), RsaPair::second());
    let keys = [first.jwk(json!({"kid": "one"})), second.jwk(json!({"kid": "two"}))];
    assert_eq!(verdict(&keys, &signed(&first, Some("one"))).await, Ok(SignedBy::KeySet));
    assert_eq!(verdict(&keys, &signed(&second, Some("two"))).await, Ok(SignedBy::KeySet));
    for (pair, kid) in [(&first, Some("two")), (&second, Some("one")), (&first, Some("One")), (&first, None)]
    {
        assert_eq!(verdict(&keys, &signed(pair, kid)).await, Err(Refusal::Invalid), "{kid:?}");
    }
}

#[tokio::test]
async fn a_token_without_a_key_id_requires_a_single_key() {
    let (first, second) = (RsaPair::first(), RsaPair::second());
    let nameless = signed(&first, None);
    for keys in [
        vec![first.jwk(json!({}))],
        vec![first.jwk(json!({"kid": "one"}))],
        // The other key has another use.
        vec![second.jwk(json!({"use": "enc"})), first.jwk(json!({}))],
    ] {
        assert!(verdict(&keys, &nameless).await.is_ok(), "{keys:?}");
    }
    let both = [first.jwk(json!({})), second.jwk(json!({}))];
    assert_eq!(verdict(&both, &nameless).await, Err(Refusal::Invalid));
    // An unknown id does not select the key without an id.
    assert_eq!(verdict(&[first.jwk(json!({}))], &signed(&first, Some("one"))).await, Err(Refusal::Invalid));
    assert_eq!(verdict(&[], &nameless).await, Err(Refusal::Invalid));
}

#[tokio::test]
async fn keys_with_the_same_id_are_all_left_out() {
    let (first, second) = (RsaPair::first(), RsaPair::second());
    let named = json!({"kid": "one"});
    for other in [
        second.jwk(named.clone()),
        first.jwk(named.clone()),
        second.jwk(json!({"kid": "one", "use": "enc"})),
        json!({"kty": "EC", "kid": "one"}),
        json!({"kty": "oct", "kid": "one", "k": "c2VjcmV0"}),
    ] {
        let keys = [first.jwk(named.clone()), other, second.jwk(json!({"kid": "two"}))];
        assert_eq!(verdict(&keys, &signed(&first, Some("one"))).await, Err(Refusal::Invalid));
        assert_eq!(verdict(&keys, &signed(&second, Some("two"))).await, Ok(SignedBy::KeySet));
    }
}

#[tokio::test]
async fn an_algorithm_is_accepted_if_it_is_allowed_and_has_a_key() {
    let rsa = signed(&RsaPair::first(), Some("one"));
    let hmac = token(json!({}));
    let only = |algorithm| AccessRules { algorithms: vec![algorithm], ..rules() };
    for (rules, token, good) in [
        (only(Algorithm::Hs256), &hmac, true),
        (only(Algorithm::Hs256), &rsa, false),
        (only(Algorithm::Rs256), &rsa, true),
        (only(Algorithm::Rs256), &hmac, false),
        (AccessRules { secret: None, ..rules() }, &hmac, false),
        (AccessRules { keys: None, ..rules() }, &rsa, false),
    ] {
        let why = judge(rules, token).await.err().map(|refused| refused.why);
        assert_eq!(why, (!good).then_some(Refusal::UnsupportedAlgorithm));
    }
}

#[tokio::test]
async fn a_key_for_another_purpose_verifies_nothing() {
    let pair = RsaPair::first();
    let key = |more: &Value| {
        let mut key = pair.jwk(more.clone());
        key["kid"] = json!("one");
        [key]
    };
    let good = json!({"use": "sig", "alg": "RS256", "key_ops": ["verify"]});
    for kid in [Some("one"), None] {
        let token = signed(&pair, kid);
        assert_eq!(verdict(&key(&good), &token).await, Ok(SignedBy::KeySet));
        for more in [
            json!({"use": "enc"}),
            json!({"use": "enc", "key_ops": ["verify"]}),
            json!({"key_ops": ["encrypt"]}),
            json!({"use": "sig", "key_ops": ["encrypt", "wrapKey"]}),
            json!({"key_ops": []}),
            json!({"alg": "RS384"}),
            json!({"alg": "PS256"}),
            json!({"alg": "PS512"}),
            json!({"alg": "RSA-OAEP"}),
            json!({"alg": "HS256"}),
            json!({"alg": "none"}),
        ] {
            assert_eq!(verdict(&key(&more), &token).await, Err(Refusal::Invalid), "{kid:?} {more}");
        }
    }
}

#[tokio::test]
async fn a_key_of_1024_bits_verifies_nothing() {
    let modulus = "rLFGzGFKiBX1MUJr1-wx7e0tOWHQWbi1-mX8LOUio0Jq-LgOGvw6j3uFdhGs8ZEMYWmp5SxjkiU3KXY9yCaG5PJasOCmv5hTMzWM2nYVNnYdQHKNLPZuo6cWPctGr5fstLqAW0yy3yHDMDmSwpWWDAKPNhoJulYyTVkhS2OBPiU";
    let signature = "khur8sU_oB4PqeKUz3AjddnbMoIRfaYc72Yv-pA8c1V-7kLp1Iqta6dLtxIyd8gH7cxtEsgjGL3PlrdrZBFMEM2t1HLHO3jufzA2eZRioWA6DNidTsSTtcw_fBkmrqku1PNL_GS-Z3P3FZgOv_-JaxtN9VbAQY8yWx2ZSd0J_Xc";
    let weak = json!({"kty": "RSA", "kid": "weak", "n": modulus, "e": "AQAB"});
    let claims = r#"{"sub":"ada","exp":1800000060}"#;
    let token = format!("{}.{signature}", unsigned(r#"{"alg":"RS256","kid":"weak"}"#, claims));
    for keys in [vec![weak.clone()], vec![weak, RsaPair::first().jwk(json!({"kid": "one"}))]] {
        assert_eq!(verdict(&keys, &token).await, Err(Refusal::Invalid));
    }
}

#[tokio::test]
async fn a_symmetric_key_in_a_key_set_verifies_nothing() {
    let published = b"a secret that everybody can fetch";
    let shared = json!({"kty": "oct", "kid": "two", "use": "sig", "alg": "HS256", "k": encode(published)});
    let keys = [RsaPair::first().jwk(json!({"kid": "one"})), shared];
    for header in [r#"{"alg":"HS256","kid":"two"}"#, r#"{"alg":"HS256"}"#] {
        let token = sealed(published, &unsigned(header, payload(json!({}))));
        assert_eq!(verdict(&keys, &token).await, Err(Refusal::Invalid));
        let without = AccessRules { secret: None, ..with(&keys) };
        assert_eq!(judge(without, &token).await.unwrap_err().why, Refusal::UnsupportedAlgorithm);
    }
}
