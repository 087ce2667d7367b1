//! Chat access, and the pages that may send requests.

use std::time::Duration;

use insta::assert_snapshot;
use integration_tests::{
    Answer, AnswerExt, Client, JSON, TestService, Workflow, chat, pause, shown_alike, until,
};
use serde_json::json;
use wire::PublishRequest;
use wire::chat::PageRequest;

const LISTED: &str = "https://app.example.org";

async fn refused(client: &Client, workflow: &Workflow, thread: &str) -> Option<String> {
    let answer = client.say_in(&workflow.id, thread, "hi").await;
    answer.err().and_then(|error| error.code().map(str::to_owned))
}

fn cookie_of(client: &Client) -> String {
    format!("callboard_visitor={}", client.cookie("callboard_visitor").unwrap())
}

/// All CORS response headers.
fn cors_headers(answer: &Answer) -> Vec<String> {
    let all = answer.headers.iter().filter(|(name, _)| name.as_str().starts_with("access-control-"));
    let mut all: Vec<String> =
        all.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_threads_id_gives_access_until_its_cookie_is_presented() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let (owner, stranger) = (t.visitor(), t.visitor());
    let turn = owner.say(&workflow.id, "hi").await.unwrap();
    stranger.say(&workflow.id, "hello").await.unwrap();
    assert_eq!(refused(&t.anonymous(), &workflow, &turn.thread_id).await, None, "the id is the capability");
    assert_eq!(
        refused(&t.visitor(), &workflow, &turn.thread_id).await,
        None,
        "a cookie jar that is still empty"
    );
    assert_eq!(refused(&stranger, &workflow, &turn.thread_id).await.as_deref(), Some("thread.not_found"));
    // Streams follow the same rules.
    assert!(t.anonymous().resume(&turn.stream_id, None).await.is_ok());
    let hidden = async |client: &Client| {
        client.resume(&turn.stream_id, None).await.err().and_then(|error| error.code().map(str::to_owned))
    };
    assert_eq!(hidden(&stranger).await.as_deref(), Some("stream.not_found"));
    // A stranger's cookie closes nothing; the owner's cookie closes the thread to all others.
    assert_eq!(refused(&t.anonymous(), &workflow, &turn.thread_id).await, None);
    assert_eq!(hidden(&owner).await, None);
    for other in [&t.anonymous(), &t.visitor(), &stranger] {
        assert_eq!(refused(other, &workflow, &turn.thread_id).await.as_deref(), Some("thread.not_found"));
        assert_eq!(hidden(other).await.as_deref(), Some("stream.not_found"));
    }
    assert_eq!(refused(&owner, &workflow, &turn.thread_id).await, None);
}

#[tokio::test]
async fn a_thread_started_with_a_cookie_requires_it() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let owner = t.visitor();
    owner.say(&workflow.id, "first").await.unwrap();
    let turn = owner.say(&workflow.id, "hi").await.unwrap();
    let thread = json!({"thread_id": turn.thread_id});
    let running = format!("/api/chat/threads/{}/stream", turn.thread_id);
    assert_eq!(t.get(&running).await.refusal(), "404 thread.not_found");
    let stop = t.send("POST", &format!("/api/chat/streams/{}/stop", turn.stream_id), &[], "").await;
    assert_eq!(stop.refusal(), "404 stream.not_found");
    for kind in ["threads.get_by_id", "items.list", "threads.delete"] {
        let answer = t.chat(&chat::ask(&workflow, kind, thread.clone())).await;
        assert_eq!(answer.refusal(), "404 thread.not_found", "{kind}");
    }
    assert_eq!(refused(&owner, &workflow, &turn.thread_id).await, None);
}

