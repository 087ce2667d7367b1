//! The code: the conditions for signing in with it.

use std::time::Duration;

use insta::assert_snapshot;
use integration_tests::{AnswerExt, JSON, shown};
use serde_json::{Value, json};

use super::{ADA, BINDING, BROWSER, SESSION, dump, get, hex, me_as, origin, post, service, start, verify};

#[tokio::test]
async fn a_code_signs_in_the_browser_that_requested_it() {
    let (t, mail) = service().await;
    mail.be_silent(true);
    let browser = t.visitor();
    let response = start(&browser, " Ada@Example.ORG ").await;
    let secret = browser.cookie(BINDING).unwrap();
    assert_eq!(response.value(), json!({"challenge": secret}));
    let device = browser.cookie(BROWSER).unwrap();
    assert_snapshot!(shown(&response).replace(&secret, "[secret]").replace(&device, "[browser]"), @r#"
    202
    content-type: application/json
    set-cookie: __Host-svc_chal=[secret]; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=600
    set-cookie: __Host-svc_browser=[browser]; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=34560000
    cache-control: no-store
    {"challenge":"[secret]"}
    "#);
    let sent = mail.mail(1).await;
    assert_eq!(
        (sent.to.as_slice(), sent.from.as_str()),
        (&["Ada@example.org".to_owned()][..], "no-reply@localhost")
    );
    let code = sent.code();
    let link = sent.link().unwrap();
    assert!(!sent.header("Subject").unwrap().contains(&code), "a subject is shown where others look");
    let token = link.rsplit('/').next().unwrap();
    assert!(
        link.starts_with(&format!("{}/api/auth/magic/", origin(&browser))) && token.len() == 43,
        "{link}"
    );

    // The mail is still queued, and the database does not reveal its content.
    let stored = dump(&t).await;
    assert!(stored.contains("Ada@example.org"));
    for text in [code.as_str(), token, secret.as_str(), &link] {
        assert!(!stored.contains(text) && !stored.contains(&hex(text)), "{text} in {stored}");
    }

    let answer = verify(&browser, "Ada@EXAMPLE.org", &code).await;
    let session = browser.cookie(SESSION).unwrap();
    let body = answer.value();
    let user = body["user"]["id"].as_str().unwrap();
    assert_eq!(body["user"], json!({"id": user, "email": "Ada@example.org", "name": null}));
    assert_eq!((&body["token_type"], &body["expires_in"]), (&json!("bearer"), &json!(900)));
    assert_eq!(body.as_object().unwrap().len(), 5, "{body}");
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().map(|v| v.to_str().unwrap()).collect();
    assert_eq!(
        cookies.iter().map(|line| line.replace(&session, "[secret]")).collect::<Vec<_>>().join("\n"),
        "__Host-svc_session=[secret]; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=43200\n\
         __Host-svc_chal=; HttpOnly; SameSite=Lax; Secure; Path=/; Max-Age=0"
    );
    assert_eq!((answer.header("cache-control"), session.len()), (Some("no-store"), 43));

    let me = get(&browser, "/api/auth/me").await;
    let mut value = me.value();
    let sessions = value.as_object_mut().unwrap().remove("sessions").unwrap();
    assert_eq!(value, json!({"user": body["user"], "workspaces": []}));
    assert_eq!((&sessions[0]["kind"], &sessions[0]["current"]), (&json!("browser"), &json!(true)));
    assert_eq!(me.header("cache-control"), Some("no-store"));
    assert_eq!(me_as(&t.anonymous(), &body["access_token"]).await.value(), me.value());
    let stored = dump(&t).await;
    for text in [&session, body["refresh_token"].as_str().unwrap(), body["access_token"].as_str().unwrap()] {
        assert!(!stored.contains(text) && !stored.contains(&hex(text)), "{text}");
    }
}

#[tokio::test]
async fn wrong_expired_used_and_foreign_codes_get_the_same_refusal() {
    let (t, mail) = super::service_with(&[("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "0")]).await;
    let (browser, other) = (t.visitor(), t.visitor());
    let mut refused = Vec::new();
    start(&browser, ADA).await;
    let code = mail.mail(1).await.code();
    let wrong = if code == "000000" { "000001" } else { "000000" };
    refused.push(verify(&other, ADA, &code).await);
    start(&other, "bob@example.org").await;
    mail.mail(2).await;
    refused.push(verify(&other, ADA, &code).await);
    refused.push(verify(&other, "bob@example.org", &code).await);
    for bad in [wrong, "", "12345", "abcdef"] {
        refused.push(verify(&browser, ADA, bad).await);
    }
    refused.push(verify(&browser, "nobody", &code).await);
    refused.push(verify(&browser, ADA, &code).await);
    let burnt = "SELECT tries FROM sign_in_challenges WHERE email = 'ada@example.org'";
    assert_eq!(t.scalar(burnt).await, "5", "the right code is no longer accepted");

    let before = mail.mails().len();
    start(&browser, ADA).await;
    let old = mail.mail(before + 1).await.code();
    let binding = browser.cookie(BINDING).unwrap();
    start(&browser, ADA).await;
    let new = mail.mail(before + 2).await.code();
    let older = json!({"challenge": binding, "email": ADA, "code": old});
    refused.push(post(&browser, "/api/auth/email/verify", &older).await);
    assert_eq!(verify(&browser, ADA, &new).await.status, 200);
    browser.set_cookie(BINDING, &binding);
    refused.push(verify(&browser, ADA, &new).await);

    let late = t.visitor();
    start(&late, ADA).await;
    let code = mail.mail(before + 3).await.code();
    t.advance(Duration::from_secs(600));
    refused.push(verify(&late, ADA, &code).await);
    assert_snapshot!(integration_tests::shown_alike(&refused), @r#"
    401
    content-type: application/json
    www-authenticate: Bearer
    cache-control: no-store
    {"detail":{"message":"The code or link is not valid.","code":"auth.code_invalid"}}
    "#);
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions").await, "1");
}

#[tokio::test]
async fn a_code_is_valid_until_its_last_second() {
    let (t, mail) = service().await;
    let browser = t.visitor();
    start(&browser, ADA).await;
    let code = mail.mail(1).await.code();
    t.advance(Duration::from_secs(599));
    assert_eq!(verify(&browser, ADA, &format!("{} {}", &code[..3], &code[3..])).await.status, 200);
}

#[tokio::test]
async fn one_of_many_concurrent_verifications_wins_and_each_guess_counts() {
    let (t, mail) = service().await;
    let browser = t.visitor();
    start(&browser, ADA).await;
    let code = mail.mail(1).await.code();
    let body = json!({"email": ADA, "code": code});
    let shown = (0..8).map(|_| post(&browser, "/api/auth/email/verify", &body));
    let answers = futures_util::future::join_all(shown).await;
    let won = answers.iter().filter(|answer| answer.status == 200).count();
    assert_eq!((won, t.scalar("SELECT count(*) FROM sign_in_sessions").await.as_str()), (1, "1"));
    assert!(answers.iter().all(|answer| answer.status == 200 || answer.code() == "auth.code_invalid"));

    let browser = t.visitor();
    start(&browser, "bob@example.org").await;
    let code = mail.mail(2).await.code();
    let wrong = if code == "000000" { "000001" } else { "000000" };
    let guesses = (0..8).map(|_| verify(&browser, "bob@example.org", wrong));
    futures_util::future::join_all(guesses).await;
    assert_eq!(
        verify(&browser, "bob@example.org", &code).await.status,
        401,
        "five guesses at once count five"
    );
}

#[tokio::test]
async fn a_client_without_cookies_signs_in_by_its_challenge() {
    let (t, mail) = service().await;
    let client = t.anonymous();
    let body = json!({"email": ADA}).to_string();
    let started = client.send("POST", "/api/auth/email/start", &[JSON], body).await.unwrap().value();
    let code = mail.mail(1).await.code();
    let shown = |challenge: &Value| json!({"challenge": challenge, "email": ADA, "code": code}).to_string();
    let foreign = client.send("POST", "/api/auth/email/verify", &[JSON], shown(&json!("x"))).await.unwrap();
    assert_eq!(foreign.refusal(), "401 auth.code_invalid");
    let answer =
        client.send("POST", "/api/auth/email/verify", &[JSON], shown(&started["challenge"])).await.unwrap();
    assert_eq!((answer.status, answer.header("set-cookie")), (200, None));
    assert_eq!(me_as(&client, &answer.value()["access_token"]).await.status, 200);
    assert_eq!(t.scalar("SELECT count(*) FROM sign_in_sessions WHERE cookie_digest IS NULL").await, "1");
}

#[tokio::test]
async fn a_members_only_sign_in_does_not_reveal_its_members() {
    let (t, mail) =
        super::service_with(&[("SERVICE_SIGNUP", "members"), ("SERVICE_OWNER_EMAIL", "Boss@Example.org")])
            .await;
    t.execute(
        "INSERT INTO users VALUES (gen_random_uuid(), 'ada@example.org', 'Ada', now()), (gen_random_uuid(), 'eve@example.org', NULL, now());
         INSERT INTO workspace_members SELECT w.id, u.id, 'editor', now() FROM workspaces w, users u WHERE u.email LIKE 'ada%'",
    )
    .await;
    let mut answers = Vec::new();
    for email in [ADA, "stranger@example.org", "eve@example.org", "Boss@example.org"] {
        let browser = t.visitor();
        let answer = start(&browser, email).await;
        let shown = shown(&answer).replace(&browser.cookie(BINDING).unwrap(), "[secret]");
        answers.push(shown.replace(&browser.cookie(BROWSER).unwrap(), "[browser]"));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:#?}");
    mail.mail(2).await;
    t.until_scalar("the queue to be empty", "SELECT count(*) FROM outgoing_mail", "0").await;
    let to: Vec<String> = mail.mails().into_iter().flat_map(|mail| mail.to).collect();
    assert_eq!(to.len(), 2, "{to:?}");
    assert!(to.contains(&ADA.to_owned()) && to.contains(&"Boss@example.org".to_owned()), "{to:?}");
    assert_eq!(t.scalar("SELECT count(*) FROM users").await, "2", "no user was created");

    let (_, body) = super::signed_in(&t, &mail, "Boss@example.org").await;
    let me = me_as(&t.anonymous(), &body["access_token"]).await.value();
    assert_eq!(
        (&me["workspaces"][0]["slug"], &me["workspaces"][0]["role"]),
        (&json!("default"), &json!("owner"))
    );
}

#[tokio::test]
async fn too_many_guesses_are_blocked_for_a_minute() {
    let limits = [("SERVICE_AUTH_RATE_LIMIT_IDENTITY", "3"), ("SERVICE_AUTH_RATE_LIMIT_IP", "5")];
    let (t, mail) = super::service_with(&limits).await;
    let browser = t.visitor();
    start(&browser, ADA).await;
    let code = mail.mail(1).await.code();
    for _ in 0..3 {
        assert_eq!(verify(&browser, ADA, "x").await.refusal(), "401 auth.code_invalid");
    }
    // A block takes effect within a second.
    t.advance(Duration::from_secs(1));
    let refused = verify(&browser, ADA, &code).await;
    assert_eq!(
        (refused.refusal().as_str(), refused.header("retry-after")),
        ("429 auth.rate_limited", Some("59"))
    );
    let wrong = super::refresh(&browser, &json!("x")).await;
    assert_eq!(wrong.refusal(), "401 auth.refresh_invalid", "another identity");
    assert_eq!(super::refresh(&browser, &json!("y")).await.refusal(), "401 auth.refresh_invalid");
    t.advance(Duration::from_secs(1));
    for path in ["/api/auth/refresh", "/api/auth/email/verify", "/api/auth/magic/x"] {
        let body = if path.ends_with("verify") {
            json!({"email": "b@c.org", "code": "1"})
        } else {
            json!({"refresh_token": "z"})
        };
        assert_eq!(
            post(&browser, path, &body).await.refusal(),
            "429 auth.rate_limited",
            "{path}: the address"
        );
    }
    let stored = t.scalar("SELECT string_agg(key, ' ') FROM auth_failures").await;
    // Hexadecimal hashes sometimes contain "ada": an address has an "@".
    assert!(!stored.contains('@') && !stored.contains("example"), "{stored}");
    t.advance(Duration::from_secs(61));
    assert_eq!(verify(&browser, ADA, &code).await.status, 200);
    let trail = "SELECT string_agg(action || ' ' || coalesce(reason, '') || ' ' || actor_kind, ', ' ORDER BY id) FROM audit_log WHERE action <> 'auth.failed'";
    assert_eq!(t.scalar(trail).await, "auth.signed_in by mail user");
    assert_eq!(t.scalar("SELECT count(*) FROM audit_log WHERE action = 'auth.failed'").await, "5");
}
