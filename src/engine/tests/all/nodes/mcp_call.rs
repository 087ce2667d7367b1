//! `mcp_call` and an agent's MCP tools, with a small streamable HTTP server.

use std::net::SocketAddr;
use std::sync::Arc;

use kernel::SystemClock;
use models::Models;
use net::{Host, HostPort};
use parking_lot::Mutex;
use practice::Practice;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use wire::ErrorCode;

use crate::ports::{alone, plan};
use crate::world::{World, recorded, refused};

/// A number that would be rounded.
const LONG: &str = "123456789012345678901";

/// A server with the tools `shout`, `fail` and `hide`; it answers as a stream or as a document. Below `/to/` it
/// redirects to `/mcp`, below `/is/<status>` it returns that status, and `/page` is a page.
struct Server {
    at: SocketAddr,
    streams: bool,
    /// Head and message of each request.
    seen: Mutex<Vec<(String, Value)>>,
}

impl Server {
    async fn new(streams: bool) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Arc::new(Self { at: listener.local_addr().unwrap(), streams, seen: Mutex::default() });
        let serving = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = Arc::clone(&serving);
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        server
    }

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        loop {
            let (head, body) = read(&mut stream).await?;
            let message: Value = serde_json::from_str(&body).unwrap_or_default();
            if let Some(answer) = other_path(&head) {
                stream.write_all(answer.as_bytes()).await.ok()?;
                continue;
            }
            self.seen.lock().push((head, message.clone()));
            let answer = match message["method"].as_str() {
                Some("initialize") => json!({"protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}}, "serverInfo": {"name": "small", "version": "1"}}),
                Some("tools/list") => json!({"tools": [
                    {"name": "shout", "description": "Shouts.", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
                    {"name": "fail", "inputSchema": {"type": "object"}}, {"name": "hide", "inputSchema": {"type": "object"}}]}),
                Some("tools/call") if message["params"]["name"] == "shout" => {
                    let text =
                        message["params"]["arguments"]["text"].as_str().unwrap_or_default().to_uppercase();
                    json!({"content": [{"type": "text", "text": text}], "structuredContent": {"loud": true}})
                }
                Some("tools/call") if message["params"]["name"] == "missing" => {
                    let error = json!({"code": -32602, "message": "Unknown tool: missing"});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string();
                    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: ";
                    stream
                        .write_all(format!("{head}{}\r\n\r\n{answer}", answer.len()).as_bytes())
                        .await
                        .ok()?;
                    continue;
                }
                Some("tools/call") if message["params"]["name"] == "picture" => {
                    json!({"content": [{"type": "text", "text": "a dot"},
                                       {"type": "image", "data": "AA==", "mimeType": "image/png"}]})
                }
                Some("tools/call") if message["params"]["name"] == "count" => {
                    json!({"content": [{"type": "text", "text": "1"}], "structuredContent": {"n": "long"}})
                }
                Some("tools/call") => {
                    json!({"content": [{"type": "text", "text": "it hurts"}], "isError": true})
                }
                _ => {
                    stream.write_all(b"HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n").await.ok()?;
                    continue;
                }
            };
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer}).to_string();
            let answer = answer.replace("\"long\"", LONG);
            let (kind, body) = match self.streams {
                true => ("text/event-stream", format!(": hello\n\nevent: message\ndata: {answer}\n\n")),
                false => ("application/json", answer),
            };
            let head = format!(
                "HTTP/1.1 200 X\r\nContent-Type: {kind}\r\nMcp-Session-Id: s1\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(format!("{head}{body}").as_bytes()).await.ok()?;
        }
    }

    fn methods(&self) -> Vec<String> {
        self.seen
            .lock()
            .iter()
            .filter_map(|(_, message)| message["method"].as_str().map(str::to_owned))
            .collect()
    }

    /// A run that may call this server.
    fn world(&self) -> World {
        world(vec![HostPort { host: Host::Ipv4([127, 0, 0, 1].into()), port: self.at.port() }])
    }

    fn node(&self, more: Value) -> Value {
        let mut node = json!({"name": "ask", "type": "mcp_call", "url": format!("http://{}/mcp", self.at), "tool": "shout",
                              "arguments": {"text": "{{ inputs.text }}"}, "headers": {"X-Team": "{{ 'blue' }}"}});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    }
}

