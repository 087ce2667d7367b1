//! The order of refusals, and what they reveal.

use integration_tests::{AnswerExt, MailServer, TestService};
use serde_json::json;

use super::support::{other_workspace, sign_in};

#[tokio::test]
async fn scope_path_workspace_and_request_are_checked_in_this_order() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    other_workspace(&t).await;
    let workflow = t.workflow().create().await;
    let (here, nowhere) = (workflow.id.as_str(), "00000000-0000-7000-8000-000000000000");
    let weak = t.root().token(&["workflows:read"], &[]).await;
    let stranger = t.root().token(&["workflows:write"], &["other"]).await;
    let right = t.root().token(&["workflows:write"], &["default"]).await;
    for (token, id, expected) in [
        (&weak, nowhere, "403 auth.missing_scope"),
        (&weak, here, "403 auth.missing_scope"),
        (&stranger, nowhere, "404 workflow.not_found"),
        (&stranger, here, "403 auth.workspace_forbidden"),
        (&right, nowhere, "404 workflow.not_found"),
        (&right, here, "422 request.invalid"),
    ] {
        let answer = t.bearer(token).post(&format!("/api/workflows/{id}/publish"), &json!({"x": 1})).await;
        assert_eq!(answer.refusal(), expected);
    }
}

/// Workspace members: editors write, but do not change what the public sees.
#[tokio::test]
async fn editors_cannot_publish_or_archive_public_workflows() {
    let mail = MailServer::start().await;
    let t = TestService::builder().with_bootstrap_token().set("SERVICE_SMTP_URL", mail.url()).start().await;
    let editor = json!({"email": "bob@example.org", "role": "editor"});
    assert_eq!(t.root().post("/api/workspaces/default/members", &editor).await.status, 201);
    let bob = sign_in(&t, &mail, "bob@example.org").await;
    let bob = t.bearer(&bob);
    let public = t.workflow().published().create().await;
    let path = public.path("");
    for (method, path) in [
        ("POST", format!("{path}/publish")),
        ("POST", format!("{path}/publish/revoke")),
        ("DELETE", path.clone()),
    ] {
        let refused = bob.json(method, &path, &json!({"x": 1})).await;
        assert_eq!(
            refused.refusal(),
            "403 auth.missing_scope",
            "{method} {path}, before the request is validated"
        );
        assert!(refused.message().contains("admin or owner"), "{}", refused.message());
    }
    assert_eq!(t.get(&format!("{path}/public")).await.status, 200, "still public");
    let private = t.workflow().create().await;
    assert_eq!(bob.json("DELETE", &private.path(""), &json!({})).await.status, 200);
    let archived = t.root().get("/api/admin/audit?action=workflow.archived").await.value();
    let rows = archived["data"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["target"]["id"]), (1, &json!(private.id)));
    assert_eq!(rows[0]["actor"]["kind"], "user");
    assert!(rows[0]["workspace_id"].is_string());
}

/// Requests without a change leave no row; of two identical concurrent requests, one makes the change.
#[tokio::test]
async fn publications_are_recorded_once_per_change() {
    let t = TestService::builder().with_bootstrap_token().start().await;
    let workflow = t.workflow().create().await;
    let (root, path) = (t.root(), workflow.path("/publish"));
    let noted = async |action: &str| {
        let rows = root.get(&format!("/api/admin/audit?action={action}")).await.value();
        rows["data"].as_array().unwrap().len()
    };
    assert_eq!(root.post(&path, &json!({})).await.status, 201);
    let first = root.get(&workflow.path("")).await.value();
    assert_eq!(root.post(&path, &json!({})).await.status, 200);
    assert_eq!(root.post(&path, &json!({"require_login": false})).await.status, 200);
    assert_eq!(noted("workflow.published").await, 1, "no change was recorded");
    assert_eq!(root.get(&workflow.path("")).await.value(), first);
    assert_eq!(root.post(&path, &json!({"require_login": true})).await.status, 200);
    assert_eq!(noted("workflow.published").await, 2);
    let (revoke, nothing) = (format!("{path}/revoke"), json!({}));
    let all = (0..8).map(|_| root.post(&revoke, &nothing));
    let all = futures_util::future::join_all(all).await;
    assert!(all.iter().all(|answer| answer.status == 200));
    assert_eq!(noted("workflow.unpublished").await, 1);
}
