//! The service's accepted host names, and the targets of outgoing links.

use integration_tests::{AnswerExt, JSON, MailServer, TestService};
use serde_json::json;

const START: &str = "/api/auth/email/start";

/// Hosts that a URL parser reads differently from a suffix check.
const FORGED: [&str; 12] = [
    "evil.test/x?.localhost",
    "evil.test#.localhost",
    "evil.test/.localhost",
    "evil.test\\.localhost",
    "evil.test?.localhost",
    "evil.test:80/x?.localhost",
    "user@localhost",
    "evil.test@localhost",
    "localhost:80:80",
    "localhost:x",
    "a b.localhost",
    "",
];

#[tokio::test]
async fn a_forged_host_is_rejected_and_no_mail_is_sent() {
    let mail = MailServer::start().await;
    let t = TestService::builder().set("SERVICE_SMTP_URL", mail.url()).start().await;
    let workflow = t.workflow().published().create().await;
    let body = json!({"email": "victim@example.org"}).to_string();
    for host in FORGED {
        let public = workflow.path("/public");
        for (method, path, body) in [
            ("POST", START, body.as_str()),
            ("GET", "/api/auth/oidc/start", ""),
            ("GET", public.as_str(), ""),
            ("POST", "/api/workflows", r#"{"name":"x"}"#),
            ("GET", "/healthz", ""),
        ] {
            let answer = t.send(method, path, &[JSON, ("host", host)], body).await;
            assert_eq!(answer.refusal(), "400 request.invalid_host", "{host:?} {path}");
        }
    }
    for head in [
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n",
        "GET http://evil.test/healthz HTTP/1.1\r\nHost: localhost\r\n",
    ] {
        let mut raw = t.raw().await;
        raw.write(format!("{head}Connection: close\r\n\r\n")).await;
        assert_eq!(raw.answer().await.whole().await.status, 400, "{head}");
    }
    t.assert_no_rows("sign_in_challenges").await;
    assert_eq!(mail.mails().len(), 0);
}

/// A request's own host is used in a mail only if the request comes from this machine.
#[tokio::test]
async fn a_mail_contains_a_link_only_if_the_host_cannot_be_forged() {
    let mail = MailServer::start().await;
    let t = TestService::builder().set("SERVICE_SMTP_URL", mail.url()).start().await;
    let port = t.address().port();
    let (local, other) = (format!("localhost:{port}"), "localhost:9999".to_owned());
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], bool);
    let rows: [Row<'_>; 7] = [
        (&local, &[], true),
        ("evil.test", &[], false),
        ("desk.example.org", &[], false),
        ("evil.localhost", &[], false),
        // A proxy on this machine forwards another machine's request.
        (&other, &[("x-forwarded-for", "192.0.2.7")], false),
        (&other, &[("forwarded", "for=192.0.2.7")], false),
        (&other, &[("x-forwarded-host", "localhost")], false),
    ];
    for (index, (host, headers, linked)) in rows.into_iter().enumerate() {
        let email = format!("p{index}@example.org");
        let mut all = vec![JSON, ("host", host)];
        all.extend_from_slice(headers);
        let answer = t.send("POST", START, &all, json!({"email": email}).to_string()).await;
        assert_eq!(answer.status, 202, "{host}: {}", answer.text());
        let sent = mail.mail(index + 1).await;
        let link = sent.link();
        assert_eq!(link.is_some(), linked, "{host} {headers:?}: {link:?}");
        assert!(link.is_none_or(|link| link.starts_with(&format!("http://{local}/api/auth/magic/"))));
        assert_eq!(sent.code().len(), 6);
    }
}

