//! Unreadable requests, and bytes after a connection's last request.

use std::time::Duration;

use futures_util::future::join;
use integration_tests::{AnswerExt, RawAnswer, TestService};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};

/// The headers of app responses; while the host is unknown, every host has them.
const HEADERS: [(&str, &str); 11] = [
    ("content-security-policy", "default-src 'none'; sandbox; worker-src 'none'; frame-ancestors 'none'"),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("origin-agent-cluster", "?1"),
    ("x-frame-options", "DENY"),
    ("x-dns-prefetch-control", "off"),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "private, no-store"),
    ("content-type", "application/json"),
    (
        "permissions-policy",
        "browsing-topics=(), bluetooth=(), camera=(), cross-origin-isolated=(), display-capture=(), geolocation=(), hid=(), \
         microphone=(), midi=(), payment=(), publickey-credentials-get=(), serial=(), usb=()",
    ),
];

fn assert_headers(answer: &RawAnswer, label: &str) {
    for (name, value) in HEADERS {
        assert_eq!(answer.header(name), Some(value), "{label}: {name}");
    }
    assert!(answer.header("x-request-id").is_some_and(|id| id.len() == 32), "{label}");
    for absent in ["server", "access-control-allow-origin", "set-cookie", "strict-transport-security"] {
        assert_eq!(answer.header(absent), None, "{label}: {absent}");
    }
}

/// Sends bytes, and reads the only response. Returns status and code.
async fn refusal(t: &TestService, request: &str) -> String {
    let mut raw = t.raw().await;
    raw.write(request).await;
    let answer = raw.answer().await;
    let shown: String = request.chars().take(80).collect();
    assert_headers(&answer, &shown);
    answer.whole().await.refusal()
}

#[tokio::test]
async fn the_response_to_an_unreadable_request_has_the_common_headers() {
    let t = TestService::start().await;
    let app = t.app("desk").publish().await;
    for host in [app.host.as_str(), "other.apps.localhost", "localhost"] {
        let large = format!("GET / HTTP/1.1\r\nHost: {host}\r\nX: {}\r\n\r\n", "x".repeat(140_000));
        let many = format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}\r\n", "X: y\r\n".repeat(96));
        for (rest, code) in [
            (large.as_str(), "431 bad_request"),
            (&many, "431 bad_request"),
            ("nonsense\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/9.9\r\n\r\n", "400 bad_request"),
            ("GET /\u{e9} HTTP/1.1\r\n\r\n", "400 bad_request"),
            ("G{T / HTTP/1.1\r\nHost: HOST\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/1.1\r\nHost: HOST\r\nno colon\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/1.1\r\nHost: HOST\r\nX: \u{1}\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/1.1\r\nHost: HOST\nX: y\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/1.1\r\nX: y\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/1.1\r\nHost: HOST\r\nHost: HOST\r\n\r\n", "400 bad_request"),
            ("GET / HTTP/1.1\r\nHost: a b.HOST\r\n\r\n", "400 request.invalid_host"),
            ("GET / HTTP/1.1\r\nHost: \r\n\r\n", "400 request.invalid_host"),
            ("GET http://a.example/ HTTP/1.1\r\nHost: HOST\r\n\r\n", "400 request.invalid_host"),
            ("POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: -1\r\n\r\n", "400 bad_request"),
            (
                "POST / HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                "400 bad_request",
            ),
        ] {
            let request = rest.replace("HOST", host);
            assert_eq!(refusal(&t, &request).await, code, "{host}: {}", &request[..30.min(request.len())]);
        }
    }
    // The largest head that is accepted, in many pieces.
    let mut raw = t.raw().await;
    let head = format!("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n", "x".repeat(130_000));
    for piece in head.as_bytes().chunks(9_999) {
        raw.write(piece).await;
    }
    assert_eq!(raw.answer().await.status, 200);
    t.assert_healthy().await;
}

#[tokio::test]
async fn an_unread_body_keeps_the_connection_open() {
    let t = TestService::start().await;
    let app = t.app("desk").file("app.js", "one").publish().await;
    let host = &app.host;
    let next = format!("GET /app.js HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    for size in [1_000, 100_000, 1_000_000] {
        let body = "x".repeat(size);
        let chunks: Vec<String> = body
            .as_bytes()
            .chunks(50_000)
            .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), "x".repeat(chunk.len())))
            .collect();
        let mut raw = t.raw().await;
        raw.write(format!("POST /app.js HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"))
            .await;
        raw.write(format!("{}0\r\n\r\n{next}", chunks.concat())).await;
        let all = String::from_utf8(raw.rest().await).unwrap();
        assert!(all.starts_with("HTTP/1.1 405 ") && all.ends_with("\r\n\r\none"), "{size}: {all}");
        // Without chunks, the library ends the connection.
        let mut raw = t.raw().await;
        raw.write(format!("POST /app.js HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\n\r\n{body}"))
            .await;
        let all = String::from_utf8(raw.rest().await).unwrap();
        assert!(all.starts_with("HTTP/1.1 405 "), "{size}: {all}");
    }
}

