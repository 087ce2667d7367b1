//! Workspaces: created, listed, renamed, deleted.

use integration_tests::{AnswerExt, Bearer, JSON, MailServer, TestService};
use serde_json::{Value, json};

use crate::auth::support::sign_in;

const ALL: &str = "/api/workspaces";
const BOTH: [&str; 2] = ["admin:workspaces:read", "admin:workspaces:write"];

async fn slugs(bearer: &Bearer<'_>) -> Vec<String> {
    let list = bearer.get(ALL).await.value();
    let slug = |found: &Value| found["slug"].as_str().unwrap().to_owned();
    list["data"].as_array().unwrap().iter().map(slug).collect()
}

#[tokio::test]
async fn a_workspace_is_created_once_shown_and_renamed() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let made = root.post(ALL, &json!({"slug": "support", "name": "Support"})).await.expect(201).value();
    assert_eq!(
        (&made["slug"], &made["name"], &made["role"]),
        (&json!("support"), &json!("Support"), &json!(null))
    );
    assert_eq!(root.post(ALL, &json!({"slug": "support"})).await.refusal(), "409 workspace.slug_taken");
    assert_eq!(root.post(ALL, &json!({"slug": "sales"})).await.value()["name"], "sales");
    assert_eq!(slugs(&root).await, ["sales", "support", "default"], "the newest first");
    let by_id = format!("{ALL}/{}", made["id"].as_str().unwrap());
    for path in [&by_id, "/api/workspaces/support"] {
        let mut shown = root.get(path).await.value();
        // Its usage is measured separately.
        shown["storage"] = json!(null);
        assert_eq!(shown, made, "{path}");
    }
    let renamed = root.json("PATCH", &by_id, &json!({"name": "Help desk"})).await.value();
    assert_eq!((&renamed["slug"], &renamed["name"]), (&json!("support"), &json!("Help desk")));
    assert_eq!(renamed["training_calls"], "keep");
    for setting in ["drop", "drop", "keep"] {
        let changed = root.json("PATCH", &by_id, &json!({"training_calls": setting})).await.value();
        assert_eq!((&changed["training_calls"], &changed["name"]), (&json!(setting), &json!("Help desk")));
    }
    let audit = root.get("/api/admin/audit?action=workspace.training_calls_set").await.value();
    let reasons: Vec<&Value> =
        audit["data"].as_array().unwrap().iter().map(|entry| &entry["reason"]).collect();
    assert_eq!(reasons, ["keep", "drop"], "a value that stays the same is not audited");
    assert_eq!(root.get(&format!("{ALL}/gone")).await.refusal(), "404 workspace.not_found");
    let near = root.get(&format!("{ALL}/defualt")).await;
    assert_eq!(near.refusal(), "404 workspace.not_found");
    assert_eq!(near.message(), "The workspace 'defualt' was not found; did you mean 'default'?");
    let part = root.get(&format!("{ALL}?limit=2")).await.value();
    let rest = root.get(&format!("{ALL}?limit=2&cursor={}", part["next_cursor"].as_str().unwrap())).await;
    assert_eq!(rest.value()["data"][0]["slug"], "default");
    // Two requests with the same key create one workspace.
    let headers = [("idempotency-key", "k"), JSON];
    let body = json!({"slug": "once"}).to_string();
    let first = root.send("POST", ALL, &headers, &body).await;
    let second = root.send("POST", ALL, &headers, &body).await;
    assert_eq!((first.status, second.status, first.value()), (201, 201, second.value()));
}

#[tokio::test]
async fn bad_requests_are_rejected_with_their_problems() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    for (body, pointers) in [
        (json!({}), vec!["/slug"]),
        (json!({"slug": "Support Team", "name": ""}), vec!["/slug", "/name"]),
        (json!({"slug": "0190b0a0-0000-7000-8000-000000000000"}), vec!["/slug"]),
        (json!({"slug": "a\u{0}"}), vec!["/slug"]),
        (json!({"slug": "a", "owner": "ada"}), vec!["/owner"]),
    ] {
        let refused = root.post(ALL, &body).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{body}");
        let errors = refused.value()["detail"]["errors"].clone();
        let problems: Vec<&str> =
            errors.as_array().unwrap().iter().map(|error| error["pointer"].as_str().unwrap()).collect();
        assert_eq!(problems, pointers, "{body}");
    }
    assert_eq!(slugs(&root).await, ["default"]);
    assert_eq!(root.get(&format!("{ALL}?cursor=x")).await.refusal(), "422 request.invalid");
    for (body, problem) in [
        (json!({}), " required"),
        (json!({"training_calls": "forget"}), "/training_calls type"),
        (json!({"name": ""}), "/name length"),
    ] {
        let refused = root.json("PATCH", "/api/workspaces/default", &body).await;
        assert_eq!(
            (refused.refusal().as_str(), refused.problems().join(", ").as_str()),
            ("422 request.invalid", problem)
        );
    }
}

