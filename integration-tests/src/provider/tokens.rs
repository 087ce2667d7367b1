//! Identity tokens, correct and faulty.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kernel::{Clock, SystemClock};
use ring::hmac;
use serde_json::{Value, json};

use super::{CLIENT_ID, CLIENT_SECRET, Knobs, Signing, key};

/// An object with some members changed; `null` removes one.
pub(super) fn changed(mut object: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().expect("an object") {
        if value.is_null() {
            object.as_object_mut().expect("an object").remove(name);
        } else {
            object[name] = value.clone();
        }
    }
    object
}

pub(super) fn id_token(knobs: &Knobs, issuer: &str, nonce: &str) -> String {
    let now = SystemClock::new().now().timestamp();
    let claims = json!({
        "iss": issuer, "sub": "ada-1", "aud": CLIENT_ID, "iat": now, "exp": now + 300, "nonce": nonce,
        "email": "ada@example.org", "email_verified": true, "name": "Ada",
    });
    let alg = match knobs.signing {
        Signing::Rs256 | Signing::Broken => "RS256",
        Signing::Nothing => "none",
        Signing::ClientSecret => "HS256",
    };
    let header = changed(json!({"alg": alg, "typ": "JWT", "kid": "one"}), &knobs.header);
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let text = format!("{}.{}", encode(&header), encode(&changed(claims, &knobs.claims)));
    let signature = match knobs.signing {
        Signing::Rs256 => key::sign(&text),
        Signing::Nothing => Vec::new(),
        Signing::ClientSecret => {
            let key = hmac::Key::new(hmac::HMAC_SHA256, CLIENT_SECRET.as_bytes());
            hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
        }
        Signing::Broken => {
            let mut signature = key::sign(&text);
            signature[7] ^= 1;
            signature
        }
    };
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
