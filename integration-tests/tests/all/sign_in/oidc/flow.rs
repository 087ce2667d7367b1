//! The complete sign-in, and the parts that are valid only once.

use std::time::Duration;

use integration_tests::{AnswerExt, CLIENT_SECRET};
use serde_json::json;

use super::super::{SESSION, dump, hex, origin, post};
use super::{BINDING, get, is_in, markup, me, service, service_with, sign_in, status_and_code, way};

#[tokio::test]
async fn a_user_signs_in_by_the_provider() {
    let (t, provider) = service().await;
    let workflow = t.workflow().echo().published().require_login().create().await;
    let browser = t.visitor();
    assert_eq!(
        provider.asked("/.well-known/openid-configuration"),
        0,
        "the provider is not requested before it is needed"
    );
    let start = format!("/api/auth/oidc/start?return_to=%2Fchat%2F{}", workflow.id);
    let there = get(&browser, &start).await;
    let secret = browser.cookie(BINDING).unwrap();
    assert_eq!((there.status, secret.len()), (303, 43));
    assert_eq!(
        (there.header("cache-control"), there.header("referrer-policy"), there.header("set-cookie").unwrap()),
        (
            Some("no-store"),
            Some("no-referrer"),
            format!("{BINDING}={secret}; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=600").as_str()
        )
    );
    let way = provider.visit(there.header("location").unwrap()).await;
    assert_eq!(way.asked("redirect_uri"), format!("{}/api/auth/oidc/callback", origin(&browser)));
    assert_eq!(way.asked("scope"), "openid email profile");
    let secrets = [way.asked("state"), way.asked("nonce"), secret.clone()];
    let stored = dump(&t).await;
    for text in &secrets {
        assert!(!stored.contains(text.as_str()) && !stored.contains(&hex(text)), "{text} in {stored}");
    }

    let back = get(&browser, &way.back).await.expect(303);
    assert_eq!(back.header("location").unwrap(), format!("../../../chat/{}", workflow.id));
    let session = browser.cookie(SESSION).unwrap();
    let cookies: Vec<_> = back.headers.get_all("set-cookie").iter().map(|v| v.to_str().unwrap()).collect();
    assert_eq!(
        cookies,
        [format!("{SESSION}={session}; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=43200")]
    );
    assert_eq!(
        (back.header("cache-control"), browser.cookie(BINDING)),
        (Some("no-store"), Some(secret.clone()))
    );
    assert!(back.text().is_empty(), "no page gets tokens");
    let user = me(&browser).await["user"].clone();
    assert_eq!((&user["email"], &user["name"]), (&json!("ada@example.org"), &json!(null)));
    assert_eq!(get(&browser, &format!("/chat/{}", workflow.id)).await.status, 200);

    let stored = dump(&t).await;
    for text in provider.secrets().iter().chain(&secrets).chain([
        &session,
        &way.brought("code"),
        &CLIENT_SECRET.to_owned(),
    ]) {
        assert!(!stored.contains(text.as_str()) && !stored.contains(&hex(text)), "{text} in {stored}");
    }
    assert_eq!(
        t.scalar("SELECT issuer || ' ' || subject FROM user_identities").await,
        format!("{} ada-1", provider.issuer())
    );
    assert_eq!(t.scalar("SELECT count(*) FROM refresh_tokens").await, "0", "no refresh token was issued");
    let trail = "SELECT string_agg(action || ' ' || outcome || ' ' || actor_kind || ' ' || reason, ', ' ORDER BY id) FROM audit_log WHERE action LIKE 'auth%'";
    let by = format!("success user by {}", provider.issuer());
    assert_eq!(t.scalar(trail).await, format!("auth.signed_in {by}, auth.identity_linked {by}"));

    assert_eq!(post(&browser, "/api/auth/logout", &json!({})).await.status, 204);
    assert!(!is_in(&browser).await);
    browser.set_cookie(SESSION, &session);
    assert!(!is_in(&browser).await, "the old cookie is no longer valid");
}