#[tokio::test]
async fn a_deleted_workspace_deletes_its_workflows_and_reserves_its_slug() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    assert_eq!(root.post(ALL, &json!({"slug": "support"})).await.status, 201);
    let inside = root.token(&["workflows:read", "workflows:write", "workflows:execute"], &["support"]).await;
    let inside = t.bearer(&inside);
    let workflow = inside.post("/api/workflows", &json!({"name": "Desk"})).await.value();
    let path = format!("/api/workflows/{}", workflow["id"].as_str().unwrap());
    let version = json!({"graph": integration_tests::graphs::reply("hi")});
    assert_eq!(inside.post(&format!("{path}/versions"), &version).await.status, 201);
    assert_eq!(inside.post(&format!("{path}/publish"), &json!({})).await.status, 201);
    assert_eq!(t.get(&format!("{path}/public")).await.status, 200);
    let whole = root.token(&BOTH, &["support"]).await;
    let refused = t.bearer(&whole).json("DELETE", &format!("{ALL}/support"), &json!({})).await;
    assert_eq!(
        refused.refusal(),
        "403 auth.missing_scope",
        "an administrator's token does not own the workspace"
    );
    assert_eq!(
        root.json("DELETE", &format!("{ALL}/default"), &json!({})).await.refusal(),
        "409 workspace.is_default"
    );
    assert_eq!(root.json("DELETE", &format!("{ALL}/support"), &json!({})).await.status, 204);
    assert_eq!(t.get(&format!("{path}/public")).await.status, 404, "chats are closed");
    assert_eq!(inside.get("/api/workflows").await.refusal(), "403 auth.workspace_forbidden");
    assert_eq!(inside.get(&path).await.refusal(), "403 auth.workspace_forbidden");
    assert_eq!(root.get(&path).await.value()["is_archived"], true);
    assert_eq!(
        root.json("DELETE", &format!("{ALL}/support"), &json!({})).await.refusal(),
        "404 workspace.not_found"
    );
    assert_eq!(root.post(ALL, &json!({"slug": "support"})).await.refusal(), "409 workspace.slug_taken");
    assert_eq!(slugs(&root).await, ["default"]);
    let rows = root.get("/api/admin/audit?outcome=success").await.value();
    let actions: Vec<&Value> = rows["data"].as_array().unwrap().iter().map(|row| &row["action"]).collect();
    assert_eq!(actions[0], "workspace.deleted");
    assert!(actions.contains(&&json!("workspace.created")));
}

#[tokio::test]
async fn callers_learn_nothing_about_workspaces_without_access() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    for slug in ["support", "sales"] {
        assert_eq!(root.post(ALL, &json!({"slug": slug})).await.status, 201);
    }
    let inside = root.token(&BOTH, &["support", "gone"]).await;
    let inside = t.bearer(&inside);
    assert_eq!(slugs(&inside).await, ["support"]);
    for slug in ["sales", "gone", "never"] {
        for (method, body) in [("GET", ""), ("DELETE", "{}"), ("PATCH", "{}")] {
            let refused = inside.send(method, &format!("{ALL}/{slug}"), &[JSON], body).await;
            assert_eq!(refused.refusal(), "403 auth.workspace_forbidden", "{method} {slug}");
        }
    }
    assert_eq!(inside.post(ALL, &json!({"slug": "more"})).await.refusal(), "403 auth.workspace_forbidden");
    let elsewhere = inside.send("GET", &format!("{ALL}/support"), &[("x-workspace", "sales")], "").await;
    assert_eq!(elsewhere.refusal(), "403 auth.workspace_forbidden", "the header says another one");
}

#[tokio::test]
async fn the_creator_of_a_workspace_owns_it() {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_SMTP_URL", mail.url())
        .set("SERVICE_OWNER_EMAIL", "ada@example.org")
        .start()
        .await;
    let ada = sign_in(&t, &mail, "ada@example.org").await;
    let ada = t.bearer(&ada);
    let made = ada.post(ALL, &json!({"slug": "own"})).await.value();
    assert_eq!(made["role"], "owner");
    assert_eq!(slugs(&ada).await, ["own", "default"]);
    let stranger = sign_in(&t, &mail, "eve@example.org").await;
    let stranger = t.bearer(&stranger);
    assert_eq!(stranger.post(ALL, &json!({"slug": "eve"})).await.refusal(), "403 auth.missing_scope");
    assert_eq!(stranger.get(ALL).await.refusal(), "403 auth.missing_scope");
    // Owners of one workspace can delete it, but no other.
    assert_eq!(t.root().post(ALL, &json!({"slug": "other"})).await.status, 201);
    assert_eq!(
        ada.json("DELETE", &format!("{ALL}/other"), &json!({})).await.refusal(),
        "403 auth.workspace_forbidden"
    );
    assert_eq!(ada.json("DELETE", &format!("{ALL}/own"), &json!({})).await.status, 204);
    assert_eq!(slugs(&ada).await, ["default"]);
}
