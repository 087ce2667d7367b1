//! The mail queue: sending limits, and mail server failures.

use std::net::IpAddr;
use std::time::Duration;

use integration_tests::{AnswerExt, JSON, Raw, TestService, pause, until};
use serde_json::json;

use super::{ADA, service, start, verify};

async fn queued(t: &TestService) -> String {
    t.scalar("SELECT count(*) FROM outgoing_mail").await
}

async fn emptied(t: &TestService) {
    until("the queue to be empty", async || queued(t).await == "0").await;
}

#[tokio::test]
async fn a_browser_gets_five_mails_for_an_address_in_15_minutes() {
    let (t, mail) = service().await;
    let browser = t.visitor();
    for _ in 0..5 {
        start(&browser, ADA).await;
        emptied(&t).await;
        t.advance(Duration::from_secs(60));
    }
    let (last, binding) = (mail.mail(5).await, browser.cookie(super::BINDING).unwrap());
    // A request that sends no mail does not invalidate the previous one.
    start(&browser, ADA).await;
    start(&browser, "ADA@example.org").await;
    start(&browser, "bob@example.org").await;
    assert_eq!(mail.mail(6).await.to, ["bob@example.org"]);
    assert_eq!(mail.mails().iter().filter(|mail| mail.to == [ADA]).count(), 5);
    // Bob's challenge replaced Ada's: one browser, one challenge.
    browser.set_cookie(super::BINDING, &binding);
    assert_eq!(verify(&browser, ADA, &last.code()).await.status, 401);
    // The first mail was sent fifteen minutes ago.
    t.advance(Duration::from_secs(600));
    start(&browser, ADA).await;
    assert_eq!(mail.mail(7).await.to, [ADA]);
}

#[tokio::test]
async fn requests_without_a_cookie_are_counted_per_client() {
    let (t, mail) = service().await;
    for _ in 0..8 {
        assert_eq!(start(&t.anonymous(), ADA).await.status, 202);
    }
    emptied(&t).await;
    let stored = async || t.scalar("SELECT count(*) FROM sign_in_challenges").await;
    assert_eq!((mail.mails().len(), stored().await.as_str()), (5, "5"));
    // A browser that presents its cookie is not limited with the others.
    let browser = t.visitor();
    start(&browser, "bob@example.org").await;
    start(&browser, ADA).await;
    assert_eq!(mail.mail(7).await.to, [ADA]);
    // Ten per day.
    for _ in 0..2 {
        t.advance(Duration::from_secs(901));
        for _ in 0..6 {
            start(&t.anonymous(), ADA).await;
        }
    }
    assert_eq!(stored().await, "12", "ten for the client, two for the browser");
}

/// The owner of an address can sign in, however often others request and guess codes.
#[tokio::test]
async fn other_browsers_cannot_block_a_sign_in() {
    let (t, mail) = service().await;
    let owner = t.visitor();
    start(&owner, ADA).await;
    let code = mail.mail(1).await.code();
    let wrong = if code == "000000" { "000001" } else { "000000" };
    let other = t.visitor();
    for number in 0..5 {
        start(&other, ADA).await;
        mail.mail(2 + number).await;
        t.advance(Duration::from_secs(1));
        for _ in 0..5 {
            assert_eq!(verify(&other, ADA, wrong).await.refusal(), "401 auth.code_invalid");
        }
    }
    // More than the identity's ten failures, all within a minute; the owner's next mail arrives, and the first code is
    // valid.
    t.advance(Duration::from_secs(1));
    let second = t.visitor();
    start(&second, ADA).await;
    let later = mail.mail(7).await.code();
    assert_eq!(verify(&owner, ADA, &code).await.status, 200);
    assert_eq!(verify(&second, ADA, &later).await.status, 200);
}

#[tokio::test]
async fn an_address_gets_one_link_an_hour_after_30_codes_a_day() {
    let (t, mail) = service().await;
    // Each from another network address, like a botnet.
    let ask = async |host: u8| {
        let from: IpAddr = [127, 0, 1, host].into();
        let connection = Raw::connect_from(from, t.address()).await;
        let headers = [JSON, ("connection", "close")];
        let body = json!({"email": ADA}).to_string();
        connection.request("POST", "/api/auth/email/start", &headers, body).await.whole().await.expect(202);
    };
    for host in 1..=30 {
        ask(host).await;
    }
    assert_eq!(mail.mail(30).await.to, [ADA]);
    ask(31).await;
    let without = mail.mail(31).await;
    assert!(without.link().is_some());
    let has_code =
        without.data.lines().any(|line| line.len() == 6 && line.bytes().all(|b| b.is_ascii_digit()));
    assert!(!has_code, "{}", without.data);
    ask(31).await;
    emptied(&t).await;
    assert_eq!(mail.mails().len(), 31, "one an hour for a network address");
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_challenges WHERE NOT has_code").await, "1");
    // The link signs in, but no code does.
    let browser = t.visitor();
    t.advance(Duration::from_secs(3601));
    start(&browser, ADA).await;
    let link = mail.mail(32).await.link().unwrap();
    assert_eq!(verify(&browser, ADA, "000000").await.status, 401);
    assert_eq!(
        t.scalar("SELECT count(*) FROM sign_in_challenges WHERE NOT has_code AND code_mac = ''").await,
        "2"
    );
    let path = format!("/api/auth/magic/{}", link.rsplit('/').next().unwrap());
    assert_eq!(super::post(&browser, &path, &json!({})).await.status, 200);
    // A day later, codes are available again.
    t.advance(Duration::from_secs(86_400));
    start(&t.visitor(), ADA).await;
    assert_eq!(mail.mail(33).await.code().len(), 6);
}

