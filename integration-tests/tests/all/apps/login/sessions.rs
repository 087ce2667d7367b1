//! Sessions: their duration, their end, and their access.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, chat};
use serde_json::json;

use super::*;

const MINUTE: Duration = Duration::from_secs(60);

async fn log_out(browser: &Browser<'_>, headers: &[(&str, &str)]) -> Answer {
    browser.send("POST", &format!("{NOTES}/__service/auth/logout"), headers, "").await
}

#[tokio::test]
async fn a_session_ends_after_an_hour_of_inactivity_or_twelve_hours() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    t.advance(60 * MINUTE - Duration::from_secs(1));
    assert!(browser.is_signed_in(NOTES).await, "a second before the hour");
    t.advance(60 * MINUTE);
    assert!(!browser.is_signed_in(NOTES).await);

    // Activity in the app only: the central host's hour does not matter for it.
    browser.sign_in(&mail, ADA).await;
    assert_eq!(browser.open(&browser.callback(NOTES).await).await.status, 303);
    for _ in 0..14 {
        t.advance(50 * MINUTE);
        assert!(browser.is_signed_in(NOTES).await);
    }
    t.advance(20 * MINUTE - Duration::from_secs(1));
    assert!(browser.is_signed_in(NOTES).await, "a second before the half day");
    t.advance(Duration::from_secs(1));
    assert!(!browser.is_signed_in(NOTES).await);
}

#[tokio::test]
async fn a_session_ends_with_its_session_on_the_central_host() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    browser.post("/api/auth/logout", &json!({})).await.expect(204);
    assert!(!browser.is_signed_in(NOTES).await, "signed out");

    let browser = ada_signed_in_again(&t, &mail).await;
    t.execute(
        "UPDATE sign_in_sessions SET revoked_at = now(), revoked_reason = 'x' WHERE revoked_at IS NULL",
    )
    .await;
    assert!(!browser.is_signed_in(NOTES).await, "revoked");
    t.execute("UPDATE sign_in_sessions SET revoked_at = NULL").await;
    assert!(browser.is_signed_in(NOTES).await);
    t.execute("UPDATE users SET email = NULL").await;
    assert!(!browser.is_signed_in(NOTES).await, "erased");
}

/// The member, who has consented before.
async fn ada_signed_in_again<'a>(t: &'a TestService, mail: &MailServer) -> Browser<'a> {
    let browser = Browser::new(t);
    browser.sign_in(mail, ADA).await;
    let callback = browser.callback(NOTES).await;
    assert_eq!(browser.open(&callback).await.status, 303);
    browser
}

#[tokio::test]
async fn a_removed_member_loses_access_at_once_and_must_consent_after_an_invitation() {
    let (t, mail) = service().await;
    ada(&t, &mail).await;
    let bob = Browser::new(&t);
    bob.sign_in(&mail, "bob@example.org").await;
    let add = json!({"email": "bob@example.org", "role": "viewer"});
    assert_eq!(t.root().post("/api/workspaces/default/members", &add).await.status, 201);
    bob.enter(NOTES).await;
    assert!(bob.is_signed_in(NOTES).await);
    let waiting = bob.callback(NOTES).await;
    let member = format!("/api/workspaces/default/members/{}", user(&t, "bob@example.org").await);
    assert_eq!(t.root().send("DELETE", &member, &[], "").await.status, 204);
    assert_eq!(bob.types(NOTES).await.refusal(), "401 login_required", "the next request is rejected");
    assert!(!bob.is_signed_in(NOTES).await);
    assert_eq!(bob.open(&waiting).await.status, 400, "a code that was issued before");
    assert_eq!(bob.open(&bob.begin(NOTES).await).await.status, 403);
    assert_eq!(t.root().post("/api/workspaces/default/members", &add).await.status, 201);
    assert!(!bob.is_signed_in(NOTES).await, "the session has ended");
    assert_eq!(bob.open(&bob.begin(NOTES).await).await.status, 200, "the consent is requested again");
}