#[tokio::test]
async fn forged_cookies_are_ignored() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let owner = t.visitor();
    let thread = owner.say(&workflow.id, "hi").await.unwrap().thread_id;
    let genuine = owner.cookie("callboard_visitor").unwrap();
    let (id, tag) = genuine.split_once('.').unwrap();
    let forged = [
        String::new(),
        "x".to_owned(),
        ".".to_owned(),
        id.to_owned(),
        format!("{id}."),
        format!("{id}.{}", "A".repeat(43)),
        format!("AAAAAAAAAAAAAAAAAAAAAA.{tag}"),
        format!("{genuine}x"),
        "%00".to_owned(),
        "é".to_owned(),
    ];
    for value in forged {
        let client = t.visitor();
        client.set_cookie("callboard_visitor", &value);
        assert_eq!(refused(&client, &workflow, &thread).await, None, "{value}");
        let client = t.visitor();
        client.set_cookie("callboard_visitor", &value);
        client.say(&workflow.id, "hi").await.unwrap();
        let new_cookie = client.cookie("callboard_visitor").unwrap();
        assert!(new_cookie != value && new_cookie != genuine, "a new cookie is set for {value}");
    }
    assert_eq!(t.scalar("SELECT count(DISTINCT owner_id) = count(*) FROM threads").await, "true");
}

#[tokio::test]
async fn cookies_of_another_service_are_ignored() {
    let (t, other) = (TestService::start().await, TestService::start().await);
    let workflow = other.workflow().echo().published().create().await;
    let foreign_client = other.visitor();
    foreign_client.say(&workflow.id, "hi").await.unwrap();
    let here = t.workflow().echo().published().create().await;
    let body = chat::create(&here, "hi").to_string();
    let cookie = cookie_of(&foreign_client);
    let answer = t.send("POST", "/api/chat", &[JSON, ("cookie", &cookie)], &body).await;
    assert!(answer.header("set-cookie").is_some(), "the caller is a new visitor");
}

#[tokio::test]
async fn unpublishing_takes_effect_immediately() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    let turn = client.say(&workflow.id, "hi").await.unwrap();
    for _ in 0..5 {
        t.client().unpublish(&workflow.id).await.unwrap();
        assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.refusal(), "403 chat.not_published");
        assert_eq!(refused(&client, &workflow, &turn.thread_id).await.as_deref(), Some("chat.not_published"));
        let path = format!("/api/chat/streams/{}", turn.stream_id);
        assert_eq!(t.get(&path).await.refusal(), "403 chat.not_published");
        assert_eq!(t.get(&workflow.path("/public")).await.refusal(), "404 workflow.not_found");
        t.client().publish(&workflow.id, &PublishRequest { require_login: Some(false) }).await.unwrap();
        assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.status, 200);
    }
}

#[tokio::test]
async fn login_can_be_required_and_made_optional_again() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    for (require_login, status) in [(true, 401), (false, 200), (true, 401)] {
        let request = PublishRequest { require_login: Some(require_login) };
        let published = t.client().publish(&workflow.id, &request).await.unwrap();
        assert_eq!(published.workflow.require_login, require_login);
        assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.status, status);
        assert_eq!(t.get(&format!("/api/chat/streams/{stream}")).await.status, status);
    }
}

#[tokio::test]
async fn changes_by_another_instance_take_effect_within_a_second() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.status, 200);
    t.execute("UPDATE workflows SET is_public = false").await;
    pause(1_050).await;
    assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.refusal(), "403 chat.not_published");
    t.execute("UPDATE workflows SET is_public = true, archived_at = now()").await;
    pause(1_050).await;
    assert_eq!(t.chat(&chat::create(&workflow, "hi")).await.refusal(), "404 workflow.not_found");
    t.execute("UPDATE workflows SET archived_at = NULL").await;
}

#[tokio::test]
async fn chat_ignores_the_workspace_header() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    for value in ["default", "other", ""] {
        assert_eq!(t.send("POST", "/api/chat", &[JSON, ("x-workspace", value)], &body).await.status, 200);
    }
}

