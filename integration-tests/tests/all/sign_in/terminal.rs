//! From a browser that is signed in to a terminal.

use std::time::Duration;

use integration_tests::AnswerExt;
use serde_json::json;

use super::{ADA, get, me_as, post, refresh, service, signed_in};

const TERMINAL: &str = "/api/auth/terminal";

#[tokio::test]
async fn a_code_is_good_once_and_for_ten_minutes() {
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
    assert_eq!(renewed.status, 200, "it goes on like any sign-in");
    // The second time is somebody else's, and ends it; the browser's own goes on.
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

#[tokio::test]
async fn only_a_page_of_ours_in_a_signed_in_browser_gets_one() {
    let (t, mail) = service().await;
    let (browser, tokens) = signed_in(&t, &mail, ADA).await;
    assert_eq!(post(&t.visitor(), TERMINAL, &json!({})).await.refusal(), "401 auth.missing_token");
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let by_token = t.visitor().send("POST", TERMINAL, &headers, "{}").await.unwrap();
    assert_eq!(by_token.refusal(), "401 auth.missing_token", "a token gets no further sign-in");
    let foreign = [("origin", "https://evil.example"), ("content-type", "application/json")];
    let foreign = browser.send("POST", TERMINAL, &foreign, "{}").await.unwrap();
    assert_eq!(foreign.refusal(), "403 auth.origin_mismatch");
    let form = [("content-type", "text/plain")];
    let form = browser.send("POST", TERMINAL, &form, "{}").await.unwrap();
    assert_eq!(form.refusal(), "415 request.unsupported_media_type");
    assert_eq!(post(&browser, TERMINAL, &json!({"user": "eve"})).await.refusal(), "422 request.invalid");
    // However often it is asked for, one is open.
    for _ in 0..3 {
        assert_eq!(post(&browser, TERMINAL, &json!({})).await.status, 200);
    }
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions WHERE user_agent = 'a terminal'").await, "1");
}
