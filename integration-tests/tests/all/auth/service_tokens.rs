//! Service tokens over HTTP.

use std::time::Duration;

use chrono::DateTime;
use integration_tests::{AnswerExt, JSON, TestService};
use serde_json::{Value, json};

const TOKENS: &str = "/api/admin/service-tokens";
const LIST: &str = "/api/workflows";

async fn service() -> TestService {
    TestService::builder().with_bootstrap_token().start().await
}

fn path(token: &Value) -> String {
    format!("{TOKENS}/{}", token["id"].as_str().unwrap())
}

fn secret(token: &Value) -> &str {
    token["secret"].as_str().unwrap()
}

#[tokio::test]
async fn a_token_is_created_shown_once_and_stored_as_a_digest() {
    let t = service().await;
    let body = json!({"name": "ci", "scopes": ["workflows:read", "workflows:read"], "workspaces": ["default", "gone"], "expires_in": 3600});
    let made = t.root().post(TOKENS, &body).await.expect(201).value();
    assert_eq!(made["scopes"], json!(["workflows:read"]), "duplicate scopes are removed");
    assert_eq!(made["workspaces"], json!(["default", "gone"]), "an unknown workspace matches nothing");
    let members = ["name", "status", "created_by"].map(|name| made[name].as_str().unwrap().to_owned());
    assert_eq!(members, ["ci", "active", "bootstrap"]);
    for unset in ["last_used", "revoked", "revoked_reason"] {
        assert!(made.as_object().unwrap().contains_key(unset) && made[unset].is_null(), "{unset}");
    }
    let time = |name: &str| DateTime::parse_from_rfc3339(made[name].as_str().unwrap()).unwrap();
    assert_eq!((time("expires") - time("issued")).num_seconds(), 3600);
    assert!(secret(&made).starts_with(&format!("svc_{}_", made["id"].as_str().unwrap().replace('-', ""))));
    assert_eq!(t.bearer(secret(&made)).get(LIST).await.status, 200);
    let record = t.root().get(&path(&made)).await.value();
    assert_eq!(record.get("secret"), None);
    assert!(record["last_used"].is_string());
    let list = t.root().get(TOKENS).await.value();
    assert_eq!(list["data"], json!([record]), "the bootstrap token is not listed");
    let tables = "SELECT string_agg(to_jsonb(s)::text, '') || (SELECT string_agg(to_jsonb(t)::text, '') FROM service_tokens t) || (SELECT string_agg(to_jsonb(i)::text, '') FROM idempotency_keys i) FROM service_token_secrets s";
    let key = [("idempotency-key", "a-key"), JSON];
    let again = t.root().send("POST", TOKENS, &key, &body.to_string()).await;
    let replayed = t.root().send("POST", TOKENS, &key, &body.to_string()).await;
    assert_eq!(again.value(), replayed.value(), "a lost response is replayed with its secret");
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    let stored = t.scalar(tables).await;
    for value in [&made, &again.value()] {
        // The random part after the id; its characters include underscores.
        let random = secret(value)[37..].to_owned();
        assert!(!stored.contains(&random[..20]), "a secret is stored");
    }
}

#[tokio::test]
async fn all_problems_of_a_token_request_are_reported_together() {
    let t = service().await;
    let bad = json!({"name": "x".repeat(201), "scopes": ["workflows:reed", 3], "expires_in": 0, "workspaces": [""], "colour": 1});
    let answer = t.root().post(TOKENS, &bad).await.expect(422);
    assert_eq!(
        answer.problems(),
        [
            "/name length",
            "/scopes/1 type",
            "/scopes/0 unknown_scope",
            "/workspaces/0 format",
            "/expires_in range",
            "/colour unknown_field"
        ]
    );
    let both = json!({"scopes": [], "expires_in": 1, "expires_in_seconds": 1});
    assert_eq!(t.root().post(TOKENS, &both).await.problems(), ["/expires_in_seconds repeated"]);
    assert_eq!(t.root().post(TOKENS, &json!({})).await.problems(), ["/scopes required"]);
    for alias in
        [json!({"scopes": [], "workspace_ids": ["default"]}), json!({"scopes": [], "expires_in_seconds": 5})]
    {
        assert_eq!(t.root().post(TOKENS, &alias).await.status, 201, "{alias}");
    }
}

#[tokio::test]
async fn a_token_expires_on_the_second() {
    let t = TestService::builder().with_bootstrap_token().manual_clock().start().await;
    let made = t.root().post(TOKENS, &json!({"scopes": ["workflows:read"], "expires_in": 60})).await.value();
    let bearer = t.bearer(secret(&made));
    t.advance(Duration::from_secs(59));
    assert_eq!(bearer.get(LIST).await.status, 200);
    t.advance(Duration::from_secs(1));
    assert_eq!(bearer.get(LIST).await.refusal(), "401 auth.token_expired");
    assert_eq!(t.root().get(&path(&made)).await.value()["status"], "expired");
    let by_status = async |status: &str| {
        t.root().get(&format!("{TOKENS}?status={status}")).await.value()["data"].as_array().unwrap().len()
    };
    assert_eq!(
        (by_status("active").await, by_status("expired").await, by_status("revoked").await),
        (0, 1, 0)
    );
    assert_eq!(t.root().get(&format!("{TOKENS}?status=gone")).await.problems(), ["/status choice"]);
    let rotated = t.root().post(&format!("{}/rotate", path(&made)), &json!({})).await;
    assert_eq!(rotated.refusal(), "409 service_token.not_active");
}

