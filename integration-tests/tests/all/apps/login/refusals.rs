//! Invalid requests and responses: none of them signs in or redirects.

use std::time::Duration;

use integration_tests::AnswerExt;
use serde_json::json;

use super::*;

fn assert_failure(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 400, "{why}");
    let text = answer.text();
    assert!(text.contains("login_failed") && text.contains("/__service/auth/login"), "{why}: {text}");
    assert_eq!(answer.header("referrer-policy"), Some("no-referrer"), "{why}");
    assert_eq!(answer.header("location"), None, "{why}");
    let set = answer.header("set-cookie").unwrap_or_default();
    assert!(!set.contains(COOKIE), "{why}: {set}");
}

#[tokio::test]
async fn invalid_authorization_requests_show_an_error_page() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let good = browser.begin(NOTES).await;
    assert_eq!(browser.open(&good).await.status, 303);
    let challenge = parameter(&good, "code_challenge");
    let mut bad: Vec<(String, String)> = Vec::new();
    for name in
        ["response_type", "client_id", "redirect_uri", "code_challenge", "code_challenge_method", "state"]
    {
        bad.push((format!("without {name}"), with(&good, name, None)));
        bad.push((format!("{name} twice"), format!("{good}&{name}={}", parameter(&good, name))));
    }
    for (name, value) in [
        ("response_type", "token"),
        ("client_id", "unknown"),
        ("client_id", "other"),
        ("redirect_uri", "https://evil.example/__service/auth/callback"),
        ("redirect_uri", "http://other.apps.localhost:8000/__service/auth/callback"),
        ("redirect_uri", "https://notes.apps.localhost:8000/__service/auth/callback"),
        ("redirect_uri", "http://notes.apps.localhost/__service/auth/callback"),
        ("redirect_uri", "http://notes.apps.localhost:8000/__service/auth/callback/"),
        ("redirect_uri", "http://notes.apps.localhost:8000/__service/auth/callback?x=1"),
        ("redirect_uri", "http://notes.apps.localhost:8000@evil.example/__service/auth/callback"),
        ("code_challenge", "x"),
        ("code_challenge_method", "plain"),
        ("code_challenge_method", ""),
        ("state", ""),
        ("state", "a b"),
        ("scope", "openid"),
    ] {
        bad.push((format!("{name}={value}"), with(&good, name, Some(value))));
    }
    for (description, url) in bad {
        let page = browser.open(&url).await;
        assert_eq!((page.status, page.header("location")), (400, None), "{description}");
        let text = page.text();
        assert!(
            text.contains("bad_request") && !text.contains("evil.example") && !text.contains(&challenge),
            "{description}: {text}"
        );
        // The form has the same checks.
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", CENTRAL)];
        let form = url.split_once('?').unwrap().1;
        let answer = browser.send("POST", &format!("{CENTRAL}/authorize/approve"), &headers, form).await;
        assert_eq!((answer.status, answer.header("location")), (400, None), "approve {description}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM app_codes").await, "2");
}

#[tokio::test]
async fn users_of_another_workspace_are_rejected_despite_consent() {
    let (t, mail) = service().await;
    let eve = Browser::new(&t);
    eve.sign_in(&mail, "eve@example.org").await;
    let authorize = eve.begin(NOTES).await;
    let page = eve.open(&authorize).await;
    assert_eq!((page.status, page.header("location")), (403, None));
    assert!(page.text().contains("not_a_member"), "{}", page.text());
    let headers = [("content-type", "application/x-www-form-urlencoded"), ("origin", CENTRAL)];
    let form = authorize.split_once('?').unwrap().1;
    eve.send("POST", &format!("{CENTRAL}/authorize/approve"), &headers, form).await.expect(403);
    assert_eq!(
        t.scalar("SELECT (SELECT count(*) FROM app_codes) + (SELECT count(*) FROM app_consents)").await,
        "0"
    );
}