#[tokio::test]
async fn signing_out_ends_the_apps_session_and_clears_the_browser() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    browser.enter(OTHER).await;
    let stolen = browser.cookie(NOTES, COOKIE).unwrap();
    for foreign in [
        vec![],
        vec![("origin", OTHER)],
        vec![("origin", CENTRAL)],
        vec![("origin", "null")],
        vec![("origin", "https://notes.apps.localhost:8000")],
        vec![("origin", "http://notes.apps.localhost")],
        vec![("origin", NOTES), ("origin", NOTES)],
        vec![("sec-fetch-site", "same-site")],
        vec![("sec-fetch-site", "none")],
    ] {
        let answer = log_out(&browser, &foreign).await;
        assert_eq!(answer.refusal(), "403 origin_mismatch", "{foreign:?}");
    }
    let form = [("origin", NOTES), ("content-type", "text/plain")];
    assert_eq!(log_out(&browser, &form).await.refusal(), "415 unsupported_media_type");
    assert!(browser.is_signed_in(NOTES).await);

    let out = log_out(&browser, &[("origin", NOTES)]).await;
    assert_eq!((out.status, out.header("clear-site-data")), (204, Some(r#""cookies", "storage""#)));
    assert_eq!(browser.cookie(NOTES, COOKIE), None);
    browser.set_cookie(NOTES, COOKIE, &stolen);
    assert!(!browser.is_signed_in(NOTES).await, "a copy of the cookie is invalid");
    assert!(browser.is_signed_in(OTHER).await, "the session of another app continues");
    let again = log_out(&browser, &[("sec-fetch-site", "same-origin")]).await;
    assert_eq!(again.status, 204, "a repeated sign-out succeeds");
    // An app cannot sign its visitors out of sibling apps.
    let stranger = log_out(&browser, &[("origin", NOTES)]).await;
    assert_eq!((stranger.status, stranger.header("clear-site-data")), (204, None));
    assert_eq!(count(&t, "revoked_reason = 'signed_out'").await, "1");
    assert_eq!(
        browser.open(&format!("{CENTRAL}/api/auth/me")).await.status,
        200,
        "the session on the central host continues"
    );
}

#[tokio::test]
async fn a_session_is_valid_for_one_app_and_cannot_be_fixed() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let cookie = browser.cookie(NOTES, COOKIE).unwrap();
    let asks = async |origin: &str, cookies: String| {
        let url = format!("{origin}/__service/auth/session");
        let answer = Browser::new(&t).send("GET", &url, &[("cookie", &cookies)], "").await;
        answer.value()["authenticated"] == true
    };
    assert!(asks(NOTES, format!("{COOKIE}={cookie}")).await);
    assert!(!asks(OTHER, format!("{COOKIE}={cookie}")).await, "another app");
    assert!(!asks(NOTES, format!("{COOKIE}={cookie}; {COOKIE}={cookie}")).await, "two cookies count as none");
    assert!(!asks(NOTES, format!("{COOKIE}=planted; {COOKIE}={cookie}")).await);
    assert!(!asks(NOTES, format!("{COOKIE}={cookie}x")).await);

    // A browser's previous session ends, and the new one has another cookie.
    let planted = Browser::new(&t);
    planted.sign_in(&mail, ADA).await;
    planted.set_cookie(NOTES, COOKIE, &cookie);
    let callback = planted.callback(NOTES).await;
    assert_eq!(planted.open(&callback).await.status, 303);
    assert_ne!(planted.cookie(NOTES, COOKIE).unwrap(), cookie);
    assert!(!asks(NOTES, format!("{COOKIE}={cookie}")).await);
    assert!(planted.is_signed_in(NOTES).await);
    let made_up = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    planted.set_cookie(NOTES, COOKIE, made_up);
    let callback = planted.callback(NOTES).await;
    planted.open(&callback).await;
    assert_ne!(planted.cookie(NOTES, COOKIE).unwrap(), made_up);
}

#[tokio::test]
async fn each_credential_is_valid_on_its_own_host_only() {
    let key = "chat-key-0123456789abcdef0123456789abcdef";
    let (t, mail) = service_with(&[("CHAT_TOKEN_SIGNING_KEY", key)]).await;
    let workflow = t.workflow().echo().published().create().await;
    let browser = ada(&t, &mail).await;
    let central = browser.cookie(CENTRAL, SESSION).unwrap();
    let app = browser.cookie(NOTES, COOKIE).unwrap();
    let token =
        browser.post("/api/auth/token", &json!({"active": true})).await.value()["access_token"].clone();
    let service = t.root().token(&["workflows:read"], &["default"]).await;
    let session = json!({"workflow_id": workflow.id});
    let session = t.root().post("/api/chat/session", &session).await.value();
    let chat_token = session["client_secret"].as_str().unwrap().to_owned();
    let url = format!("{NOTES}/__service/auth/session");
    for bearer in [token.as_str().unwrap(), &service, integration_tests::BOOTSTRAP, &chat_token, &app] {
        let bearer = format!("Bearer {bearer}");
        let answer = Browser::new(&t).send("GET", &url, &[("authorization", &bearer)], "").await;
        assert_eq!(answer.value(), json!({"authenticated": false}));
    }
    for cookie in [
        format!("{SESSION}={central}"),
        format!("{COOKIE}={central}"),
        format!("{LOGIN}0123456789abcdef={app}"),
        // Names that a page on a neighbouring host could set.
        format!("__Host%2Dsvc_app={app}"),
        format!("\u{a0}{COOKIE}={app}"),
        format!("{COOKIE}\u{2003}={app}"),
    ] {
        let answer = Browser::new(&t).send("GET", &url, &[("cookie", &cookie)], "").await;
        assert_eq!(answer.value(), json!({"authenticated": false}));
    }
    // The app's session does not open the central host either.
    let me = format!("{CENTRAL}/api/auth/me");
    for (name, value) in [
        ("cookie", format!("{COOKIE}={app}")),
        ("cookie", format!("{SESSION}={app}")),
        ("authorization", format!("Bearer {app}")),
    ] {
        assert_eq!(Browser::new(&t).send("GET", &me, &[(name, &value)], "").await.status, 401, "{name}");
        let list = format!("{CENTRAL}/api/workflows");
        assert_eq!(Browser::new(&t).send("GET", &list, &[(name, &value)], "").await.status, 401, "{name}");
    }
    let body = chat::create(&workflow, "hi").to_string();
    let headers = [JSON, ("authorization", &*format!("Bearer {app}"))];
    Browser::new(&t).send("POST", &format!("{CENTRAL}/api/chat"), &headers, &body).await.expect(401);
}

#[tokio::test]
async fn sessions_survive_clock_jumps() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let callback = browser.callback(NOTES).await;
    t.clock().leap(chrono::TimeDelta::seconds(-5));
    assert!(browser.is_signed_in(NOTES).await, "back by five seconds");
    assert_eq!(browser.open(&callback).await.status, 303);
    t.clock().leap(chrono::TimeDelta::days(1));
    assert!(!browser.is_signed_in(NOTES).await, "ahead by a day");
    t.clock().leap(chrono::TimeDelta::days(-1));
    assert!(browser.is_signed_in(NOTES).await, "after the correction nothing was deleted");
}

#[tokio::test]
async fn expired_rows_are_deleted_after_their_retention() {
    let (mut t, mail) = service().await;
    ada(&t, &mail).await;
    let rows =
        "SELECT (SELECT count(*) FROM app_sign_ins) || ' ' || (SELECT count(*) FROM app_codes) || ' ' ||
                (SELECT count(*) FROM app_sessions) || ' ' || (SELECT count(*) FROM app_consents)";
    assert_eq!(t.scalar(rows).await, "1 1 1 1");
    for table in ["app_sign_ins", "app_codes", "app_sessions"] {
        t.execute(&format!("UPDATE {table} SET expires_at = now() - interval '2 days'")).await;
    }
    t.restart().await;
    t.until_scalar("retention", rows, "0 0 0 1").await;
    t.execute("UPDATE users SET email = NULL").await;
    t.execute("UPDATE app_consents SET created_at = now() - interval '2 days'").await;
    t.restart().await;
    t.until_scalar("retention", rows, "0 0 0 0").await;
}
