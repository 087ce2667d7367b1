//! All the faults that a provider, or an attacker in between, can cause.

use integration_tests::{Knobs, Signing};
use kernel::Clock;
use serde_json::{Value, json};

use super::{get, is_in, outcome, service_with, status_and_code, way};

const ALL: [(&str, &str); 2] =
    [("SERVICE_AUTH_RATE_LIMIT_IP", "0"), ("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0")];

type Change = Box<dyn FnOnce(&mut Knobs)>;

#[tokio::test]
async fn an_invalid_identity_token_signs_in_no_user() {
    let (t, provider) = service_with(&ALL).await;
    let now = t.clock().now().timestamp();
    let claims = |claims: Value| move |knobs: &mut Knobs| knobs.claims = claims;
    let failed = "401 auth.oidc_failed";
    let cases: Vec<(&str, Change)> = vec![
        ("another nonce", Box::new(claims(json!({"nonce": "x".repeat(43)})))),
        ("no nonce", Box::new(claims(json!({"nonce": null})))),
        ("a nonce that is no text", Box::new(claims(json!({"nonce": ["x"]})))),
        ("another audience", Box::new(claims(json!({"aud": "desk"})))),
        ("no audience", Box::new(claims(json!({"aud": null})))),
        ("two audiences and no party", Box::new(claims(json!({"aud": ["desk:1", "other"]})))),
        ("another party", Box::new(claims(json!({"aud": ["desk:1", "other"], "azp": "other"})))),
        ("another party alone", Box::new(claims(json!({"azp": "other"})))),
        ("another issuer", Box::new(claims(json!({"iss": "https://evil.example"})))),
        ("no issuer", Box::new(claims(json!({"iss": null})))),
        ("expired", Box::new(claims(json!({"exp": now - 1})))),
        ("no end", Box::new(claims(json!({"exp": null})))),
        ("an end that is a text", Box::new(claims(json!({"exp": "4000000000"})))),
        ("made a minute from now", Box::new(claims(json!({"iat": now + 60})))),
        ("made never", Box::new(claims(json!({"iat": null})))),
        ("good later", Box::new(claims(json!({"nbf": now + 60})))),
        ("no subject", Box::new(claims(json!({"sub": null})))),
        ("an empty subject", Box::new(claims(json!({"sub": ""})))),
        ("a subject of 256 letters", Box::new(claims(json!({"sub": "x".repeat(256)})))),
        ("alg none", Box::new(|knobs: &mut Knobs| knobs.signing = Signing::Nothing)),
        ("alg HS256", Box::new(|knobs: &mut Knobs| knobs.signing = Signing::ClientSecret)),
        ("a broken signature", Box::new(|knobs: &mut Knobs| knobs.signing = Signing::Broken)),
        ("another key", Box::new(|knobs: &mut Knobs| knobs.header = json!({"kid": "two"}))),
        ("an access token", Box::new(|knobs: &mut Knobs| knobs.header = json!({"typ": "at+jwt"}))),
        (
            "a key set URL in the header",
            Box::new(|knobs: &mut Knobs| knobs.header = json!({"jku": "https://evil.example"})),
        ),
    ];
    for (name, change) in cases {
        provider.be(change);
        let browser = t.visitor();
        assert_eq!(outcome(&browser, &provider).await, failed, "{name}");
        assert!(!is_in(&browser).await, "{name}");
    }
    let unverified = "403 auth.oidc_unverified";
    for claims in [
        json!({"email_verified": false}),
        json!({"email_verified": "false"}),
        json!({"email_verified": 1}),
        json!({"email": "nobody"}),
        json!({"email": ["ada@example.org"]}),
    ] {
        provider.be(|knobs| knobs.claims = claims.clone());
        assert_eq!(outcome(&t.visitor(), &provider).await, unverified, "{claims}");
    }
    assert_eq!(provider.asked("/userinfo"), 0, "claims of the token need no userinfo request");
    t.assert_no_rows("users").await;
    t.assert_no_rows("sign_in_sessions").await;
    for claims in [
        json!({"email_verified": "true"}),
        json!({"aud": ["desk:1"]}),
        json!({"aud": ["desk:1", "other"], "azp": "desk:1"}),
        json!({"iat": now + 20}),
    ] {
        provider.be(|knobs| knobs.claims = claims.clone());
        assert_eq!(outcome(&t.visitor(), &provider).await, "303", "{claims}");
    }
    provider.be(|knobs| knobs.header = json!({"kid": null, "typ": null}));
    assert_eq!(outcome(&t.visitor(), &provider).await, "303", "one key needs no name");
}

