//! Available sign-in methods.

use integration_tests::{AnswerExt, MailServer, TestService};
use serde_json::json;

use super::super::{ADA, origin, post, signed_in};
use super::{get, markup, service, service_with, sign_in, status_and_code};

#[tokio::test]
async fn the_provider_is_the_only_sign_in_without_a_mail_server() {
    let (t, provider) = service_with(&[("SERVICE_PUBLIC_BASE_URL", "http://localhost:8000")]).await;
    for (path, body) in [
        ("/api/auth/email/start", json!({"email": ADA})),
        ("/api/auth/email/verify", json!({"email": ADA, "code": "123456"})),
        ("/api/auth/magic/x", json!({})),
    ] {
        let answer = t.post(path, &body.to_string()).await;
        assert_eq!(answer.refusal(), "404 auth.email_sign_in_off", "{path}");
    }
    assert_eq!(t.get("/api/auth/magic/x").await.status, 404);
    t.assert_no_rows("sign_in_challenges").await;
    t.assert_no_rows("outgoing_mail").await;
    let page = markup(&t.get("/login?return_to=%2Fchat%2Fx").await);
    assert!(page.contains(r#"href="api/auth/oidc/start?return_to=%2Fchat%2Fx""#), "{page}");
    assert!(
        page.contains("Continue with 127.0.0.1") && !page.contains("<form") && !page.contains("<noscript"),
        "{page}"
    );
    // Unsafe return addresses are dropped.
    assert!(
        markup(&t.get("/login?return_to=%2F%2Fevil.example").await).contains(r#"href="api/auth/oidc/start""#)
    );
    assert_eq!(provider.asked("/.well-known/openid-configuration"), 0, "a page needs no provider");
}

#[tokio::test]
async fn mail_and_provider_are_both_offered_with_a_mail_server() {
    let mail = MailServer::start().await;
    let (t, provider) = service_with(&[("SERVICE_SMTP_URL", &mail.url())]).await;
    let page = t.get("/login").await.text();
    assert!(page.contains("Continue with 127.0.0.1") && page.contains("address-form"), "{page}");
    signed_in(&t, &mail, ADA).await;
    let browser = t.visitor();
    assert_eq!(sign_in(&browser, &provider).await.status, 303);
    let shown = get(&browser, "/login").await.text();
    assert!(shown.contains(ADA) && !shown.contains("Continue with"), "{shown}");
}

#[tokio::test]
async fn mail_is_the_only_sign_in_without_a_provider() {
    let t = TestService::start().await;
    for path in ["/api/auth/oidc/start", "/api/auth/oidc/callback?state=x&code=y"] {
        assert_eq!(status_and_code(&t.get(path).await), "404 auth.oidc_off", "{path}");
    }
    let page = t.get("/login").await.text();
    assert!(!page.contains("Continue with") && page.contains("address-form"));
    post(t.client(), "/api/auth/email/start", &json!({"email": ADA})).await.expect(202);
}

#[tokio::test]
async fn the_callback_uses_the_public_address_and_https() {
    let (t, provider) =
        service_with(&[("SERVICE_PUBLIC_BASE_URL", "https://desk.example.org/callboard")]).await;
    let way = super::way(&t.visitor(), &provider, "/api/auth/oidc/start").await;
    assert_eq!(way.asked("redirect_uri"), "https://desk.example.org/callboard/api/auth/oidc/callback");

    let (t, provider) = service_with(&[("SERVICE_PUBLIC_BASE_URL", "http://desk.example.org")]).await;
    let mut raw = t.raw().await;
    assert!(
        raw.write("GET /api/auth/oidc/start HTTP/1.1\r\nhost: desk.example.org\r\nconnection: close\r\n\r\n")
            .await
    );
    let page = raw.answer().await.whole().await;
    assert_eq!((status_and_code(&page).as_str(), page.header("set-cookie")), ("403 auth.tls_required", None));
    assert_eq!(provider.asked("/.well-known/openid-configuration"), 0);

    // Without a configured address, the request's own address is used.
    let (t, provider) = service().await;
    let browser = t.visitor();
    let way = super::way(&browser, &provider, "/api/auth/oidc/start").await;
    assert!(way.asked("redirect_uri").starts_with(&origin(&browser)));
}
