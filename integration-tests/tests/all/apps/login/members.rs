//! A session's access to a members-only app: its files and its records.

use integration_tests::{AnswerExt, BOOTSTRAP, JSON, graphs};
use serde_json::json;

use super::*;

/// A members-only app, published over HTTP.
const DESK: &str = "http://desk.apps.localhost:8000";

async fn desk(t: &TestService) {
    let all = json!(["read", "create"]);
    let collections = json!({
        "notes": {"kind": "shared", "capabilities": {"anonymous": all, "member": all}},
        "mine": {"kind": "user", "capabilities": {"anonymous": [], "member": all}},
    });
    let app = t.app("desk").for_members().file("index.html", "<p>The desk").file("app.js", "run()");
    app.manifest(&json!({"collections": collections})).publish().await;
}

/// A request from the app's page.
async fn read(browser: &Browser<'_>, path: &str) -> Answer {
    browser.send("GET", &format!("{DESK}{path}"), &[], "").await
}

async fn write(browser: &Browser<'_>, collection: &str, text: &str) -> Answer {
    let headers = [JSON, ("origin", DESK)];
    let url = format!("{DESK}/__service/data/{collection}");
    browser.send("POST", &url, &headers, &json!({"data": {"text": text}}).to_string()).await
}

/// Asserts that the app's files and records are served.
async fn assert_access(browser: &Browser<'_>, why: &str) {
    for (path, content) in [("/", "<p>The desk"), ("/app.js", "run()")] {
        let answer = browser.open(&format!("{DESK}{path}")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, content), "{why} {path}");
        assert_eq!(answer.header("cache-control"), Some("private, no-store"), "{path}");
        assert_eq!(read(browser, path).await.status, 200, "{why} {path}");
    }
    for collection in ["notes", "mine"] {
        let made = write(browser, collection, why).await;
        assert_eq!(made.status, 201, "{why} {collection}: {}", made.text());
        let list = read(browser, &format!("/__service/data/{collection}?order=-created_at")).await;
        assert_eq!(list.value()["items"][0]["data"]["text"], why, "{collection}");
    }
}

/// Asserts that nothing is served: navigations are redirected to the sign-in.
async fn assert_no_access(browser: &Browser<'_>, why: &str) {
    for (path, back) in [("/", "%2F"), ("/app.js", "%2Fapp.js"), ("/missing", "%2Fmissing")] {
        let answer = browser.open(&format!("{DESK}{path}")).await;
        let place = format!("/__service/auth/login?return_to={back}");
        assert_eq!((answer.status, answer.header("location")), (303, Some(place.as_str())), "{why} {path}");
        assert_eq!(read(browser, path).await.refusal(), "401 login_required", "{why} {path}");
    }
    for collection in ["notes", "mine", "none"] {
        let path = format!("/__service/data/{collection}");
        assert_eq!(read(browser, &path).await.refusal(), "401 login_required", "{why} {path}");
        assert_eq!(write(browser, collection, why).await.refusal(), "401 login_required", "{why} {path}");
    }
    assert_eq!(read(browser, "/__service/config").await.refusal(), "401 login_required", "{why}");
}

#[tokio::test]
async fn files_and_records_are_accessible_only_during_a_session() {
    let (t, mail) = service().await;
    desk(&t).await;
    let bob = Browser::new(&t);
    assert_no_access(&bob, "not signed in").await;
    bob.sign_in(&mail, "bob@example.org").await;
    assert_no_access(&bob, "signed in on the central host alone").await;
    let add = json!({"email": "bob@example.org", "role": "viewer"});
    assert_eq!(t.root().post("/api/workspaces/default/members", &add).await.status, 201);
    bob.enter(DESK).await;
    assert_access(&bob, "a member").await;

    // Signed out in the app: a copy of the cookie opens nothing.
    let copy = bob.cookie(DESK, COOKIE).unwrap();
    bob.send("POST", &format!("{DESK}/__service/auth/logout"), &[("origin", DESK)], "").await.expect(204);
    bob.set_cookie(DESK, COOKIE, &copy);
    assert_no_access(&bob, "signed out of the app").await;

    // The user has consented before.
    let again = async || {
        let callback = bob.callback(DESK).await;
        assert_eq!(bob.open(&callback).await.status, 303);
    };
    again().await;
    assert_access(&bob, "signed in again").await;
    assert_eq!(bob.post("/api/auth/logout", &json!({})).await.status, 204);
    assert_no_access(&bob, "signed out on the central host").await;

    bob.sign_in(&mail, "bob@example.org").await;
    again().await;
    assert_access(&bob, "signed in a third time").await;
    let member = format!("/api/workspaces/default/members/{}", user(&t, "bob@example.org").await);
    assert_eq!(t.root().send("DELETE", &member, &[], "").await.status, 204);
    assert_no_access(&bob, "removed from the workspace").await;
    let bearer = format!("Bearer {BOOTSTRAP}");
    let answer = bob.send("GET", &format!("{DESK}/app.js"), &[("authorization", &bearer)], "").await;
    assert_eq!(answer.refusal(), "401 login_required", "a token gives no access to an app");
}

#[tokio::test]
async fn members_have_private_records_and_owners_see_who_started_runs() {
    let (t, mail) = service().await;
    let token = t.root();
    let workflow = t.workflow().graph(graphs::reply("hi")).create().await;
    let manifest = json!({
        "bindings": {"hello": {"workflow": workflow.id, "version": 1, "access_mode": "authenticated"}},
        "collections": {"mine": {"kind": "user", "capabilities": {"anonymous": [], "member": ["read", "create"]}}},
    });
    t.app("desk").for_members().manifest(&manifest).publish().await;
    let ada = Browser::new(&t);
    ada.sign_in(&mail, ADA).await;
    ada.enter(DESK).await;
    let bob = Browser::new(&t);
    bob.sign_in(&mail, "bob@example.org").await;
    let add = json!({"email": "bob@example.org", "role": "viewer"});
    assert_eq!(token.post("/api/workspaces/default/members", &add).await.status, 201);
    bob.enter(DESK).await;
    let made = write(&ada, "mine", "of Ada").await.expect(201);
    let at = format!("/__service/data/mine/{}", made.value()["id"].as_str().unwrap());
    assert_eq!(read(&ada, &at).await.status, 200);
    assert_eq!(read(&bob, &at).await.refusal(), "404 not_found");
    assert_eq!(read(&bob, "/__service/data/mine").await.value()["items"], json!([]));

    let headers = [JSON, ("origin", DESK), ("idempotency-key", "k")];
    let url = format!("{DESK}/__service/workflows/hello/runs");
    let handle = ada.send("POST", &url, &headers, r#"{"message": "hi"}"#).await.expect(202).member("handle");
    let run = format!("/__service/runs/{handle}");
    assert_eq!(read(&ada, &run).await.status, 200);
    assert_eq!(read(&bob, &run).await.refusal(), "404 not_found", "the run of another member");
    let listed = token.get("/api/apps/desk/runs").await.value();
    let shown = &listed["data"][0];
    assert_eq!((&shown["visitor"], &shown["handle_prefix"]), (&json!("member"), &json!(handle[..12])));
}