#[tokio::test]
async fn missing_claims_are_read_from_the_userinfo_endpoint() {
    let (t, provider) = service_with(&ALL).await;
    let (unverified, failed) = ("403 auth.oidc_unverified", "401 auth.oidc_failed");
    let left_out = [
        json!({"email": null, "email_verified": null}),
        json!({"email_verified": null}),
        json!({"email": null}),
    ];
    for (userinfo, expected) in [
        (json!({"sub": "ada-1", "email": "ada@example.org", "email_verified": false}), unverified),
        (json!({"sub": "ada-1", "email": "ada@example.org"}), unverified),
        (json!({"sub": "ada-1", "email_verified": true}), unverified),
        (json!({"sub": "bob-1", "email": "ada@example.org", "email_verified": true}), failed),
        (json!({"email": "ada@example.org", "email_verified": true}), failed),
        (json!([]), failed),
    ] {
        for claims in &left_out {
            provider.be(|knobs| {
                knobs.claims = claims.clone();
                knobs.userinfo = userinfo.clone();
            });
            assert_eq!(outcome(&t.visitor(), &provider).await, expected, "{claims} {userinfo}");
        }
    }
    for (status, body) in [(500, String::new()), (302, String::new()), (200, " ".repeat(300 * 1024))] {
        provider.be(|knobs| {
            knobs.claims = left_out[0].clone();
            knobs.answers.insert("/userinfo", (status, body.clone()));
        });
        assert_eq!(outcome(&t.visitor(), &provider).await, "503 auth.oidc_unavailable", "{status}");
    }
    provider.be(|knobs| {
        knobs.claims = left_out[0].clone();
        knobs.answers.insert("/userinfo", (200, "no JSON".to_owned()));
    });
    assert_eq!(outcome(&t.visitor(), &provider).await, failed);
    t.assert_no_rows("users").await;
    for claims in left_out {
        provider.be(|knobs| knobs.claims = claims.clone());
        assert_eq!(outcome(&t.visitor(), &provider).await, "303", "{claims}");
    }
    assert_eq!(t.scalar("SELECT email FROM users").await, "ada@example.org");

    let (t, provider) = service_with(&ALL).await;
    provider.be(|knobs| {
        knobs.metadata = json!({"userinfo_endpoint": null});
        knobs.claims = json!({"email": null});
    });
    assert_eq!(outcome(&t.visitor(), &provider).await, unverified, "there is no userinfo endpoint");
}

#[tokio::test]
async fn a_callback_with_another_issuer_is_rejected() {
    let (t, provider) = service_with(&ALL).await;
    let back = |name: &'static str, value: &str| {
        let value = value.to_owned();
        move |knobs: &mut Knobs| knobs.back = vec![(name, value)]
    };
    for issuer in ["https://evil.example", &format!("{}/", provider.issuer()), ""] {
        provider.be(back("iss", issuer));
        assert_eq!(outcome(&t.visitor(), &provider).await, "401 auth.oidc_failed", "{issuer:?}");
    }
    assert_eq!(provider.asked("/token"), 0, "the code is not sent");
    let browser = t.visitor();
    provider.be(|_| {});
    let twice = way(&browser, &provider, "/api/auth/oidc/start").await;
    let page = get(&browser, &format!("{}&iss=x", twice.back)).await;
    assert_eq!(status_and_code(&page), "401 auth.oidc_failed", "a repeated parameter is rejected");

    provider.be(back("state", "of-somebody-else"));
    assert_eq!(outcome(&t.visitor(), &provider).await, "401 auth.oidc_failed");
    provider.be(back("code", ""));
    assert_eq!(outcome(&t.visitor(), &provider).await, "401 auth.oidc_failed");
    provider.be(back("code", "guessed"));
    assert_eq!(outcome(&t.visitor(), &provider).await, "401 auth.oidc_failed");
    t.assert_no_rows("users").await;

    // A provider that does not announce its issuer parameter may omit it, but must send the correct one.
    let (t, provider) = service_with(&ALL).await;
    let quiet = json!({"authorization_response_iss_parameter_supported": null});
    for (issuer, expected) in [("", "303"), ("https://evil.example", "401 auth.oidc_failed")] {
        provider.be(|knobs| {
            knobs.metadata = quiet.clone();
            knobs.back = vec![("iss", issuer.to_owned())];
        });
        assert_eq!(outcome(&t.visitor(), &provider).await, expected, "{issuer:?}");
    }
}

#[tokio::test]
async fn error_texts_of_the_provider_are_not_shown() {
    let (t, provider) = service_with(&ALL).await;
    for error in ["access_denied", "server_error", "<script>alert(1)</script>"] {
        provider.be(|knobs| {
            knobs.back = vec![
                ("code", String::new()),
                ("error", error.to_owned()),
                ("error_description", "<img src=x onerror=alert(1)>".to_owned()),
                ("error_uri", "javascript:alert(1)".to_owned()),
            ];
        });
        let browser = t.visitor();
        let way = way(&browser, &provider, "/api/auth/oidc/start?return_to=%2Fchat%2Fx").await;
        let page = get(&browser, &way.back).await;
        let text = page.text();
        assert_eq!(status_and_code(&page), "401 auth.oidc_failed");
        assert!(
            text.contains("rejected the sign-in") && text.contains("login?return_to=%2Fchat%2Fx"),
            "{text}"
        );
        assert!(
            !text.contains("alert") && !text.contains("access_denied") && !text.contains("onerror"),
            "{text}"
        );
        assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    }
    assert_eq!(provider.asked("/token"), 0);
}
