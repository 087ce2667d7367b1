//! The link: opened by scanners, by another browser, by the right browser.

use integration_tests::{AnswerExt, Client, JSON};
use serde_json::json;
use std::time::Duration;

use super::{ADA, SESSION, get, post, service, start, verify};

/// The path of a mailed link.
fn path(client: &Client, link: Option<String>) -> String {
    link.unwrap().strip_prefix(client.base().trim_end_matches('/')).unwrap().to_owned()
}

#[tokio::test]
async fn a_link_signs_in_the_browser_that_requested_it() {
    let (t, mail) = service().await;
    let (browser, other) = (t.visitor(), t.visitor());
    let request = json!({"email": ADA, "return_to": "/chat/x?y=1"});
    assert_eq!(post(&browser, "/api/auth/email/start", &request).await.status, 202);
    let link = path(&browser, mail.mail(1).await.link());
    // A scanner opens links, and sends HEAD requests.
    for _ in 0..3 {
        let page = get(&other, &link).await;
        assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
        assert!(page.text().contains("Open it in the same browser") && !page.text().contains("<button"));
        assert!(!page.text().contains(ADA), "the link alone reveals nothing");
        assert_eq!(other.send("HEAD", &link, &[], "").await.unwrap().status, 200);
        let refused = post(&other, &link, &json!({})).await;
        assert_eq!(refused.refusal(), "401 auth.code_invalid");
        assert!(refused.message().contains("in the browser that requested it"), "{}", refused.message());
    }
    let page = get(&browser, &link).await;
    assert!(page.text().contains("<button") && page.text().contains(ADA), "{}", page.text());
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    // Web mail is another site, from which a click is a navigation.
    let click =
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")];
    let page = browser.send("GET", &link, &click, "").await.unwrap();
    assert!(page.text().contains("<button"), "{}", page.text());
    assert_eq!(browser.cookie(SESSION), None);
    let foreign = [("origin", "https://evil.example")];
    assert_eq!(
        browser.send("POST", &link, &foreign, "").await.unwrap().refusal(),
        "403 auth.origin_mismatch"
    );

    let answer = post(&browser, &link, &json!({})).await;
    assert_eq!((answer.status, answer.value()["return_to"].as_str()), (200, Some("/chat/x?y=1")));
    assert_eq!(get(&browser, "/api/auth/me").await.value()["user"]["email"], ADA);
    assert_eq!(post(&browser, &link, &json!({})).await.refusal(), "401 auth.code_invalid");
    let page = get(&browser, &link).await;
    assert!(page.status == 404 && page.text().contains("no longer valid"));
}

#[tokio::test]
async fn a_link_expires_with_its_code() {
    let (t, mail) = service().await;
    let browser = t.visitor();
    start(&browser, ADA).await;
    let first = mail.mail(1).await;
    start(&browser, ADA).await;
    let second = mail.mail(2).await;
    assert_eq!(
        post(&browser, &path(&browser, first.link()), &json!({})).await.refusal(),
        "401 auth.code_invalid"
    );
    assert_eq!(verify(&browser, ADA, &second.code()).await.status, 200);
    assert_eq!(
        post(&browser, &path(&browser, second.link()), &json!({})).await.status,
        401,
        "used by its code"
    );

    let browser = t.visitor();
    start(&browser, ADA).await;
    let third = mail.mail(3).await;
    t.advance(Duration::from_secs(600));
    assert_eq!(post(&browser, &path(&browser, third.link()), &json!({})).await.status, 401, "too old");
    for nonsense in ["/api/auth/magic/x", "/api/auth/magic/%00", "/api/auth/magic/é"] {
        assert_eq!(post(&browser, nonsense, &json!({})).await.status, 401, "{nonsense}");
        assert_eq!(get(&browser, nonsense).await.status, 404, "{nonsense}");
    }
}

#[tokio::test]
async fn a_link_leads_only_to_the_public_base() {
    let (t, mail) = super::service_with(&[("SERVICE_PUBLIC_BASE_URL", "https://desk.example.org")]).await;
    let json = [JSON, ("host", "evil.example")];
    let body = json!({"email": ADA}).to_string();
    let send =
        |headers: &'static [(&str, &str)]| t.send("POST", "/api/auth/email/start", headers, body.clone());
    assert_eq!(send(&[JSON]).await.status, 202);
    assert!(mail.mail(1).await.link().unwrap().starts_with("https://desk.example.org/api/auth/magic/"));
    assert_eq!(mail.mails()[0].header("From"), Some("no-reply@desk.example.org"));

    let (t, mail) = service().await;
    let mut raw = t.raw().await;
    let request = format!(
        "POST /api/auth/email/start HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        json[1].1,
        json[0].1,
        body.len()
    );
    assert!(raw.write(request).await);
    let sent = mail.mail(1).await;
    assert_eq!(sent.link(), None, "a link to a host of the requester would give accounts away");
    assert!(!sent.data.contains("evil.example") && sent.code().len() == 6);
}