/// The answer at paths other than `/mcp`.
fn other_path(head: &str) -> Option<String> {
    let path = head.split(' ').nth(1)?;
    let plain =
        |status: &str, more: &str| Some(format!("HTTP/1.1 {status} X\r\n{more}Content-Length: 0\r\n\r\n"));
    if path == "/page" {
        return Some("HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>".to_owned());
    }
    if let Some(status) = path.strip_prefix("/is/") {
        return plain(status, "");
    }
    match path.strip_prefix("/to/")? {
        "elsewhere" => plain("307", "Location: http://localhost:1/mcp?key=canary\r\n"),
        status => plain(status, "Location: /mcp\r\n"),
    }
}

async fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        read.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            return Some((head.to_owned(), body.to_owned()));
        }
    }
}

fn world(allow: Vec<HostPort>) -> World {
    let clock = Arc::new(SystemClock::new());
    let practice = Arc::new(Practice::new(clock));
    let mut world = World::new().inputs(json!({"text": "hello"}));
    world.models = Models::default().with("practice", practice);
    world.allow = allow;
    world
}

/// Runs in real time: the server does not use the manual clock.
async fn run(world: &World, node: &Value) -> Result<Value, engine::RunError> {
    world.begin_with(&plan(&alone(node)), Arc::new(SystemClock::new())).end().await
}

#[tokio::test]
async fn a_tool_is_called_and_its_answer_is_the_result() {
    for streams in [true, false] {
        let server = Server::new(streams).await;
        let world = server.world();
        let done = run(&world, &server.node(json!({}))).await.unwrap();
        assert_eq!(done, json!({"text": "HELLO", "json": {"loud": true}, "content": []}), "{streams}");
        assert_eq!(server.methods(), ["initialize", "notifications/initialized", "tools/call"]);
        let seen = server.seen.lock();
        let (head, _) = seen.iter().find(|(_, message)| message["method"] == "tools/call").unwrap();
        for header in ["x-team: blue", "mcp-session-id: s1", "idempotency-key: run_1-ask-1"] {
            assert!(head.to_lowercase().contains(header), "{header} in {head}");
        }
        assert!(seen.iter().any(|(head, _)| head.starts_with("DELETE /mcp ")), "the session is returned");
        assert_eq!(world.journal.lines(), ["1 ask.1 started", "1 ask.1 succeeded"]);
    }
}

#[tokio::test]
async fn the_key_of_a_server_comes_from_the_vault() {
    let headers = json!({"Authorization": "Bearer [[mcp]]", "X-Said": "{{ inputs.text }}"});
    let server = Server::new(true).await;
    let tool = json!({"type": "mcp", "url": format!("http://{}/mcp", server.at), "headers": headers});
    let agent = json!({"name": "ask", "type": "agent", "model": "practice/assistant",
                       "user": "Please call shout with text=hello", "tools": [tool]});
    for node in [server.node(json!({"headers": headers})), agent] {
        server.seen.lock().clear();
        let world = server.world().credential("mcp", "canary-of-the-server");
        // A caller's text is never a secret reference.
        let world = world.inputs(json!({"text": "[[mcp]]"}));
        run(&world, &node).await.unwrap();
        for (head, _) in server.seen.lock().iter() {
            assert!(head.contains("authorization: Bearer canary-of-the-server"), "{head}");
            assert!(head.contains("x-said: [[mcp]]"), "{head}");
        }
        assert!(server.seen.lock().len() > 3);
        let journal = format!("{:?}", world.journal.rows.lock());
        assert!(!journal.contains("canary"), "{journal}");
        let error = run(&server.world(), &node).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::CredentialMissing, "{error}");
    }
}

