//! Sessions: their duration and their end.

use std::time::Duration;

use integration_tests::{AnswerExt, Client};
use serde_json::{Value, json};

use super::{ADA, SESSION, get, me_as, post, refresh, service, service_with, signed_in};

const MINUTE: Duration = Duration::from_secs(60);

async fn is_in(client: &Client) -> bool {
    let answer = get(client, "/api/auth/me").await;
    assert!(answer.status == 200 || answer.refusal() == "401 auth.missing_token", "{}", answer.text());
    answer.status == 200
}

#[tokio::test]
async fn a_session_ends_after_an_idle_hour_or_twelve_hours() {
    let (t, mail) = service().await;
    let (idle, _) = signed_in(&t, &mail, ADA).await;
    let (busy, tokens) = signed_in(&t, &mail, "bob@example.org").await;
    for _ in 0..2 {
        t.advance(30 * MINUTE - Duration::from_secs(1));
        assert!(is_in(&busy).await);
    }
    assert!(is_in(&idle).await, "a second before the hour");
    t.advance(60 * MINUTE);
    assert!(!is_in(&idle).await && !is_in(&busy).await);

    let (busy_again, _) = signed_in(&t, &mail, "carol@example.org").await;
    for _ in 0..14 {
        t.advance(50 * MINUTE);
        assert!(is_in(&busy_again).await);
    }
    t.advance(20 * MINUTE - Duration::from_secs(1));
    assert!(is_in(&busy_again).await, "a second before the half day");
    t.advance(Duration::from_secs(1));
    assert!(!is_in(&busy_again).await);
    // The tokens from the same sign-in last longer.
    assert_eq!(refresh(&busy, &tokens["refresh_token"]).await.status, 200);
}

#[tokio::test]
async fn session_use_is_recorded_once_a_minute() {
    let (t, mail) = service().await;
    let (browser, _) = signed_in(&t, &mail, ADA).await;
    let versions = "SELECT xmin::text || cookie_used_at FROM sign_in_sessions";
    let before = t.scalar(versions).await;
    for _ in 0..5 {
        t.advance(Duration::from_secs(11));
        assert!(is_in(&browser).await);
    }
    assert_eq!(t.scalar(versions).await, before);
    t.advance(Duration::from_secs(5));
    assert!(is_in(&browser).await);
    assert_ne!(t.scalar(versions).await, before);
}

