//! Apps: creation, lists, changes and deletion; their aliases; permissions.

use std::time::Duration;

use integration_tests::{AnswerExt, Bearer, JSON, MailServer, TestService};
use serde_json::{Value, json};

use crate::auth::support::sign_in;

const APPS: &str = "/api/apps";
const DAY: Duration = Duration::from_secs(86_400);

async fn create(by: &Bearer<'_>, alias: &str) -> Value {
    by.post(APPS, &json!({"alias": alias, "name": "An app"})).await.expect(201).value()
}

async fn delete(by: &Bearer<'_>, app: &str) -> u16 {
    by.send("DELETE", &format!("{APPS}/{app}"), &[], "").await.status
}

/// Audit trail actions on apps, newest first.
async fn audited(t: &TestService) -> Vec<String> {
    let trail = t.root().get("/api/admin/audit?limit=200").await.value();
    let rows = trail["data"].as_array().unwrap().iter();
    let of_apps = rows.filter(|row| row["target"]["kind"] == "app");
    of_apps.map(|row| row["action"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_app_is_created_listed_changed_and_deleted() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let made = create(&root, "first").await;
    let port = t.address().port();
    assert_eq!(
        (&made["alias"], &made["name"], &made["access"]),
        (&json!("first"), &json!("An app"), &json!("members"))
    );
    assert_eq!(made["url"], format!("http://first.apps.localhost:{port}"));
    assert_eq!((&made["active_release"], &made["permission_revision"]), (&Value::Null, &Value::Null));
    let second = json!({"alias": "second", "name": " Second ", "access": "public"});
    let second = root.post(APPS, &second).await.value();
    assert_eq!((&second["name"], &second["access"]), (&json!("Second"), &json!("public")));
    let id = made["id"].as_str().unwrap();
    for name in [id, "first", &id.to_ascii_uppercase()] {
        assert_eq!(root.get(&format!("{APPS}/{name}")).await.value(), made, "{name}");
    }
    let page = root.get(&format!("{APPS}?limit=1")).await.value();
    assert_eq!(page["data"], json!([second]));
    let next = page["next_cursor"].as_str().unwrap();
    let page = root.get(&format!("{APPS}?limit=1&cursor={next}")).await.value();
    assert_eq!(page, json!({"data": [made], "next_cursor": null}));
    let patch = async |body: Value| root.json("PATCH", &format!("{APPS}/first"), &body).await;
    let changed = patch(json!({"name": "Renamed", "access": "public"})).await.value();
    assert_eq!((&changed["name"], &changed["access"]), (&json!("Renamed"), &json!("public")));
    assert_ne!(changed["updated_at"], made["updated_at"]);
    assert_eq!(patch(json!({"name": "Renamed"})).await.status, 200);
    assert_eq!(patch(json!({})).await.refusal(), "422 request.invalid");
    let twice = r#"{"name": "Once", "name": "Twice"}"#;
    let refused = root.send("PATCH", &format!("{APPS}/first"), &[JSON], twice).await;
    assert_eq!(refused.refusal(), "400 request.invalid_json");
    let twice = r#"{"alias": "third", "name": "Third", "alias": "third"}"#;
    assert_eq!(root.send("POST", APPS, &[JSON], twice).await.refusal(), "400 request.invalid_json");
    assert_eq!(patch(json!({"alias": "other"})).await.value()["detail"]["errors"][0]["code"], "unchangeable");
    assert_eq!(delete(&root, "first").await, 204);
    assert_eq!(delete(&root, "first").await, 404);
    assert_eq!(patch(json!({"name": "x"})).await.refusal(), "404 app_not_found");
    assert_eq!(root.get(&format!("{APPS}/{id}")).await.refusal(), "404 app_not_found");
    assert_eq!(root.get(&format!("{APPS}/a%00b")).await.refusal(), "404 app_not_found");
    assert_eq!(
        audited(&t).await,
        ["app.deleted", "app.access_changed", "app.updated", "app.created", "app.created"]
    );
}

#[tokio::test]
async fn aliases_must_be_host_labels() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let (longest, too_long) = ("a".repeat(63), "a".repeat(64));
    for alias in [longest.as_str(), "0", "a--b", "api", "www-2"] {
        create(&t.root(), alias).await;
    }
    let id = "0190b0a0-0000-7000-8000-000000000000";
    for alias in [&too_long, "", "-a", "a-", "Desk", "a.b", "a_b", "münchen", "www", id, "a b", "a\u{0}"] {
        let refused = t.root().post(APPS, &json!({"alias": alias, "name": "x"})).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{alias}");
        let problem = &refused.value()["detail"]["errors"][0];
        assert_eq!((&problem["pointer"], &problem["code"]), (&json!("/alias"), &json!("format")), "{alias}");
    }
    // An unpublished app gets the same response as an unknown one.
    let headers = [("host", "api.apps.localhost")];
    let answer = t.raw().await.request("GET", "/", &headers, "").await;
    let unknown = t.raw().await.request("GET", "/", &[("host", "unknown.apps.localhost")], "").await;
    let (answer, unknown) = (answer.whole().await, unknown.whole().await);
    assert_eq!((answer.status, answer.text()), (404, unknown.text()));
}

#[tokio::test]
async fn an_alias_stays_reserved_for_thirty_days_after_deletion() {
    let mut t = TestService::builder().manual_clock().with_bootstrap_token().start().await;
    t.root().post("/api/workspaces", &json!({"slug": "other"})).await.expect(201);
    create(&t.root(), "desk").await;
    let again = json!({"alias": "desk", "name": "x"}).to_string();
    let there = [JSON, ("x-workspace", "other")];
    assert_eq!(t.root().send("POST", APPS, &there, &again).await.refusal(), "409 alias_taken");
    assert_eq!(delete(&t.root(), "desk").await, 204);
    assert_eq!(t.root().send("POST", APPS, &there, &again).await.refusal(), "409 alias_taken");
    t.advance(DAY * 30 - Duration::from_secs(60));
    t.restart().await;
    assert_eq!(t.root().send("POST", APPS, &there, &again).await.refusal(), "409 alias_taken");
    t.advance(Duration::from_secs(60));
    assert_eq!(t.root().send("POST", APPS, &there, &again).await.status, 201);
    // Deleting a workspace deletes its apps, which keep their aliases.
    assert_eq!(t.root().send("DELETE", "/api/workspaces/other", &[], "").await.status, 204);
    assert_eq!(t.root().get(&format!("{APPS}/desk")).await.refusal(), "404 app_not_found");
    assert_eq!(
        t.root().post(APPS, &json!({"alias": "desk", "name": "x"})).await.refusal(),
        "409 alias_taken"
    );
    assert_eq!(audited(&t).await[0], "app.deleted");
}

#[tokio::test]
async fn a_repeated_request_is_replayed() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let body = json!({"alias": "once", "name": "x"}).to_string();
    let keyed = [JSON, ("idempotency-key", "one")];
    let first = t.root().send("POST", APPS, &keyed, &body).await;
    let again = t.root().send("POST", APPS, &keyed, &body).await;
    assert_eq!((first.status, first.text()), (201, again.text()));
    let other = json!({"alias": "other", "name": "x"}).to_string();
    let reused = t.root().send("POST", APPS, &keyed, &other).await;
    assert_eq!(reused.refusal(), "422 idempotency.key_reused");
    let path = format!("{APPS}/once");
    for _ in 0..2 {
        assert_eq!(t.root().send("DELETE", &path, &keyed, "").await.status, 204);
    }
    assert_eq!(audited(&t).await, ["app.deleted", "app.created"]);
}

