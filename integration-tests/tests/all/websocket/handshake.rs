//! Permission to open a socket, and responses to rejected handshakes.

use auth::jwt::{HmacSecret, Signer, TYPE_ACCESS};
use integration_tests::{AnswerExt, BOOTSTRAP, Socket, TestService, shown};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};

use super::{SECRET, admin, bearer, guarded, handshake, refused, token};

/// `{"alg":"RS256","typ":"JWT"}`.
const RS256: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";

fn jwt(secret: &str, claims: &Value) -> String {
    let secret = HmacSecret::of_bytes(secret.as_bytes()).unwrap();
    Signer::new(secret, TYPE_ACCESS, None).sign(claims).unwrap()
}

fn now() -> i64 {
    SystemClock::new().now().timestamp()
}

fn claims(change: Value) -> Value {
    let mut claims = json!({
        "sub": "somebody", "iss": "https://id.example", "aud": "callboard", "scope": "workflows:read workflows:execute",
        "iat": now() - 10, "exp": now() + 600,
    });
    claims.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    claims
}

#[tokio::test]
async fn handshake_failures_have_the_responses_of_http() {
    let t = guarded()
        .set("SERVICE_AUTH_ISSUER", "https://id.example")
        .set("SERVICE_AUTH_AUDIENCE", "callboard")
        .set("SERVICE_AUTH_ALLOWED_ALGORITHMS", "HS256")
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "0")
        .start()
        .await;
    let workflow = t.workflow().by(admin(&t)).create().await;
    let path = format!("/ws/workflow/{}", workflow.id);
    let (_, reader) = token(&t, json!({"scopes": ["workflows:read"]})).await;
    let (_, elsewhere) =
        token(&t, json!({"scopes": ["workflows:execute"], "workspaces": ["elsewhere"]})).await;
    let (revoked_id, revoked) = token(&t, json!({"scopes": ["workflows:execute"]})).await;
    super::call(&t, "DELETE", &format!("/api/admin/service-tokens/{revoked_id}"), &json!({"reason": "x"}))
        .await;
    let signed = |change| jwt(SECRET, &claims(change));
    let unsupported = format!("{RS256}.e30.c2lnbmF0dXJl");
    let rows = [
        (None, "401 auth.missing_token", "Missing bearer token"),
        (Some("Bearer ".to_owned()), "401 auth.missing_token", "Missing bearer token"),
        (
            Some("Basic abc".to_owned()),
            "401 auth.invalid_scheme",
            "Authorization header must use the Bearer scheme",
        ),
        (Some(bearer("nonsense")), "401 auth.invalid_token", "Invalid bearer token"),
        (Some(bearer(&revoked)), "401 auth.invalid_token", "Invalid bearer token"),
        (
            Some(bearer(&jwt("another-secret-than-the-service-has-012345", &claims(json!({}))))),
            "401 auth.invalid_token",
            "Invalid bearer token",
        ),
        (
            Some(bearer(&signed(json!({"exp": now() - 5})))),
            "401 auth.token_expired",
            "Bearer token has expired",
        ),
        (
            Some(bearer(&unsupported)),
            "401 auth.unsupported_algorithm",
            "Bearer token is signed with an unsupported algorithm",
        ),
        (
            Some(bearer(&signed(json!({"aud": "another"})))),
            "401 auth.invalid_audience",
            "Bearer token has an invalid audience",
        ),
        (
            Some(bearer(&signed(json!({"iss": "https://other.example"})))),
            "401 auth.invalid_issuer",
            "Bearer token has an invalid issuer",
        ),
        (Some(bearer(&reader)), "403 auth.missing_scope", "Missing required scopes: workflows:execute"),
        (Some(bearer(&elsewhere)), "403 auth.workspace_forbidden", "Workspace access denied"),
    ];
    for (header, refusal, message) in rows {
        let headers: Vec<(&str, &str)> =
            header.iter().map(|value| ("authorization", value.as_str())).collect();
        let answer = refused(&t, &path, &headers).await;
        assert_eq!((answer.refusal().as_str(), answer.message().as_str()), (refusal, message));
        assert_eq!(answer.header("content-type"), Some("application/json"));
        if refusal.starts_with("401") {
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
            // The same token is rejected over HTTP, too.
            let over_http = t.send("GET", "/api/workflows", &headers, "").await;
            assert_eq!(over_http.text(), answer.text());
        }
    }
    let good = bearer(&signed(json!({})));
    let unknown = refused(&t, "/ws/workflow/no-such-desk", &[("authorization", good.as_str())]).await;
    assert_eq!(unknown.refusal(), "404 workflow.not_found");
    let odd = refused(&t, &format!("{path}?tokn=x"), &[("authorization", good.as_str())]).await;
    assert_eq!(odd.problems(), ["/tokn unknown_parameter"]);
    let socket = Socket::for_workflow(&t, &workflow, &[("authorization", good.as_str())]).await;
    socket.close().await;
    let by_handle = format!("/ws/workflow/{}", workflow.handle);
    Socket::open(t.address(), &by_handle, &[("authorization", good.as_str())]).await.close().await;
}

