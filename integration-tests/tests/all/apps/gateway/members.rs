//! Members-only apps serve nothing without a session.

use integration_tests::{AnswerExt, JSON, TestService, until};
use serde_json::json;

use super::super::sha256;
use super::{ask, code, get, public_app, publish};

#[tokio::test]
async fn visitors_without_a_session_are_redirected_or_rejected() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    publish(&t, "desk", &[("index.html", b"<p>Home"), ("app.js", b"1"), ("docs/index.html", b"<p>Docs")])
        .await;
    let by_digest = format!("/__service/assets/{}/app.js", sha256(b"1"));
    assert_eq!(get(&t, "desk", "/app.js", &[]).await.status, 200);
    let closed = json!({"access": "members"}).to_string();
    t.send("PATCH", "/api/apps/desk", &[JSON], closed).await.expect(200);
    // Documents are closed at once.
    assert_eq!(get(&t, "desk", "/", &[]).await.status, 401);
    until("files to be closed", async || get(&t, "desk", "/app.js", &[]).await.status == 401).await;
    let opened = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    for (path, back) in [
        ("/", "%2F"),
        ("/app.js", "%2Fapp.js"),
        ("/missing?a=b%20c", "%2Fmissing%3Fa%3Db%2520c"),
        ("//evil.example", "%2F"),
    ] {
        for headers in [opened.as_slice(), &[("accept", "text/html")]] {
            let answer = get(&t, "desk", path, headers).await;
            let place = format!("/__service/auth/login?return_to={back}");
            assert_eq!((answer.status, answer.header("location")), (303, Some(place.as_str())), "{path}");
            assert_eq!(answer.header("cache-control"), Some("private, no-store"));
        }
    }
    let long = format!("/{}", "a".repeat(600));
    let answer = get(&t, "desk", &long, &opened).await;
    assert_eq!(answer.header("location"), Some("/__service/auth/login?return_to=%2F"));
    for path in ["/", "/app.js", "/docs", "/missing", &by_digest] {
        let frame = [("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "iframe"), ("accept", "text/html")];
        for headers in [[].as_slice(), &frame, &[("if-none-match", "*")], &[("range", "bytes=0-0")]] {
            let answer = get(&t, "desk", path, headers).await;
            assert_eq!(code(&answer), "401 login_required", "{path}");
            assert_eq!(answer.header("cache-control"), Some("private, no-store"));
        }
        let head = ask(&t, "HEAD", "desk", path, &[]).await;
        assert_eq!((head.status, head.header("etag")), (401, None), "{path}");
    }
}