#[tokio::test]
async fn a_configured_base_url_is_the_only_origin() {
    let mail = MailServer::start().await;
    let t = TestService::builder()
        .set("SERVICE_SMTP_URL", mail.url())
        .set("SERVICE_PUBLIC_BASE_URL", "https://desk.example.org/callboard")
        .start()
        .await;
    for (index, host) in ["localhost", "evil.test", "desk.example.org"].into_iter().enumerate() {
        let email = format!("p{index}@example.org");
        let body = json!({"email": email}).to_string();
        assert_eq!(t.send("POST", START, &[JSON, ("host", host)], body).await.status, 202);
        let link = mail.mail(index + 1).await.link().unwrap();
        assert!(link.starts_with("https://desk.example.org/callboard/api/auth/magic/"), "{link}");
    }
    // The service's own pages have the base URL's origin, whatever its path.
    let from = async |origin: &str| {
        let headers = [JSON, ("host", "desk.example.org"), ("origin", origin)];
        t.send("POST", "/api/workflows", &headers, r#"{"name":"x"}"#).await.refusal()
    };
    assert_eq!(from("https://desk.example.org").await, "201");
    assert_eq!(from("http://desk.example.org").await, "403 auth.origin_mismatch");
    assert_eq!(from("https://desk.example.org.evil.test").await, "403 auth.origin_mismatch");
}

/// A user may write `127.0.0.1` where the base has `localhost`.
#[tokio::test]
async fn a_loopback_base_url_accepts_other_loopback_names() {
    let t = TestService::builder().set("SERVICE_PUBLIC_BASE_URL", "http://localhost:8000").start().await;
    let from = async |host: &str, origin: &str| {
        let headers = [JSON, ("host", host), ("origin", origin)];
        t.send("POST", "/api/workflows", &headers, json!({"name": origin}).to_string()).await.refusal()
    };
    for name in ["localhost:8000", "127.0.0.1:8000", "[::1]:8000"] {
        assert_eq!(from(name, &format!("http://{name}")).await, "201", "{name}");
    }
    for (host, origin) in [
        ("localhost:8000", "http://127.0.0.1:8000"),
        ("127.0.0.1:8000", "http://127.0.0.1:9000"),
        ("127.0.0.1:8000", "https://127.0.0.1:8000"),
        ("desk.localhost:8000", "http://desk.localhost:8000"),
        ("desk.example.org", "http://desk.example.org"),
    ] {
        let refusal = from(host, origin).await;
        assert!(refusal.starts_with("403 "), "{host} {origin}: {refusal}");
    }
    let t = TestService::builder().set("SERVICE_PUBLIC_BASE_URL", "https://desk.example.org").start().await;
    let headers = [JSON, ("host", "127.0.0.1:8000"), ("origin", "http://127.0.0.1:8000")];
    let made = t.send("POST", "/api/workflows", &headers, r#"{"name":"x"}"#).await;
    assert_eq!(made.refusal(), "403 auth.origin_mismatch", "a remote base URL is the only origin");
}

#[tokio::test]
async fn names_below_localhost_are_foreign() {
    let t = TestService::start().await;
    let port = t.address().port();
    for host in ["evil.apps.localhost", "apps.localhost", "evil.localhost", "desk.example.org", "10.0.0.1"] {
        let (host, origin) = (format!("{host}:{port}"), format!("http://{host}:{port}"));
        // The central host serves nothing below the app domain (`alias_hosts.rs`).
        let is_alias = host.contains("apps.localhost");
        let headers = [JSON, ("host", host.as_str()), ("origin", origin.as_str())];
        if !is_alias {
            let made = t.send("POST", "/api/workflows", &headers, r#"{"name":"x"}"#).await;
            assert_eq!(made.refusal(), "403 auth.host_mismatch", "{host}");
            let listed = t.send("GET", "/api/workflows", &headers[..2], "").await;
            assert_eq!(listed.refusal(), "403 auth.host_mismatch", "{host}");
            // Chat and sign-in have separate access modes, but the same rule for the service's own pages.
            let sign_in = t.send("POST", START, &headers, r#"{"email":"a@b.org"}"#).await;
            assert_eq!(sign_in.refusal(), "403 auth.origin_mismatch", "{host}");
        }
        // A page there, for a service under another host name.
        let own_host = format!("localhost:{port}");
        let headers = [JSON, ("host", own_host.as_str()), ("origin", origin.as_str())];
        let made = t.send("POST", "/api/workflows", &headers, r#"{"name":"x"}"#).await;
        assert_eq!(made.refusal(), "403 auth.origin_mismatch", "{host}");
    }
    t.assert_no_rows("workflows").await;

    let t = TestService::builder().set("SERVICE_PUBLIC_BASE_URL", "http://desk.localhost:8000").start().await;
    let headers = [JSON, ("host", "desk.localhost:8000"), ("origin", "http://desk.localhost:8000")];
    assert_eq!(t.send("POST", "/api/workflows", &headers, r#"{"name":"x"}"#).await.status, 201);
}

#[tokio::test]
async fn the_scheme_is_accepted_from_trusted_proxies_only() {
    let share = async |t: &TestService, proto: &[&str]| {
        let mut headers = vec![JSON, ("host", "localhost:1")];
        headers.extend(proto.iter().map(|proto| ("x-forwarded-proto", *proto)));
        let made = t.send("POST", "/api/workflows", &headers, r#"{"name":"x"}"#).await.value();
        let path = format!("/api/workflows/{}/publish", made["id"].as_str().unwrap());
        let url = t.send("POST", &path, &headers, "").await.value()["share_url"].as_str().unwrap().to_owned();
        url.split_once("/chat/").unwrap().0.to_owned()
    };
    let trusting = TestService::builder().set("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#).start().await;
    let rows: [(&[&str], &str); 5] = [
        (&["https"], "https://localhost:1"),
        (&["http"], "http://localhost:1"),
        (&[], "http://localhost:1"),
        (&["https", "https"], "http://localhost:1"),
        (&["javascript"], "http://localhost:1"),
    ];
    for (schemes, base) in rows {
        assert_eq!(share(&trusting, schemes).await, base, "{schemes:?}");
    }
    let t = TestService::start().await;
    assert_eq!(
        share(&t, &["https"]).await,
        "http://localhost:1",
        "the header of an untrusted peer is ignored"
    );
}

#[tokio::test]
async fn links_require_a_base_url_unless_the_service_is_local() {
    let oidc = [
        ("SERVICE_OIDC_ISSUER", "https://id.example.org"),
        ("SERVICE_OIDC_CLIENT_ID", "desk"),
        ("SERVICE_OIDC_CLIENT_SECRET", "secret"),
    ];
    let start = async |variables: &[(&str, &str)]| {
        let builder = TestService::builder().with_bootstrap_token().set("SERVICE_HOST", "0.0.0.0");
        builder.set_all(variables.iter().copied()).try_start().await
    };
    let smtp = [("SERVICE_SMTP_URL", "smtp://127.0.0.1:1")];
    for variables in [smtp.as_slice(), oidc.as_slice()] {
        let refused = start(variables).await.err().expect("refused");
        assert!(refused.contains("SERVICE_PUBLIC_BASE_URL"), "{refused}");
        let mut with_base = variables.to_vec();
        with_base.push(("SERVICE_PUBLIC_BASE_URL", "https://desk.example.org"));
        assert!(start(&with_base).await.is_ok());
    }
    // Without a mail server, codes would go to the log: nothing to reject, and sign-in by mail is off.
    let t = start(&[]).await.unwrap();
    let sign_in = t.send("POST", START, &[JSON], r#"{"email":"a@b.org"}"#).await;
    assert_eq!(sign_in.refusal(), "404 auth.email_sign_in_off");
    t.assert_healthy().await;
}