#[tokio::test]
async fn the_first_of_four_token_sources_is_used() {
    let t = guarded()
        .set("SERVICE_AUTH_RATE_LIMIT_IP", "0")
        .set("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0")
        .start()
        .await;
    let workflow = t.workflow().by(admin(&t)).create().await;
    let path = format!("/ws/workflow/{}", workflow.id);
    let header = bearer(BOOTSTRAP);
    let offered = format!("bearer.{BOOTSTRAP}");
    let (query, access, both) = (
        format!("{path}?token={BOOTSTRAP}"),
        format!("{path}?access_token={BOOTSTRAP}"),
        format!("{path}?token={BOOTSTRAP}&access_token={BOOTSTRAP}"),
    );
    let with_protocol = format!("{offered}, callboard");
    let spoilt = format!("{path}?token=spoilt");
    for (path, headers, protocol) in [
        (&path, vec![("authorization", header.as_str())], None),
        (&query, vec![], None),
        (&access, vec![], None),
        (&both, vec![], None),
        (&path, vec![("sec-websocket-protocol", offered.as_str())], Some(offered.as_str())),
        (&path, vec![("sec-websocket-protocol", with_protocol.as_str())], Some("callboard")),
        // The first credential counts.
        (&spoilt, vec![("authorization", header.as_str())], None),
        (&query, vec![("sec-websocket-protocol", "callboard, bearer.spoilt")], Some("callboard")),
    ] {
        let mut socket = Socket::open(t.address(), path, &headers).await;
        assert_eq!(socket.protocol(), protocol, "{path}");
        assert!(socket.settle().await.is_empty());
        socket.close().await;
    }
    let invalid = "401 auth.invalid_token";
    assert_eq!(
        refused(&t, &spoilt, &[("sec-websocket-protocol", offered.as_str())]).await.refusal(),
        invalid
    );
    assert_eq!(refused(&t, &query, &[("authorization", "Bearer spoilt")]).await.refusal(), invalid);
    assert_eq!(
        refused(&t, &query, &[("authorization", "Basic x")]).await.refusal(),
        "401 auth.invalid_scheme"
    );
    for differ in ["token=a&access_token=b", &format!("token={BOOTSTRAP}&access_token=b")] {
        let answer = refused(&t, &format!("{path}?{differ}"), &[]).await;
        assert_eq!((answer.refusal().as_str(), answer.message().as_str()), (invalid, "Invalid bearer token"));
    }
    // Cookies alone do not identify a caller.
    let cookies =
        format!("token={BOOTSTRAP}; access_token={BOOTSTRAP}; callboard_visitor=x; session={BOOTSTRAP}");
    assert_eq!(refused(&t, &path, &[("cookie", &cookies)]).await.refusal(), "401 auth.missing_token");
}

#[tokio::test]
async fn a_request_without_a_handshake_is_rejected_with_the_missing_headers() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let path = format!("/ws/workflow/{}", workflow.id);
    let plain = t.get(&path).await;
    insta::assert_snapshot!(shown(&plain), @r#"
    426
    content-type: application/json
    cache-control: no-store
    {"detail":{"message":"This path is a websocket: the header `Upgrade: websocket` is missing.","code":"ws.upgrade_required"}}
    "#);
    assert_eq!(
        (plain.header("upgrade"), plain.header("sec-websocket-version")),
        (Some("websocket"), Some("13"))
    );
    let posted = t.post(&path, "{}").await;
    assert_eq!((posted.status, posted.header("allow")), (405, Some("GET")));
    let old = [("upgrade", "websocket"), ("connection", "Upgrade"), ("sec-websocket-version", "8")];
    let old = t.raw().await.request("GET", &path, &old, "").await.whole().await;
    assert_eq!(old.refusal(), "426 ws.upgrade_required");
}

