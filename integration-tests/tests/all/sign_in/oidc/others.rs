//! A third-party provider: npm's `oidc-provider`, which is certified by the OpenID Foundation.

use std::process::Stdio;

use integration_tests::{AnswerExt, Client, TestService, within};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use url::{Position, Url};

use super::{get, me};

/// The folder where xtask has installed it.
fn folder() -> String {
    if let Ok(line) = std::env::var("CALLBOARD_MISSING_OIDC_PROVIDER") {
        panic!("oidc-provider is not here; this gets it: {line}");
    }
    std::env::var("CALLBOARD_OIDC_PROVIDER")
        .expect("CALLBOARD_OIDC_PROVIDER is not set: run `cargo xtask test`")
}

async fn provider(id: &str, secret: &str, tokens: &str) -> (Child, String) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/others/provider.mjs");
    let mut node = Command::new("node");
    node.args([script, &folder(), id, secret, tokens])
        .kill_on_drop(true)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut node = node.spawn().unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    let issuer = within("the provider", async {
        loop {
            let line = lines.next_line().await.unwrap().expect("the provider is still running");
            if line.starts_with("http") {
                break line;
            }
        }
    })
    .await;
    // A closed pipe would end the process.
    tokio::spawn(async move { while lines.next_line().await.is_ok_and(|line| line.is_some()) {} });
    (node, issuer)
}

#[tokio::test]
async fn a_user_signs_in_by_an_independent_provider() {
    for tokens in ["thin", "full"] {
        let (id, secret) = ("desk:1 x", "secret +/%&=:~");
        let (_node, issuer) = provider(id, secret, tokens).await;
        let variables = [
            ("SERVICE_OIDC_ISSUER", issuer.as_str()),
            ("SERVICE_OIDC_CLIENT_ID", id),
            ("SERVICE_OIDC_CLIENT_SECRET", secret),
        ];
        let t = TestService::builder().set_all(variables).start().await;
        let (browser, there) = (t.visitor(), Client::new(&issuer).unwrap());
        let start = get(&browser, "/api/auth/oidc/start").await;
        let mut address = Url::parse(start.header("location").unwrap()).unwrap();
        let mut hops = 0;
        while address.as_str().starts_with(&issuer) {
            hops += 1;
            assert!(hops < 10, "{address}");
            let answer = get(&there, &address[Position::BeforePath..]).await;
            let location = answer.header("location");
            address =
                address.join(location.unwrap_or_else(|| panic!("{address}: {}", answer.text()))).unwrap();
        }
        let back = get(&browser, &address[Position::BeforePath..]).await;
        assert_eq!(back.status, 303, "{tokens}: {}", back.text());
        assert_eq!(me(&browser).await["user"]["email"], json!("ada@example.org"), "{tokens}");
        get(&t.visitor(), &address[Position::BeforePath..]).await.expect(401);
    }
}
