//! Proxies that ask whether a host belongs to an app.

use integration_tests::{AnswerExt, TestService};

use super::{public_app, publish};

#[tokio::test]
async fn proxies_obtain_certificates_for_published_apps_only() {
    let t =
        TestService::builder().alone().set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.9/32"]"#).start().await;
    public_app(&t, "desk").await;
    public_app(&t, "empty").await;
    publish(&t, "desk", &[("index.html", b"<p>1")]).await;
    let path = |domain: &str| format!("/api/system/tls-ask?domain={domain}");
    let ask = async |domain: &str, headers: &[(&str, &str)]| t.send("GET", &path(domain), headers, "").await;
    for domain in ["desk.apps.localhost", "DESK.apps.localhost."] {
        assert_eq!(ask(domain, &[]).await.status, 200, "{domain}");
    }
    for domain in [
        "empty.apps.localhost",
        "other.apps.localhost",
        "apps.localhost",
        "a.desk.apps.localhost",
        "localhost",
        "",
        "%00",
    ] {
        assert_eq!(ask(domain, &[]).await.refusal(), "404 app_not_found", "{domain}");
    }
    assert_eq!(t.get("/api/system/tls-ask").await.refusal(), "422 request.invalid");
    // Remote callers learn nothing: an untrusted proxy passes on what it receives.
    let passed_on = [("x-forwarded-for", "203.0.113.7")];
    assert_eq!(ask("desk.apps.localhost", &passed_on).await.refusal(), "404 app_not_found");
    let from = |last: u8| integration_tests::Raw::connect_from([127, 0, 0, last].into(), t.address());
    for (last, forwarded, status) in
        [(9, None, 200), (9, Some("203.0.113.7"), 404), (9, Some("127.0.0.1"), 200)]
    {
        let header = forwarded.map(|address| ("x-forwarded-for", address));
        let answer =
            from(last).await.request("GET", &path("desk.apps.localhost"), header.as_slice(), "").await;
        assert_eq!(answer.status, status, "{last} {forwarded:?}");
    }
}

#[tokio::test]
async fn certificate_checks_are_limited_to_twenty_a_second() {
    let t = TestService::builder().manual_clock().alone().start().await;
    public_app(&t, "desk").await;
    publish(&t, "desk", &[("index.html", b"<p>1")]).await;
    let ask = async || t.get("/api/system/tls-ask?domain=desk.apps.localhost").await;
    for _ in 0..20 {
        assert_eq!(ask().await.status, 200);
    }
    assert_eq!(ask().await.refusal(), "429 rate_limited");
    t.advance(std::time::Duration::from_secs(1));
    assert_eq!(ask().await.status, 200);
}
