//! Bodies that no client should send: each is rejected with the service's own message, and the service stays healthy.

use insta::assert_snapshot;
use integration_tests::{AnswerExt, JSON, TestService, chat, shown, shown_alike};
use serde_json::{Value, json};

/// The stored text of the user's message.
async fn stored_text(t: &TestService, thread: &str, index: usize) -> String {
    let sql = format!(
        "SELECT content FROM thread_items WHERE thread_id = '{}' ORDER BY id OFFSET {index} LIMIT 1",
        t.scalar("SELECT id FROM threads ORDER BY created_at DESC LIMIT 1").await
    );
    let item: Value = serde_json::from_str(&t.scalar(&sql).await).unwrap();
    assert_eq!(item["thread_id"], thread);
    item["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn invalid_json_is_400_with_its_position() {
    let t = TestService::start().await;
    let bodies: [&[u8]; 9] = [
        b"{",
        b"nonsense",
        b"{'a': 1}",
        b"{\"a\": 1,}",
        b"{} {}",
        b"{\"a\": \"\xff\"}",
        b"{\"a\": \"\\ud800\"}",
        b"{\"a\": \"\x00\"}",
        b"{\"a\": 1e999}",
    ];
    for body in bodies {
        let answer = t.send("POST", "/api/chat", &[JSON], body).await;
        assert_eq!(answer.refusal(), "400 request.invalid_json", "{:?}", String::from_utf8_lossy(body));
        assert!(answer.message().contains("line 1 column"), "{}", answer.message());
    }
    let named: [(&[u8], &str); 5] = [
        (b"", "The request body is empty; it must be a JSON document."),
        (b" \n", "The request body is empty; it must be a JSON document."),
        (b"\xef\xbb\xbf{}", "The request body begins with a byte order mark; send UTF-8 without one."),
        (b"\xff\xfe{\0}\0", "The request body is UTF-16; send UTF-8 without a byte order mark."),
        (b"\xfe\xff\0{\0}", "The request body is UTF-16; send UTF-8 without a byte order mark."),
    ];
    for (body, message) in named {
        for (path, headers) in [("/api/chat", &[JSON][..]), ("/api/workflows", &[JSON][..])] {
            let answer = t.send("POST", path, headers, body).await;
            assert_eq!(answer.refusal(), "400 request.invalid_json", "{path} {body:?}");
            assert_eq!(answer.message(), message, "{path}");
        }
    }
    // An empty body is reported as such, not as a missing content type.
    let nothing = t.send("POST", "/api/workflows", &[], "").await;
    assert_eq!(nothing.refusal(), "400 request.invalid_json");
    t.assert_healthy().await;
    t.assert_no_rows("threads").await;
}

#[tokio::test]
async fn json_is_limited_to_128_levels() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let nested = |levels: usize| {
        // The object itself and `metadata` are the first two levels.
        let (open, close) = ("[".repeat(levels - 2), "]".repeat(levels - 2));
        let body = chat::create(&workflow, "hi").to_string();
        format!("{},\"metadata\":{{\"deep\":{open}{close}}}}}", body.strip_suffix('}').unwrap())
    };
    for (levels, status) in [(100, 200), (127, 200), (128, 200), (129, 400), (500, 400), (100_000, 400)] {
        let answer = t.post("/api/chat", &nested(levels)).await;
        assert_eq!(answer.status, status, "{levels}: {}", answer.text());
    }
    let bare = format!("{}{}", "[".repeat(129), "]".repeat(129));
    assert_eq!(t.post("/api/workflows", &bare).await.refusal(), "400 request.invalid_json");
    t.assert_healthy().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_with_or_without_a_declared_length() {
    let t = TestService::start().await;
    let large = vec![b' '; 10 << 20];
    let declared = t.send("POST", "/api/chat", &[JSON], &large).await;
    assert_snapshot!(shown(&declared), @r#"
    413
    content-type: application/json
    {"detail":{"message":"The request body is too large.","code":"request.too_large"}}
    "#);
    let mut raw = t.raw().await;
    raw.write(
        "POST /api/chat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n",
    )
    .await;
    let mut chunk = format!("{:x}\r\n", 64 << 10).into_bytes();
    chunk.extend_from_slice(&large[..64 << 10]);
    chunk.extend_from_slice(b"\r\n");
    for _ in 0..17 {
        raw.write(&chunk).await;
    }
    assert_eq!(raw.answer().await.whole().await.refusal(), "413 request.too_large");
    let mut raw = t.raw().await;
    raw.write("POST /api/chat HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n").await;
    let broken = raw.answer().await.whole().await;
    assert_eq!(broken.message(), "The request body ended early.");
    let lying = [JSON, ("content-length", "99999999999999999999999")];
    let mut raw = t.raw().await;
    raw.write(format!("POST /api/chat HTTP/1.1\r\nHost: x\r\n{}: {}\r\n\r\n{{}}", lying[1].0, lying[1].1))
        .await;
    assert!((400..500).contains(&raw.answer().await.status));
    t.assert_healthy().await;
}

#[tokio::test]
async fn a_body_of_exactly_one_mebibyte_is_accepted() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(integration_tests::graphs::reply("ok")).published().create().await;
    let empty = chat::create(&workflow, "").to_string().len();
    for (excess, status) in [(0, 200), (1, 413)] {
        let body = chat::create(&workflow, &"x".repeat((1 << 20) - empty + excess)).to_string();
        assert_eq!(body.len(), (1 << 20) + excess);
        assert_eq!(t.post("/api/chat", &body).await.status, status);
    }
    let stored = "SELECT max(length(content)) FROM thread_items";
    assert!(t.scalar(stored).await.parse::<usize>().unwrap() > (1 << 20) - 1000);
}

#[tokio::test]
async fn wrong_types_everywhere_are_422_and_never_500() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let whole = json!({"type": "threads.create", "workflow_id": workflow.id, "metadata": {}, "params": {
        "input": {"content": [{"type": "input_text", "text": "hi"}, {"type": "input_tag", "id": "t", "text": "x",
                  "data": {}, "group": "g", "interactive": true}],
                  "attachments": [], "quoted_text": "q",
                  "inference_options": {"model": "m", "tool_choice": {"id": "t"}}}}});
    let mut places = Vec::new();
    pointers_in(&whole, String::new(), &mut places);
    assert!(places.len() > 15);
    for place in places {
        for wrong in
            [json!(null), json!(7), json!(1.5), json!(true), json!("text"), json!([]), json!({}), json!([[]])]
        {
            let mut body = whole.clone();
            *body.pointer_mut(&place).unwrap() = wrong.clone();
            let answer = t.chat(&body).await;
            let fine = matches!(answer.status, 200 | 400 | 404 | 422);
            assert!(fine, "{place} = {wrong}: {} {}", answer.status, answer.text());
        }
    }
    t.assert_healthy().await;
}

