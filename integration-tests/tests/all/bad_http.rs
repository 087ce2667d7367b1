//! Requests that no client should send: paths, methods, queries, headers and broken HTTP.

use std::time::Duration;

use insta::assert_snapshot;
use integration_tests::{AnswerExt, TestService, chat, pause, shown, shown_alike};
use kernel::Clock;

#[tokio::test]
async fn unknown_paths_are_404_and_wrong_methods_405() {
    let t = TestService::start().await;
    let mut unknown = Vec::new();
    for path in [
        "/api",
        "/api/",
        "/api/chat/streams",
        "/api/chat/streams/",
        "/api/workflows/x/unpublish",
        "/%",
        "/%zz",
        "/%ff",
        "/..",
        "/api/../x",
        "/%C3%A9",
        "/favicon.ico",
    ] {
        unknown.push(t.get(path).await);
    }
    assert_snapshot!(shown_alike(&unknown), @r#"
    404
    content-type: application/json
    {"detail":{"message":"There is nothing at this path.","code":"request.not_found"}}
    "#);
    for (path, near) in [
        ("/api/chats", "/api/chat"),
        ("/api/chat/", "/api/chat"),
        ("//api/chat", "/api/chat"),
        ("/API/CHAT", "/api/chat"),
        ("/api/workflows/", "/api/workflows"),
        ("/api/workflow/desk/publsh?x=1", "/api/workflows/desk/publish"),
        ("/api/workflows/%64%22esk/versions/", "/api/workflows/%64%22esk/versions"),
    ] {
        for method in ["GET", "POST", "DELETE"] {
            let answer = t.send(method, path, &[], "").await;
            assert_eq!(answer.refusal(), "404 request.not_found", "{method} {path}");
            assert_eq!(answer.message(), format!("There is nothing at this path; did you mean {near}?"));
        }
    }
    let wrong = [
        ("GET", "/api/chat", "POST"),
        ("PUT", "/api/chat", "POST"),
        ("OPTIONS", "/api/chat", "POST"),
        ("PROPFIND", "/api/chat", "POST"),
        ("POST", "/api/chat/streams/x", "GET"),
        ("GET", "/api/chat/streams/x/stop", "POST"),
        ("DELETE", "/api/workflows", "GET, HEAD, POST"),
        ("PATCH", "/api/workflows/x", "DELETE, GET, HEAD, PUT"),
        ("POST", "/api/workflows/x/public", "GET, HEAD"),
        ("DELETE", "/api/workflows/x/versions", "GET, HEAD, POST"),
        ("POST", "/api/workflows/x/versions/1", "GET, HEAD"),
        ("GET", "/api/workflows/x/publish", "POST"),
        ("GET", "/api/workflows/x/publish/revoke", "POST"),
        ("GET", "/api/workflows/check", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("POST", "/readyz", "GET, HEAD"),
        ("POST", "/api/system/health", "GET, HEAD"),
    ];
    for (method, path, allow) in wrong {
        let answer = t.send(method, path, &[], "").await;
        assert_eq!(answer.refusal(), "405 request.method_not_allowed", "{method} {path}");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {path}");
        let _ = shown(&answer);
    }
    t.assert_healthy().await;
}

#[tokio::test]
async fn head_responds_like_get_without_a_body() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let paths = [
        "/healthz".to_owned(),
        "/readyz".to_owned(),
        "/api/system/health".to_owned(),
        "/api/workflows".to_owned(),
        workflow.path(""),
        workflow.path("/public"),
        workflow.path("/versions"),
        workflow.path("/versions/1"),
        "/api/workflows/nobody".to_owned(),
        "/nowhere".to_owned(),
    ];
    for path in paths {
        let get = t.get(&path).await;
        let raw = t.raw().await;
        let mut raw = raw;
        raw.write(format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")).await;
        let all = String::from_utf8(raw.rest().await).unwrap();
        let (head, body) = all.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with(&format!("HTTP/1.1 {}", get.status)), "{path}: {head}");
        assert_eq!(body, "", "{path}");
    }
}

#[tokio::test]
async fn invalid_queries_are_rejected_in_the_services_error_format() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.visitor().say(&workflow.id, "hi").await.unwrap().stream_id;
    for query in
        ["include_archived=maybe", "include_archived=true&include_archived=false", "include_archived="]
    {
        let answer = t.get(&format!("/api/workflows?{query}")).await;
        assert_eq!(answer.refusal(), "422 request.invalid", "{query}: {}", answer.text());
        let _ = shown(&answer);
    }
    for query in [
        "after=1&after=2",
        "after=x",
        "after=-1",
        "after=%2B1",
        "after=1.5",
        "after=99999999999999999999",
        "after=%ff",
        "after=%00",
        "after=0190b0a0-0000-7000-8000-000000000000.1",
    ] {
        let answer = t.get(&format!("/api/chat/streams/{stream}?{query}")).await;
        assert_eq!(answer.refusal(), "422 request.invalid", "{query}: {}", answer.text());
    }
    for query in ["", "after", "after=", "=", "&&", "%", "x=%zz", "unknown=1", "after=0"] {
        let answer = t.get(&format!("/api/chat/streams/{stream}?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    }
    t.assert_healthy().await;
}

#[tokio::test]
async fn odd_path_segments_are_not_found() {
    let t = TestService::start().await;
    for name in [
        "%00",
        "a%00b",
        "%ff",
        "%c3%28",
        "%",
        "%zz",
        "%2f",
        "%2e%2e",
        "a%20b",
        "%C3%A9",
        "'",
        "%25",
        "-",
        "A",
        &"x".repeat(7000),
    ] {
        let paths =
            ["", "/public", "/versions", "/versions/1"].map(|rest| format!("/api/workflows/{name}{rest}"));
        for path in paths {
            assert_eq!(t.get(&path).await.refusal(), "404 workflow.not_found", "{path}");
        }
        for rest in ["publish", "publish/revoke", "versions"] {
            let answer = t.post(&format!("/api/workflows/{name}/{rest}"), "{}").await;
            assert_eq!(answer.refusal(), "404 workflow.not_found", "{name}/{rest}");
        }
    }
    let workflow = t.workflow().create().await;
    for number in ["0", "-1", "x", "+1", "01", "2", "99999999999", "1.0", "%00", "latest"] {
        let answer = t.get(&format!("/api/workflows/{}/versions/{number}", workflow.id)).await;
        assert_eq!(answer.refusal(), "404 version.not_found", "{number}");
    }
    t.assert_healthy().await;
}

#[tokio::test]
async fn the_content_type_is_checked_where_cookies_authenticate() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    client.say(&workflow.id, "hi").await.unwrap();
    let cookie = format!("callboard_visitor={}", client.cookie("callboard_visitor").unwrap());
    let body = chat::create(&workflow, "hi").to_string();
    let mut refused = Vec::new();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonx",
        "text/plain; application/json",
        "",
    ] {
        let headers = [("content-type", kind), ("cookie", cookie.as_str())];
        refused.push(t.send("POST", "/api/chat", &headers, &body).await);
        // None of these headers authenticates a caller.
        assert_eq!(t.send("POST", "/api/chat", &headers[..1], &body).await.status, 200, "{kind}");
    }
    refused.push(t.send("POST", "/api/chat", &[("cookie", cookie.as_str())], &body).await);
    assert_snapshot!(shown_alike(&refused), @r#"
    415
    content-type: application/json
    {"detail":{"message":"The request body must be application/json.","code":"request.unsupported_media_type"}}
    "#);
    for kind in ["application/json", "Application/JSON; charset=utf-8", "application/json;x=y"] {
        let headers = [("content-type", kind), ("cookie", cookie.as_str())];
        assert_eq!(t.send("POST", "/api/chat", &headers, &body).await.status, 200, "{kind}");
    }
    for path in ["/api/workflows", "/api/workflows/check"] {
        let answer = t.send("POST", path, &[("content-type", "text/plain")], "{}").await;
        assert_eq!(answer.refusal(), "415 request.unsupported_media_type", "{path}");
    }
}

#[tokio::test]
async fn broken_http_is_rejected_without_side_effects() {
    let t = TestService::start().await;
    let requests: [&[u8]; 10] = [
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /api/chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: \x01\x02\r\n\r\n",
    ];
    for request in requests {
        let mut raw = t.raw().await;
        raw.write(request).await;
        raw.write("\r\n\r\n").await;
        let answer = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{request:?}: {answer}");
    }
    // Endless headers.
    let mut raw = t.raw().await;
    raw.write("GET /healthz HTTP/1.1\r\nHost: x\r\n").await;
    let line = format!("X-Filler: {}\r\n", "x".repeat(1000));
    for _ in 0..200 {
        if !raw.write(&line).await {
            break;
        }
    }
    drop(raw);
    // Connections that are cut at every byte of a request.
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let request = format!(
        "POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    for end in (0..request.len()).step_by(7) {
        let mut raw = t.raw().await;
        raw.write(&request[..end]).await;
    }
    t.assert_healthy().await;
    t.assert_no_rows("runs").await;
}

/// Requests that a front proxy might read as one and the service as two. Each is rejected and the connection closed, so
/// that nothing after it is read as a request.
#[tokio::test]
async fn smuggling_attempts_are_rejected_and_close_the_connection() {
    let t = TestService::start().await;
    let requests: [(&str, &str); 8] = [
        ("two lengths and an encoding", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("two lengths", "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"),
        ("a length with a sign", "Content-Length: +4\r\n\r\nabcd"),
        ("an encoding after another", "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        ("an unknown encoding", "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        ("white space before the colon", "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        ("a folded line", "X-A: 1\r\n Content-Length: 4\r\n\r\nabcd"),
        ("an invalid chunk length", "Transfer-Encoding: chunked\r\n\r\n0x4\r\nabcd\r\n0\r\n\r\n"),
    ];
    for (name, rest) in requests {
        let mut raw = t.raw().await;
        raw.write(format!("POST /api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\n{rest}")).await;
        raw.write("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").await;
        let answer = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{name}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), usize::from(!answer.is_empty()), "{name}: {answer}");
    }
    t.assert_healthy().await;
}

/// Parsers disagree about a bare LF; and no client needs a megabyte of chunk extensions.
#[tokio::test]
async fn a_bare_lf_and_a_long_chunk_line_are_400_and_close() {
    let t = TestService::start().await;
    let extension = format!("4;{}\r\nabcd\r\n0\r\n\r\n", "x".repeat(1_000_000));
    let chat = "POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let chunked = |rest: &str| format!("{chat}Transfer-Encoding: chunked\r\n\r\n{rest}");
    let requests = [
        ("a line of the head", "GET /healthz HTTP/1.1\nHost: localhost\r\n\r\n".to_owned()),
        ("a header", "GET /healthz HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n".to_owned()),
        ("the end of the head", "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\n".to_owned()),
        ("all of it", "GET /healthz HTTP/1.1\nHost: localhost\n\n".to_owned()),
        ("a chunk's line", chunked("4\nabcd\r\n0\r\n\r\n")),
        ("the last chunk's", chunked("0\n\r\n")),
        ("a trailer", chunked("0\r\nX: y\n\r\n")),
        ("a megabyte of extension", chunked(&extension)),
        ("many extensions", chunked(&format!("1;{}\r\nx\r\n", "e".repeat(900)).repeat(40))),
    ];
    for (name, request) in &requests {
        let mut raw = t.raw().await;
        raw.write(request).await;
        raw.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let answer = String::from_utf8_lossy(&raw.rest().await).into_owned();
        assert!(answer.starts_with("HTTP/1.1 400"), "{name}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{name}: {answer}");
    }
    // A second request on a kept connection gets the same checks.
    let mut raw = t.raw().await;
    raw.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    raw.write("GET /healthz HTTP/1.1\r\nHost: localhost\n\r\n").await;
    let answer = String::from_utf8_lossy(&raw.rest().await).into_owned();
    assert_eq!((answer.matches("HTTP/1.1 200").count(), answer.matches("HTTP/1.1 400").count()), (1, 1));
    // Line ends inside a body belong to the body.
    let workflow = t.workflow().echo().published().create().await;
    let body = serde_json::to_string_pretty(&chat::create(&workflow, "hi\n")).unwrap();
    assert_eq!(t.post("/api/chat", &body).await.status, 200);
    let pieces: String = body
        .as_bytes()
        .chunks(7)
        .map(|piece| format!("{:x};a=b\r\n{}\r\n", piece.len(), str::from_utf8(piece).unwrap()))
        .collect();
    let mut raw = t.raw().await;
    raw.write(chunked(&format!("{pieces}0\r\nX: y\r\n\r\n"))).await;
    assert_eq!(raw.answer().await.whole().await.status, 200);
    t.assert_healthy().await;
}

#[tokio::test]
async fn every_response_forbids_content_type_sniffing() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let chat_page = format!("/chat/{}", workflow.id);
    for path in [
        "/",
        "/healthz",
        "/readyz",
        "/api/workflows",
        "/nowhere",
        "/login",
        "/assets/app.css",
        "/api/nodes",
        "/%zz",
        chat_page.as_str(),
        "/api/auth/me",
        "/api/chat",
    ] {
        let answer = t.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(answer.header("x-request-id").is_some(), "{path}");
    }
    let refused = t.send("GET", "/healthz", &[("host", "a b")], "").await;
    assert_eq!((refused.status, refused.header("x-content-type-options")), (400, Some("nosniff")));
    let stream = t.chat(&chat::create(&workflow, "hi")).await;
    assert_eq!((stream.status, stream.header("x-content-type-options")), (200, Some("nosniff")));
    let preflight = [("origin", "https://a.example"), ("access-control-request-method", "POST")];
    let preflight = t.send("OPTIONS", "/api/chat", &preflight, "").await;
    assert_eq!(preflight.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn a_missing_body_is_408() {
    let t = TestService::with_manual_clock().await;
    let mut raw = t.raw().await;
    raw.write("POST /api/chat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n{").await;
    let started = t.clock().monotonic();
    let answer =
        t.while_time_passes_in(Duration::from_secs(1), async { raw.answer().await.whole().await }).await;
    assert_eq!(answer.refusal(), "408 request.timeout");
    assert!(t.clock().monotonic() - started >= Duration::from_secs(30));
    t.assert_healthy().await;
}

/// A large body may take longer if it keeps arriving.
#[tokio::test]
async fn a_large_body_may_take_as_long_as_its_size_requires() {
    const CHUNK: usize = 64 << 10;
    const CHUNKS: usize = 8;
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().create().await.id;
    let cases = format!("{{\"id\":\"a\",\"inputs\":{{\"message\":\"{}\"}}}}\n", "x".repeat(CHUNK * CHUNKS));
    for (is_whole, expected) in [(true, "201"), (false, "408 request.timeout")] {
        let mut raw = t.raw().await;
        raw.write(format!(
            "POST /api/workflows/{workflow}/datasets?name=d HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
            t.address(),
            cases.len()
        ))
        .await;
        let mut rest = cases.as_bytes();
        for _ in 0..if is_whole { CHUNKS } else { 1 } {
            let (part, more) = rest.split_at(CHUNK);
            raw.write(part).await;
            rest = more;
            pause(100).await;
            t.advance(Duration::from_secs(9));
        }
        if is_whole {
            raw.write(rest).await;
        }
        let started = t.clock().monotonic();
        let read = async { raw.answer().await.whole().await };
        let answer = t.while_time_passes_in(Duration::from_secs(1), read).await;
        let outcome = if is_whole { answer.status.to_string() } else { answer.refusal() };
        assert_eq!(outcome, expected, "{}", answer.text());
        let waited = t.clock().monotonic() - started;
        assert!(waited < Duration::from_secs(30), "a client that sends nothing is cut off soon: {waited:?}");
    }
}
