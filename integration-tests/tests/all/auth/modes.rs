//! The authentication modes of a service.

use integration_tests::{AnswerExt, TestService, until};
use serde_json::json;

use super::support::good_jwt;

const LIST: &str = "/api/workflows";

#[tokio::test]
async fn disabled_mode_ignores_credentials() {
    let t = TestService::builder().set("SERVICE_AUTH_MODE", "disabled").with_bootstrap_token().start().await;
    assert_eq!(t.get(LIST).await.status, 200);
    assert_eq!(t.bearer("nonsense").get(LIST).await.status, 200);
}

#[tokio::test]
async fn optional_mode_checks_presented_credentials() {
    let t = TestService::builder().set("SERVICE_AUTH_MODE", "optional").with_bootstrap_token().start().await;
    assert_eq!(t.get(LIST).await.status, 200);
    assert_eq!(t.bearer("nonsense").get(LIST).await.refusal(), "401 auth.invalid_token");
    let made = t.post("/api/admin/service-tokens", r#"{"scopes": ["vault:read"]}"#).await.expect(201);
    let secret = made.value()["secret"].as_str().unwrap().to_owned();
    assert_eq!(t.bearer(&secret).get(LIST).await.refusal(), "403 auth.missing_scope");
    assert_eq!(made.value()["access_change"], json!(null));
    assert_eq!(t.get(LIST).await.status, 200, "a stored token does not change this mode");
}

#[tokio::test]
async fn required_mode_rejects_anonymous_requests() {
    let t = TestService::builder().set("SERVICE_AUTH_MODE", "required").with_bootstrap_token().start().await;
    assert_eq!(t.get(LIST).await.refusal(), "401 auth.missing_token");
    assert_eq!(t.root().get(LIST).await.status, 200);
}

#[tokio::test]
async fn the_unset_mode_requires_credentials_once_one_is_configured() {
    for (variable, value) in [
        ("SERVICE_AUTH_JWT_SECRET", super::support::SECRET),
        ("SERVICE_AUTH_JWKS_URL", "http://127.0.0.1:9/jwks"),
        ("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", "a-bootstrap-token"),
    ] {
        let t = TestService::builder().set(variable, value).start().await;
        assert_eq!(t.get(LIST).await.refusal(), "401 auth.missing_token", "{variable}");
    }
}

#[tokio::test]
async fn the_first_stored_token_turns_authentication_on_and_the_last_one_off() {
    let t = TestService::start().await;
    assert_eq!(t.get(LIST).await.status, 200);
    // A self-made token is not accepted.
    assert_eq!(t.bearer(&good_jwt("somebody", "workflows:read")).get(LIST).await.status, 401);
    let made = t
        .post(
            "/api/admin/service-tokens",
            r#"{"scopes": ["workflows:read", "admin:tokens:write", "admin:tokens:read"]}"#,
        )
        .await;
    let token = made.value();
    assert_eq!(t.get(LIST).await.refusal(), "401 auth.missing_token");
    let bearer = t.bearer(token["secret"].as_str().unwrap());
    assert_eq!(bearer.get(LIST).await.status, 200);
    for token in [&token["access_change"]["admin_token"], &token] {
        let path = format!("/api/admin/service-tokens/{}", token["id"].as_str().unwrap());
        bearer.json("DELETE", &path, &json!({"reason": "no longer needed"})).await.expect(204);
    }
    until("the service to be open", async || t.get(LIST).await.status == 200).await;
}

#[tokio::test]
async fn the_first_stored_token_reports_the_change_and_adds_an_admin_token() {
    let t = TestService::start().await;
    let made = t.post("/api/admin/service-tokens", r#"{"scopes": ["workflows:read"]}"#).await.value();
    let change = &made["access_change"];
    let message = change["message"].as_str().unwrap();
    assert!(message.contains("authentication is now required"), "{message}");
    // Its creator keeps every permission.
    let admin = t.bearer(change["admin_token"]["secret"].as_str().unwrap());
    let next = admin.make_token(&["workflows:execute", "admin:tokens:read"], &[]).await;
    assert_eq!(next["access_change"], json!(null), "authentication was on");
    let listed = admin.get("/api/admin/service-tokens").await.value();
    let names: Vec<_> = listed["data"].as_array().unwrap().iter().map(|token| &token["name"]).collect();
    assert_eq!(names, [&json!(null), &json!(null), &json!("admin")], "the newest first");
    assert_eq!(t.bearer(made["secret"].as_str().unwrap()).get(LIST).await.status, 200);
}

#[tokio::test]
async fn a_first_token_with_every_scope_adds_no_admin_token() {
    let t = TestService::start().await;
    let body = json!({"scopes": auth::scope::ScopeSet::all().texts()}).to_string();
    let made = t.post("/api/admin/service-tokens", &body).await.value();
    assert_eq!(made["access_change"]["admin_token"], json!(null));
    let admin = t.bearer(made["secret"].as_str().unwrap());
    let listed = admin.get("/api/admin/service-tokens").await.value();
    assert_eq!(listed["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn routes_with_their_own_access_rules_ignore_the_mode() {
    let t = TestService::builder().set("SERVICE_AUTH_MODE", "required").with_bootstrap_token().start().await;
    let workflow = t.workflow().published().create().await;
    for path in [
        "/healthz",
        "/readyz",
        "/api/system/health",
        "/",
        &format!("/chat/{}", workflow.id),
        "/assets/base.css",
    ] {
        assert_eq!(t.get(path).await.status, 200, "{path}");
    }
    assert_eq!(t.get(&workflow.path("/public")).await.status, 200);
    assert_eq!(t.chat(&integration_tests::chat::create(&workflow, "hi")).await.status, 200);
    assert_eq!(t.get("/api/workflow").await.refusal(), "404 request.not_found", "before authentication");
    assert_eq!(t.send("PATCH", LIST, &[], "").await.refusal(), "405 request.method_not_allowed");
}