#[tokio::test]
async fn pages_of_other_origins_cannot_consent_for_a_user() {
    let (t, mail) = service().await;
    let browser = Browser::new(&t);
    browser.sign_in(&mail, ADA).await;
    let authorize = browser.begin(NOTES).await;
    let form = authorize.split_once('?').unwrap().1;
    let url = format!("{CENTRAL}/authorize/approve");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    for foreign in [
        vec![("origin", "https://evil.example")],
        vec![("origin", NOTES)],
        vec![("origin", "null")],
        vec![("origin", CENTRAL), ("origin", CENTRAL)],
        vec![("sec-fetch-site", "cross-site")],
        vec![("sec-fetch-site", "same-site")],
        vec![],
        vec![("sec-fetch-site", "same-origin"), ("sec-fetch-site", "same-origin")],
    ] {
        let headers: Vec<_> = foreign.iter().copied().chain([kind]).collect();
        let answer = browser.send("POST", &url, &headers, form).await;
        assert_eq!(answer.refusal(), "403 auth.origin_mismatch", "{foreign:?}");
    }
    let text = [("content-type", "text/plain"), ("origin", CENTRAL)];
    assert_eq!(browser.send("POST", &url, &text, form).await.status, 415);
    assert_eq!(t.scalar("SELECT count(*) FROM app_consents").await, "0");
    // As JSON, too; callers who are not signed in must sign in first.
    let members: serde_json::Map<String, Value> = url::form_urlencoded::parse(form.as_bytes())
        .into_owned()
        .map(|(name, value)| (name, json!(value)))
        .collect();
    let stranger = Browser::new(&t).post("/authorize/approve", &json!(members)).await;
    let to = location(&url, &stranger).unwrap();
    assert!(to.starts_with(&format!("{CENTRAL}/login?return_to=%2Fauthorize%3F")), "{to}");
    let answer = browser.post("/authorize/approve", &json!(members)).await;
    assert!(answer.header("location").unwrap().starts_with(NOTES));
    browser.post("/authorize/approve", &json!({"state": 1})).await.expect(400);
}

