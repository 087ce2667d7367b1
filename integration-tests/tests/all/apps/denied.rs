//! Denied app changes in the audit trail.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

const AUDIT: &str = "/api/admin/audit?outcome=denied&action=auth.denied&limit=100";

/// Target and reason of each row, newest first.
fn rows(trail: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let row = |row: &Value| {
        let target = &row["target"];
        (format!("{} {}", text(&target["kind"]), text(&target["id"])), text(&row["reason"]))
    };
    trail["data"].as_array().unwrap().iter().map(row).collect()
}

#[tokio::test]
async fn denied_app_changes_are_in_the_audit_trail() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let app = root.post("/api/apps", &json!({"alias": "desk", "name": "Desk"})).await.value();
    let id = app["id"].as_str().unwrap();
    let token = async |scopes: &[&str], workspace: &str| root.token(scopes, &[workspace]).await;
    let reads = token(&["apps:read"], "default").await;
    let writes = token(&["apps:read", "apps:write"], "default").await;
    let foreign_token = token(&["apps:read", "apps:write"], "other").await;
    let stranger = token(&["workflows:read"], "other").await;
    let refused = async |token: &str, method: &str, path: &str, body: Value| {
        t.bearer(token).json(method, path, &body).await.refusal()
    };
    // Denials for the scope, by alias and by id; the administrator; the workspace; and a caller with neither.
    let scope = "403 auth.missing_scope";
    assert_eq!(refused(&reads, "PATCH", "/api/apps/desk", json!({"name": "x"})).await, scope);
    assert_eq!(refused(&reads, "POST", &format!("/api/apps/{id}/rollback"), json!({})).await, scope);
    assert_eq!(refused(&reads, "POST", "/api/apps/desk/deployments", json!({})).await, scope);
    assert_eq!(refused(&writes, "PATCH", "/api/apps/desk", json!({"access": "members"})).await, scope);
    let closed = "403 auth.workspace_forbidden";
    assert_eq!(refused(&foreign_token, "DELETE", "/api/apps/desk", json!({})).await, closed);
    assert_eq!(refused(&stranger, "DELETE", "/api/apps/desk/bindings/ask", json!({})).await, scope);
    let auditor = token(&["admin:tokens:read"], "default").await;
    let app = format!("app {id}");
    let row = |reason: &str| (app.clone(), reason.to_owned());
    let expected = [
        row("auth.missing_scope: DELETE /api/apps/{app}/bindings/{binding}"),
        row("auth.workspace_forbidden: DELETE /api/apps/{app}"),
        row("auth.missing_scope: PATCH /api/apps/{app}"),
        row("auth.missing_scope: POST /api/apps/{app}/deployments"),
        row("auth.missing_scope: POST /api/apps/{app}/rollback"),
        row("auth.missing_scope: PATCH /api/apps/{app}"),
    ];
    assert_eq!(rows(&t.bearer(&auditor).get(AUDIT).await.value()), expected);

    // Texts that name no app are not recorded, and neither is the path.
    for name in ["my-secret-plan", "0198c310-2b40-7e11-8a52-6d5c4b3a2918", "a%00b", "%3Cscript%3E"] {
        assert_eq!(refused(&stranger, "DELETE", &format!("/api/apps/{name}"), json!({})).await, scope);
    }
    let trail = root.get(AUDIT).await;
    let newest: Vec<_> = rows(&trail.value()).into_iter().take(4).collect();
    let route = ("route DELETE /api/apps/{app}".to_owned(), "auth.missing_scope".to_owned());
    assert_eq!(newest, vec![route; 4]);
    let text = trail.text();
    assert!(!text.contains("my-secret") && !text.contains("0198c310-2b40") && !text.contains("script"));
    assert_eq!(
        rows(&t.bearer(&auditor).get(AUDIT).await.value()),
        expected,
        "only rows of the caller's workspace"
    );
}