#[tokio::test]
async fn failures_are_reported_with_their_cause() {
    let server = Server::new(true).await;
    let error = run(&server.world(), &server.node(json!({"tool": "fail"}))).await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (ErrorCode::NodeFailed, "the tool 'fail' failed: it hurts")
    );

    let error = run(&world(Vec::new()), &server.node(json!({}))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused, "{error}");
    let mut without = World::new().inputs(json!({"text": "x"}));
    without.models = Models::default();
    let error = run(&without, &server.node(json!({}))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused, "{error}");

    let closed = HostPort { host: Host::Ipv4([127, 0, 0, 1].into()), port: 1 };
    let error =
        run(&world(vec![closed]), &server.node(json!({"url": "http://127.0.0.1:1/"}))).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::NodeFailed, true), "{error}");
    for (more, text) in [
        (json!({"arguments": "{{ inputs.text }}"}), "must be an object, not a string"),
        (json!({"headers": {"no header": "x"}}), "not a valid header name"),
        (json!({"headers": {"X-Team": "grün"}}), "not a valid header value"),
        (json!({"url": "{{ inputs.text }}"}), ""),
    ] {
        let error = run(&server.world(), &server.node(more)).await.unwrap_err();
        assert!(error.message.contains(text), "{error}");
    }
}

#[tokio::test]
async fn non_text_parts_are_kept_unchanged() {
    let server = Server::new(false).await;
    let done = run(&server.world(), &server.node(json!({"tool": "picture"}))).await.unwrap();
    let picture = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
    assert_eq!(done, json!({"text": "a dot", "json": null, "content": [picture]}));
}

