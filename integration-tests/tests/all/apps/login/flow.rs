//! The sign-in over both hosts, and the data visible on it.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, until};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_member_signs_in_centrally_consents_once_and_returns_to_the_page() {
    let (t, mail) = service().await;
    let browser = Browser::new(&t);
    let (at, page) =
        browser.follow(&format!("{NOTES}/__service/auth/login?return_to=/__service/nowhere?a=1")).await;
    assert_eq!(page.status, 200);
    assert!(at.starts_with(&format!("{CENTRAL}/login?return_to=%2Fauthorize")), "{at}");
    browser.sign_in(&mail, ADA).await;
    let authorize = format!("{CENTRAL}{}", parameter(&at, "return_to"));
    let (at, page) = browser.follow(&authorize).await;
    assert_eq!((at.as_str(), page.status), (authorize.as_str(), 200));
    let text = page.text().replace("&#x2f;", "/");
    assert!(text.contains("The notes") && text.contains(ADA) && text.contains(NOTES), "{text}");
    assert_eq!((text.matches("<form").count(), text.matches("<button").count()), (1, 1));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains(&format!("form-action 'self' {NOTES};")) && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(page.header("referrer-policy"), Some("same-origin"), "otherwise forms have the origin null");
    assert_eq!(page.header("cache-control"), Some("no-store"));
    assert_eq!(t.scalar("SELECT count(*) FROM app_codes").await, "0", "no code is issued before the consent");

    let callback = browser.consent(&authorize).await;
    assert!(callback.starts_with(&format!("{NOTES}/__service/auth/callback?code=")), "{callback}");
    assert_eq!(parameter(&callback, "iss"), CENTRAL);
    let answer = browser.open(&callback).await;
    assert_eq!(answer.header("location"), Some("/__service/nowhere?a=1"));
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(answer.header("cache-control"), Some("private, no-store"));
    assert!(
        browser.logins(NOTES).is_empty() && browser.cookie(NOTES, LATEST).is_none(),
        "the sign-in cookies are removed"
    );
    let session = browser.session(NOTES).await;
    assert_eq!((&session["authenticated"], &session["display_name"]), (&json!(true), &json!("ada")));
    assert!(session["expires_at"].as_str().unwrap().ends_with('Z'), "{session}");

    // The user consents once per app.
    browser.forget(NOTES, COOKIE);
    let callback = browser.open(&browser.begin(NOTES).await).await;
    assert!(callback.header("location").unwrap().starts_with(NOTES), "{}", callback.text());
    assert_eq!(browser.open(&browser.begin(OTHER).await).await.status, 200);
}

#[tokio::test]
async fn stored_data_cannot_open_a_session() {
    let (t, mail) = service().await;
    let browser = Browser::new(&t);
    browser.sign_in(&mail, ADA).await;
    let authorize = browser.begin(NOTES).await;
    let binding = browser.cookie(NOTES, &login_cookie_name(&authorize)).unwrap();
    let callback = browser.consent(&authorize).await;
    assert_eq!(browser.open(&callback).await.status, 303);
    let tables = ["app_sign_ins", "app_codes", "app_sessions", "app_consents"]
        .map(|table| format!("coalesce((SELECT string_agg(t::text, ' ') FROM {table} t), '')"));
    let dump = t.scalar(&format!("SELECT {}", tables.join(" || "))).await;
    let secrets = [
        binding,
        parameter(&authorize, "state"),
        parameter(&callback, "code"),
        browser.cookie(NOTES, COOKIE).unwrap(),
    ];
    for secret in secrets {
        let hex: String = secret.bytes().map(|b| format!("{b:02x}")).collect();
        assert!(!dump.contains(&secret) && !dump.contains(&hex), "{secret}");
    }
}

