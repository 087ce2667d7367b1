//! Access tokens from other issuers, over HTTP. The `auth` package tests their validation in detail.

use integration_tests::{AnswerExt, TestService, until};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::support::{SECRET, good_jwt, jwt, seconds_from_now};

const LIST: &str = "/api/workflows";

async fn service() -> TestService {
    TestService::builder().set("SERVICE_AUTH_JWT_SECRET", SECRET).start().await
}

#[tokio::test]
async fn all_claim_spellings_are_accepted() {
    let t = service().await;
    let spellings = [
        json!({"scope": "workflows:read vault:read"}),
        json!({"scope": "vault:read,workflows:read"}),
        json!({"scopes": ["workflows:read"]}),
        json!({"scp": ["workflows:read"]}),
        json!({"scp": "workflows:read"}),
        json!({"orcheo": {"scopes": ["workflows:read"]}}),
        json!({"callboard": {"scopes": ["workflows:read"], "workspace_ids": ["default"]}}),
        json!({"scope": "vault:read", "orcheo": {"scopes": ["workflows:read"]}}),
        json!({"scope": "workflows:read", "workspace": "default"}),
        json!({"scope": "workflows:read", "workspaces": ["default"]}),
        json!({"scope": "workflows:read", "token_use": "service"}),
    ];
    for mut claims in spellings {
        claims["sub"] = json!("me");
        claims["exp"] = json!(seconds_from_now(60));
        let answer = t.bearer(&jwt(&claims)).get(LIST).await;
        assert_eq!(answer.status, 200, "{claims}: {}", answer.text());
    }
    let nothing = jwt(&json!({"sub": "me", "exp": seconds_from_now(60)}));
    assert_eq!(
        t.bearer(&nothing).get(LIST).await.refusal(),
        "403 auth.missing_scope",
        "no scope claim, no scope"
    );
    let foreign =
        json!({"sub": "me", "exp": seconds_from_now(60), "scope": "workflows:read", "workspace_id": "x"});
    assert_eq!(t.bearer(&jwt(&foreign)).get(LIST).await.refusal(), "403 auth.workspace_forbidden");
}

#[tokio::test]
async fn failures_count_against_a_subject_only_with_a_valid_signature() {
    let t = TestService::builder()
        .set("SERVICE_AUTH_JWT_SECRET", SECRET)
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "0")
        .set("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "2")
        .start()
        .await;
    let forged = |number: i64| {
        let claims = json!({"sub": "victim", "exp": seconds_from_now(number), "scope": "workflows:read"});
        super::support::sign(&json!({"alg": "HS256"}), &claims, "another secret")
    };
    for number in 1..5 {
        assert_eq!(t.bearer(&forged(number)).get(LIST).await.status, 401);
    }
    let good = good_jwt("victim", "workflows:read");
    assert_eq!(t.bearer(&good).get(LIST).await.status, 200, "forged tokens do not lock out the subject");
    for age in 1..3 {
        let old = jwt(&json!({"sub": "victim", "exp": seconds_from_now(-age)}));
        assert_eq!(t.bearer(&old).get(LIST).await.refusal(), "401 auth.token_expired");
    }
    let blocked = async || t.bearer(&good).get(LIST).await.status == 429;
    until("the subject's own failures to count", blocked).await;
    assert_eq!(t.bearer(&good_jwt("another", "workflows:read")).get(LIST).await.status, 200);
}

/// A service token, an access JWT and a chat JWT, each where it does not belong.
#[tokio::test]
async fn tokens_are_valid_for_their_own_purpose_only() {
    // The same secret for both: only the purpose distinguishes them.
    let t = TestService::builder()
        .set("SERVICE_AUTH_JWT_SECRET", SECRET)
        .set("CHAT_TOKEN_SIGNING_KEY", SECRET)
        .with_bootstrap_token()
        .start()
        .await;
    let workflow = t.workflow().published().create().await;
    let service_token = t.root().token(&["workflows:read", "chat:session"], &[]).await;
    let access = good_jwt("me", "workflows:read");
    let session = t.root().post("/api/chat/session", &json!({"workflow_id": workflow.id})).await.value();
    let session = session["client_secret"].as_str().unwrap().to_owned();
    let chat = async |token: &str| {
        t.bearer(token).post("/api/chat", &integration_tests::chat::create(&workflow, "hi")).await.refusal()
    };
    let api = async |token: &str| t.bearer(token).get(LIST).await.refusal();
    let refused = "401 chat.session_invalid";
    assert_eq!((api(&service_token).await.as_str(), chat(&service_token).await.as_str()), ("200", refused));
    assert_eq!((api(&access).await.as_str(), chat(&access).await.as_str()), ("200", refused));
    assert_eq!(chat(&session).await, "200");
    assert_eq!(t.bearer(&session).get(LIST).await.status, 401);
    // The API ignores browser cookies.
    let cookie = format!("__Host-svc_session={service_token}; callboard_visitor={access}");
    let answer = t.send("GET", LIST, &[("cookie", &cookie)], "").await;
    assert_eq!(answer.refusal(), "401 auth.missing_token");
}

/// A key set on a free port that counts its requests.
async fn key_set(body: Value) -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/jwks", listener.local_addr().unwrap());
    let requests = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = std::sync::Arc::clone(&requests);
    let body = body.to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let length = body.len();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (address, requests)
}

#[tokio::test]
async fn concurrent_requests_share_one_key_set_fetch() {
    let (address, requests) = key_set(json!({"keys": []})).await;
    let t = TestService::builder()
        .set("SERVICE_AUTH_JWKS_URL", address)
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "0")
        .start()
        .await;
    let token = super::support::sign(&json!({"alg": "RS256", "kid": "a"}), &json!({"sub": "me"}), SECRET);
    let bearers: Vec<_> = (0..50).map(|_| t.bearer(&token)).collect();
    let answers = futures_util::future::join_all(bearers.iter().map(|bearer| bearer.get(LIST))).await;
    let statuses: std::collections::BTreeSet<u16> = answers.iter().map(|answer| answer.status).collect();
    assert!(
        statuses.iter().all(|status| matches!(status, 401 | 429)),
        "{statuses:?}: an unknown key is no key"
    );
    assert!(
        requests.load(std::sync::atomic::Ordering::SeqCst) <= 2,
        "one fetch, and one more for the unknown key"
    );
}
