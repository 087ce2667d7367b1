//! One turn: its events, its rows, its headers.

use insta::assert_snapshot;
use integration_tests::{AnswerExt, JSON, TestService, chat, events, graphs, last_event, shown, tidy};
use serde_json::{Value, json};

use crate::answers::send_message;

const CHATKIT: (&str, &str) = ("chatkit-frame-instance-id", "f");

#[tokio::test]
async fn a_new_thread_in_the_interfaces_dialect() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    assert_snapshot!(tidy(&send_message(&t, &workflow, "hi").await), @r#"
    {"thread":{"created_at":"[time]","id":"thr-1","items":{"data":[],"has_more":false},"metadata":{},"status":{"type":"active"}},"type":"thread.created"}
    {"item":{"attachments":[],"content":[{"text":"hi","type":"input_text"}],"created_at":"[time]","id":"msg-1","inference_options":{},"thread_id":"thr-1","type":"user_message"},"type":"thread.item.done"}
    {"stream_options":{"allow_cancel":true},"type":"stream_options"}
    {"thread":{"created_at":"[time]","id":"thr-1","items":{"data":[],"has_more":false},"metadata":{},"status":{"type":"active"},"title":"hi"},"type":"thread.updated"}
    {"item":{"content":[],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.added"}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"part":{"text":"You said: hi","type":"output_text"},"type":"content_part_added"}}
    {"item":{"content":[{"annotations":[],"text":"You said: hi","type":"output_text"}],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.done"}
    "#);
}

#[tokio::test]
async fn a_new_thread_in_chatkits_dialect() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = chat::create(&workflow, "hi").to_string();
    let mut answer = t.open("POST", "/api/chat", &[JSON, CHATKIT], &body).await;
    assert_snapshot!(tidy(&answer.rest().await), @r#"
    {"thread":{"created_at":"[time]","id":"thr-1","items":{"data":[],"has_more":false},"metadata":{},"status":{"type":"active"}},"type":"thread.created"}
    {"item":{"attachments":[],"content":[{"text":"hi","type":"input_text"}],"created_at":"[time]","id":"msg-1","inference_options":{},"thread_id":"thr-1","type":"user_message"},"type":"thread.item.done"}
    {"stream_options":{"allow_cancel":true},"type":"stream_options"}
    {"thread":{"created_at":"[time]","id":"thr-1","items":{"data":[],"has_more":false},"metadata":{},"status":{"type":"active"},"title":"hi"},"type":"thread.updated"}
    {"item":{"content":[],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.added"}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"content":{"annotations":[],"text":"","type":"output_text"},"content_index":0,"type":"assistant_message.content_part.added"}}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"content_index":0,"delta":"You said: hi","type":"assistant_message.content_part.text_delta"}}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"content":{"annotations":[],"text":"You said: hi","type":"output_text"},"content_index":0,"type":"assistant_message.content_part.done"}}
    {"item":{"content":[{"annotations":[],"text":"You said: hi","type":"output_text"}],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.done"}
    "#);
}

#[tokio::test]
async fn a_second_message_in_both_dialects() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let thread = t.visitor().say(&workflow.id, "one").await.unwrap().thread_id;
    let body = chat::add(&workflow, &thread, "two").to_string();
    let plain = t.open("POST", "/api/chat", &[JSON], &body).await.rest().await;
    assert_snapshot!(tidy(&plain), @r#"
    {"item":{"attachments":[],"content":[{"text":"two","type":"input_text"}],"created_at":"[time]","id":"msg-1","inference_options":{},"thread_id":"thr-1","type":"user_message"},"type":"thread.item.done"}
    {"stream_options":{"allow_cancel":true},"type":"stream_options"}
    {"item":{"content":[],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.added"}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"part":{"text":"You said: two","type":"output_text"},"type":"content_part_added"}}
    {"item":{"content":[{"annotations":[],"text":"You said: two","type":"output_text"}],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.done"}
    "#);
    let chatkit = t.open("POST", "/api/chat", &[JSON, CHATKIT], &body).await.rest().await;
    assert_snapshot!(tidy(&chatkit), @r#"
    {"item":{"attachments":[],"content":[{"text":"two","type":"input_text"}],"created_at":"[time]","id":"msg-1","inference_options":{},"thread_id":"thr-1","type":"user_message"},"type":"thread.item.done"}
    {"stream_options":{"allow_cancel":true},"type":"stream_options"}
    {"item":{"content":[],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.added"}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"content":{"annotations":[],"text":"","type":"output_text"},"content_index":0,"type":"assistant_message.content_part.added"}}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"content_index":0,"delta":"You said: two","type":"assistant_message.content_part.text_delta"}}
    {"item_id":"msg-2","type":"thread.item.updated","update":{"content":{"annotations":[],"text":"You said: two","type":"output_text"},"content_index":0,"type":"assistant_message.content_part.done"}}
    {"item":{"content":[{"annotations":[],"text":"You said: two","type":"output_text"}],"created_at":"[time]","id":"msg-2","thread_id":"thr-1","type":"assistant_message"},"type":"thread.item.done"}
    "#);
    assert_eq!(events(&plain)[0]["item"]["thread_id"], thread);
}

#[tokio::test]
async fn the_head_of_a_stream() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    assert_eq!(stream, t.scalar("SELECT id FROM streams").await);
    assert_eq!(stream.as_bytes()[14], b'7', "a UUIDv7");
    let body = answer.rest().await;
    for (index, line) in body.lines().filter(|line| line.starts_with("id: ")).enumerate() {
        assert_eq!(line, format!("id: {stream}.{}", index + 1));
    }
    let head = t.resume(&stream, None).await.whole().await;
    let head = shown(&integration_tests::Answer { body: bytes::Bytes::new(), ..head });
    assert_snapshot!(head, @r"
    200
    content-type: text/event-stream
    cache-control: no-cache, no-transform
    x-accel-buffering: no
    ");
}

#[tokio::test]
async fn a_new_visitors_cookie_over_http_and_https() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let cookie = |answer: &integration_tests::RawAnswer| {
        let all: Vec<String> = answer
            .headers
            .get_all("set-cookie")
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect();
        assert_eq!(all.len(), 1, "{all:?}");
        let (name, rest) = all[0].split_once('=').unwrap();
        let (value, attributes) = rest.split_once(';').unwrap();
        let (id, tag) = value.split_once('.').unwrap();
        assert!(id.len() == 22 && tag.len() == 43, "{value}");
        format!("{name}={attributes}")
    };
    let mut plain = t.open_chat(&chat::create(&workflow, "hi")).await;
    assert_snapshot!(cookie(&plain), @"callboard_visitor= HttpOnly; SameSite=Lax; Path=/; Max-Age=34560000");
    plain.rest().await;
    let thread = t.visitor().say(&workflow.id, "hi").await.unwrap().thread_id;
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "more")).await;
    assert_eq!(second.header("set-cookie"), None, "an existing thread gets no new owner");
    second.rest().await;

    let t = TestService::builder().set("SERVICE_PUBLIC_BASE_URL", "https://chat.example.org").start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut secure = t.open_chat(&chat::create(&workflow, "hi")).await;
    assert_snapshot!(cookie(&secure), @"__Host-callboard_visitor= HttpOnly; SameSite=None; Secure; Path=/; Max-Age=34560000");
    secure.rest().await;
}

#[tokio::test]
async fn a_visitor_gets_one_permanent_cookie() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.visitor();
    client.say(&workflow.id, "one").await.unwrap();
    let cookie = client.cookie("callboard_visitor");
    client.say(&workflow.id, "two").await.unwrap();
    assert_eq!(client.cookie("callboard_visitor"), cookie);
    assert_eq!(t.scalar("SELECT count(DISTINCT owner_id) FROM threads").await, "1");
}

#[tokio::test]
async fn events_are_stored_before_they_are_sent() {
    let t = TestService::start().await;
    let text = "word ".repeat(60);
    let workflow = t.workflow().graph(graphs::words(&text, 10)).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "go")).await;
    let (mut seen, mut frames) = (String::new(), 0);
    while let Some(piece) = answer.piece().await {
        seen.push_str(std::str::from_utf8(&piece).unwrap());
        let sent = seen.matches("\n\n").count();
        let stored: usize =
            t.scalar("SELECT coalesce(max(last_seq), 0) FROM stream_events").await.parse().unwrap();
        assert!(stored >= sent, "{sent} events were sent and {stored} stored");
        assert!(t.scalar("SELECT count(*) FROM thread_items").await != "0", "the user's message");
        frames += 1;
    }
    assert!(frames > 3, "the text came in {frames} pieces");
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "2");
    assert_eq!(t.scalar("SELECT string_agg(frames, '' ORDER BY first_seq) FROM stream_events").await, seen);
    assert_eq!(t.scalar("SELECT status FROM runs").await, "succeeded");
}

#[tokio::test]
async fn deltas_items_and_rows_contain_the_same_text() {
    let t = TestService::start().await;
    let text = "The quick brown fox – é 漢字 \u{1F600} – jumps over\nthe lazy dog. ".repeat(40);
    let workflow = t.workflow().graph(graphs::words(&text, 1)).published().create().await;
    for headers in [&[JSON][..], &[JSON, CHATKIT][..]] {
        let body = chat::create(&workflow, "go").to_string();
        let body = t.open("POST", "/api/chat", headers, &body).await.rest().await;
        let mut pieces = String::new();
        for event in events(&body) {
            let update = &event["update"];
            let piece = update["part"]["text"].as_str().or(update["delta"].as_str());
            pieces.push_str(piece.unwrap_or_default());
        }
        assert_eq!(pieces, text);
        let item = last_event(&body)["item"].clone();
        assert_eq!(item["content"], json!([{"type": "output_text", "text": text, "annotations": []}]));
        let sql = format!(
            "SELECT content FROM thread_items WHERE thread_id = (SELECT thread_id FROM runs ORDER BY id DESC LIMIT 1)
             AND content LIKE '%{}%'",
            item["id"].as_str().unwrap()
        );
        assert_eq!(serde_json::from_str::<Value>(&t.scalar(&sql).await).unwrap(), item);
    }
}

#[tokio::test]
async fn the_rows_of_a_turn() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::interrupted("one ", 0.01, "two")).published().create().await;
    send_message(&t, &workflow, "hi").await;
    let run = "SELECT concat_ws(' ', trigger, status, output, error, cancel_requested_at,
        started_at >= created_at, finished_at >= started_at, stream_id = (SELECT id FROM streams),
        thread_id = (SELECT id FROM threads), version_id = (SELECT id FROM workflow_versions)) FROM runs";
    assert_snapshot!(t.scalar(run).await, @r#"chat succeeded {"second":{"text":"two"}} t t t t t"#);
    let steps = "SELECT string_agg(concat_ws(' ', step, node, visit, attempt, status, result, error), E'\\n'
        ORDER BY step) FROM run_steps";
    assert_snapshot!(t.scalar(steps).await, @r#"
    1 first 1 1 succeeded {"text":"one "}
    2 wait 1 1 succeeded {"seconds":0.01}
    3 second 1 1 succeeded {"text":"two"}
    "#);
    let thread = "SELECT concat_ws(' ', owner_kind, length(owner_id), title, status) FROM threads";
    assert_snapshot!(t.scalar(thread).await, @"visitor 22 hi active");
    assert_eq!(t.scalar("SELECT dialect FROM streams").await, "interface");
}

#[tokio::test]
async fn the_dialect_is_requested_or_configured() {
    for (fixed, headers, expected) in [
        ("auto", &[JSON][..], "interface"),
        ("auto", &[JSON, ("accept", "text/event-stream")][..], "interface"),
        ("auto", &[JSON, ("accept", "text/event-stream;dialect=chatkit")][..], "chatkit"),
        ("auto", &[JSON, ("accept", "application/json, text/event-stream; dialect=chatkit")][..], "chatkit"),
        ("auto", &[JSON, CHATKIT][..], "chatkit"),
        ("interface", &[JSON, CHATKIT][..], "interface"),
        ("chatkit", &[JSON][..], "chatkit"),
    ] {
        let t = TestService::builder().set("SERVICE_CHAT_DIALECT", fixed).start().await;
        let workflow = t.workflow().echo().published().create().await;
        let body = chat::create(&workflow, "hi").to_string();
        let body = t.open("POST", "/api/chat", headers, &body).await.rest().await;
        let chatkit = body.contains("assistant_message.content_part.text_delta");
        assert_eq!(chatkit, expected == "chatkit", "{fixed} {headers:?}");
        assert_eq!(body.contains("\"content_part_added\""), !chatkit);
        assert_eq!(t.scalar("SELECT dialect FROM streams").await, expected);
    }
}

#[tokio::test]
async fn a_completed_step_is_stored_while_another_is_running() {
    let t = TestService::start().await;
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "quick", "type": "delay", "seconds": 0.3}, {"name": "slow", "type": "delay", "seconds": 60}],
        "edges": [{"from": "START", "to": "quick"}, {"from": "START", "to": "slow"}],
        "output": "done",
    });
    let workflow = t.workflow().graph(graph).published().create().await;
    let answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    let rows = "SELECT count(*) FROM run_steps WHERE node = 'quick' AND status = 'succeeded'";
    t.until_scalar("the row of the quick step is stored", rows, "1").await;
    assert_eq!(t.stop_turn(&stream).await.value()["status"], "stopped");
}
