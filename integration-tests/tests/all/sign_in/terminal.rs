//! Signing in a terminal from a signed-in browser.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON};
use serde_json::json;

use super::{ADA, get, me_as, post, refresh, service, signed_in};

const TERMINAL: &str = "/api/auth/terminal";

#[tokio::test]
async fn a_terminal_code_is_valid_once_for_ten_minutes() {
    let (t, mail) = service().await;
    let (browser, _) = signed_in(&t, &mail, ADA).await;
    let shown = post(&browser, TERMINAL, &json!({})).await;
    assert_eq!((shown.status, shown.header("cache-control")), (200, Some("no-store")));
    let code = shown.value()["code"].clone();
    assert_eq!(shown.value()["expires_in"], 600);
    let terminal = t.visitor();
    let tokens = refresh(&terminal, &code).await.value();
    let me = me_as(&terminal, &tokens["access_token"]).await.value();
    assert_eq!(me["user"]["email"], ADA);
    t.advance(Duration::from_secs(3600));
    let renewed = refresh(&terminal, &tokens["refresh_token"]).await;
    assert_eq!(renewed.status, 200, "it is refreshed like any session");
    // A second use counts as another party's, and ends the terminal's session; the browser's session continues.
    assert_eq!(refresh(&t.visitor(), &code).await.refusal(), "401 auth.refresh_invalid");
    assert_eq!(
        refresh(&terminal, &renewed.value()["refresh_token"]).await.refusal(),
        "401 auth.refresh_invalid"
    );
    let (browser, _) = signed_in(&t, &mail, ADA).await;
    let code = post(&browser, TERMINAL, &json!({})).await.value()["code"].clone();
    t.advance(Duration::from_secs(600));
    assert_eq!(refresh(&terminal, &code).await.refusal(), "401 auth.refresh_invalid");
    assert_eq!(get(&browser, "/api/auth/me").await.status, 200);
    let rows = "SELECT count(*) FROM audit_log WHERE action = 'auth.terminal_code'";
    assert_eq!(t.scalar(rows).await, "2");
}

/// A page that may use the API with its own token gets no rights from the service's cookies.
#[tokio::test]
async fn a_listed_origin_gets_no_rights_from_a_cookie() {
    const LISTED: &str = "https://shop.example";
    let listed = format!("[\"{LISTED}\"]");
    let (t, mail) = super::service_with(&[("SERVICE_CORS_ALLOW_ORIGINS", listed.as_str())]).await;
    let (browser, tokens) = signed_in(&t, &mail, ADA).await;
    let sessions = get(&browser, "/api/auth/me").await.value()["sessions"].clone();
    let one = format!("/api/auth/sessions/{}", sessions[0]["id"].as_str().unwrap());
    for (method, path) in [
        ("POST", TERMINAL),
        ("POST", "/api/auth/token"),
        ("POST", "/api/auth/logout"),
        ("POST", "/api/auth/magic/x"),
        ("DELETE", "/api/auth/sessions"),
        ("DELETE", one.as_str()),
    ] {
        let listed = browser.send(method, path, &[JSON, ("origin", LISTED)], "{}").await.unwrap();
        assert_eq!(listed.refusal(), "403 auth.origin_mismatch", "{method} {path}");
        // Browsers' fetch metadata for a page elsewhere, whatever the request's origin.
        for site in ["cross-site", "same-site"] {
            let elsewhere =
                browser.send(method, path, &[JSON, ("sec-fetch-site", site)], "{}").await.unwrap();
            assert_eq!(elsewhere.refusal(), "403 auth.origin_mismatch", "{method} {path} {site}");
        }
        // A header without a token does not disable the cookie and its checks.
        for nothing in ["Bearer", ""] {
            let headers = [JSON, ("origin", LISTED), ("authorization", nothing)];
            let empty = browser.send(method, path, &headers, "{}").await.unwrap();
            assert_eq!(empty.refusal(), "403 auth.origin_mismatch", "{method} {path} {nothing:?}");
        }
    }
    let me = browser.send("GET", "/api/auth/me", &[("origin", LISTED)], "").await.unwrap().value();
    assert_eq!(
        (&me["user"]["email"], &me["sessions"]),
        (&json!(ADA), &json!([])),
        "a listed origin does not see the sessions"
    );
    // The page may sign a user in with what they type there, without the service's cookies.
    let headers = [JSON, ("origin", LISTED)];
    let other = t.visitor();
    let start_body = json!({"email": "bob@example.org"}).to_string();
    let started = other.send("POST", "/api/auth/email/start", &headers, start_body).await.unwrap().value();
    let code = mail.mail(2).await.code();
    let by_cookie = json!({"email": "bob@example.org", "code": code}).to_string();
    let refused = other.send("POST", "/api/auth/email/verify", &headers, by_cookie).await.unwrap();
    assert_eq!(refused.refusal(), "401 auth.code_invalid");
    let shown =
        json!({"email": "bob@example.org", "code": code, "challenge": started["challenge"]}).to_string();
    let verified = other.send("POST", "/api/auth/email/verify", &headers, shown).await.unwrap();
    assert_eq!((verified.status, verified.header("set-cookie")), (200, None));
    // With a token, the page may end the session.
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let by_token = [JSON, ("origin", LISTED), ("authorization", bearer.as_str())];
    assert_eq!(t.visitor().send("POST", "/api/auth/logout", &by_token, "{}").await.unwrap().status, 204);
    assert_eq!(get(&browser, "/api/auth/me").await.status, 401);
}