#[tokio::test]
async fn app_access_depends_on_the_role_and_the_workspace() {
    let mail = MailServer::start().await;
    let t = TestService::builder().with_bootstrap_token().set("SERVICE_SMTP_URL", mail.url()).start().await;
    assert_eq!(t.root().post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    create(&t.root(), "desk").await;
    let path = format!("{APPS}/desk");
    let change = json!({"name": "By a member"});
    let access = json!({"access": "members"});
    for (role, email, may_write) in [
        ("viewer", "vi@example.org", false),
        ("editor", "ed@example.org", false),
        ("admin", "ad@example.org", true),
    ] {
        let invited = json!({"email": email, "role": role});
        assert_eq!(t.root().post("/api/workspaces/default/members", &invited).await.status, 201);
        let token = sign_in(&t, &mail, email).await;
        let member = t.bearer(&token);
        assert_eq!(member.get(&path).await.status, 200, "{role}");
        for body in [&change, &access] {
            let answer = member.json("PATCH", &path, body).await;
            let expected = if may_write { "200" } else { "403 auth.missing_scope" };
            assert_eq!(answer.refusal().trim(), expected, "{role}");
        }
    }
    // Only callers who may publish decide who can open an app.
    let writes = t.root().token(&["apps:read", "apps:write"], &["default"]).await;
    let writes = t.bearer(&writes);
    assert_eq!(writes.json("PATCH", &path, &change).await.status, 200);
    let refused = writes.json("PATCH", &path, &access).await;
    assert_eq!(refused.refusal(), "403 auth.missing_scope");
    assert_eq!(refused.message(), "Missing required scopes: apps:publish");
    let invalid = writes.json("PATCH", &path, &json!({"access": "all"})).await;
    assert_eq!(invalid.refusal(), "403 auth.missing_scope", "before 422");
    let foreign_token = t.root().token(&["apps:read", "apps:write", "apps:publish"], &["other"]).await;
    let foreign_token = t.bearer(&foreign_token);
    assert_eq!(foreign_token.get(&path).await.refusal(), "403 auth.workspace_forbidden");
    assert_eq!(
        foreign_token.json("PATCH", &path, &json!({"x": 1})).await.refusal(),
        "403 auth.workspace_forbidden"
    );
    assert_eq!(delete(&foreign_token, "desk").await, 403);
    assert_eq!(foreign_token.get(&format!("{APPS}/none")).await.refusal(), "404 app_not_found");
    assert_eq!(foreign_token.get(APPS).await.value()["data"], json!([]));
    let headers = [("x-workspace", "other")];
    let answer = t.root().send("GET", &path, &headers, "").await;
    assert_eq!(answer.refusal(), "403 auth.workspace_forbidden");
}
