//! The same tokens, verified by others: PyJWT and jose make valid and invalid ones and report their findings.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use auth::jwt::jwks::{CachedKeys, KeySet};
use auth::jwt::{AccessRules, AccessTokens, Algorithm, HmacSecret, Refusal};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::support::{NOW, now};

const TOKENS: usize = 1200;
const SEED: &str = "1";

#[derive(Deserialize)]
struct Keys {
    secret: String,
    keys: Value,
}

#[derive(Deserialize)]
struct Row {
    token: String,
    flaws: Vec<String>,
}

/// The folder where xtask puts it.
fn folder(name: &str) -> String {
    if let Ok(line) = std::env::var(format!("CALLBOARD_MISSING_{name}")) {
        panic!("{name} is missing: run `{line}`");
    }
    let variable = format!("CALLBOARD_{name}");
    std::env::var(&variable).unwrap_or_else(|_| panic!("{variable} is not set: run `cargo xtask test`"))
}

fn script(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/others").join(name).display().to_string()
}

/// Our answer to a token with these flaws: the first in our order.
fn expected(flaws: &[String]) -> Option<Refusal> {
    let order = [
        ("algorithm", Refusal::UnsupportedAlgorithm),
        ("invalid", Refusal::Invalid),
        ("claims", Refusal::Invalid),
        ("issuer", Refusal::InvalidIssuer),
        ("audience", Refusal::InvalidAudience),
        ("early", Refusal::Invalid),
        ("expired", Refusal::Expired),
    ];
    let known = |flaw: &String| order.iter().any(|(name, _)| name == flaw);
    assert!(flaws.iter().all(known), "{flaws:?}");
    order.into_iter().find(|(name, _)| flaws.iter().any(|flaw| flaw == name)).map(|(_, why)| why)
}

async fn agree(command: &mut Command) {
    let output = command.arg(TOKENS.to_string()).arg(SEED).arg(NOW.to_string()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    let output = String::from_utf8(output.stdout).unwrap();
    let mut lines = output.lines();
    let keys: Keys = serde_json::from_str(lines.next().unwrap()).unwrap();
    let set = KeySet::parse(json!({"keys": keys.keys}).to_string().as_bytes()).unwrap();
    let tokens = AccessTokens::new(AccessRules {
        algorithms: vec![Algorithm::Rs256, Algorithm::Hs256],
        secret: HmacSecret::of_bytes(&URL_SAFE_NO_PAD.decode(keys.secret).unwrap()),
        first_party: None,
        keys: Some(Arc::new(CachedKeys::new(set, None))),
        audience: vec!["us".to_owned(), "also-us".to_owned()],
        issuer: Some("https://issuer".to_owned()),
    });
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in lines {
        let row: Row = serde_json::from_str(line).unwrap();
        let ours = tokens.verify(&row.token, now()).await.err().map(|refused| refused.why);
        assert_eq!(ours, expected(&row.flaws), "{line}");
        *seen.entry(format!("{ours:?}")).or_default() += 1;
    }
    // Enough of each, or agreement means nothing.
    assert_eq!(seen.values().sum::<usize>(), TOKENS);
    assert!(seen.len() == 6 && seen.values().all(|count| *count >= 10), "{seen:?}");
}

#[tokio::test]
async fn pyjwt_agrees_on_every_token() {
    let folder = folder("PYJWT");
    agree(Command::new("python3").env("PYTHONPATH", folder).args([
        "-B",
        "-W",
        "ignore",
        &script("tokens.py"),
    ]))
    .await;
}

#[tokio::test]
async fn jose_agrees_on_every_token() {
    let folder = folder("JOSE");
    agree(Command::new("node").args([script("tokens.mjs"), folder])).await;
}
