//! A provider that is unavailable, slow, or faulty.

use std::time::Duration;

use integration_tests::Knobs;
use serde_json::json;

use super::{get, outcome, service_with, status_and_code, way};

const HOUR: Duration = Duration::from_secs(60 * 60);
const CONFIGURATION: &str = "/.well-known/openid-configuration";
const UNAVAILABLE: &str = "503 auth.oidc_unavailable";
const ALL: [(&str, &str); 2] =
    [("SERVICE_AUTH_RATE_LIMIT_IP", "0"), ("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0")];

#[tokio::test]
async fn the_service_works_without_its_provider() {
    let (mut t, mut provider) = service_with(&ALL).await;
    provider.server.go_down().await;
    t.restart().await;
    t.assert_healthy().await;
    let page = t.get("/api/auth/oidc/start").await;
    assert_eq!((status_and_code(&page).as_str(), page.header("retry-after")), (UNAVAILABLE, Some("1")));
    assert!(page.text().contains("request <code>") && page.text().contains("login"), "{}", page.text());
    t.assert_no_rows("oidc_sign_ins").await;
    provider.server.come_up().await;
    assert_eq!(
        status_and_code(&t.get("/api/auth/oidc/start").await),
        UNAVAILABLE,
        "the provider is not requested again at once"
    );
    t.advance(Duration::from_secs(1));
    let browser = t.visitor();
    let first = way(&browser, &provider, "/api/auth/oidc/start?return_to=%2Fchat%2Fx").await;
    provider.server.go_down().await;
    let page = get(&browser, &first.back).await;
    assert_eq!(status_and_code(&page), UNAVAILABLE);
    assert!(page.text().contains("login?return_to=%2Fchat%2Fx"));
    t.assert_no_rows("auth_failures").await;
    provider.server.come_up().await;
    assert_eq!(outcome(&browser, &provider).await, "303", "started again");
}

#[tokio::test]
async fn discovery_is_refreshed_hourly_and_a_stale_document_is_used() {
    let (t, provider) = service_with(&ALL).await;
    let starts = || async {
        let all = futures_util::future::join_all((0..10).map(|_| t.get("/api/auth/oidc/start"))).await;
        all.iter().filter(|answer| answer.status == 303).count()
    };
    assert_eq!((starts().await, provider.asked(CONFIGURATION)), (10, 1), "ten at once ask once");
    t.advance(HOUR - Duration::from_secs(1));
    assert_eq!((starts().await, provider.asked(CONFIGURATION)), (10, 1));
    provider.be(|knobs| {
        knobs.answers.insert(CONFIGURATION, (500, String::new()));
    });
    t.advance(Duration::from_secs(1));
    assert_eq!((starts().await, provider.asked(CONFIGURATION)), (10, 2));
    assert_eq!((starts().await, provider.asked(CONFIGURATION)), (10, 2));
    t.advance(Duration::from_secs(10));
    assert_eq!((starts().await, provider.asked(CONFIGURATION)), (10, 3), "every ten seconds");
    t.advance(24 * HOUR);
    assert_eq!(starts().await, 0, "a day later it is too old");
}