#[tokio::test]
async fn an_unreadable_request_closes_the_connection_after_earlier_responses() {
    let t = TestService::start().await;
    let good = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for (bad, status) in [("nonsense\r\n\r\n", "400"), ("GET / HTTP/1.1\r\n\r\n", "400")] {
        let mut raw = t.raw().await;
        raw.write(format!("{good}{good}{bad}{good}")).await;
        raw.write(good).await;
        let all = String::from_utf8(raw.rest().await).unwrap();
        let statuses: Vec<&str> =
            all.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.split(' ').next()).collect();
        assert_eq!(statuses, ["200", "200", status], "{all}");
        assert!(all.ends_with(r#""code":"bad_request"}}"#), "{all}");
        assert_eq!(all.matches("connection: close").count(), 1, "{all}");
    }
    // The internal replacement for such a request has no meaning if a client sends it.
    let mut raw = t.raw().await;
    raw.write("REFUSED /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET, HEAD")));
}

/// On a new connection, and on a kept one.
#[tokio::test]
async fn an_incomplete_head_times_out_with_408() {
    let t = TestService::start().await;
    let (mut first, mut reused) = (t.raw().await, t.raw().await);
    reused.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let mut reused = reused.answer().await.finish().await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    reused.write("GET /healthz HTTP/1.1\r\nHost: desk.apps.localhost\r\n").await;
    first.write("GET / HTTP/1.1\r\nHost: desk.apps.localhost\r\n").await;
    let (first, reused) = join(first.answer(), reused.answer()).await;
    let waited = clock.monotonic() - begun;
    assert!(waited >= Duration::from_secs(4), "{waited:?}");
    for (answer, label) in [(first, "first"), (reused, "kept")] {
        assert_headers(&answer, label);
        assert_eq!(answer.header("connection"), Some("close"), "{label}");
        assert_eq!(answer.whole().await.refusal(), "408 bad_request", "{label}");
    }
}

