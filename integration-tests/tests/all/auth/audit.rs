//! The audit trail over HTTP.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

const AUDIT: &str = "/api/admin/audit";

fn lines(answer: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let line = |row: &Value| {
        let (actor, target) = (&row["actor"]["kind"], &row["target"]["kind"]);
        format!(
            "{} {} {} {} {}",
            text(actor),
            text(&row["action"]),
            text(target),
            text(&row["outcome"]),
            text(&row["reason"])
        )
    };
    answer["data"].as_array().unwrap().iter().map(line).collect()
}

/// Every administrator operation, allowed and denied.
#[tokio::test]
async fn allowed_and_denied_admin_operations_are_recorded() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let root = t.root();
    let workflow = t.workflow().create().await;
    let token = root.make_token(&["workflows:read"], &[]).await;
    let path = format!("/api/admin/service-tokens/{}", token["id"].as_str().unwrap());
    let publish = workflow.path("/publish");
    let operations: [(&str, String, Value); 5] = [
        ("POST", "/api/admin/service-tokens".to_owned(), json!({"scopes": ["workflows:read"]})),
        ("POST", format!("{path}/rotate"), json!({})),
        ("POST", publish.clone(), json!({})),
        ("POST", format!("{publish}/revoke"), json!({})),
        ("POST", format!("{path}/revoke"), json!({"reason": "over"})),
    ];
    let without_scopes =
        t.bearer(token["secret"].as_str().unwrap()).post("/api/admin/service-tokens", &json!({})).await;
    assert_eq!(without_scopes.status, 403);
    let weak = root.token(&["workflows:read"], &[]).await;
    for (method, path, body) in &operations {
        assert_eq!(t.bearer(&weak).json(method, path, body).await.status, 403, "{path}");
    }
    for (method, path, body) in &operations {
        assert!(root.json(method, path, body).await.is_success(), "{path}");
    }
    assert_eq!(t.bearer("wrong").get(AUDIT).await.status, 401);
    let all = root.get(AUDIT).await.value();
    assert_eq!(
        lines(&all),
        [
            "anonymous auth.failed - denied auth.invalid_token",
            "bootstrap service_token.revoked service_token success over",
            "bootstrap workflow.unpublished workflow success -",
            "bootstrap workflow.published workflow success -",
            "bootstrap service_token.rotated service_token success -",
            "bootstrap service_token.created service_token success -",
            "service_token auth.denied route denied auth.missing_scope",
            "service_token auth.denied route denied auth.missing_scope",
            "service_token auth.denied route denied auth.missing_scope",
            "service_token auth.denied route denied auth.missing_scope",
            "service_token auth.denied route denied auth.missing_scope",
            "bootstrap service_token.created service_token success -",
            "service_token auth.denied route denied auth.missing_scope",
            "bootstrap service_token.created service_token success -",
        ]
    );
    let first = &all["data"][0];
    assert_eq!(first["address"], "127.0.0.1");
    assert!(first["request_id"].is_string() && first["at"].as_str().unwrap().ends_with('Z'));
    let denied = root.get(&format!("{AUDIT}?outcome=denied&action=auth.denied&limit=2")).await.value();
    assert_eq!(denied["data"].as_array().unwrap().len(), 2);
    assert_eq!(denied["data"][0]["target"]["id"], "POST /api/admin/service-tokens/{id}/revoke");
    assert!(denied["next_cursor"].is_string());
    let by = format!("{AUDIT}?actor={}", token["id"].as_str().unwrap());
    assert_eq!(lines(&root.get(&by).await.value()).len(), 1);
    assert_eq!(root.get(&format!("{AUDIT}?outcome=maybe")).await.problems(), ["/outcome choice"]);
}

#[tokio::test]
async fn a_failed_change_leaves_no_row_and_reading_requires_its_scope() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let workflow = t.workflow().create().await;
    t.root().json("DELETE", &workflow.path(""), &json!({})).await;
    let refused = t.root().post(&workflow.path("/publish"), &json!({})).await;
    assert_eq!(refused.refusal(), "409 workflow.archived");
    let rows = "SELECT count(*) FROM audit_log WHERE action = 'workflow.published'";
    assert_eq!(t.scalar(rows).await, "0");
    let weak = t.root().token(&["admin:tokens:write"], &[]).await;
    assert_eq!(t.bearer(&weak).get(AUDIT).await.refusal(), "403 auth.missing_scope");
    // A caller restricted to workspaces sees only their events.
    let local = t.root().token(&["admin:tokens:read"], &["default"]).await;
    let other = t.workflow().published().create().await;
    let seen = t.bearer(&local).get(AUDIT).await.value();
    assert_eq!(
        lines(&seen),
        [
            "bootstrap workflow.published workflow success -",
            // The token's own creation, because it is restricted to this workspace.
            "bootstrap service_token.created service_token success -",
            "bootstrap workflow.archived workflow success -",
        ]
    );
    assert_eq!(seen["data"][0]["target"]["id"].as_str(), Some(other.id.as_str()));
}