#[tokio::test]
async fn a_rounded_number_in_structured_content_is_named() {
    for streams in [true, false] {
        let server = Server::new(streams).await;
        let error = run(&server.world(), &server.node(json!({"tool": "count"}))).await.unwrap_err();
        let expected = format!("in the result of the tool 'count', the number {LONG} would be rounded");
        assert!(error.message.starts_with(&expected), "{error}");
    }
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed() {
    let server = Server::new(false).await;
    let at = |path: &str| server.node(json!({"url": format!("http://{}{path}", server.at)}));
    for status in ["307", "308"] {
        let done = run(&server.world(), &at(&format!("/to/{status}"))).await.unwrap();
        assert_eq!(done["text"], "HELLO", "{status}");
    }
    let called = server.seen.lock().len();
    for (path, to) in
        [("/to/302", format!("http://{}/mcp", server.at)), ("/to/elsewhere", "http://localhost:1/mcp".into())]
    {
        let error = run(&server.world(), &at(path)).await.unwrap_err();
        let expected = format!("{} redirects to {to}; use that address if you trust it", server.at);
        assert_eq!((error.code, error.message), (ErrorCode::EgressRefused, expected));
    }
    assert_eq!(server.seen.lock().len(), called, "nothing was sent there");
}

#[tokio::test]
async fn an_endpoint_that_is_not_mcp_has_a_clear_error() {
    let server = Server::new(false).await;
    let is_it = "is 'url' the address of its MCP endpoint, with streamable HTTP?";
    for (path, text, retryable) in [
        ("/is/401", " answered 401; check the credentials in 'headers'".to_owned(), false),
        ("/is/404", format!(" answered 404; {is_it}"), false),
        ("/is/503", " answered 503".to_owned(), true),
        ("/page", " answered with text/html, which is not MCP; is 'url' the address of an MCP endpoint, with streamable HTTP?".to_owned(), false),
    ] {
        let node = server.node(json!({"url": format!("http://{}{path}", server.at)}));
        let error = run(&server.world(), &node).await.unwrap_err();
        assert_eq!((error.message, error.retryable), (format!("{}{text}", server.at), retryable), "{path}");
    }
    let error = run(&server.world(), &server.node(json!({"tool": "missing"}))).await.unwrap_err();
    assert_eq!(error.message, "the MCP server rejected the request: Unknown tool: missing (-32602)");
}

#[tokio::test]
async fn a_call_with_an_unknown_outcome_is_not_repeated() {
    let server = Server::new(true).await;
    let world = server.world();
    run(&world, &server.node(json!({}))).await.unwrap();
    let rows = world.journal.rows.lock()[..1].to_vec();
    let called = server.methods().len();
    let error = run(&server.world().recorded(recorded(&rows)), &server.node(json!({}))).await.unwrap_err();
    assert_eq!((error.code, server.methods().len()), (ErrorCode::NodeOutcomeUnknown, called));
    run(&server.world().recorded(recorded(&rows)), &server.node(json!({"idempotent": true}))).await.unwrap();
}

#[tokio::test]
async fn an_agent_has_the_tools_of_a_server() {
    let server = Server::new(true).await;
    let tool = json!({"type": "mcp", "url": format!("http://{}/mcp", server.at), "allow": ["shout", "fail"]});
    let node = json!({"name": "ask", "type": "agent", "model": "practice/assistant", "user": "Please call shout with text=hello",
                      "tools": [tool]});
    let world = server.world();
    let done = run(&world, &node).await.unwrap();
    assert_eq!((&done["steps"], &done["text"]), (&json!(2), &json!("The tool says: HELLO")));
    assert_eq!(
        world.journal.lines(),
        [
            "1 ask.mcp[0].1 succeeded",
            "1 ask[0].1 succeeded",
            "1 ask[0].shout[0].1 started",
            "1 ask[0].shout[0].1 succeeded",
            "1 ask[1].1 succeeded",
            "1 ask.1 succeeded"
        ]
    );
    // The tool list is not requested again, and a tool that is not allowed is missing.
    let rows = world.journal.rows.lock()[..1].to_vec();
    let StepResult(listed) = StepResult::from_row(&rows[0]);
    assert_eq!(listed["tools"].as_array().unwrap().len(), 3);
    let lists = || server.methods().iter().filter(|method| *method == "tools/list").count();
    assert_eq!(lists(), 1);
    run(&server.world().recorded(recorded(&rows)), &node).await.unwrap();
    assert_eq!(lists(), 1);

    let twice = json!({"type": "node", "name": "shout", "description": "x", "parameters": {}, "node": {"type": "template", "template": ""}});
    let mut node = node;
    node["tools"].as_array_mut().unwrap().push(twice);
    let error = run(&server.world(), &node).await.unwrap_err();
    assert!(error.message.contains("two tools have the name 'shout'"), "{error}");
}

struct StepResult(Value);

impl StepResult {
    fn from_row(row: &engine::ports::StepRecord) -> Self {
        match &row.outcome {
            engine::ports::StepOutcome::Succeeded { result, .. } => {
                Self(serde_json::from_str(result).unwrap())
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn mcp_call_fields_have_limits() {
    let node = |more: Value| {
        let mut node =
            json!({"name": "ask", "type": "mcp_call", "url": "https://mcp.example.com/", "tool": "x"});
        node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        node
    };
    let agent =
        |tool: Value| json!({"name": "ask", "type": "agent", "model": "a/b", "user": "x", "tools": [tool]});
    for (node, problem) in [
        (node(json!({"url": null})), "/url required"),
        (node(json!({"tool": null})), "/tool required"),
        (node(json!({"arguments": []})), "/arguments type"),
        (node(json!({"arguments": {"a": "{{ nobody }}"}})), "/arguments/a unknown_name"),
        (node(json!({"headers": {"a": 5}})), "/headers type"),
        (node(json!({"cache_seconds": 5})), "/cache_seconds not_pure"),
        (agent(json!({"type": "mcp"})), "/tools/0/url required"),
        (agent(json!({"type": "mcp", "url": "http://x", "allow": []})), "/tools/0/allow type"),
        (agent(json!({"type": "mcp", "url": "http://x", "name": "y"})), "/tools/0/name unknown_field"),
    ] {
        assert_eq!(refused(&node), [problem], "{node}");
    }
}
