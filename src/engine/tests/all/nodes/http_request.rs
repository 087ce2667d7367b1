//! `http_request`: requests, responses, refusals, retries, secrets and their echoes.

use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use engine::ports::StepOutcome;
use kernel::Clock as _;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wire::ErrorCode;

use crate::endpoint::{Act, Endpoint};
use crate::ports::{alone, graph, plan};
use crate::world::{World, recorded, refused};

const SECRET: &str = "sk-canary/7f3c 1d9a+b2&e8=\"45\"-06";

/// A server that echoes requests in every common encoding.
struct Echo {
    at: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Echo {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let stored_requests = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let stored_requests = Arc::clone(&stored_requests);
                tokio::spawn(async move {
                    let mut read = Vec::new();
                    let mut buffer = [0; 65_536];
                    loop {
                        let count = stream.read(&mut buffer).await.unwrap_or(0);
                        read.extend_from_slice(&buffer[..count]);
                        let text = String::from_utf8_lossy(&read).into_owned();
                        let Some((head, body)) = text.split_once("\r\n\r\n") else {
                            if count == 0 { return } else { continue }
                        };
                        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                        if count > 0 && body.len() < length.map_or(0, |length| length.parse().unwrap()) {
                            continue;
                        }
                        stored_requests.lock().push(text.clone());
                        let status = if head.contains("/fail") { "422 No" } else { "200 OK" };
                        let reply_body = json!({
                            "raw": text, "base64": STANDARD.encode(&text), "url64": URL_SAFE_NO_PAD.encode(&text),
                            "hex": hex::encode(&text), "form": url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>(),
                            "inner": json!({"raw": text}).to_string(),
                        });
                        let reply_body = reply_body.to_string();
                        let header =
                            head.lines().find_map(|line| line.strip_prefix("x-key: ")).unwrap_or("none");
                        let answer = format!(
                            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nX-Echo: {header}\r\n\
                             Content-Length: {}\r\nConnection: close\r\n\r\n{reply_body}",
                            reply_body.len()
                        );
                        let _ = stream.write_all(answer.as_bytes()).await;
                        return;
                    }
                });
            }
        });
        Self { at, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn last(&self) -> String {
        self.requests.lock().last().cloned().unwrap_or_default()
    }
}

