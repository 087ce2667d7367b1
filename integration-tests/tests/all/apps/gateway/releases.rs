//! The release that a request sees.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, until};
use serde_json::json;

use super::{NOT_FOUND, ask, deploy, get, public_app, publish, release};

#[tokio::test]
async fn a_new_release_is_served_at_once_and_previous_files_for_an_hour() {
    let t = TestService::with_manual_clock().await;
    public_app(&t, "desk").await;
    let at = |t: &TestService| format!("'{}'", kernel::Clock::now(t.clock()).to_rfc3339());
    let first: [(&str, &[u8]); 4] =
        [("index.html", b"<p>1"), ("app.1.js", b"one"), ("old.html", b"<p>Old"), ("LICENSE", b"free")];
    let first = deploy(&t, "desk", &first).await;
    t.execute(&release(&first, &at(&t))).await;
    assert_eq!(get(&t, "desk", "/", &[]).await.text(), "<p>1");
    t.advance(Duration::from_secs(2 * 3600));
    let second =
        deploy(&t, "desk", &[("index.html", b"<p>2"), ("app.2.js", b"two"), ("404.html", b"<p>No")]).await;
    t.execute(&release(&second, &at(&t))).await;
    // The clock is stopped: only database reads can show the new release.
    assert_eq!(get(&t, "desk", "/app.1.js", &[]).await.text(), "one");
    assert_eq!(get(&t, "desk", "/", &[]).await.text(), "<p>2");
    for (path, body) in [("/app.1.js", "one"), ("/LICENSE", "free"), ("/app.2.js", "two")] {
        let answer = get(&t, "desk", path, &[]).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, body), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-cache"), "{path}");
    }
    for path in ["/old.html", "/app.3.js"] {
        let answer = get(&t, "desk", path, &[]).await;
        assert_eq!((answer.status, answer.text().as_str()), (404, "<p>No"), "{path}");
    }
    // A rollback: the second release was active before it.
    t.advance(Duration::from_secs(3600));
    t.execute(&release(&first, &at(&t))).await;
    assert_eq!(get(&t, "desk", "/", &[]).await.text(), "<p>1");
    assert_eq!(get(&t, "desk", "/app.2.js", &[]).await.text(), "two");
    t.advance(Duration::from_secs(3599));
    assert_eq!(get(&t, "desk", "/app.2.js", &[]).await.text(), "two");
    t.advance(Duration::from_secs(2));
    let answer = get(&t, "desk", "/app.2.js", &[]).await.expect(404);
    assert!(answer.text().contains(NOT_FOUND));
    assert_eq!(get(&t, "desk", "/app.1.js", &[]).await.text(), "one");
}

#[tokio::test]
async fn an_instance_serves_its_own_app_changes_immediately() {
    let t = TestService::builder().manual_clock().alone().start().await;
    let app = t.app("desk").file("app.js", "one").publish().await;
    let script = async || get(&t, "desk", "/app.js", &[]).await;
    // The clock is stopped, so no cached copy expires.
    assert_eq!(script().await.text(), "one");
    let second = app.deploy(&t, t.app("desk").file("app.js", "two").bundle()).await;
    let second = app.publish(&t, &second).await;
    assert_eq!((script().await.text().as_str(), &second["number"]), ("two", &json!(2)));
    let first = t.as_publisher("GET", &app.path("/releases"), "").await.value()["data"][1]["id"].clone();
    let rollback = json!({"release": first}).to_string();
    assert_eq!(t.as_publisher("POST", &app.path("/rollback"), rollback).await.status, 201);
    assert_eq!(script().await.text(), "one");
    let closed = json!({"access": "members"}).to_string();
    assert_eq!(t.as_publisher("PATCH", &app.path(""), closed).await.status, 200);
    assert_eq!(script().await.refusal(), "401 login_required");
    assert_eq!(t.as_publisher("DELETE", &app.path(""), "").await.status, 204);
    let gone = script().await;
    assert!(gone.status == 404 && gone.text().contains(NOT_FOUND), "{}", gone.text());
}

#[tokio::test]
async fn undecodable_queries_are_rejected_on_service_paths() {
    let t = TestService::start().await;
    t.app("desk").file("app.js", "one").publish().await;
    for path in ["/__service/none", "/__service/config", "/__service/data/notes", "/__service/auth/login"] {
        for query in ["%zz", "a=%ff", "a=%", "%c3=1"] {
            let refused = get(&t, "desk", &format!("{path}?{query}"), &[]).await;
            assert_eq!(refused.refusal(), "400 bad_request", "{path} {query}");
        }
    }
    assert_eq!(get(&t, "desk", "/__service/config?a=%C3%A4+b", &[]).await.status, 200);
    // External links may append any query to a page's URL.
    assert_eq!(get(&t, "desk", "/app.js?discount=100%", &[]).await.text(), "one");
    let unknown = get(&t, "none", "/__service/config?%zz", &[]).await;
    assert_eq!((unknown.status, unknown.text()), (404, get(&t, "none", "/", &[]).await.text()));
}

#[tokio::test]
async fn another_instance_serves_the_files_of_a_new_page() {
    let t = TestService::builder().alone().start().await;
    let dsn = &t.variables()["SERVICE_POSTGRES_DSN"];
    let other = TestService::builder().set("SERVICE_POSTGRES_DSN", dsn).alone().start().await;
    public_app(&t, "desk").await;
    publish(&t, "desk", &[("index.html", b"<p>1"), ("app.1.js", b"one")]).await;
    assert_eq!(get(&t, "desk", "/", &[]).await.text(), "<p>1");
    assert_eq!(get(&other, "desk", "/app.1.js", &[]).await.text(), "one");
    for number in 2..12 {
        let (page, name) = (format!("<p>{number}"), format!("app.{number}.js"));
        publish(&t, "desk", &[("index.html", page.as_bytes()), (&name, name.as_bytes())]).await;
        assert_eq!(get(&t, "desk", "/", &[]).await.text(), page);
        // The other instance's copy is older than the release.
        for instance in [&other, &t] {
            assert_eq!(get(instance, "desk", &format!("/{name}"), &[]).await.text(), name);
            assert_eq!(get(instance, "desk", "/app.1.js", &[]).await.text(), "one");
        }
        assert_eq!(get(&other, "desk", "/index.html", &[]).await.text(), page);
    }
}

#[tokio::test]
async fn a_deleted_app_responds_like_an_unknown_one() {
    let t = TestService::start().await;
    public_app(&t, "desk").await;
    let unknown = get(&t, "unknown", "/", &[]).await;
    publish(&t, "desk", &[("index.html", b"<p>1"), ("app.js", b"one")]).await;
    assert_eq!(get(&t, "desk", "/app.js", &[]).await.status, 200);
    assert_eq!(t.send("DELETE", "/api/apps/desk", &[], "").await.status, 204);
    let gone = get(&t, "desk", "/", &[]).await;
    assert_eq!((gone.status, gone.text()), (404, unknown.text()));
    until("the file is gone", async || get(&t, "desk", "/app.js", &[]).await.status == 404).await;
    for path in ["/app.js", "/__service/config", "/__service/assets/x/y", "/%00"] {
        for method in ["GET", "POST"] {
            let answer = ask(&t, method, "desk", path, &[]).await;
            assert_eq!(answer.status, 404, "{method} {path}");
            assert_eq!(answer.whole().await.text(), unknown.text(), "{method} {path}");
        }
    }
}
