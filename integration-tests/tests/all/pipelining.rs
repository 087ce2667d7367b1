//! Several requests at once on one connection.

use integration_tests::{TestService, chat, graphs, pause, until};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Get,
    Head,
    Post,
    Stream,
}

const KINDS: [Kind; 4] = [Kind::Get, Kind::Head, Kind::Post, Kind::Stream];

/// A request with a body, which may be empty.
fn request(method: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// The last request on a connection.
const LAST: &str = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Splits off the next response: its head, and its raw body.
fn response<'a>(bytes: &mut &'a str, kind: Kind) -> (&'a str, &'a str) {
    let (head, rest) = bytes.split_once("\r\n\r\n").expect("a head");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length = match length {
        _ if kind == Kind::Head => 0,
        Some(length) => length.parse().unwrap(),
        None => rest.find("\r\n0\r\n\r\n").map_or(rest.len(), |end| end + 7),
    };
    let (body, rest) = rest.split_at(length);
    *bytes = rest;
    (head, body)
}

#[tokio::test]
async fn pipelined_responses_follow_the_order_of_their_requests() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let path = workflow.path("");
    let text = |kind| match kind {
        Kind::Get => request("GET", &path, ""),
        Kind::Head => request("HEAD", &path, ""),
        Kind::Post => request("POST", "/api/chat", "{}"),
        Kind::Stream => request("POST", "/api/chat", &chat::create(&workflow, "hi").to_string()),
    };
    let orders = KINDS.iter().flat_map(|a| KINDS.iter().flat_map(|b| KINDS.iter().map(|c| [*a, *b, *c])));
    for order in orders {
        let mut raw = t.raw().await;
        raw.write(order.map(text).concat() + LAST).await;
        let all = String::from_utf8(raw.rest().await).unwrap();
        let mut rest = all.as_str();
        for kind in order {
            let (head, body) = response(&mut rest, kind);
            let (status, begin) = match kind {
                Kind::Get => ("200", "{\"id\":"),
                Kind::Head => ("200", ""),
                Kind::Post => ("400", "{\"detail\":"),
                Kind::Stream => ("200", ""),
            };
            let context = format!("{kind:?} of {order:?}: {all}");
            assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{context}");
            assert!(body.starts_with(begin), "{context}");
            assert_eq!(body.contains("You said: hi"), kind == Kind::Stream, "{context}");
        }
        let (head, body) = response(&mut rest, Kind::Get);
        assert!(head.contains("200") && body.contains("ok") && rest.is_empty(), "{order:?}: {all}");
    }
}

/// CPU time of this process, in hundredths of a second.
#[cfg(target_os = "linux")]
fn cpu_time() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn requests_pipelined_after_an_open_stream_use_no_cpu_until_it_ends() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(3_600.0, "late")).published().create().await;
    let next = request("GET", "/healthz", "");
    let count = (256 << 10) / next.len();
    let stream = request("POST", "/api/chat", &chat::create(&workflow, "hi").to_string());
    let mut raw = t.raw().await;
    raw.write(stream + &next.repeat(count) + LAST).await;
    let mut answer = raw.answer().await;
    answer.until("thread.updated").await;
    let rests = async || {
        let before = cpu_time();
        pause(300).await;
        cpu_time() - before <= 3
    };
    until("the process rests", rests).await;
    t.stop_turn(answer.header("x-chat-stream-id").unwrap()).await;
    let all = String::from_utf8(answer.finish().await.rest().await).unwrap();
    assert_eq!(all.matches("HTTP/1.1 200").count(), count + 1);
}