async fn with_cors(allowed: &str) -> TestService {
    TestService::builder().set("SERVICE_CORS_ALLOW_ORIGINS", allowed).start().await
}

#[tokio::test]
async fn a_listed_origin_may_read_with_cookies() {
    let t = with_cors(r#"["https://app.example.org", "http://localhost:5173"]"#).await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let answer = t.send("POST", "/api/chat", &[JSON, ("origin", LISTED)], &body).await.expect(200);
    assert_snapshot!(cors_headers(&answer).join("\n"), @r"
    access-control-allow-credentials: true
    access-control-allow-origin: https://app.example.org
    access-control-expose-headers: X-Chat-Stream-Id, X-Request-Id, X-Next-Cursor, Retry-After, Idempotency-Replayed
    ");
    // Errors have the headers too, so that the page can read them.
    for (method, path) in [("POST", "/api/chat"), ("GET", "/nowhere"), ("PUT", "/api/chat")] {
        let error = t.send(method, path, &[("origin", LISTED)], "").await;
        assert!(error.status >= 400);
        assert_eq!(cors_headers(&error), cors_headers(&answer));
    }
    let request_headers = [
        ("origin", LISTED),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type, chatkit-frame-instance-id, idempotency-key"),
    ];
    let preflight = t.send("OPTIONS", "/api/chat", &request_headers, "").await.expect(204);
    assert_snapshot!(cors_headers(&preflight).join("\n"), @r"
    access-control-allow-credentials: true
    access-control-allow-headers: content-type, chatkit-frame-instance-id, idempotency-key
    access-control-allow-methods: GET, POST, PUT, PATCH, DELETE, HEAD
    access-control-allow-origin: https://app.example.org
    access-control-expose-headers: X-Chat-Stream-Id, X-Request-Id, X-Next-Cursor, Retry-After, Idempotency-Replayed
    access-control-max-age: 600
    ");
}

#[tokio::test]
async fn denied_preflights_are_403_without_cors_headers() {
    for allowed in ["[]", r#"["https://app.example.org"]"#] {
        let t = with_cors(allowed).await;
        for path in ["/api/chat", "/api/workflows", "/nowhere"] {
            let request_headers =
                [("origin", "https://evil.example"), ("access-control-request-method", "POST")];
            let answer = t.send("OPTIONS", path, &request_headers, "").await;
            assert_eq!(answer.refusal(), "403 auth.origin_mismatch", "{path}");
            assert_eq!(cors_headers(&answer), [""; 0]);
            assert!(answer.header("vary").unwrap().to_lowercase().contains("origin"));
            assert!(answer.header("x-request-id").is_some());
        }
    }
}

#[tokio::test]
async fn a_wildcard_allows_every_origin_without_cookies() {
    let t = with_cors(r#"["*"]"#).await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    for origin in [LISTED, "https://anything.example", "null"] {
        let answer = t.send("POST", "/api/chat", &[JSON, ("origin", origin)], &body).await;
        assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
        assert_eq!(answer.header("access-control-allow-credentials"), None);
    }
    // A cookie sent nevertheless is ignored for a stranger's page.
    let owner = t.visitor();
    owner.say(&workflow.id, "hi").await.unwrap();
    let headers = [JSON, ("origin", LISTED), ("cookie", &cookie_of(&owner))];
    assert_eq!(t.send("POST", "/api/chat", &headers, &body).await.refusal(), "403 auth.origin_mismatch");
}

#[tokio::test]
async fn every_response_varies_by_origin() {
    let t = with_cors(r#"["https://app.example.org"]"#).await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    for headers in
        [&[JSON][..], &[JSON, ("origin", LISTED)][..], &[JSON, ("origin", "https://evil.example")][..]]
    {
        for (method, path) in
            [("POST", "/api/chat"), ("GET", "/healthz"), ("GET", "/nowhere"), ("GET", "/api/chat")]
        {
            let answer = t.send(method, path, headers, &body).await;
            let vary = answer
                .headers
                .get_all("vary")
                .iter()
                .any(|value| value.as_bytes().eq_ignore_ascii_case(b"origin"));
            assert!(vary, "{method} {path}");
        }
    }
}

#[tokio::test]
async fn only_listed_origins_are_reflected() {
    let t = with_cors(r#"["https://app.example.org", "http://localhost:5173"]"#).await;
    let mut mutated = vec!["null".to_owned(), "*".to_owned(), String::new(), "https://".to_owned()];
    for origin in [LISTED, "http://localhost:5173"] {
        for (at, letter) in origin.char_indices() {
            mutated.push(format!("{}{}", &origin[..at], &origin[at + 1..]));
            mutated.push(format!("{}x{}", &origin[..at], &origin[at..]));
            mutated.push(format!("{}.{}", &origin[..at], &origin[at..]));
            if letter.is_ascii_lowercase() {
                mutated.push(format!(
                    "{}{}{}",
                    &origin[..at],
                    letter.to_ascii_uppercase(),
                    &origin[at + 1..]
                ));
            }
        }
        for end in [
            "/",
            ":443",
            ".",
            ".evil.example",
            "@evil.example",
            "%00",
            "\t.evil.example",
            ", https://app.example.org",
            "#",
            "?",
        ] {
            mutated.push(format!("{origin}{end}"));
            mutated.push(format!("https://evil.example/{end}{origin}"));
        }
    }
    assert!(mutated.len() > 200, "{}", mutated.len());
    for origin in mutated {
        let preflight = [("origin", origin.as_str()), ("access-control-request-method", "POST")];
        let answer = t.send("GET", "/healthz", &preflight[..1], "").await;
        assert_eq!(cors_headers(&answer), [""; 0], "{origin:?}");
        let answer = t.send("OPTIONS", "/api/chat", &preflight, "").await;
        assert_eq!((answer.status, cors_headers(&answer)), (403, Vec::new()), "{origin:?}");
    }
}

#[tokio::test]
async fn foreign_origins_cannot_use_a_visitors_cookie() {
    let t = with_cors(r#"["https://app.example.org"]"#).await;
    let workflow = t.workflow().echo().published().create().await;
    let owner = t.visitor();
    let thread = owner.say(&workflow.id, "hi").await.unwrap().thread_id;
    let cookie = cookie_of(&owner);
    let own_origin = format!("http://{}", t.address());
    let body = chat::add(&workflow, &thread, "in your name").to_string();
    let evil = ("origin", "https://evil.example");
    let mut answers = Vec::new();
    for origins in [
        &[evil][..],
        &[("origin", "null")][..],
        &[evil, evil][..],
        &[("origin", LISTED), evil][..],
        &[("origin", own_origin.as_str()), evil][..],
        &[("origin", own_origin.as_str()), ("origin", own_origin.as_str())][..],
        &[("origin", "")][..],
    ] {
        let mut headers = vec![JSON, ("cookie", cookie.as_str())];
        headers.extend_from_slice(origins);
        answers.push(t.send("POST", "/api/chat", &headers, &body).await);
    }
    assert_snapshot!(shown_alike(&answers), @r#"
    403
    content-type: application/json
    {"detail":{"message":"This origin may not make this request.","code":"auth.origin_mismatch"}}
    "#);
    for origin in [LISTED, own_origin.as_str()] {
        let headers = [JSON, ("cookie", cookie.as_str()), ("origin", origin)];
        assert_eq!(t.send("POST", "/api/chat", &headers, &body).await.status, 200, "{origin}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "3");
    // Without the cookie, the request has no visitor, and the thread requires one by now.
    let answer = t.send("POST", "/api/chat", &[JSON, evil], &body).await;
    assert_eq!(answer.refusal(), "404 thread.not_found");
    let body = chat::create(&workflow, "without a name").to_string();
    assert_eq!(t.send("POST", "/api/chat", &[JSON, evil], &body).await.status, 200);
}

#[tokio::test]
async fn two_origin_headers_match_no_listed_origin() {
    let t = with_cors(r#"["https://app.example.org"]"#).await;
    let twice = [("origin", LISTED), ("origin", LISTED), ("access-control-request-method", "POST")];
    assert_eq!(cors_headers(&t.send("GET", "/healthz", &twice[..2], "").await), [""; 0]);
    assert_eq!(t.send("OPTIONS", "/api/chat", &twice, "").await.status, 403);
}

/// A form needs no preflight, so on a service without authentication it would be enough.
#[tokio::test]
async fn foreign_origins_cannot_change_workflows() {
    let t = with_cors(r#"["https://app.example.org"]"#).await;
    let workflow = t.workflow().create().await;
    let publish = workflow.path("/publish");
    let writes = [
        (publish.clone(), String::new()),
        (format!("{publish}/revoke"), String::new()),
        ("/api/workflows".to_owned(), r#"{"name": "x"}"#.to_owned()),
        (workflow.path("/versions"), "{}".to_owned()),
    ];
    let mut answers = Vec::new();
    for (path, body) in &writes {
        for origin in ["https://evil.example", "null"] {
            answers.push(t.send("POST", path, &[("origin", origin), JSON], body).await);
        }
    }
    assert_snapshot!(shown_alike(&answers), @r#"
    403
    content-type: application/json
    {"detail":{"message":"This origin may not make this request.","code":"auth.origin_mismatch"}}
    "#);
    assert_eq!(t.scalar("SELECT count(*) FROM workflows WHERE is_public").await, "0");
    let own_origin = format!("http://{}", t.address());
    for origin in [LISTED, own_origin.as_str()] {
        let answer = t.send("POST", &publish, &[("origin", origin)], "").await;
        assert!(matches!(answer.status, 200 | 201), "{origin}: {}", answer.text());
    }
    assert_eq!(t.send("GET", "/api/workflows", &[("origin", "https://evil.example")], "").await.status, 200);
    let wildcard = with_cors(r#"["*"]"#).await;
    let workflow = wildcard.workflow().create().await;
    let publish = workflow.path("/publish");
    assert_eq!(wildcard.send("POST", &publish, &[("origin", LISTED)], "").await.status, 201);
}

#[tokio::test]
async fn foreign_host_names_on_loopback_are_rejected() {
    let t = TestService::start().await;
    let names = [
        ("localhost", 200),
        ("127.0.0.1:80", 200),
        ("evil.example", 403),
        ("localhost.evil.example:8000", 403),
    ];
    for (host, status) in names {
        let answer = t.anonymous().send("GET", "/api/workflows", &[("host", host)], "").await.unwrap();
        assert_eq!(answer.status, status, "{host}");
    }
}

#[tokio::test]
async fn a_read_from_before_unpublishing_does_not_keep_a_workflow_public() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    // The last read is old enough, and the next one is held between the workflow and its version.
    t.advance(Duration::from_secs(5));
    let hold = t.hold("LOCK TABLE workflow_versions IN ACCESS EXCLUSIVE MODE").await;
    let held = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                AND wait_event_type = 'Lock' AND query LIKE '%workflow_versions%'";
    let client = t.visitor();
    let page = PageRequest::default();
    let read = client.threads(&workflow.id, &page);
    let close = async {
        until("the read to be blocked", async || t.scalar(held).await != "0").await;
        let release = async {
            pause(500).await;
            hold.release().await;
        };
        tokio::join!(t.client().unpublish(&workflow.id), release).0
    };
    let (read_result, closed) = tokio::join!(read, close);
    assert!(read_result.is_ok() && closed.is_ok(), "{read_result:?} {closed:?}");
    assert_eq!(client.threads(&workflow.id, &page).await.unwrap_err().code(), Some("chat.not_published"));
}