#[tokio::test]
async fn handshake_failures_count_towards_the_rate_limit() {
    let t = guarded().set("SERVICE_AUTH_RATE_LIMIT_IP", "3").start().await;
    let workflow = t.workflow().by(admin(&t)).create().await;
    let path = format!("/ws/workflow/{}", workflow.id);
    let refusals = [
        format!("{path}?token=a"),
        format!("{path}?token=b&access_token=c"),
        format!("{path}?access_token=d"),
    ];
    for path in &refusals {
        assert_eq!(refused(&t, path, &[]).await.refusal(), "401 auth.invalid_token");
    }
    // The fourth attempt, and from then on even valid tokens.
    for token in ["e", BOOTSTRAP] {
        let limited = refused(&t, &format!("{path}?token={token}"), &[]).await;
        assert_eq!(limited.refusal(), "429 auth.rate_limited");
        assert_eq!(limited.message(), "Too many authentication attempts");
        let wait: u64 = limited.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=60).contains(&wait), "{wait}");
    }
    let over_http = t.send("GET", "/api/workflows", &[("authorization", &bearer(BOOTSTRAP))], "").await;
    assert_eq!(over_http.refusal(), "429 auth.rate_limited");
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log WHERE action = 'auth.failed'").await, "3");
}

#[tokio::test]
async fn only_same_origin_and_listed_pages_may_connect() {
    let t = guarded().set("SERVICE_CORS_ALLOW_ORIGINS", r#"["https://app.example.org"]"#).start().await;
    let workflow = t.workflow().by(admin(&t)).create().await;
    let path = format!("/ws/workflow/{}?token={BOOTSTRAP}", workflow.id);
    let own = format!("http://{}", t.address());
    for origin in [own.as_str(), "https://app.example.org"] {
        Socket::open(t.address(), &path, &[("origin", origin)]).await.close().await;
    }
    let two = [("origin", own.as_str()), ("origin", "https://evil.example")];
    assert_eq!(refused(&t, &path, &two).await.refusal(), "403 auth.origin_mismatch");
    for origin in [
        "https://evil.example",
        "null",
        "",
        "https://app.example.org.evil.example",
        "https://sub.app.example.org",
        "http://app.example.org",
        "https://app.example.org:444",
        "https://APP.example.org",
    ] {
        assert_eq!(
            refused(&t, &path, &[("origin", origin)]).await.refusal(),
            "403 auth.origin_mismatch",
            "{origin}"
        );
    }
}

#[tokio::test]
async fn a_service_without_authentication_checks_only_the_origin() {
    let t = TestService::builder().set("SERVICE_CORS_ALLOW_ORIGINS", r#"["*"]"#).start().await;
    let workflow = t.workflow().create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    assert!(socket.settle().await.is_empty());
    let path = format!("/ws/workflow/{}", workflow.id);
    let rebound = refused(&t, &path, &[("host", "rebound.example")]).await;
    assert_eq!(rebound.refusal(), "403 auth.host_mismatch");
    // An origin list that allows all allows none here.
    let evil = refused(&t, &path, &[("origin", "https://evil.example")]).await;
    assert_eq!(evil.refusal(), "403 auth.origin_mismatch");
    // A presented token is checked nevertheless.
    assert_eq!(refused(&t, &format!("{path}?token=x"), &[]).await.refusal(), "401 auth.invalid_token");
    socket.close().await;
}

#[tokio::test]
async fn the_handshake_response_follows_the_protocol() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let headers = [
        ("upgrade", "websocket"),
        ("connection", "keep-alive, Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "chat, superchat"),
    ];
    let path = format!("/ws/workflow/{}", workflow.id);
    let answer = t.raw().await.request("GET", &path, &headers, "").await;
    assert_eq!(
        (answer.status, answer.header("sec-websocket-accept")),
        (101, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    );
    assert_eq!(answer.header("sec-websocket-protocol"), None, "the service supports neither protocol");
    drop(answer);
    let key = handshake(&t, &path, &[("sec-websocket-key", "twice")]).await;
    assert_eq!(key.refusal(), "426 ws.upgrade_required");
}