#[tokio::test]
async fn a_cookie_requires_the_same_origin() {
    let (t, mail) = service().await;
    let (browser, tokens) = signed_in(&t, &mail, ADA).await;
    let sessions = get(&browser, "/api/auth/me").await.value()["sessions"].clone();
    let one = format!("/api/auth/sessions/{}", sessions[0]["id"].as_str().unwrap());
    for (method, path, body) in [
        ("POST", TERMINAL, "{}"),
        ("POST", "/api/auth/token", r#"{"active": true}"#),
        ("POST", "/api/auth/logout", "{}"),
        ("DELETE", "/api/auth/sessions", ""),
        ("DELETE", one.as_str(), ""),
    ] {
        for headers in [&[JSON][..], &[JSON, ("sec-fetch-site", "none")]] {
            let refused = browser.send(method, path, headers, body).await.unwrap();
            assert_eq!(refused.refusal(), "403 auth.origin_mismatch", "{method} {path} {headers:?}");
        }
        // Without a cookie there is nothing to protect.
        let status = if path.ends_with("logout") { 204 } else { 401 };
        assert_eq!(t.anonymous().send(method, path, &[JSON], body).await.unwrap().status, status, "{path}");
    }
    assert_eq!(get(&browser, "/api/auth/me").await.status, 200, "nothing has ended");
    let code = post(&browser, TERMINAL, &json!({})).await.value()["code"].clone();
    let terminal = refresh(&t.visitor(), &code).await.value();
    let by_refresh = json!({"refresh_token": terminal["refresh_token"]}).to_string();
    let out = browser.send("POST", "/api/auth/logout", &[JSON], by_refresh).await.unwrap();
    assert_eq!((out.status, out.header("set-cookie")), (204, None));
    assert_eq!(me_as(&t.visitor(), &terminal["access_token"]).await.status, 401);
    assert_eq!(me_as(&t.visitor(), &tokens["access_token"]).await.status, 200, "the browser's own stays");
}

#[tokio::test]
async fn a_user_lists_and_ends_their_sessions() {
    let (t, mail) = service().await;
    let (browser, _) = signed_in(&t, &mail, ADA).await;
    let (_, other) = signed_in(&t, &mail, ADA).await;
    let code = post(&browser, TERMINAL, &json!({})).await.value()["code"].clone();
    let terminal = refresh(&t.visitor(), &code).await.value();
    let (eves, _) = signed_in(&t, &mail, "eve@example.org").await;
    let listed = async || get(&browser, "/api/auth/me").await.value()["sessions"].as_array().unwrap().clone();
    let sessions = listed().await;
    let kinds: Vec<_> = sessions.iter().map(|session| session["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["terminal", "browser", "browser"]);
    assert_eq!(sessions.iter().filter(|session| session["current"] == true).count(), 1);
    let path = |index: usize| format!("/api/auth/sessions/{}", sessions[index]["id"].as_str().unwrap());
    let delete = async |client: &integration_tests::Client, path: &str| {
        let origin = super::origin(client);
        client.send("DELETE", path, &[("origin", origin.as_str())], "").await.unwrap()
    };
    assert_eq!(delete(&eves, &path(0)).await.refusal(), "404 auth.session_not_found", "another person's");
    assert_eq!(delete(&eves, "/api/auth/sessions/x").await.refusal(), "404 auth.session_not_found");
    assert_eq!(delete(&t.visitor(), &path(0)).await.refusal(), "401 auth.missing_token");
    assert_eq!(delete(&browser, &path(0)).await.status, 204);
    assert_eq!(delete(&browser, &path(0)).await.status, 204, "it has ended");
    assert_eq!(me_as(&t.visitor(), &terminal["access_token"]).await.status, 401);
    assert_eq!(me_as(&t.visitor(), &other["access_token"]).await.status, 200);
    assert_eq!(listed().await.len(), 2);
    assert_eq!(delete(&browser, "/api/auth/sessions").await.status, 204);
    assert_eq!(get(&browser, "/api/auth/me").await.status, 401);
    assert_eq!(me_as(&t.visitor(), &other["access_token"]).await.status, 401);
    assert_eq!(refresh(&t.visitor(), &other["refresh_token"]).await.refusal(), "401 auth.refresh_invalid");
    assert_eq!(get(&eves, "/api/auth/me").await.status, 200);
    let rows = "SELECT count(*) FROM audit_log WHERE action = 'auth.session_ended'";
    assert_eq!(t.scalar(rows).await, "3");
}

#[tokio::test]
async fn only_a_same_origin_page_in_a_signed_in_browser_gets_a_code() {
    let (t, mail) = service().await;
    let (browser, tokens) = signed_in(&t, &mail, ADA).await;
    assert_eq!(post(&t.visitor(), TERMINAL, &json!({})).await.refusal(), "401 auth.missing_token");
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str()), JSON];
    let by_token = t.visitor().send("POST", TERMINAL, &headers, "{}").await.unwrap();
    assert_eq!(by_token.refusal(), "401 auth.missing_token", "a token gets no further sign-in");
    let foreign = [("origin", "https://evil.example"), JSON];
    let foreign = browser.send("POST", TERMINAL, &foreign, "{}").await.unwrap();
    assert_eq!(foreign.refusal(), "403 auth.origin_mismatch");
    let form = [("content-type", "text/plain")];
    let form = browser.send("POST", TERMINAL, &form, "{}").await.unwrap();
    assert_eq!(form.refusal(), "415 request.unsupported_media_type");
    assert_eq!(post(&browser, TERMINAL, &json!({"user": "eve"})).await.refusal(), "422 request.invalid");
    // However often it is requested, only one is open.
    for _ in 0..3 {
        assert_eq!(post(&browser, TERMINAL, &json!({})).await.status, 200);
    }
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions WHERE user_agent = 'a terminal'").await, "1");
}