#[tokio::test]
async fn small_requests_never_cause_large_responses() {
    let t = TestService::start().await;
    let workflow = t.workflow().published().create().await;
    let versions = workflow.path("/versions");
    let unknown: serde_json::Map<String, Value> = (0..60_000).map(|n| (format!("k{n}"), json!(1))).collect();
    let mut chat = chat::create(&workflow, "hi");
    chat["params"]["input"]["content"] = json!(vec![1; 300_000]);
    let requests = [
        ("/api/workflows".to_owned(), Value::Object(unknown.clone())),
        ("/api/workflows".to_owned(), json!({"name": "x", "tags": vec![1; 300_000]})),
        (versions.clone(), json!({"graph": {}, "runnable_config": {"tags": vec![1; 300_000]}})),
        (versions.clone(), json!({"graph": {}, "runnable_config": {"prompts": unknown}})),
        ("/api/chat".to_owned(), chat),
        ("/api/workflows".to_owned(), json!({"name": "x", "x".repeat(900_000): 1})),
    ];
    for (path, body) in requests {
        let body = body.to_string();
        let answer = t.post(&path, &body).await;
        assert_eq!(answer.status, 422, "{path}: {}", &body[..100]);
        assert!(answer.problems().len() <= 100);
        assert!(answer.body.len() < 20_000 + body.len(), "{path}: {} bytes", answer.body.len());
        let more = answer.message().ends_with("Only the first 100 problems are listed.");
        assert_eq!(more, answer.problems().len() == 100, "{}", answer.message());
    }
    let wide =
        json!({"graph": {"format": "graph/1", "nodes": vec![json!({}); 1000], "edges": []}}).to_string();
    let checked = t.post("/api/workflows/check", &wide).await;
    assert_eq!((checked.status, checked.value()["errors"].as_array().map(Vec::len)), (200, Some(100)));
    assert_eq!(t.post(&versions, &wide).await.problems().len(), 100);
    let query: Vec<String> = (0..5000).map(|n| format!("k{n}=1")).collect();
    let answer = t.get(&format!("/api/workflows?{}", query.join("&"))).await;
    assert_eq!((answer.status, answer.problems().len()), (422, 100));
}

#[tokio::test]
async fn compressed_bodies_are_rejected() {
    let t = TestService::start().await;
    let mut refused = Vec::new();
    for path in ["/api/chat", "/api/workflows"] {
        for encoding in ["gzip", "br", "x"] {
            refused.push(t.send("POST", path, &[JSON, ("content-encoding", encoding)], "{}").await);
        }
    }
    assert_snapshot!(shown_alike(&refused), @r#"
    415
    content-type: application/json
    {"detail":{"message":"The request body must not be compressed: omit the header Content-Encoding.","code":"request.unsupported_media_type"}}
    "#);
    let plain =
        t.send("POST", "/api/workflows", &[JSON, ("content-encoding", "identity")], r#"{"name": "x"}"#).await;
    assert_eq!(plain.status, 201);
    let twice = [JSON, ("content-type", "text/plain")];
    let answer = t.send("POST", "/api/workflows", &twice, r#"{"name": "x"}"#).await;
    assert_eq!(answer.refusal(), "415 request.unsupported_media_type");
}

fn pointers_in(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                pointers_in(member, format!("{at}/{name}"), places);
            }
        }
        Value::Array(entries) => {
            for (index, entry) in entries.iter().enumerate() {
                pointers_in(entry, format!("{at}/{index}"), places);
            }
        }
        _ => {}
    }
    if !at.is_empty() {
        places.push(at);
    }
}

