//! The key set for access tokens from other issuers: checks that it is reachable and has a usable key.

use auth::jwt::jwks::KeySet;
use net::{NetError, StatusCode, Url};

use super::report::Finding;
use super::web::{SOON, Web};

const KEY_SET: &str = "key set";

/// The probe's result.
pub(super) enum KeySetProbe {
    Keys(usize),
    Unreached(NetError),
    Bad(String),
}

pub(super) async fn probe(url: &Url, web: &Web) -> KeySetProbe {
    let answer = match web.get(url.as_str(), SOON, None).await {
        Ok(answer) if answer.status() == StatusCode::OK => answer.bytes().await,
        Ok(answer) => return KeySetProbe::Bad(format!("it answers {}", answer.status())),
        Err(error) => return KeySetProbe::Unreached(error),
    };
    match answer.map(|body| KeySet::parse(&body)) {
        Ok(Ok(set)) => KeySetProbe::Keys(set.len()),
        Ok(Err(error)) => KeySetProbe::Bad(error.to_string()),
        Err(error) => KeySetProbe::Unreached(error),
    }
}

pub(super) fn judge(probed: &KeySetProbe) -> Finding {
    let address = "put the address of the issuer's key set into SERVICE_AUTH_JWKS_URL";
    match probed {
        KeySetProbe::Keys(0) => Finding::problem(
            KEY_SET,
            "it has no key for RS256, so every token of the issuer is rejected",
            format!("configure the issuer to sign with an RSA key of 2048 bits or more, or {address}"),
        ),
        KeySetProbe::Keys(keys) => Finding::ok(KEY_SET, format!("it has {keys} for RS256")),
        KeySetProbe::Unreached(error) => Finding::problem(
            KEY_SET,
            format!("not reachable, so requests with tokens of the issuer return 503: {error}"),
            format!("start it, or {address}"),
        ),
        KeySetProbe::Bad(error) => {
            Finding::problem(KEY_SET, format!("not a valid key set: {error}"), address)
        }
    }
}