#[tokio::test]
async fn a_sign_out_ends_the_session_and_its_tokens() {
    let (t, mail) = service().await;
    let (browser, tokens) = signed_in(&t, &mail, ADA).await;
    let stolen = browser.cookie(SESSION).unwrap();
    let send = |headers: Vec<(&'static str, &'static str)>, body: &'static str| {
        let browser = browser.clone();
        async move { browser.send("POST", "/api/auth/logout", &headers, body).await.unwrap() }
    };
    assert_eq!(
        send(vec![("origin", "https://evil.example")], "").await.refusal(),
        "403 auth.origin_mismatch"
    );
    let form = vec![("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(send(form, "a=b").await.refusal(), "415 request.unsupported_media_type");
    assert!(is_in(&browser).await);

    let out = post(&browser, "/api/auth/logout", &json!({})).await;
    assert_eq!((out.status, out.header("cache-control")), (204, Some("no-store")));
    assert!(
        out.header("set-cookie").unwrap().contains("__Host-svc_session=; ")
            && browser.cookie(SESSION).is_none()
    );
    browser.set_cookie(SESSION, &stolen);
    assert!(!is_in(&browser).await, "the old cookie is no longer valid");
    assert_eq!(me_as(&browser, &tokens["access_token"]).await.refusal(), "401 auth.invalid_token");
    assert_eq!(refresh(&browser, &tokens["refresh_token"]).await.refusal(), "401 auth.refresh_invalid");
    assert_eq!(
        post(&browser, "/api/auth/logout", &json!({})).await.status,
        204,
        "a repeated sign-out changes nothing"
    );
    assert_eq!(t.scalar("SELECT revoked_reason FROM sign_in_sessions").await, "signed_out");

    let (_, tokens) = signed_in(&t, &mail, ADA).await;
    let by_refresh = json!({"refresh_token": tokens["refresh_token"]});
    assert_eq!(post(&t.anonymous(), "/api/auth/logout", &by_refresh).await.status, 204);
    assert_eq!(me_as(&t.anonymous(), &tokens["access_token"]).await.status, 401);
}

#[tokio::test]
async fn a_reused_refresh_token_ends_the_session() {
    let (t, mail) = service().await;
    let (browser, first) = signed_in(&t, &mail, ADA).await;
    t.advance(15 * MINUTE);
    assert_eq!(me_as(&browser, &first["access_token"]).await.refusal(), "401 auth.token_expired");
    let answer = refresh(&t.anonymous(), &first["refresh_token"]).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")));
    let second = answer.value();
    assert!(second["refresh_token"] != first["refresh_token"] && second["user"] == first["user"]);
    assert_eq!(me_as(&browser, &second["access_token"]).await.status, 200);

    assert_eq!(refresh(&browser, &first["refresh_token"]).await.refusal(), "401 auth.refresh_invalid");
    assert_eq!(t.scalar("SELECT revoked_reason FROM sign_in_sessions").await, "refresh_token_reused");
    assert_eq!(refresh(&browser, &second["refresh_token"]).await.status, 401, "the thief's, or the owner's");
    assert_eq!(me_as(&browser, &second["access_token"]).await.status, 401);
    assert!(!is_in(&browser).await, "the cookie is of the same sign-in");
    for nonsense in [json!("x"), json!("")] {
        assert_eq!(refresh(&browser, &nonsense).await.refusal(), "401 auth.refresh_invalid");
    }
    assert_eq!(refresh(&browser, &Value::Null).await.refusal(), "422 request.invalid");
}

#[tokio::test]
async fn concurrent_refreshes_count_as_reuse() {
    let (t, mail) = service().await;
    let (browser, tokens) = signed_in(&t, &mail, ADA).await;
    let answers =
        futures_util::future::join_all((0..4).map(|_| refresh(&browser, &tokens["refresh_token"]))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 1);
    assert_eq!(t.scalar("SELECT revoked_reason FROM sign_in_sessions").await, "refresh_token_reused");
    assert_eq!(t.scalar("SELECT count(*) FROM refresh_tokens").await, "2");
}

#[tokio::test]
async fn a_sign_in_ends_after_a_month_however_often_it_is_refreshed() {
    let (t, mail) = service().await;
    let (browser, mut tokens) = signed_in(&t, &mail, ADA).await;
    for _ in 0..2 {
        t.advance(MINUTE * 60 * 24 * 14);
        tokens = refresh(&browser, &tokens["refresh_token"]).await.value();
    }
    t.advance(MINUTE * 60 * 24 * 2 - Duration::from_secs(1));
    tokens = refresh(&browser, &tokens["refresh_token"]).await.value();
    t.advance(Duration::from_secs(1));
    assert_eq!(refresh(&browser, &tokens["refresh_token"]).await.refusal(), "401 auth.refresh_invalid");
    assert_eq!(me_as(&browser, &tokens["access_token"]).await.refusal(), "401 auth.invalid_token");
}

#[tokio::test]
async fn a_browser_has_one_session_and_duplicate_cookies_are_rejected() {
    let (t, mail) = service().await;
    let (browser, first) = signed_in(&t, &mail, ADA).await;
    let old = browser.cookie(SESSION).unwrap();
    super::start(&browser, "bob@example.org").await;
    assert_eq!(super::verify(&browser, "bob@example.org", &mail.mail(2).await.code()).await.status, 200);
    let new = browser.cookie(SESSION).unwrap();
    assert_eq!(get(&browser, "/api/auth/me").await.value()["user"]["email"], "bob@example.org");
    assert_eq!(me_as(&browser, &first["access_token"]).await.status, 401, "ada was signed out");
    let me = |cookie: String| {
        let client = t.anonymous();
        async move { client.send("GET", "/api/auth/me", &[("cookie", &cookie)], "").await.unwrap().status }
    };
    assert_eq!(me(format!("{SESSION}={new}")).await, 200);
    assert_eq!(me(format!("{SESSION}={old}")).await, 401);
    assert_eq!(me(format!("{SESSION}={new}; {SESSION}={new}")).await, 401);
    assert_eq!(me(format!("{SESSION}=")).await, 401);
    // A bearer token is checked without the cookie.
    let headers = [("cookie", format!("{SESSION}={new}")), ("authorization", "Bearer x".to_owned())];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let answer = t.anonymous().send("GET", "/api/auth/me", &headers, "").await.unwrap();
    assert_eq!(answer.refusal(), "401 auth.invalid_token");
}

#[tokio::test]
async fn the_owner_gets_the_default_workspace_at_the_first_sign_in() {
    let (t, mail) = service_with(&[("SERVICE_OWNER_EMAIL", ADA)]).await;
    let (owner, _) = signed_in(&t, &mail, ADA).await;
    let (other, _) = signed_in(&t, &mail, "bob@example.org").await;
    let me = get(&owner, "/api/auth/me").await.value();
    let workspace = t.scalar("SELECT id FROM workspaces").await;
    assert_eq!(me["workspaces"], json!([{"id": workspace, "slug": "default", "role": "owner"}]));
    assert_eq!(get(&other, "/api/auth/me").await.value()["workspaces"], json!([]));
    t.execute("DELETE FROM workspace_members").await;
    let (again, _) = signed_in(&t, &mail, ADA).await;
    assert_eq!(get(&again, "/api/auth/me").await.value()["workspaces"], json!([]), "only at the first");
}

#[tokio::test]
async fn an_access_token_has_the_rights_of_the_role_while_the_session_lasts() {
    let (t, mail) = service_with(&[("SERVICE_AUTH_MODE", "required"), ("SERVICE_OWNER_EMAIL", ADA)]).await;
    let (ada, owner) = signed_in(&t, &mail, ADA).await;
    let (bob, stranger) = signed_in(&t, &mail, "bob@example.org").await;
    let list = async |tokens: &Value| {
        let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
        t.send("GET", "/api/workflows", &[("authorization", &bearer)], "").await.refusal()
    };
    assert_eq!(list(&owner).await, "200");
    assert_eq!(list(&stranger).await, "403 auth.missing_scope");
    assert_eq!(
        get(&ada, "/api/workflows").await.refusal(),
        "401 auth.missing_token",
        "a cookie is for pages and chats"
    );
    t.execute("INSERT INTO workspace_members SELECT w.id, u.id, 'viewer', now() FROM workspaces w, users u WHERE email LIKE 'bob%'").await;
    assert_eq!(list(&stranger).await, "200", "a role counts at once");
    t.execute("DELETE FROM workspace_members WHERE role = 'viewer'").await;
    assert_eq!(list(&stranger).await, "403 auth.missing_scope", "until it is revoked");
    assert_eq!(post(&bob, "/api/auth/logout", &json!({})).await.status, 204);
    assert_eq!(list(&stranger).await, "401 auth.invalid_token");
    assert_eq!(refresh(&ada, &owner["refresh_token"]).await.status, 200);
    assert_eq!(refresh(&ada, &owner["refresh_token"]).await.status, 401);
    assert_eq!(list(&owner).await, "401 auth.invalid_token");
    let trail = "SELECT string_agg(action || ' ' || outcome, ', ' ORDER BY id) FROM audit_log
                 WHERE action IN ('auth.signed_in', 'auth.signed_out', 'auth.refresh_reused')";
    let rows = t.scalar(trail).await;
    assert_eq!(
        rows,
        "auth.signed_in success, auth.signed_in success, auth.signed_out success, auth.refresh_reused denied"
    );
}