#[tokio::test]
async fn an_unusable_discovery_document_is_rejected() {
    let (t, provider) = service_with(&ALL).await;
    let elsewhere = json!({"issuer": "https://evil.example"});
    for metadata in [
        elsewhere,
        json!({"issuer": format!("{}/", provider.issuer())}),
        json!({"token_endpoint": "http://id.example/token"}),
        json!({"jwks_uri": null}),
        json!({"userinfo_endpoint": "http://id.example/userinfo"}),
        json!({"code_challenge_methods_supported": ["plain"]}),
        json!({"token_endpoint_auth_methods_supported": ["private_key_jwt"]}),
    ] {
        provider.be(|knobs| knobs.metadata = metadata.clone());
        t.advance(Duration::from_secs(1));
        assert_eq!(status_and_code(&t.get("/api/auth/oidc/start").await), UNAVAILABLE, "{metadata}");
    }
    for (status, body) in
        [(200, "[]".to_owned()), (200, " ".repeat(300 * 1024)), (302, "{}".to_owned()), (404, String::new())]
    {
        provider.be(|knobs| {
            knobs.answers.insert(CONFIGURATION, (status, body.clone()));
        });
        t.advance(Duration::from_secs(1));
        assert_eq!(
            status_and_code(&t.get("/api/auth/oidc/start").await),
            UNAVAILABLE,
            "{status} {}",
            body.len()
        );
    }
    provider.be(|knobs| {
        knobs.metadata = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]})
    });
    t.advance(Duration::from_secs(1));
    assert_eq!(outcome(&t.visitor(), &provider).await, "303", "the secret goes in the form");
}

#[tokio::test]
async fn a_bad_token_response_signs_in_no_user() {
    let (t, provider) = service_with(&ALL).await;
    let token = |status: u16, body: &str| {
        let body = body.to_owned();
        move |knobs: &mut Knobs| {
            knobs.answers.insert("/token", (status, body));
        }
    };
    let failed = "401 auth.oidc_failed";
    let huge = format!(r#"{{"id_token":"{}"}}"#, "x".repeat(300 * 1024));
    let long = format!(r#"{{"id_token":"{}"}}"#, "x".repeat(9 * 1024));
    for (status, body, expected) in [
        (400, r#"{"error":"invalid_grant"}"#, failed),
        (401, r#"{"error":"invalid_client"}"#, failed),
        (400, "<html>", failed),
        (200, "{}", failed),
        (200, "<html>", failed),
        (200, r#"{"id_token":"a.b.c"}"#, failed),
        (200, r#"{"id_token":"a","id_token":"b"}"#, failed),
        (200, &long, failed),
        (200, &huge, UNAVAILABLE),
        (302, "{}", UNAVAILABLE),
        (429, "{}", UNAVAILABLE),
        (500, "{}", UNAVAILABLE),
    ] {
        provider.be(token(status, body));
        let shown: String = body.chars().take(40).collect();
        assert_eq!(outcome(&t.visitor(), &provider).await, expected, "{status} {shown}");
    }
    provider.be(|knobs| {
        knobs.answers.insert("/jwks", (500, String::new()));
    });
    assert_eq!(outcome(&t.visitor(), &provider).await, UNAVAILABLE, "tokens are not accepted without keys");
    t.assert_no_rows("users").await;
    // Its keys are fetched again a second later.
    t.advance(Duration::from_secs(1));
    provider.be(|_| {});
    assert_eq!(outcome(&t.visitor(), &provider).await, "303");
}

#[tokio::test]
async fn a_slow_provider_times_out_without_delaying_others() {
    let (t, provider) = service_with(&[ALL[0], ALL[1], ("SERVICE_DATABASE_POOL", "2")]).await;
    let browser = t.visitor();
    let mut ways = Vec::new();
    for _ in 0..9 {
        ways.push(way(&browser, &provider, "/api/auth/oidc/start").await.back);
    }
    provider.be(|knobs| knobs.silent = Some("/token"));
    let all = futures_util::future::join_all(ways.iter().map(|back| get(&browser, back)));
    let checks = async {
        integration_tests::until("nine to wait for the provider", async || provider.asked("/token") == 9)
            .await;
        // More of them than database connections, and the database is still free.
        assert_eq!(t.get("/api/auth/me").await.status, 401);
        assert_eq!(t.get("/readyz").await.status, 200);
        assert_eq!(t.get("/api/auth/oidc/start").await.status, 303);
        t.advance(Duration::from_secs(10));
    };
    let (pages, ()) = tokio::join!(all, checks);
    assert!(pages.iter().all(|page| status_and_code(page) == UNAVAILABLE));
    t.assert_no_rows("sign_in_sessions").await;
}
