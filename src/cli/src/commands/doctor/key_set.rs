//! The key set for access tokens from other issuers: checks that it is reachable and has a usable key.

use auth::jwt::jwks::KeySet;
use net::{NetError, StatusCode, Url};

use super::report::Finding;
use super::web::{SOON, Web};

const KEY_SET: &str = "key set";

/// The probe's result.
pub(super) enum Probed {
    Keys(usize),
    Unreached(NetError),
    Bad(String),
}

pub(super) async fn probe(url: &Url, web: &Web) -> Probed {
    let answer = match web.get(url.as_str(), SOON, None).await {
        Ok(answer) if answer.status() == StatusCode::OK => answer.bytes().await,
        Ok(answer) => return Probed::Bad(format!("it answers {}", answer.status())),
        Err(error) => return Probed::Unreached(error),
    };
    match answer.map(|body| KeySet::parse(&body)) {
        Ok(Ok(set)) => Probed::Keys(set.len()),
        Ok(Err(error)) => Probed::Bad(error.to_string()),
        Err(error) => Probed::Unreached(error),
    }
}

pub(super) fn judge(probed: &Probed) -> Finding {
    let address = "put the address of the issuer's key set into SERVICE_AUTH_JWKS_URL";
    match probed {
        Probed::Keys(0) => Finding::problem(
            KEY_SET,
            "it has no key for RS256, so every token of the issuer is rejected",
            format!("configure the issuer to sign with an RSA key of 2048 bits or more, or {address}"),
        ),
        Probed::Keys(keys) => Finding::ok(KEY_SET, format!("it has {keys} for RS256")),
        Probed::Unreached(error) => Finding::problem(
            KEY_SET,
            format!("not reachable, so requests with tokens of the issuer return 503: {error}"),
            format!("start it, or {address}"),
        ),
        Probed::Bad(error) => Finding::problem(KEY_SET, format!("not a valid key set: {error}"), address),
    }
}