#[tokio::test]
async fn a_callback_is_valid_once_in_the_browser_that_began_it() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    // Login CSRF: an attacker's state and code in another browser, with or without that browser's own sign-in.
    let callback = browser.callback(NOTES).await;
    let victim = Browser::new(&t);
    assert_failure(&victim.open(&callback).await, "another browser");
    victim.begin(NOTES).await;
    assert_failure(&victim.open(&callback).await, "another browser with its own sign-in");
    // A mix of two sign-ins.
    let (one, two) = (browser.callback(NOTES).await, browser.callback(NOTES).await);
    let mixed = with(&one, "code", Some(&parameter(&two, "code")));
    assert_failure(&browser.open(&mixed).await, "the code of another sign-in: its verifier is another one");
    assert_failure(&browser.open(&one).await, "the state is used up");
    assert_eq!(browser.open(&two).await.status, 303);
    assert!(browser.is_signed_in(NOTES).await);

    for (description, change) in [
        ("no state", ("state", None)),
        ("no code", ("code", None)),
        ("no issuer", ("iss", None)),
        ("another issuer", ("iss", Some("https://evil.example"))),
        ("issuer with a slash", ("iss", Some("http://localhost:8000/"))),
        ("another state", ("state", Some("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))),
        ("another code", ("code", Some("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"))),
        ("an empty code", ("code", Some(""))),
    ] {
        assert_failure(
            &browser.open(&with(&browser.callback(NOTES).await, change.0, change.1)).await,
            description,
        );
    }
    let callback = browser.callback(NOTES).await;
    assert_failure(&browser.open(&format!("{callback}&code=x")).await, "a code twice");
    assert_eq!(browser.open(&callback).await.status, 303, "the callback was not consumed");

    // Two cookies with the same name count as none.
    let callback = browser.callback(NOTES).await;
    let login = login_cookie_name(&callback);
    let binding = browser.cookie(NOTES, &login).unwrap();
    let planted = format!("{login}=planted; {login}={binding}");
    assert_failure(
        &Browser::new(&t).send("GET", &callback, &[("cookie", &planted)], "").await,
        "two cookies",
    );
    let planted = format!("{LATEST}=planted; {LATEST}={binding}");
    assert_failure(
        &Browser::new(&t).send("GET", &callback, &[("cookie", &planted)], "").await,
        "two of the latest",
    );
    // The latest sign-in's cookie is enough.
    let latest = format!("{LATEST}={}", browser.cookie(NOTES, LATEST).unwrap());
    assert_eq!(Browser::new(&t).send("GET", &callback, &[("cookie", &latest)], "").await.status, 303);
}

#[tokio::test]
async fn a_replayed_callback_ends_its_session() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    // The same browser, after its sign-in cookie was removed.
    let callback = browser.callback(NOTES).await;
    assert_eq!(browser.open(&callback).await.status, 303);
    assert!(browser.is_signed_in(NOTES).await);
    assert_failure(&browser.open(&callback).await, "opened again");
    assert!(!browser.is_signed_in(NOTES).await, "a reload ends the session");
    assert_eq!(count(&t, "revoked_reason = 'code_replayed'").await, "1");
    assert_failure(&browser.open(&callback).await, "a third time");

    // Another browser, without and with its own sign-in.
    for begins in [false, true] {
        let callback = browser.callback(NOTES).await;
        assert_eq!(browser.open(&callback).await.status, 303);
        let other = Browser::new(&t);
        if begins {
            other.begin(NOTES).await;
        }
        // A caller who knows the state but not the code ends nothing.
        let guess = with(&callback, "code", Some("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        assert_failure(&other.open(&guess).await, "a guess");
        assert_failure(&other.open(&with(&callback, "code", None)).await, "no code");
        assert!(browser.is_signed_in(NOTES).await);
        let at_other_app = callback.replace(NOTES, OTHER);
        assert_failure(&other.open(&at_other_app).await, "another app");
        assert!(browser.is_signed_in(NOTES).await, "another app cannot end the session");
        assert_failure(&other.open(&callback).await, "another browser");
        assert!(!browser.is_signed_in(NOTES).await);
    }

    // A browser that still has the cookie has sent several requests at once; later it repeats one.
    let callback = browser.callback(NOTES).await;
    let name = login_cookie_name(&callback);
    let secret = browser.cookie(NOTES, &name).unwrap();
    assert_eq!(browser.open(&callback).await.status, 303);
    browser.set_cookie(NOTES, &name, &secret);
    t.advance(Duration::from_millis(1_999));
    assert_failure(&browser.open(&callback).await, "at the same moment");
    assert!(browser.is_signed_in(NOTES).await);
    t.advance(Duration::from_millis(1));
    assert_failure(&browser.open(&callback).await, "later");
    assert!(!browser.is_signed_in(NOTES).await);

    // The code of an ended session, with a valid state of the same browser.
    let (first, second) = (browser.callback(NOTES).await, browser.callback(NOTES).await);
    assert_eq!(browser.open(&first).await.status, 303);
    assert_failure(
        &browser.open(&with(&second, "code", Some(&parameter(&first, "code")))).await,
        "in another sign-in",
    );
    assert!(!browser.is_signed_in(NOTES).await);
}

#[tokio::test]
async fn a_code_is_valid_for_one_app() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    browser.enter(OTHER).await;
    let of_other = browser.open(&browser.begin(OTHER).await).await;
    let code = parameter(of_other.header("location").unwrap(), "code");
    let genuine = browser.open(&browser.begin(NOTES).await).await;
    let callback = with(genuine.header("location").unwrap(), "code", Some(&code));
    assert_failure(&browser.open(&callback).await, "the code of another app");
    // Another app's state, at this app.
    let there = browser.callback(OTHER).await;
    let login = login_cookie_name(&there);
    browser.set_cookie(NOTES, &login, &browser.cookie(OTHER, &login).unwrap());
    assert_failure(&browser.open(&there.replace(OTHER, NOTES)).await, "the state of another app");
    assert_eq!(browser.open(&there).await.status, 303);
}

#[tokio::test]
async fn states_and_codes_expire() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let callback = browser.callback(NOTES).await;
    t.advance(Duration::from_secs(59));
    assert_eq!(browser.open(&callback).await.status, 303, "a second before the expiry");
    let callback = browser.callback(NOTES).await;
    t.advance(Duration::from_secs(60));
    assert_failure(&browser.open(&callback).await, "a code of a minute");
    let authorize = browser.begin(NOTES).await;
    t.advance(Duration::from_secs(600));
    let callback = browser.open(&authorize).await.header("location").unwrap().to_owned();
    assert_failure(&browser.open(&callback).await, "a state of ten minutes");
}

#[tokio::test]
async fn sign_ins_per_client_and_codes_per_user_are_limited() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let authorize = browser.begin(NOTES).await;
    for _ in 2..100 {
        browser.begin(NOTES).await;
    }
    let url = format!("{NOTES}/__service/auth/login");
    let answer = browser.send("GET", &url, &[], "").await;
    assert_eq!((answer.refusal().as_str(), answer.header("retry-after")), ("429 rate_limited", Some("600")));
    assert_eq!(browser.open(&url).await.status, 429);
    // Another app has a separate limit.
    browser.begin(OTHER).await;
    for _ in 1..100 {
        assert_eq!(browser.open(&authorize).await.status, 303);
    }
    let page = browser.open(&authorize).await;
    assert_eq!((page.status, page.header("retry-after")), (429, Some("600")));
    t.advance(Duration::from_secs(600));
    assert_eq!(browser.open(&browser.begin(NOTES).await).await.status, 303);
}

#[tokio::test]
async fn only_navigations_begin_a_sign_in() {
    let (t, mail) = service().await;
    let browser = ada(&t, &mail).await;
    let url = format!("{NOTES}/__service/auth/login");
    let sign_in_count = async || t.scalar("SELECT count(*) FROM app_sign_ins").await;
    let before = sign_in_count().await;
    for (site, mode, dest) in [
        ("same-origin", "cors", "empty"),
        ("same-site", "no-cors", "image"),
        ("same-site", "no-cors", "script"),
        ("same-origin", "navigate", "iframe"),
        ("cross-site", "no-cors", "empty"),
    ] {
        let headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode), ("sec-fetch-dest", dest)];
        let refused = browser.send("GET", &url, &headers, "").await;
        assert_eq!(refused.refusal(), "403 origin_mismatch", "{site} {mode} {dest}");
        assert_eq!(refused.header("set-cookie"), None);
    }
    assert_eq!(sign_in_count().await, before);
}
