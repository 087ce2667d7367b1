//! Concurrent requests, and two instances.

use std::time::Duration;

use futures_util::future::join_all;
use integration_tests::AnswerExt;

use super::*;

const ROTATED: Duration = Duration::from_secs(15 * 60);

#[tokio::test]
async fn only_one_of_fifty_concurrent_callbacks_opens_a_session() {
    let (t, mail) = service().await;
    let browser = Browser::new(&t);
    browser.sign_in(&mail, ADA).await;
    let callback = browser.consent(&browser.begin(NOTES).await).await;
    let (name, secret) = browser.logins(NOTES).remove(0);
    let cookies = format!("{name}={secret}");
    let answers = join_all((0..50).map(|_| async {
        let one = Browser::new(&t);
        let answer = one.send("GET", &callback, &[("cookie", &cookies)], "").await;
        (answer.status, one.cookie(NOTES, COOKIE))
    }))
    .await;
    let opened: Vec<_> = answers.iter().filter_map(|(_, cookie)| cookie.clone()).collect();
    assert_eq!(opened.len(), 1);
    assert_eq!(answers.iter().filter(|(status, _)| *status == 400).count(), 49);
    assert_eq!(count(&t, "revoked_at IS NULL").await, "1");
    browser.set_cookie(NOTES, COOKIE, &opened[0]);
    assert!(browser.is_signed_in(NOTES).await, "the other requests did not reach the code");
}

#[tokio::test]
async fn concurrent_sign_ins_in_several_tabs_all_return() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    browser.forget(NOTES, COOKIE);
    // The tabs send their requests before any response: none sends a cookie from another one.
    let back = async |authorize_url: String| {
        browser.open(&authorize_url).await.header("location").unwrap().to_owned()
    };
    let (first, second) = (back(browser.begin(NOTES).await).await, browser.logins(NOTES));
    browser.forget(NOTES, &second[0].0);
    let third = back(browser.begin(NOTES).await).await;
    browser.set_cookie(NOTES, &second[0].0, &second[0].1);
    for callback in [&third, &first] {
        let answer = browser.open(callback).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some("/")));
    }
    assert!(browser.is_signed_in(NOTES).await);
    assert!(browser.logins(NOTES).is_empty());
    // Many sign-ins at once: the last one is valid.
    let mut last = String::new();
    for _ in 0..12 {
        last = browser.begin(NOTES).await;
        assert!(browser.logins(NOTES).len() <= 5);
    }
    assert_eq!(browser.logins(NOTES).len(), 5);
    assert_eq!(browser.open(&back(last).await).await.status, 303);
    let out = browser.send("POST", &format!("{NOTES}/__service/auth/logout"), &[("origin", NOTES)], "").await;
    assert_eq!(out.status, 204);
    assert!(browser.logins(NOTES).is_empty(), "signing out ends pending sign-ins");
}

#[tokio::test]
async fn concurrent_requests_receive_one_rotated_cookie() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let first = browser.cookie(NOTES, COOKIE).unwrap();
    t.advance(ROTATED - Duration::from_secs(1));
    assert!(browser.is_signed_in(NOTES).await);
    assert_eq!(browser.cookie(NOTES, COOKIE).as_ref(), Some(&first), "a second before the rotation");
    t.advance(Duration::from_secs(1));
    let url = format!("{NOTES}/__service/auth/session");
    let cookies = format!("{COOKIE}={first}");
    let answers = join_all((0..20).map(|_| async {
        let one = Browser::new(&t);
        let answer = one.send("GET", &url, &[("cookie", &cookies)], "").await;
        (answer.value()["authenticated"] == true, one.cookie(NOTES, COOKIE))
    }))
    .await;
    assert!(answers.iter().all(|(signed_in, _)| *signed_in));
    let next: Vec<_> = answers.iter().filter_map(|(_, cookie)| cookie.clone()).collect();
    assert_eq!(next.len(), 1, "one response sets the next cookie");
    assert_ne!(next[0], first);
    // The previous cookie stays valid a little longer, and is not rotated again.
    t.advance(Duration::from_secs(29));
    assert!(browser.is_signed_in(NOTES).await);
    assert_eq!(browser.cookie(NOTES, COOKIE).as_ref(), Some(&first));
    t.advance(Duration::from_secs(1));
    assert!(!browser.is_signed_in(NOTES).await, "the previous cookie expires after thirty seconds");
    browser.set_cookie(NOTES, COOKIE, &next[0]);
    assert!(browser.is_signed_in(NOTES).await);
    // Neither signing out nor a new sign-in sets a cookie that is due for rotation.
    t.advance(ROTATED);
    let out = browser.send("POST", &format!("{NOTES}/__service/auth/logout"), &[("origin", NOTES)], "").await;
    assert_eq!((out.status, browser.cookie(NOTES, COOKIE)), (204, None));
}

#[tokio::test]
async fn the_previous_cookie_signs_out_too() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let first = browser.cookie(NOTES, COOKIE).unwrap();
    t.advance(ROTATED);
    assert!(browser.is_signed_in(NOTES).await);
    let next = browser.cookie(NOTES, COOKIE).unwrap();
    assert_ne!(next, first);
    browser.set_cookie(NOTES, COOKIE, &first);
    let out = browser.send("POST", &format!("{NOTES}/__service/auth/logout"), &[("origin", NOTES)], "").await;
    assert_eq!(out.status, 204);
    browser.set_cookie(NOTES, COOKIE, &next);
    assert!(!browser.is_signed_in(NOTES).await);
}

#[tokio::test]
async fn a_sign_in_continues_on_another_instance() {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .alone()
        .set("SERVICE_SMTP_URL", mail.url())
        .set("SERVICE_OWNER_EMAIL", ADA)
        .set("SERVICE_PUBLIC_BASE_URL", CENTRAL)
        .start()
        .await;
    publish(&t, "notes", "members").await;
    let mut other = TestService::builder().alone();
    for name in ["SERVICE_POSTGRES_DSN", "SERVICE_SMTP_URL", "SERVICE_OWNER_EMAIL", "SERVICE_PUBLIC_BASE_URL"]
    {
        other = other.set(name, &*t.variables()[name]);
    }
    let other = other.start().await;
    let (here, there) = (Browser::new(&t), Browser { t: &other, jar: Arc::default() });
    let there = Browser { jar: Arc::clone(&here.jar), ..there };
    here.sign_in(&mail, ADA).await;
    let authorize = there.begin(NOTES).await;
    let callback = there.consent(&authorize).await;
    assert_eq!(here.open(&callback).await.status, 303);
    assert!(there.is_signed_in(NOTES).await && here.is_signed_in(NOTES).await);
    there.send("POST", &format!("{NOTES}/__service/auth/logout"), &[("origin", NOTES)], "").await.expect(204);
    assert!(!here.is_signed_in(NOTES).await);
}