#[tokio::test]
async fn each_sign_in_path_has_one_method() {
    let (t, mail) = service().await;
    publish(&t, "open", "public").await;
    let browser = Browser::new(&t);
    browser.sign_in(&mail, ADA).await;
    for path in ["/__service/auth/session", "/__service/auth/nowhere"] {
        let answer = browser.send("GET", &format!("{NOTES}{path}"), &[], "").await;
        assert!([200, 404].contains(&answer.status), "{path} {}", answer.status);
    }
    for (method, path, allow) in [
        ("POST", "login", "GET"),
        ("POST", "callback", "GET"),
        ("GET", "logout", "POST"),
        ("OPTIONS", "logout", "POST"),
        ("POST", "session", "GET"),
    ] {
        let url = format!("{NOTES}/__service/auth/{path}");
        let answer = browser.send(method, &url, &[("origin", NOTES)], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{method} {path}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    let unknown = format!("{}/__service/auth/login", NOTES.replace("notes", "unknown"));
    assert_eq!(browser.open(&unknown).await.status, 404);
}

#[tokio::test]
async fn a_members_only_app_serves_strangers_only_its_sign_in_and_script() {
    let (t, mail) = service().await;
    let stranger = Browser::new(&t);
    assert_eq!(stranger.types(NOTES).await.refusal(), "401 login_required");
    assert_eq!(stranger.types(OTHER).await.status, 200, "a public app");
    for path in ["/__service/client.js", "/__service/auth/session"] {
        assert_eq!(stranger.open(&format!("{NOTES}{path}")).await.status, 200, "{path}");
    }
    let browser = ada(&t, &mail).await;
    assert_eq!(browser.types(NOTES).await.status, 200);
    let foreign = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors"), ("sec-fetch-dest", "empty")];
    let answer = browser.send("GET", &format!("{NOTES}/__service/client.d.ts"), &foreign, "").await;
    assert_eq!(answer.refusal(), "403 origin_mismatch", "a read of another site");
    // A change of `access` takes effect within a second, for members and strangers.
    t.execute("UPDATE apps SET access = 'public' WHERE alias = 'notes'").await;
    t.advance(Duration::from_secs(1));
    assert_eq!(stranger.types(NOTES).await.status, 200);
}

#[tokio::test]
async fn return_to_stays_on_the_app() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    for (target, expected) in [
        ("/a%3Fb=c", "/a?b=c"),
        ("//evil.example", "/"),
        ("/%5Cevil.example", "/"),
        ("https://evil.example", "/"),
        ("/%0d%0aset-cookie:a=b", "/"),
        ("/__service/auth/login", "/"),
        ("/a&return_to=/b", "/"),
        ("javascript:alert(1)", "/"),
    ] {
        let started = browser.open(&format!("{NOTES}/__service/auth/login?return_to={target}")).await;
        let callback = browser.open(&location(NOTES, &started).unwrap()).await;
        let back = browser.open(callback.header("location").unwrap()).await;
        assert_eq!(back.header("location"), Some(expected), "{target}");
    }
}

#[tokio::test]
async fn app_sign_in_requires_a_base_url_and_readiness_reports_its_absence() {
    let t = TestService::builder().manual_clock().alone().start().await;
    let login = async || {
        let answer = t.get("/readyz").await.value();
        (answer["status"].clone(), answer["parts"]["login"].clone())
    };
    assert_eq!(login().await, (json!("ready"), json!({"ready": true})), "no app requires it");
    publish(&t, "notes", "members").await;
    assert_eq!(login().await.1, json!({"ready": true}), "the result is cached");
    t.advance(Duration::from_secs(30));
    until("the readiness note", async || login().await.1["note"].is_string()).await;
    let (status, part) = login().await;
    assert_eq!((status, &part["ready"]), (json!("ready"), &json!(true)));
    assert!(part["note"].as_str().unwrap().contains("SERVICE_PUBLIC_BASE_URL"), "{part}");
    let browser = Browser::new(&t);
    for path in ["login", "callback?code=a&state=b&iss=c"] {
        let answer = browser.open(&format!("{NOTES}/__service/auth/{path}")).await;
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.text().contains("login_not_configured"), "{}", answer.text());
    }
    let answer = browser.send("GET", &format!("{NOTES}/__service/auth/login"), &[], "").await;
    assert_eq!(answer.refusal(), "503 login_not_configured");
    assert_eq!(browser.session(NOTES).await, json!({"authenticated": false}));
}

#[tokio::test]
async fn sign_in_is_rejected_when_browsers_would_drop_the_cookie() {
    let base = "https://desk.example.org";
    let apps = "apps.example.net";
    let (t, _mail) = service_with(&[
        ("SERVICE_PUBLIC_BASE_URL", base),
        ("SERVICE_APPS_DOMAIN", apps),
        ("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#),
    ])
    .await;
    let browser = Browser::new(&t);
    let url = format!("http://notes.{apps}/__service/auth/login");
    assert_eq!(browser.send("GET", &url, &[], "").await.refusal(), "403 tls_required");
    let page = browser.open(&url).await.expect(403);
    assert!(page.text().contains("https") && page.header("set-cookie").is_none(), "{}", page.text());
    let over_tls = browser.send("GET", &url, &[("x-forwarded-proto", "https")], "").await;
    let to = over_tls.header("location").unwrap();
    assert!(to.starts_with(&format!("{base}/authorize?")), "{to}");
    assert_eq!(parameter(to, "redirect_uri"), format!("https://notes.{apps}/__service/auth/callback"));
}