#[tokio::test]
async fn token_use_is_recorded_at_most_once_a_minute() {
    let t = TestService::builder().with_bootstrap_token().manual_clock().start().await;
    let made = t.root().make_token(&["workflows:read"], &[]).await;
    let noted = async || {
        t.bearer(secret(&made)).get(LIST).await;
        t.scalar("SELECT last_used_at FROM service_tokens").await
    };
    let first = noted().await;
    t.advance(Duration::from_secs(59));
    assert_eq!(noted().await, first);
    t.advance(Duration::from_secs(1));
    assert_ne!(noted().await, first);
}

#[tokio::test]
async fn a_revoked_token_is_rejected_immediately() {
    let t = service().await;
    let made = t.root().make_token(&["workflows:read"], &[]).await;
    let revoke = format!("{}/revoke", path(&made));
    for (body, problem) in [(json!({}), "/reason required"), (json!({"reason": " "}), "/reason length")] {
        assert_eq!(t.root().post(&revoke, &body).await.problems(), [problem]);
    }
    let answer = t.root().post(&revoke, &json!({"reason": "leaked"})).await;
    assert_eq!((answer.status, answer.value()["status"].as_str()), (200, Some("revoked")));
    assert_eq!(answer.value()["revoked_reason"], "leaked");
    assert_eq!(t.bearer(secret(&made)).get(LIST).await.refusal(), "401 auth.invalid_token");
    let again = t.root().post(&revoke, &json!({"reason": "another"})).await;
    assert_eq!(again.value(), answer.value(), "the first reason is kept");
    let delete = t.root().json("DELETE", &path(&made), &json!({"reason": "once more"})).await;
    assert_eq!((delete.status, delete.body.len()), (204, 0));
    for unknown in [format!("{TOKENS}/00000000-0000-7000-8000-000000000000"), format!("{TOKENS}/x")] {
        assert_eq!(t.root().get(&unknown).await.refusal(), "404 service_token.not_found");
    }
}

#[tokio::test]
async fn a_rotated_secret_stays_valid_for_the_requested_overlap() {
    let t = TestService::builder().with_bootstrap_token().manual_clock().start().await;
    let made = t.root().make_token(&["workflows:read"], &[]).await;
    let rotate = format!("{}/rotate", path(&made));
    let second = t.root().post(&rotate, &json!({"overlap_seconds": 60})).await.expect(200).value();
    assert_eq!(second["id"], made["id"]);
    let status = async |token: &Value| t.bearer(secret(token)).get(LIST).await.refusal();
    assert_eq!((status(&made).await, status(&second).await), ("200".to_owned(), "200".to_owned()));
    t.advance(Duration::from_secs(60));
    assert_eq!(status(&made).await, "401 auth.token_expired");
    let third = t.root().send("POST", &rotate, &[], "").await.value();
    assert_eq!(status(&second).await, "401 auth.token_expired", "no overlap unless requested");
    assert_eq!(status(&third).await, "200");
    let bad = t.root().post(&rotate, &json!({"overlap_seconds": 604_801})).await;
    assert_eq!(bad.problems(), ["/overlap_seconds range"]);
}

#[tokio::test]
async fn tokens_cannot_grant_or_show_more_than_the_caller_has() {
    let t = service().await;
    let powerful = t.root().make_token(&["workflows:read", "vault:write"], &[]).await;
    let clerk = t.root().token(&["admin:tokens:write", "admin:tokens:read", "workflows:read"], &[]).await;
    let clerk = t.bearer(&clerk);
    let more = clerk.post(TOKENS, &json!({"scopes": ["workflows:read", "vault:write", "vault:read"]})).await;
    assert_eq!(
        (more.status, more.message()),
        (403, "Missing required scopes: vault:read, vault:write".to_owned())
    );
    assert_eq!(clerk.post(&format!("{}/rotate", path(&powerful)), &json!({})).await.status, 403);
    let local =
        t.root().token(&["admin:tokens:write", "admin:tokens:read", "workflows:read"], &["default"]).await;
    let local = t.bearer(&local);
    for workspaces in [json!([]), json!(["other"]), json!(["default", "other"])] {
        let answer =
            local.post(TOKENS, &json!({"scopes": ["workflows:read"], "workspaces": workspaces})).await;
        assert_eq!(answer.refusal(), "403 auth.workspace_forbidden", "{workspaces}");
    }
    let mine = local.make_token(&["workflows:read"], &["default"]).await;
    assert_eq!(local.get(&path(&powerful)).await.refusal(), "403 auth.workspace_forbidden");
    let seen = local.get(&format!("{TOKENS}?limit=1")).await.value();
    assert_eq!(seen["data"][0]["id"], mine["id"]);
    let cursor = seen["next_cursor"].as_str().unwrap();
    let rest = local.get(&format!("{TOKENS}?limit=1&cursor={cursor}")).await.value();
    assert_eq!(rest["data"].as_array().unwrap().len(), 1, "the caller's own token");
    assert_eq!(rest["next_cursor"], Value::Null);
}
