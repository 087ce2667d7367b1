//! The workspace of a request, and access to it.

use integration_tests::{AnswerExt, JSON, MailServer, TestService};
use serde_json::{Value, json};

use super::support::{other_workspace, sign_in};

const LIST: &str = "/api/workflows";
const ALL: [&str; 3] = ["workflows:read", "workflows:write", "workflows:execute"];

#[tokio::test]
async fn a_token_stays_in_its_workspaces() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    other_workspace(&t).await;
    let here = t.workflow().named("Here").create().await;
    let stranger = t.root().token(&ALL, &["other"]).await;
    let stranger = t.bearer(&stranger);
    let there = stranger.post(LIST, &json!({"name": "There"})).await.value();
    let there = there["id"].as_str().unwrap();
    let names = async |bearer: &integration_tests::Bearer<'_>| -> Vec<String> {
        let list = bearer.get(LIST).await.value();
        list.as_array().unwrap().iter().map(|found| found["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&stranger).await, ["There"]);
    assert_eq!(names(&t.root()).await, ["Here"], "the default workspace");
    assert_eq!(stranger.get(&format!("{LIST}/{}", here.id)).await.refusal(), "403 auth.workspace_forbidden");
    assert_eq!(stranger.get(&format!("{LIST}/{}", here.handle)).await.refusal(), "404 workflow.not_found");
    assert_eq!(t.root().get(&format!("{LIST}/{there}")).await.status, 200, "no header is needed");
    let run = t
        .root()
        .post(&format!("{LIST}/{}/runs?wait=10", here.id), &json!({"inputs": {"message": "hi"}}))
        .await
        .value();
    let run = run["id"].as_str().unwrap();
    for path in
        [format!("/api/runs/{run}"), format!("/api/runs/{run}/trace"), format!("/api/runs/{run}/events")]
    {
        assert_eq!(stranger.get(&path).await.refusal(), "403 auth.workspace_forbidden", "{path}");
        assert_eq!(t.root().get(&path).await.status, 200, "{path}");
    }
    let unknown = format!("{LIST}/00000000-0000-7000-8000-000000000000");
    assert_eq!(stranger.get(&unknown).await.refusal(), "404 workflow.not_found");
}

#[tokio::test]
async fn the_header_selects_the_workspace() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    other_workspace(&t).await;
    let here = t.workflow().create().await;
    let at = async |token: &str, slug: &str, path: &str| {
        t.bearer(token).send("GET", path, &[("x-workspace", slug)], "").await.refusal()
    };
    let both = t.root().token(&ALL, &["default", "other"]).await;
    assert_eq!(t.bearer(&both).get(LIST).await.refusal(), "400 workspace.required");
    assert_eq!(at(&both, "other", LIST).await, "200");
    assert_eq!(at(&both, "default", LIST).await, "200");
    for closed in ["third", "", "DEFAULT"] {
        assert_eq!(at(&both, closed, LIST).await, "403 auth.workspace_forbidden", "{closed:?}");
    }
    let one = t.root().token(&ALL, &["default"]).await;
    assert_eq!(at(&one, "other", LIST).await, "403 auth.workspace_forbidden");
    let none = t.root().token(&ALL, &["gone"]).await;
    assert_eq!(t.bearer(&none).get(LIST).await.refusal(), "403 auth.workspace_forbidden");
    let by_handle = format!("{LIST}/{}", here.handle);
    assert_eq!(t.bearer(&both).get(&by_handle).await.status, 200, "only one workspace has it");
    assert_eq!(at(&both, "other", &by_handle).await, "404 workflow.not_found");
    let same = json!({"name": "Same", "handle": here.handle});
    let there = t.bearer(&both);
    let headers = [("x-workspace", "other"), JSON];
    assert_eq!(there.send("POST", LIST, &headers, &same.to_string()).await.status, 201);
    assert_eq!(there.get(&by_handle).await.refusal(), "400 workspace.required", "now two have it");
    let defaults = t.root().get(&by_handle).await.value();
    assert_eq!(
        defaults["id"].as_str(),
        Some(here.id.as_str()),
        "unrestricted callers use the default workspace"
    );
    let path = format!("{LIST}/{}", here.id);
    assert_eq!(
        at(&both, "other", &path).await,
        "403 auth.workspace_forbidden",
        "the workflow is in another workspace"
    );
    assert_eq!(at(&both, "default", &path).await, "200");
    assert_eq!(t.bearer(&both).get(&path).await.status, 200, "the workflow's own workspace applies");
}

/// A role in one workspace gives no rights in another.
#[tokio::test]
async fn an_administrator_of_one_workspace_has_no_rights_in_another() {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_SMTP_URL", mail.url())
        .set("SERVICE_OWNER_EMAIL", "bob@example.org")
        .start()
        .await;
    other_workspace(&t).await;
    let root = t.root();
    let there = root.make_token(&["workflows:read"], &["other"]).await;
    let here = root.make_token(&["workflows:read"], &["default"]).await;
    let bob = sign_in(&t, &mail, "bob@example.org").await;
    let viewer = json!({"email": "bob@example.org", "role": "viewer"});
    assert_eq!(root.post("/api/workspaces/other/members", &viewer).await.status, 201);
    let bob = t.bearer(&bob);
    let path = |token: &Value| format!("/api/admin/service-tokens/{}", token["id"].as_str().unwrap());
    assert_eq!(bob.get(&path(&here)).await.status, 200, "the owner of default");
    let (reason, token_request) =
        (json!({"reason": "x"}), json!({"scopes": ["workflows:read"], "workspaces": ["other"]}));
    for (method, path, body) in [
        ("GET", path(&there), json!({})),
        ("DELETE", path(&there), reason.clone()),
        ("POST", format!("{}/revoke", path(&there)), reason.clone()),
        ("POST", format!("{}/rotate", path(&there)), json!({})),
        ("POST", "/api/admin/service-tokens".to_owned(), token_request),
    ] {
        assert_eq!(bob.json(method, &path, &body).await.status, 403, "{method} {path}");
    }
    let listed = bob.get("/api/admin/service-tokens").await.value();
    let ids: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|token| &token["id"]).collect();
    assert_eq!(ids, [&here["id"]]);
    // He cannot read events of the other workspace, but those of this one.
    let headers = [("x-workspace", "other"), JSON];
    let made = root.send("POST", LIST, &headers, &json!({"name": "There"}).to_string()).await.value();
    let publish = format!("{LIST}/{}/publish", made["id"].as_str().unwrap());
    assert_eq!(root.post(&publish, &json!({})).await.status, 201);
    assert_eq!(bob.post(&publish, &json!({})).await.refusal(), "403 auth.missing_scope", "a viewer");
    let mine = t.workflow().published().create().await;
    let seen = bob.get("/api/admin/audit?action=workflow.published").await.value();
    let seen: Vec<&Value> = seen["data"].as_array().unwrap().iter().map(|row| &row["target"]["id"]).collect();
    assert_eq!(seen, [&json!(mine.id)]);
}
