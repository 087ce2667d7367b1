//! Requests that are rejected before a code is checked.

use integration_tests::{AnswerExt, JSON, TestService};
use serde_json::json;

use super::{get, post, service};

#[tokio::test]
async fn all_problems_of_a_request_are_reported() {
    let (t, _mail) = service().await;
    let client = t.visitor();
    let pointers = |answer: &integration_tests::Answer| -> Vec<String> {
        let body = answer.value();
        assert_eq!(answer.refusal(), "422 request.invalid");
        let errors = body["detail"]["errors"].as_array().unwrap().iter();
        errors.map(|error| error["pointer"].as_str().unwrap().to_owned()).collect()
    };
    let start = "/api/auth/email/start";
    for email in ["", "x", "a@b\r\nBcc: c@d", "a b@c.org", "Ada <ada@c.org>"] {
        let answer = post(&client, start, &json!({"email": email})).await;
        assert_eq!(pointers(&answer), ["/email"], "{email:?}");
    }
    for away in ["//evil.example", "https://evil.example", "/\\evil.example", "chat", ""] {
        let answer = post(&client, start, &json!({"email": "a@b.org", "return_to": away})).await;
        assert_eq!(pointers(&answer), ["/return_to"], "{away:?}");
    }
    let answer = post(&client, start, &json!({"mail": 1, "return_to": 2})).await;
    assert_eq!(pointers(&answer), ["/email", "/return_to", "/mail"]);
    let answer = post(&client, "/api/auth/email/verify?x=1", &json!({"code": 123456})).await;
    assert_eq!(pointers(&answer), ["/x", "/email", "/code"]);
    assert_eq!(post(&client, start, &json!([])).await.refusal(), "422 request.invalid");
    t.assert_no_rows("sign_in_challenges").await;
    t.assert_no_rows("outgoing_mail").await;
}

#[tokio::test]
async fn other_methods_types_and_origins_are_refused() {
    let (t, _mail) = service().await;
    let client = t.visitor();
    let body = json!({"email": "a@b.org", "code": "123456", "refresh_token": "x"}).to_string();
    for path in ["/api/auth/email/start", "/api/auth/email/verify", "/api/auth/refresh"] {
        let answer = get(&client, path).await;
        assert_eq!(
            (answer.refusal().as_str(), answer.header("allow")),
            ("405 request.method_not_allowed", Some("POST"))
        );
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        let form = client.send("POST", path, &[("content-type", "text/plain")], body.clone()).await.unwrap();
        assert_eq!(form.refusal(), "415 request.unsupported_media_type", "{path}");
        for origin in ["https://evil.example", "null"] {
            let headers = [JSON, ("origin", origin)];
            let answer = client.send("POST", path, &headers, body.clone()).await.unwrap();
            assert_eq!(answer.refusal(), "403 auth.origin_mismatch", "{path} {origin}");
        }
    }
    assert_eq!(get(&client, "/api/auth/me").await.refusal(), "401 auth.missing_token");
    t.assert_no_rows("sign_in_challenges").await;
}

#[tokio::test]
async fn a_sign_in_over_plain_http_is_rejected_with_the_reason() {
    let t = TestService::builder().set("SERVICE_PUBLIC_BASE_URL", "http://desk.example.org").start().await;
    let headers = [JSON, ("origin", "http://desk.example.org"), ("host", "desk.example.org")];
    let mut raw = t.raw().await;
    let body = json!({"email": "a@b.org"}).to_string();
    let head: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let sent = raw.write(format!(
        "POST /api/auth/email/start HTTP/1.1\r\n{head}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    ));
    assert!(sent.await);
    assert_eq!(raw.answer().await.whole().await.refusal(), "403 auth.tls_required");
}