/// One client may claim to be any number of browsers.
#[tokio::test]
async fn unknown_browsers_of_a_network_share_a_limit() {
    let (t, mail) = service().await;
    let owner = t.visitor();
    start(&owner, ADA).await;
    let code = mail.mail(1).await.code();
    assert_eq!(verify(&owner, ADA, &code).await.status, 200);
    let ask = async |number: u32| {
        let browser = t.visitor();
        browser.set_cookie(super::BROWSER, &format!("{number:0>43}"));
        assert_eq!(start(&browser, ADA).await.status, 202);
        t.advance(Duration::from_secs(1));
    };
    for number in 0..15 {
        ask(number).await;
    }
    let stored = async || t.scalar("SELECT count(*) FROM sign_in_challenges").await;
    assert_eq!(stored().await, "10", "one of them the owner's");
    for number in 15..18 {
        t.advance(Duration::from_secs(900));
        for again in 0..10 {
            ask(number * 100 + again).await;
        }
    }
    assert_eq!(stored().await, "20", "the limit of a day");
    emptied(&t).await;
    let sent = mail.mails().len();
    // A browser that has signed in to the address before still gets a code.
    start(&owner, ADA).await;
    let code = mail.mail(sent + 1).await.code();
    assert_eq!(verify(&owner, ADA, &code).await.status, 200);
}

#[tokio::test]
async fn a_browser_gets_ten_codes_a_day_for_an_address() {
    let (t, mail) = service().await;
    let browser = t.visitor();
    for _ in 0..11 {
        start(&browser, ADA).await;
        emptied(&t).await;
        t.advance(Duration::from_secs(1000));
    }
    assert_eq!(mail.mails().len(), 10);
}

#[tokio::test]
async fn a_client_gets_20_mails_an_hour_even_for_concurrent_requests() {
    let (t, mail) = service().await;
    let requests = (0..30).map(|n| {
        let client = t.visitor();
        async move { start(&client, &format!("p{n}@example.org")).await.status }
    });
    assert_eq!(futures_util::future::join_all(requests).await, [202; 30]);
    mail.mail(20).await;
    emptied(&t).await;
    assert_eq!(
        (mail.mails().len(), t.scalar("SELECT count(*) FROM sign_in_challenges").await.as_str()),
        (20, "20")
    );
    let from: IpAddr = "127.0.0.2".parse().unwrap();
    let body = json!({"email": "other@example.org"}).to_string();
    let headers = [JSON, ("connection", "close")];
    let other = Raw::connect_from(from, t.address()).await;
    other.request("POST", "/api/auth/email/start", &headers, body).await.whole().await.expect(202);
    assert_eq!(mail.mail(21).await.to, ["other@example.org"], "other clients are not limited");
}

#[tokio::test]
async fn a_mail_is_delivered_after_the_mail_server_recovers() {
    let (t, mut mail) = service().await;
    mail.server.go_down().await;
    let browser = t.visitor();
    start(&browser, ADA).await;
    until("a first attempt", async || {
        t.scalar("SELECT count(*) FROM outgoing_mail WHERE attempts = 1 AND claimed_by IS NULL").await == "1"
    })
    .await;
    mail.server.come_up().await;
    mail.refuse(Some("451 not now"));
    let second = "SELECT count(*) FROM outgoing_mail WHERE attempts >= 2 AND claimed_by IS NULL";
    let tried = until("a second attempt", async || t.scalar(second).await == "1");
    t.while_time_passes(tried).await;
    mail.refuse(None);
    let come = t.while_time_passes_in(Duration::from_millis(100), mail.mail(1)).await;
    assert_eq!(verify(&browser, ADA, &come.code()).await.status, 200);
    emptied(&t).await;
}

#[tokio::test]
async fn a_permanently_refused_or_late_mail_is_dropped() {
    let (t, mut mail) = service().await;
    mail.refuse(Some("550 no such mailbox"));
    start(&t.visitor(), ADA).await;
    emptied(&t).await;
    mail.server.go_down().await;
    start(&t.visitor(), ADA).await;
    until("a first attempt", async || {
        t.scalar("SELECT count(*) FROM outgoing_mail WHERE attempts = 1 AND claimed_by IS NULL").await == "1"
    })
    .await;
    t.advance(Duration::from_secs(601));
    t.while_time_passes(emptied(&t)).await;
    mail.refuse(None);
    mail.server.come_up().await;
    t.advance(Duration::from_secs(60));
    pause(50).await;
    assert_eq!(mail.mails().len(), 0);
}

#[tokio::test]
async fn an_interrupted_mail_is_sent_again_after_a_restart() {
    let (mut t, mail) = service().await;
    mail.be_silent(true);
    let browser = t.visitor();
    start(&browser, ADA).await;
    let first = mail.mail(1).await;
    t.stop().await;
    assert_eq!(queued(&t).await, "1", "the server has not accepted it");
    mail.be_silent(false);
    t.start_again().await;
    let second = mail.mail(2).await;
    assert_eq!((second.code(), second.header("Message-ID")), (first.code(), first.header("Message-ID")));
    emptied(&t).await;
    assert_eq!(verify(&browser, ADA, &second.code()).await.status, 200);
}