#[tokio::test]
async fn a_callback_is_valid_once_for_ten_minutes_in_its_browser() {
    let (t, provider) = service_with(&[("SERVICE_AUTH_RATE_LIMIT_IP", "0")]).await;
    let browser = t.visitor();
    let first = way(&browser, &provider, "/api/auth/oidc/start").await;
    for other in [t.visitor(), t.anonymous()] {
        let page = get(&other, &first.back).await;
        assert_eq!(status_and_code(&page), "401 auth.oidc_failed");
        assert!(page.text().contains("not the browser that started"), "{}", page.text());
        assert!(other.cookie(SESSION).is_none());
    }
    // Another user's sign-in does not work in this browser either.
    let mallory = t.visitor();
    let theirs = way(&mallory, &provider, "/api/auth/oidc/start").await;
    assert!(get(&browser, &theirs.back).await.text().contains("not the browser that started"));
    assert_eq!(provider.asked("/token"), 0, "the provider is not requested before the check");

    assert_eq!(get(&browser, &first.back).await.status, 303, "foreign attempts do not consume it");
    let session = browser.cookie(SESSION).unwrap();
    assert_eq!(status_and_code(&get(&browser, &first.back).await), "401 auth.oidc_failed", "a second time");
    assert_eq!(browser.cookie(SESSION), Some(session), "the session is kept");
    let second = way(&browser, &provider, "/api/auth/oidc/start").await;
    let stale = second.back.replace(&second.brought("code"), &first.brought("code"));
    assert_eq!(status_and_code(&get(&browser, &stale).await), "401 auth.oidc_failed", "another way's code");

    for (age, expected) in [(599, "303"), (600, "401 auth.oidc_failed")] {
        let browser = t.visitor();
        let late = way(&browser, &provider, "/api/auth/oidc/start").await;
        t.advance(Duration::from_secs(age));
        provider.be(|knobs| knobs.claims = json!({"iat": 0, "exp": 4_000_000_000_i64}));
        assert_eq!(status_and_code(&get(&browser, &late.back).await), expected, "after {age} s");
    }
    let page = get(&t.visitor(), "/api/auth/oidc/callback?state=nobodys&code=x").await;
    assert_eq!(
        (status_and_code(&page).as_str(), page.header("www-authenticate")),
        ("401 auth.oidc_failed", Some("Bearer"))
    );
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert!(markup(&page).contains(r#"href="../../../login""#));
    for query in ["", "?code=x", "?state=&code=x", "?state=a&state=b&code=x"] {
        let page = get(&t.visitor(), &format!("/api/auth/oidc/callback{query}")).await;
        assert_eq!(status_and_code(&page), "401 auth.oidc_failed", "{query}");
    }
}

#[tokio::test]
async fn one_of_twenty_concurrent_callbacks_signs_in() {
    let (t, provider) =
        service_with(&[("SERVICE_AUTH_RATE_LIMIT_IP", "0"), ("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0")]).await;
    let browser = t.visitor();
    let way = way(&browser, &provider, "/api/auth/oidc/start").await;
    let answers = futures_util::future::join_all((0..20).map(|_| get(&browser, &way.back))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 303).count(), 1);
    assert_eq!(answers.iter().filter(|answer| status_and_code(answer) == "401 auth.oidc_failed").count(), 19);
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions").await, "1");
    assert_eq!(provider.asked("/token"), 1, "the code is shown once");
}

#[tokio::test]
async fn a_browser_with_two_concurrent_sign_ins_has_one_session() {
    let (t, provider) = service().await;
    let browser = t.visitor();
    let first = way(&browser, &provider, "/api/auth/oidc/start?return_to=%2Fchat%2Fa").await;
    let second = way(&browser, &provider, "/api/auth/oidc/start?return_to=%2Fchat%2Fb").await;
    let secret = browser.cookie(BINDING).unwrap();
    assert_eq!(get(&browser, &first.back).await.header("location"), Some("../../../chat/a"));
    let old = browser.cookie(SESSION).unwrap();
    assert_eq!(browser.cookie(BINDING).unwrap(), secret, "it is still the same browser");
    assert_eq!(get(&browser, &second.back).await.header("location"), Some("../../../chat/b"));
    assert_ne!(browser.cookie(SESSION).unwrap(), old);
    assert_eq!(
        t.scalar("SELECT string_agg(coalesce(revoked_reason, 'open'), ' ' ORDER BY created_at, id) FROM sign_in_sessions").await,
        "signed_in_again open"
    );
}

#[tokio::test]
async fn sign_ins_return_only_to_local_paths_and_are_rate_limited() {
    let (t, provider) = service().await;
    for away in [
        "%2F%2Fevil.example",
        "https%3A%2F%2Fevil.example",
        "%2F%5Cevil.example",
        "javascript%3Aalert(1)",
        "",
    ] {
        let browser = t.visitor();
        let way = way(&browser, &provider, &format!("/api/auth/oidc/start?return_to={away}")).await;
        assert_eq!(get(&browser, &way.back).await.header("location"), Some("../../../"), "{away}");
    }
    let before: usize = t.scalar("SELECT count(*) FROM oidc_sign_ins").await.parse().unwrap();
    for _ in before..100 {
        assert_eq!(t.get("/api/auth/oidc/start").await.status, 303);
    }
    let page = t.get("/api/auth/oidc/start").await;
    assert_eq!(
        (status_and_code(&page).as_str(), page.header("retry-after")),
        ("429 auth.rate_limited", Some("600"))
    );
    assert_eq!(t.scalar("SELECT count(*) FROM oidc_sign_ins").await, "100");
    t.advance(Duration::from_secs(600));
    assert_eq!(t.get("/api/auth/oidc/start").await.status, 303);
    for path in ["/api/auth/oidc/start", "/api/auth/oidc/callback"] {
        let answer = t.post(path, "{}").await;
        assert_eq!(
            (answer.refusal().as_str(), answer.header("allow")),
            ("405 request.method_not_allowed", Some("GET"))
        );
    }
}

#[tokio::test]
async fn failures_are_rate_limited_and_audited() {
    let (t, provider) = service_with(&[("SERVICE_AUTH_RATE_LIMIT_IP", "3")]).await;
    let browser = t.visitor();
    let good = way(&browser, &provider, "/api/auth/oidc/start").await;
    // Any page can send its visitors there: without a sign-in's cookie, nothing counts.
    for number in 0..5 {
        let page = get(&t.visitor(), &format!("/api/auth/oidc/callback?state=x{number}&code=y")).await;
        assert_eq!(status_and_code(&page), "401 auth.oidc_failed");
    }
    for number in 0..3 {
        let page = get(&browser, &format!("/api/auth/oidc/callback?state=x{number}&code=y")).await;
        assert_eq!(status_and_code(&page), "401 auth.oidc_failed");
    }
    t.advance(Duration::from_secs(1));
    let page = get(&browser, &good.back).await;
    assert_eq!(status_and_code(&page), "429 auth.rate_limited", "the right one too");
    assert!(page.header("retry-after").is_some() && page.text().contains("Wait a minute"));
    let trail = "SELECT string_agg(DISTINCT action || ' ' || outcome || ' ' || reason, ', ') || ' ' || count(*) FROM audit_log WHERE outcome = 'denied'";
    assert_eq!(t.scalar(trail).await, "auth.failed denied auth.oidc_failed 3");
    t.advance(Duration::from_secs(60));
    assert_eq!(get(&browser, &good.back).await.status, 303, "it was not used up meanwhile");
    assert_eq!(sign_in(&t.visitor(), &provider).await.status, 303);
}