#[tokio::test]
async fn any_json_text_is_stored_and_returned_unchanged() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let texts = [
        "a NUL \0 inside",
        "\0",
        "\u{1}\u{8}\u{b}\u{1f}\u{7f}\u{80}\u{2028}\u{2029}",
        "line\nbreaks\r\nand\ttabs\n\n",
        "data: x\n\nid: 1.1\ndata: {\"type\":\"error\"}\n\n",
        "\u{1F600} é 漢字 \u{202e}olleh \u{feff}",
        "{{ 7 * 7 }} {% for x in y %} {# #} [[secret]]",
        "\"quotes\" \\ back\\slash \\u0000 </script>",
        "\u{10ffff}\u{e000}\u{fffd}",
        "'; DROP TABLE threads; --",
    ];
    for text in texts {
        let turn = t.visitor().say(&workflow.id, text).await.unwrap();
        assert_eq!(turn.text, format!("You said: {text}"), "{text:?}");
        assert_eq!(turn.error, None, "{text:?}");
        assert_eq!(stored_text(&t, &turn.thread_id, 0).await, text);
        assert_eq!(stored_text(&t, &turn.thread_id, 1).await, format!("You said: {text}"));
    }
}

#[tokio::test]
async fn surrogate_pairs_and_repeated_members_are_parsed_as_json() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "PLACE").to_string().replace("PLACE", "\\ud83d\\ude00");
    let answer = t.post("/api/chat", &body).await;
    assert!(answer.text().contains("You said: \u{1F600}"), "{}", answer.text());
    for bad in ["\\ud800", "\\udc00", "\\ud800\\ud800", "\\udc00\\ud800x", "\\uD83D"] {
        let body = chat::create(&workflow, "PLACE").to_string().replace("PLACE", bad);
        assert_eq!(t.post("/api/chat", &body).await.refusal(), "400 request.invalid_json", "{bad}");
    }
    // The last of equal members counts, as in nearly every parser.
    let body = chat::create(&workflow, "hi").to_string();
    let twice = format!("{{\"workflow_id\":\"x\",\"type\":\"y\",{}", &body[1..]);
    assert_eq!(t.post("/api/chat", &twice).await.status, 200);
    let twice = format!("{},\"workflow_id\":\"x\"}}", body.strip_suffix('}').unwrap());
    assert_eq!(t.post("/api/chat", &twice).await.refusal(), "400 chat.workflow_id_invalid");
}

#[tokio::test]
async fn unknown_members_are_ignored_in_chat() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut body = chat::create(&workflow, "hi");
    body["extra"] = json!({"a": [1, null]});
    body["params"]["extra"] = json!(1);
    body["params"]["input"]["extra"] = json!("x");
    body["params"]["input"]["content"][0]["extra"] = json!("x");
    body["params"]["input"]["inference_options"]["extra"] = json!("x");
    body["metadata"] = json!({"workflow_id": "something else", "workflow_name": null});
    assert_eq!(t.chat(&body).await.status, 200);
}

#[tokio::test]
async fn a_nul_in_a_workflow_is_rejected_or_stored_but_never_500() {
    let t = TestService::start().await;
    for (member, pointer) in [("name", "/name"), ("description", "/description"), ("handle", "/handle")] {
        let mut body = json!({"name": "x"});
        body[member] = json!("a\0b");
        let answer = t.post("/api/workflows", &body.to_string()).await;
        assert_eq!(answer.refusal(), "422 request.invalid", "{member}: {}", answer.text());
        assert!(answer.problems()[0].starts_with(pointer));
    }
    let tags = t.post("/api/workflows", &json!({"name": "x", "tags": ["ok", "a\0b"]}).to_string()).await;
    assert_eq!(tags.problems(), ["/tags/1 format"]);
    t.assert_no_rows("workflows").await;
    let workflow = t.workflow().without_version().create().await;
    let versions = workflow.path("/versions");
    let graph = integration_tests::graphs::reply("a\0b");
    let version = json!({"graph": graph, "runnable_config": {"a\0": "\0"}, "metadata": {"b": "\0"}});
    t.post(&versions, &version.to_string()).await.expect(201);
    let read = t.get(&format!("{versions}/1")).await.value();
    for member in ["graph", "runnable_config", "metadata"] {
        assert_eq!(read[member], version[member], "{member}");
    }
    let notes = t.post(&versions, &json!({"graph": graph, "notes": "a\0b"}).to_string()).await;
    assert_eq!(notes.refusal(), "422 request.invalid", "{}", notes.text());
    assert_eq!(notes.problems(), ["/notes format"]);
    for name in ["a\0b", ""] {
        let mut graph = graph.clone();
        graph["nodes"][0]["name"] = json!(name);
        let answer = t.post(&versions, &json!({"graph": graph}).to_string()).await;
        assert_eq!(answer.refusal(), "422 graph.invalid", "{}", answer.text());
    }
}