fn node(more: Value) -> Value {
    let mut node = json!({"name": "call", "type": "http_request"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

async fn sent(more: Value, inputs: Value) -> (Value, String) {
    let echo = Echo::start().await;
    let mut more = more;
    let url = more["url"].as_str().unwrap_or("/").to_owned();
    more["url"] = json!(echo.url(&url));
    let world = World::new().allowing(echo.at).credential("key", SECRET).inputs(inputs);
    let result = world.run_outside(&plan(&alone(&node(more)))).await.unwrap();
    (result, echo.last())
}

#[tokio::test]
async fn a_json_body_keeps_the_order_of_its_members() {
    let inputs = serde_json::from_str(r#"{"it":{"z":1,"a":{"y":2,"b":3}}}"#).unwrap();
    let body = r#"{"zone":"x","all":{"z":1,"a":{"y":2,"b":3}},"b":[{"d":1,"c":2}],"a":0}"#;
    let node = body.replace(r#"{"z":1,"a":{"y":2,"b":3}}"#, r#""{{ inputs.it }}""#);
    let (_, request) =
        sent(json!({"method": "POST", "json": serde_json::from_str::<Value>(&node).unwrap()}), inputs).await;
    assert!(request.ends_with(body), "{request}");
}

#[tokio::test]
async fn a_request_is_sent_as_the_graph_describes_it() {
    let (result, request) = sent(
        json!({"method": "POST", "url": "/a?x=1", "query": {"q": "{{ inputs.q }}", "many": [1, "{{ inputs.n }}"], "no": null},
               "headers": {"X-Team": "{{ inputs.q }}"}, "json": {"n": "{{ inputs.n }}", "t": "n={{ inputs.n }}"}}),
        json!({"q": "a b&c", "n": 7}),
    )
    .await;
    assert_eq!(
        (result["status"].as_u64(), &result["headers"]["content-type"]),
        (Some(200), &json!("application/json"))
    );
    assert!(
        result["json"]["raw"].as_str().unwrap().starts_with("POST /a?x=1&q=a+b%26c&many=1&many=7 HTTP/1.1")
    );
    for part in [
        "x-team: a b&c",
        "content-type: application/json",
        "idempotency-key: run_1-call-1",
        "user-agent: Callboard/",
        "accept-encoding: identity",
        r#"{"n":7,"t":"n=7"}"#,
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
    let (_, request) = sent(
        json!({"method": "PUT", "headers": {"Idempotency-Key": "mine", "content-type": "text/csv", "user-agent": "me"}, "body": "a,b"}),
        json!({}),
    )
    .await;
    assert!(request.contains("idempotency-key: mine") && !request.contains("run_1"), "{request}");
    assert!(request.contains("content-type: text/csv") && request.contains("user-agent: me"), "{request}");
    assert!(request.ends_with("\r\n\r\na,b"), "{request}");
}

#[tokio::test]
async fn a_response_is_json_text_or_bytes() {
    for (headers, body, expected) in [
        ("Content-Type: application/json\r\n", b"{\"a\": [1]}".as_slice(), ("json", json!({"a": [1]}))),
        ("Content-Type: application/problem+json; charset=utf-8\r\n", b"7", ("json", json!(7))),
        ("Content-Type: application/json\r\n", b"{broken", ("text", json!("{broken"))),
        ("Content-Type: text/html\r\n", b"{\"a\": 1}", ("text", json!("{\"a\": 1}"))),
        ("", b"", ("text", json!(""))),
        ("", b"\xff\xfe", ("base64", json!("//4="))),
    ] {
        let headers = Box::leak(format!("{headers}X-A: 1\r\nx-a: 2\r\n").into_boxed_str());
        let mut acts = vec![Act::Head(203, headers), Act::Chunk(body.to_vec()), Act::End];
        // An empty chunk would end the body.
        acts.retain(|act| !matches!(act, Act::Chunk(bytes) if bytes.is_empty()));
        let endpoint = Endpoint::new(acts).await;
        let world = World::new().allowing(endpoint.at);
        let node = node(json!({"url": format!("http://{}/", endpoint.at)}));
        let result = world.run_outside(&plan(&alone(&node))).await.unwrap();
        assert_eq!((&result["status"], &result["headers"]["x-a"]), (&json!(203), &json!("1, 2")));
        assert_eq!(result[expected.0], expected.1, "{result}");
    }
}

#[tokio::test]
async fn an_error_status_fails_and_is_retried_only_if_that_may_help() {
    for (status, attempts) in [(404, 1), (401, 1), (408, 2), (425, 2), (429, 2), (500, 2), (503, 2)] {
        let endpoint = Endpoint::answering(status, "Retry-After: 0\r\n", "go  away\n").await;
        let world = World::new().allowing(endpoint.at);
        let retry = json!({"max_attempts": 2, "initial_delay_seconds": 0});
        let node = node(json!({"method": "POST", "url": format!("http://{}/", endpoint.at), "retry": retry}));
        let error = world.run_outside(&plan(&alone(&node))).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::NodeFailed);
        assert_eq!(error.message, format!("{} answered {status}: go away", endpoint.at));
        assert_eq!(endpoint.requests.lock().len(), attempts, "{status}");
        // Every attempt in a visit sends the same key.
        let keys: Vec<bool> = endpoint
            .requests
            .lock()
            .iter()
            .map(|sent| sent.contains("idempotency-key: run_1-call-1\r\n"))
            .collect();
        assert!(keys.iter().all(|same| *same));
    }
    let endpoint = Endpoint::answering(404, "", "none").await;
    let node = node(json!({"url": format!("http://{}/", endpoint.at), "fail_on_status": false}));
    let result = World::new().allowing(endpoint.at).run_outside(&plan(&alone(&node))).await.unwrap();
    assert_eq!((&result["status"], &result["text"]), (&json!(404), &json!("none")));
}

#[tokio::test]
async fn private_addresses_are_rejected_even_after_a_redirect() {
    let endpoint = Endpoint::answering(302, "Location: http://127.0.0.1:9/\r\n", "").await;
    let cases = [
        ("http://127.0.0.1:9/".to_owned(), World::new()),
        ("http://2130706433/".to_owned(), World::new()),
        ("http://user@127.0.0.1/".to_owned(), World::new()),
        ("file:///etc/passwd".to_owned(), World::new()),
        ("/relative".to_owned(), World::new()),
        (format!("http://{}/", endpoint.at), World::new().allowing(endpoint.at)),
    ];
    for (url, world) in cases {
        let retry = json!({"max_attempts": 3});
        let node = node(json!({"url": "{{ inputs.url }}", "retry": retry}));
        let world = world.inputs(json!({"url": url}));
        let error = world.run_outside(&plan(&alone(&node))).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::EgressRefused, "{url}: {error}");
        assert!(!error.message.contains("passwd") && !error.message.contains("user@"), "{error}");
        assert_eq!(world.journal.lines().iter().filter(|line| line.contains("failed")).count(), 1, "{url}");
    }
}

#[tokio::test]
async fn broken_and_endless_responses_are_errors() {
    let cut = Endpoint::new(vec![Act::Head(200, ""), Act::Chunk(b"half".to_vec()), Act::Cut]).await;
    let node = |at, more: Value| {
        let mut node = node(json!({"url": format!("http://{at}/")}));
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan(&alone(&node))
    };
    let retry = json!({"retry": {"max_attempts": 2, "initial_delay_seconds": 0}});
    let error = World::new().allowing(cut.at).run_outside(&node(cut.at, retry)).await.unwrap_err();
    assert_eq!((error.code, cut.requests.lock().len()), (ErrorCode::NodeFailed, 2), "{error}");
    let endless = Endpoint::new(vec![Act::Head(200, ""), Act::Forever(vec![b'x'; 65_536])]).await;
    let error =
        World::new().allowing(endless.at).run_outside(&node(endless.at, json!({}))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeResultTooLarge, "{error}");
    let silent = Endpoint::new(vec![Act::Hold]).await;
    let more = json!({"timeout_seconds": 0.2});
    let error = World::new().allowing(silent.at).run_outside(&node(silent.at, more)).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeTimeout, "{error}");
}

#[tokio::test]
async fn a_crash_repeats_only_idempotent_requests() {
    for (more, repeated) in [
        (json!({}), true),
        (json!({"method": "HEAD"}), true),
        (json!({"method": "POST"}), false),
        (json!({"method": "DELETE"}), false),
        (json!({"method": "POST", "idempotent": true}), true),
        (json!({"method": "POST", "on_unknown": "retry"}), true),
    ] {
        let endpoint = Endpoint::new(vec![Act::Hold]).await;
        let mut more = more;
        more["url"] = json!(format!("http://{}/", endpoint.at));
        let plan = plan(&alone(&node(more.clone())));
        let world = World::new().allowing(endpoint.at);
        let run = world.begin_with(&plan, Arc::new(kernel::SystemClock::new()));
        endpoint.holding.notified().await;
        run.drop_it();
        let again = World::new().recorded(recorded(&world.journal.rows.lock()));
        // No address is allowed now: a new attempt is refused, and without one the outcome stays unknown.
        let error = again.run_outside(&plan).await.unwrap_err();
        let expected = if repeated { ErrorCode::EgressRefused } else { ErrorCode::NodeOutcomeUnknown };
        assert_eq!(error.code, expected, "{more}: {error}");
    }
}

fn forms() -> Vec<String> {
    let json = json!(SECRET).to_string();
    vec![
        SECRET.to_owned(),
        json[1..json.len() - 1].to_owned(),
        url::form_urlencoded::byte_serialize(SECRET.as_bytes()).collect(),
        hex::encode(SECRET),
        // The characters in the middle of the base64 that depend on the secret alone.
        STANDARD.encode(SECRET)[..40].to_owned(),
        STANDARD.encode(format!("xx{SECRET}"))[4..40].to_owned(),
        STANDARD.encode(format!("x{SECRET}"))[4..40].to_owned(),
        "canary".to_owned(),
    ]
}

#[tokio::test]
async fn a_secret_is_sent_to_the_server_only() {
    let echo = Echo::start().await;
    let calls = json!([
        node(json!({"name": "call", "method": "POST", "url": echo.url("/[[key]]?k=[[ key ]]"),
                    "headers": {"X-Key": "Bearer [[key]]"}, "query": {"q": "{{ inputs.a }}[[key]]"},
                    "json": {"k": ["[[key]]", "{{ inputs.a }}"]}})),
        node(json!({"name": "whole", "url": "[[address]]"})),
        node(json!({"name": "bad", "method": "POST", "url": echo.url("/fail"), "body": "[[key]]", "on_error": "continue"})),
        // This node knows no secret, but outputs the first one's results.
        {"name": "say", "type": "reply", "text": "{{ results.call.json.raw }} {{ results.bad.error.message }}"},
    ]);
    let edges =
        json!([["START", "call"], ["call", "whole"], ["whole", "bad"], ["bad", "say"], ["say", "END"]]);
    let mut document = graph(calls, edges);
    document["output"] = json!("{{ results }}");
    let world = World::new().allowing(echo.at).credential("key", SECRET).inputs(json!({"a": "plain"}));
    let world = world.credential("address", &echo.url("/all-of-it"));
    let output = world.run_outside(&plan(&document)).await.unwrap();
    let sent = echo.requests.lock().join("\n");
    let encoded = "sk-canary%2F7f3c%201d9a%2Bb2%26e8%3D%2245%22-06";
    assert!(sent.contains(&format!("POST /{encoded}?k={encoded}&q=plainsk-canary%2F7f3c+1d9a")), "{sent}");
    assert!(sent.contains(&format!("x-key: Bearer {SECRET}")), "{sent}");
    assert!(sent.contains(&format!(r#"{{"k":[{},"plain"]}}"#, json!(SECRET))), "{sent}");
    assert!(sent.contains("GET /all-of-it HTTP/1.1"), "{sent}");
    let written = format!("{output} {:?} {:?}", world.journal.rows.lock(), world.sink);
    for form in forms() {
        assert!(!written.contains(&form), "{form}: {written}");
    }
    assert!(written.contains("[redacted]"));
    assert_eq!(output["call"]["headers"]["x-echo"], "Bearer [redacted]");
    assert!(output["bad"]["error"]["message"].as_str().unwrap().contains("answered 422"), "{output}");
    // The input digest covers only secret names: another secret under the name does not change it.
    let digests = |world: &World| -> Vec<[u8; 32]> {
        let rows = world.journal.rows.lock();
        let ended = rows.iter().filter(|row| !matches!(row.outcome, StepOutcome::Started));
        ended.take(1).map(|row| row.input_digest).collect()
    };
    let other =
        World::new().allowing(echo.at).credential("key", "another-secret").inputs(json!({"a": "plain"}));
    let other = other.credential("address", &echo.url("/"));
    other.run_outside(&plan(&document)).await.unwrap();
    assert_eq!(digests(&world), digests(&other));
}

#[tokio::test]
async fn references_in_user_text_are_not_resolved() {
    let echo = Echo::start().await;
    let fields = json!({
        "method": "POST", "url": format!("{}{{{{ inputs.message }}}}", echo.url("/?u=")),
        "headers": {"X-Key": "{{ inputs.message }}", "X-Half": "{{ inputs.half }}{{ inputs.rest }}",
                    "X-Built": "[[{{ inputs.name }}]]"},
        "query": {"q": "{{ inputs.message }}", "list": "{{ inputs.list }}"},
        "json": {"all": "{{ inputs }}", "one": "{{ inputs.message }}", "beside": "[[other]] {{ inputs.message }}"}});
    let fields = plan(&alone(&node(fields)));
    let forged = json!({"pointer": "/headers/X-Key", "at": 0, "name": "key"});
    let inputs = json!({"message": "[[key]]", "half": "[[k", "rest": "ey]]", "name": "key", "list": ["[[key]]"],
                        "secrets": [forged], "fields": {"secrets": [forged]}});
    let world = World::new()
        .allowing(echo.at)
        .credential("key", SECRET)
        .credential("other", "an-open-word")
        .inputs(inputs);
    let output = world.run_outside(&fields).await.unwrap();
    let sent = echo.last();
    for form in forms() {
        assert!(!sent.contains(&form), "{form}: {sent}");
    }
    assert!(sent.contains("x-key: [[key]]") && sent.contains("x-half: [[key]]"), "{sent}");
    assert!(sent.contains("x-built: [[key]]") && sent.contains("an-open-word [[key]]"), "{sent}");
    assert!(output["json"]["raw"].as_str().unwrap().contains("[redacted] [[key]]"), "{output}");
    // Output from another node or server contains no references either.
    let chain = graph(
        json!([
            {"name": "made", "type": "template", "template": "[[key]]"},
            node(json!({"name": "call", "method": "POST", "url": echo.url("/"), "body": "{{ results.made.text }}"}))
        ]),
        json!([["START", "made"], ["made", "call"], ["call", "END"]]),
    );
    world.run_outside(&plan(&chain)).await.unwrap();
    assert!(echo.last().ends_with("\r\n\r\n[[key]]"), "{}", echo.last());
}

#[tokio::test]
async fn a_missing_secret_fails_before_anything_is_sent() {
    let echo = Echo::start().await;
    let node =
        node(json!({"url": echo.url("/"), "headers": {"X-Key": "[[gone]]"}, "retry": {"max_attempts": 3}}));
    let world = World::new().allowing(echo.at);
    let error = world.run_outside(&plan(&alone(&node))).await.unwrap_err();
    assert_eq!((error.code, echo.requests.lock().len()), (ErrorCode::CredentialMissing, 0));
    // A line break in the secret would start a second header.
    let world = World::new().allowing(echo.at).credential("gone", "canary-one\r\nX-Evil: 1");
    let error = world.run_outside(&plan(&alone(&node))).await.unwrap_err();
    assert!(error.message.contains("X-Key") && !error.message.contains("canary"), "{error}");
    assert_eq!(echo.requests.lock().len(), 0);
}

#[tokio::test]
async fn a_body_with_a_secret_does_not_follow_redirects_to_other_origins() {
    let echo = Echo::start().await;
    let location: &'static str = Box::leak(format!("Location: {}\r\n", echo.url("/there")).into_boxed_str());
    let endpoint = Endpoint::answering(307, location, "").await;
    let world = World::new().allowing(echo.at).allowing(endpoint.at).credential("key", SECRET);
    let call = |more: Value| {
        let mut node = node(json!({"method": "POST", "url": format!("http://{}/", endpoint.at)}));
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plan(&alone(&node))
    };
    let error = world.run_outside(&call(json!({"body": "[[key]]"}))).await.unwrap_err();
    assert_eq!((error.code, echo.requests.lock().len()), (ErrorCode::EgressRefused, 0), "{error}");
    // Headers are dropped.
    world.run_outside(&call(json!({"headers": {"X-Key": "[[key]]"}, "body": "x"}))).await.unwrap();
    assert!(echo.last().starts_with("POST /there") && !echo.last().contains("canary"), "{}", echo.last());
}

#[test]
fn mistakes_are_reported_when_a_graph_is_saved() {
    for (more, problems) in [
        (json!({}), vec!["/url required"]),
        (json!({"url": 1, "method": "FETCH"}), vec!["/method choice", "/url type"]),
        (json!({"url": "http://x", "headers": [], "query": 1}), vec!["/headers type", "/query type"]),
        (
            json!({"url": "http://x", "headers": {"Host": "a", "a b": "c", "X": {}}}),
            vec!["/headers/Host header", "/headers/X type", "/headers/a b header"],
        ),
        (json!({"url": "http://x", "json": 1}), vec!["/json body"]),
        (json!({"url": "http://x", "method": "POST", "json": 1, "body": "b"}), vec!["/body body"]),
        (json!({"url": "{{ nowhere }}[[a]]"}), vec!["/url unknown_name"]),
        (json!({"url": "{% if inputs.a %}[[a]]{% endif %}"}), vec!["/url credential_in_block"]),
        (json!({"url": "{{ 1 + }}[[a]]"}), vec!["/url template"]),
        (
            json!({"url": "http://x", "fail_on_status": "no", "colour": 1}),
            vec!["/colour unknown_field", "/fail_on_status type"],
        ),
        (json!({"url": "http://x", "cache_seconds": 5}), vec!["/cache_seconds not_pure"]),
        (json!({"url": "https://[[a]].example.org/{% raw %}[[b]]{% endraw %}"}), vec![]),
    ] {
        assert_eq!(refused(&node(more.clone())), problems, "{more}");
    }
}

#[tokio::test]
async fn a_secret_of_one_item_is_masked_in_responses_to_others() {
    let echo = Echo::start().await;
    let body = json!({"type": "http_request", "method": "POST", "url": echo.url("/"), "headers": {"X-Key": "[[key]]"},
                      "body": "{{ item }}"});
    let each = json!({"name": "each", "type": "for_each", "items": ["a", "b"], "body": body});
    let world = World::new().allowing(echo.at).credential("key", SECRET);
    let output = world.run_outside(&plan(&alone(&each))).await.unwrap();
    assert_eq!(output["items"][1]["headers"]["x-echo"], "[redacted]");
    let written = format!("{output} {:?}", world.journal.rows.lock());
    assert!(forms().iter().all(|form| !written.contains(form)), "{written}");
    let _ = world.clock.now();
}

#[tokio::test]
async fn secrets_used_by_an_earlier_life_are_masked_in_the_next() {
    let (echo, other) = (Echo::start().await, Endpoint::answering(200, "", &format!("it is {SECRET}")).await);
    let calls = json!([
        node(json!({"name": "first", "url": echo.url("/"), "headers": {"X-Key": "[[key]]"}})),
        node(json!({"name": "second", "url": format!("http://{}/", other.at)})),
    ]);
    let mut document = graph(calls, json!([["START", "first"], ["first", "second"], ["second", "END"]]));
    document["output"] = json!("{{ results.second.text }}");
    let world = || World::new().allowing(echo.at).allowing(other.at).credential("key", SECRET);
    let first = world();
    assert_eq!(first.run_outside(&plan(&document)).await, Ok(json!("it is [redacted]")));
    let mut rows = recorded(&first.journal.rows.lock());
    rows.retain(|row| row.node == "first");
    let again = world().recorded(rows).run_outside(&plan(&document)).await;
    assert_eq!((again, echo.requests.lock().len()), (Ok(json!("it is [redacted]")), 1));
}