#[tokio::test]
async fn options_of_all_resources_is_rejected_on_every_host() {
    let t = TestService::start().await;
    let app = t.app("desk").publish().await;
    let members = t.app("closed").for_members().publish().await;
    for (host, allow) in [
        (app.host.as_str(), "GET, HEAD"),
        (&members.host, "GET, HEAD"),
        ("localhost", "DELETE, GET, HEAD, PATCH, POST, PUT"),
    ] {
        let answer = t.raw().await.request("OPTIONS", "*", &[("host", host)], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{host}");
        let is_alias = answer.header("origin-agent-cluster") == Some("?1");
        assert_eq!(is_alias, host != "localhost", "{host}");
        let code = if is_alias { "405 method_not_allowed" } else { "405 request.method_not_allowed" };
        assert_eq!(answer.whole().await.refusal(), code, "{host}");
        assert_eq!(t.raw().await.request("GET", "*", &[("host", host)], "").await.status, 404, "{host}");
    }
    // An unknown alias has no methods either: its response is always the same.
    let unknown = [("host", "other.apps.localhost")];
    assert_eq!(t.raw().await.request("OPTIONS", "*", &unknown, "").await.status, 404);
}

/// A request that creates a workflow.
fn creation(name: &str, headers: &str, chunked: bool) -> String {
    let body = json!({"name": name}).to_string();
    let framed = if chunked {
        format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\nX: y\r\n\r\n", body.len())
    } else {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    };
    format!(
        "POST /api/workflows HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}{framed}"
    )
}

#[tokio::test]
async fn requests_after_a_connection_close_are_ignored() {
    let t = TestService::start().await;
    let second = creation("second", "", false);
    let close = "Connection: close\r\n";
    for (name, headers, chunked, version) in [
        ("length", close, false, "HTTP/1.1"),
        ("chunks", close, true, "HTTP/1.1"),
        ("options", "Connection: te, Close\r\n", false, "HTTP/1.1"),
        ("both", "Connection: close\r\nConnection: keep-alive\r\n", false, "HTTP/1.1"),
        ("earlier", "", false, "HTTP/1.0"),
    ] {
        for at_once in [true, false] {
            let first = creation(&format!("{name}-{at_once}"), headers, chunked);
            let first = first.replacen("HTTP/1.1", version, 1);
            let mut raw = t.raw().await;
            if at_once {
                raw.write(format!("{first}{second}{second}")).await;
            } else {
                raw.write(&first).await;
                raw.write(&second).await;
            }
            let all = String::from_utf8(raw.rest().await).unwrap();
            assert_eq!(all.matches("HTTP/1.").count(), 1, "{name}: {all}");
            assert!(all.contains(" 201 Created\r\n"), "{name}: {all}");
        }
    }
    let made = "SELECT count(*) || ' ' || count(*) FILTER (WHERE name = 'second') FROM workflows";
    assert_eq!(t.scalar(made).await, "10 0");
    // Without that option, all get a response.
    let mut raw = t.raw().await;
    raw.write(format!("{second}{}", creation("last", "Connection: close\r\n", false))).await;
    let all = String::from_utf8(raw.rest().await).unwrap();
    assert_eq!(all.matches(" 201 Created\r\n").count(), 2, "{all}");
}

#[tokio::test]
async fn a_broken_body_gets_the_response_of_its_route() {
    let t = TestService::start().await;
    let app = t.app("desk").publish().await;
    let host = app.host.as_str();
    let ends =
        ["3\r\n{ }\n0\r\n\r\n", "3\n{ }\r\n0\r\n\r\n", "zz\r\n", "3\r\n{ }x", "0\n\n", "0\r\nX: \r y\r\n"];
    for end in ends {
        for (path, host, expected) in [
            ("/__service/data/nope", host, "404 not_found"),
            ("/__service/workflows/nope/runs", host, "404 not_found"),
            ("/nope", host, "405 method_not_allowed"),
            ("/api/workflows", "localhost", "400 request.invalid_json"),
            ("/nope", "localhost", "404 request.not_found"),
        ] {
            for at_once in [true, false] {
                let mut raw = t.raw().await;
                let head = format!(
                    "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nIdempotency-Key: k\r\n\
                     Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                );
                if at_once {
                    raw.write(format!("{head}{end}")).await;
                } else {
                    raw.write(head).await;
                    raw.write(end).await;
                }
                raw.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
                let all = String::from_utf8(raw.rest().await).unwrap();
                assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{path} {end:?}: {all}");
                let (head, body) = all.split_once("\r\n\r\n").unwrap();
                let body: Value = serde_json::from_str(body).unwrap();
                let code = body["detail"]["code"].as_str().unwrap();
                assert_eq!(format!("{} {code}", &head[9..12]), expected, "{path} {end:?}");
                assert!(head.contains("x-request-id: "), "{head}");
            }
        }
    }
    t.assert_no_rows("workflows").await;
}

#[tokio::test]
async fn a_100_continue_is_sent_only_if_the_body_is_read() {
    let t = TestService::start().await;
    let app = t.app("desk").publish().await;
    let host = app.host.as_str();
    let head = |path: &str, host: &str, length: usize| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nIdempotency-Key: k\r\n\
             Content-Type: application/json\r\nExpect: 100-Continue\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    for (path, host, length, expected) in [
        ("/__service/data/nope", host, 10, "404 not_found"),
        ("/nope", host, 10, "405 method_not_allowed"),
        ("/api/workflows", "localhost", 50 << 20, "413 request.too_large"),
        ("/api/workflows", "a.localhost:x", 10, "400 request.invalid_host"),
        ("/nope", "localhost", 10, "404 request.not_found"),
    ] {
        let mut raw = t.raw().await;
        raw.write(head(path, host, length)).await;
        let answer = raw.answer().await;
        assert_eq!(answer.header("connection"), Some("close"), "{path}");
        assert_eq!(answer.whole().await.refusal(), expected, "{path}");
    }
    // A wanted body is requested once, after the earlier responses.
    let body = json!({"name": "asked"}).to_string();
    let mut raw = t.raw().await;
    raw.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    raw.write(head("/api/workflows", "localhost", body.len())).await;
    let raw = raw.answer().await.finish().await;
    let interim = raw.answer().await;
    assert_eq!((interim.status, interim.headers.len()), (100, 0));
    let mut raw = interim.finish().await;
    raw.write(&body[..4]).await;
    raw.write(&body[4..]).await;
    let answer = raw.answer().await.expect(201);
    let mut raw = answer.finish().await;
    // A client that does not wait needs no interim response.
    let last =
        head("/api/workflows", "localhost", body.len()).replace("Expect", "Connection: close\r\nexpect");
    raw.write(format!("{last}{body}")).await;
    let all = String::from_utf8(raw.rest().await).unwrap();
    assert!(all.starts_with("HTTP/1.1 201 Created\r\n"), "{all}");
    assert_eq!(all.matches("HTTP/1.1 ").count(), 1, "{all}");
}
