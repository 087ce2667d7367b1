//! The table of failures: status, message, code, and response headers.

use insta::assert_snapshot;
use integration_tests::{AnswerExt, TestService};
use serde_json::json;

use super::support::{SECRET, jwt, seconds_from_now, sign};

const LIST: &str = "/api/workflows";

async fn failure_summary(t: &TestService, header: Option<&str>) -> String {
    let headers: Vec<(&str, &str)> = header.map(|value| ("authorization", value)).into_iter().collect();
    let answer = t.send("GET", LIST, &headers, "").await;
    let challenge = answer.header("www-authenticate").unwrap_or("-");
    format!("{} {} | {} | {challenge}", answer.status, answer.message(), answer.code())
}

#[tokio::test]
async fn every_failure_has_its_status_message_code_and_headers() {
    let t = TestService::builder()
        .set("SERVICE_AUTH_JWT_SECRET", SECRET)
        .set("SERVICE_AUTH_ALLOWED_ALGORITHMS", "HS256")
        .set("SERVICE_AUTH_AUDIENCE", "here")
        .set("SERVICE_AUTH_ISSUER", "https://id.example.org")
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "0")
        .set("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0")
        .with_bootstrap_token()
        .start()
        .await;
    let good = json!({"sub": "me", "exp": seconds_from_now(600), "aud": "here", "iss": "https://id.example.org", "scope": "vault:read"});
    let but = |member: &str, value: serde_json::Value| {
        let mut claims = good.clone();
        claims[member] = value;
        format!("Bearer {}", jwt(&claims))
    };
    let unknown = format!("svc_{}_{}", "0".repeat(32), "A".repeat(49));
    let rs256 = sign(&json!({"alg": "RS256"}), &good, SECRET);
    let rows = [
        ("no header", None),
        ("an empty token", Some("Bearer ".to_owned())),
        ("another scheme", Some("Basic dXNlcjpwYXNz".to_owned())),
        ("malformed", Some("Bearer nonsense".to_owned())),
        ("unknown", Some(format!("Bearer {unknown}"))),
        (
            "bad signature",
            Some(format!("Bearer {}", sign(&json!({"alg": "HS256"}), &good, "another secret"))),
        ),
        ("expired", Some(but("exp", json!(seconds_from_now(-1))))),
        ("another algorithm", Some(format!("Bearer {rs256}"))),
        ("another audience", Some(but("aud", json!("there")))),
        ("another issuer", Some(but("iss", json!("https://id.example.org/")))),
        ("a missing scope", Some(but("jti", json!("1")))),
    ];
    let mut table = String::new();
    for (name, header) in &rows {
        table.push_str(&format!("{name}: {}\n", failure_summary(&t, header.as_deref()).await));
    }
    assert_snapshot!(table.trim_end(), @r#"
    no header: 401 Missing bearer token | auth.missing_token | Bearer
    an empty token: 401 Missing bearer token | auth.missing_token | Bearer
    another scheme: 401 Authorization header must use the Bearer scheme | auth.invalid_scheme | Bearer
    malformed: 401 Invalid bearer token | auth.invalid_token | Bearer error="invalid_token"
    unknown: 401 Invalid bearer token | auth.invalid_token | Bearer error="invalid_token"
    bad signature: 401 Invalid bearer token | auth.invalid_token | Bearer error="invalid_token"
    expired: 401 Bearer token has expired | auth.token_expired | Bearer error="invalid_token"
    another algorithm: 401 Bearer token is signed with an unsupported algorithm | auth.unsupported_algorithm | Bearer error="invalid_token"
    another audience: 401 Bearer token has an invalid audience | auth.invalid_audience | Bearer error="invalid_token"
    another issuer: 401 Bearer token has an invalid issuer | auth.invalid_issuer | Bearer error="invalid_token"
    a missing scope: 403 Missing required scopes: workflows:read | auth.missing_scope | Bearer error="insufficient_scope"
    "#);
    let mut foreign = good.clone();
    foreign["scope"] = json!("workflows:read");
    foreign["workspace"] = json!("elsewhere");
    let header = format!("Bearer {}", jwt(&foreign));
    assert_snapshot!(failure_summary(&t, Some(&header)).await, @"403 Workspace access denied | auth.workspace_forbidden | -");
}

#[tokio::test]
async fn a_bootstrap_token_expires_at_its_configured_time() {
    for past in ["2020-01-01T00:00:00Z", "1577836800"] {
        let t = TestService::builder()
            .with_bootstrap_token()
            .set("SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT", past)
            .start()
            .await;
        assert_eq!(t.root().get(LIST).await.refusal(), "401 auth.token_expired", "{past}");
        let row = "SELECT actor_kind || ' ' || action || ' ' || outcome || ' ' || reason FROM audit_log";
        assert_eq!(t.scalar(row).await, "bootstrap auth.failed denied auth.token_expired");
    }
}

#[tokio::test]
async fn a_bootstrap_token_has_its_configured_scopes() {
    for scopes in ["workflows:read,vault:read", "workflows:read vault:read", r#"["workflows:read"]"#] {
        let t = TestService::builder()
            .with_bootstrap_token()
            .set("SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES", scopes)
            .set("SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT", "2999-01-01T00:00:00Z")
            .start()
            .await;
        assert_eq!(t.root().get(LIST).await.status, 200, "{scopes}");
        let made = t.root().post(LIST, &json!({"name": "X"})).await;
        assert_eq!(made.message(), "Missing required scopes: workflows:write", "{scopes}");
    }
}

#[tokio::test]
async fn tokens_are_rejected_without_a_key_set() {
    // No server listens there.
    let t = TestService::builder().set("SERVICE_AUTH_JWKS_URL", "http://127.0.0.1:9/jwks").start().await;
    let token = sign(&json!({"alg": "RS256", "kid": "a"}), &json!({"sub": "me"}), SECRET);
    let answer = t.bearer(&token).get(LIST).await;
    assert_eq!(answer.refusal(), "503 auth.key_unavailable");
    assert_eq!(answer.message(), "Unable to resolve signing key for bearer token");
    assert!(answer.header("retry-after").is_some());
    t.assert_no_rows("auth_failures").await;
}
