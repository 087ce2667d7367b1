//! Messages with attachments: storage, graph inputs, and file retention.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, TestService, chat, events, graphs};
use serde_json::{Value, json};

use super::{answer_text, id_of, message, red, send_message, uploaded, users_message};

/// Prints this part of a turn's input.
fn print_graph(expression: &str) -> Value {
    graphs::reply(&format!("{{{{ {expression} | tojson }}}}"))
}

#[tokio::test]
async fn a_message_contains_its_attachments() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(print_graph("inputs.attachments")).published().create().await;
    let (image, text) = (
        uploaded(&t, &workflow, "red.png", &red()).await,
        uploaded(&t, &workflow, "notes.txt", b"Buy milk.").await,
    );
    let (image_id, text_id) = (id_of(&image), id_of(&text));
    // Forms that a client may send: a whole object, and a duplicate.
    let mut request = message(&workflow, None, "look", &[&image_id, &text_id, &text_id]);
    request["params"]["input"]["attachments"][1] =
        json!({"id": text_id, "name": "forged.exe", "thread_id": "thr_1"});
    let (thread, events) = send_message(&t, &request).await;
    let item = users_message(&events);
    let mut expected = [image.clone(), text.clone()];
    for attachment in &mut expected {
        attachment["thread_id"] = json!(thread);
    }
    assert_eq!(item["attachments"], json!(expected));
    let inputs: Value = serde_json::from_str(&answer_text(&events)).unwrap();
    assert_eq!(inputs[0]["id"], *image_id);
    assert_eq!((&inputs[0]["type"], &inputs[0]["size"]), (&json!("image"), &json!(red().len())));
    assert_eq!(inputs[0]["digest"].as_str().unwrap().len(), 64);
    let (name, kind, mime_type) = (&inputs[1]["name"], &inputs[1]["type"], &inputs[1]["mime_type"]);
    assert_eq!((name, kind, mime_type), (&json!("notes.txt"), &json!("file"), &json!("text/plain")));
}

#[tokio::test]
async fn messages_keep_their_parts_in_later_turns_and_retries() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(print_graph("messages")).published().create().await;
    let image = id_of(&uploaded(&t, &workflow, "red.png", &red()).await);
    let (thread, first) = send_message(&t, &message(&workflow, None, "", &[&image])).await;
    let history: Value = serde_json::from_str(&answer_text(&first)).unwrap();
    assert_eq!((&history[0]["content"], history[0]["parts"].as_array().unwrap().len()), (&json!(""), 1));
    let part = history[0]["parts"][0].clone();
    assert_eq!((&part["type"], &part["attachment"]), (&json!("image"), &json!(image)));
    let item = users_message(&first)["id"].as_str().unwrap().to_owned();
    let params = json!({"thread_id": thread, "item_id": item});
    let again = events(&t.chat(&chat::ask(&workflow, "threads.retry_after_item", params)).await.text());
    let retried_history: Value = serde_json::from_str(&answer_text(&again)).unwrap();
    assert_eq!(retried_history, history);
    let (_, second) = send_message(&t, &message(&workflow, Some(&thread), "And now?", &[])).await;
    let later: Value = serde_json::from_str(&answer_text(&second)).unwrap();
    assert_eq!((&later[0]["parts"][0], later[2].get("parts")), (&part, None));
    let text = id_of(&uploaded(&t, &workflow, "a.txt", b"a").await);
    let (_, third) = send_message(&t, &message(&workflow, Some(&thread), "Read", &[&text])).await;
    let both: Value = serde_json::from_str(&answer_text(&third)).unwrap();
    let parts = both[4]["parts"].as_array().unwrap();
    assert_eq!((&parts[0], &parts[1]["type"]), (&json!({"type": "text", "text": "Read"}), &json!("file")));
}

#[tokio::test]
async fn rejected_messages_store_nothing() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let other = t.workflow().echo().published().create().await;
    let attachment = id_of(&uploaded(&t, &workflow, "a.txt", b"a").await);
    let of_other = id_of(&uploaded(&t, &other, "a.txt", b"a").await);
    let eleven: Vec<String> = (0..11).map(|_| attachment.clone()).collect();
    let eleven: Vec<&str> = eleven.iter().map(String::as_str).collect();
    for (named, refusal) in [
        (vec!["atc_00000000000000000000000000000000"], "404 attachment.not_found"),
        (vec!["nothing"], "404 attachment.not_found"),
        (vec![attachment.as_str(), "atc_1"], "404 attachment.not_found"),
        (vec![&*of_other], "404 attachment.not_found"),
        (eleven, "422 chat.invalid_request"),
    ] {
        let answer = t.chat(&message(&workflow, None, "look", &named)).await;
        assert_eq!(answer.refusal(), refusal, "{named:?}");
    }
    t.assert_no_rows("threads").await;
    assert_eq!(t.scalar("SELECT count(*) FROM attachments WHERE thread_id IS NOT NULL").await, "0");
    let (thread, _) = send_message(&t, &message(&workflow, None, "look", &[&attachment])).await;
    let second_use = t.chat(&message(&workflow, None, "look", &[&attachment])).await;
    assert_eq!(second_use.refusal(), "409 attachment.in_use");
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
    send_message(&t, &message(&workflow, Some(&thread), "once more", &[&attachment])).await;
}

#[tokio::test]
async fn only_one_of_concurrent_messages_claims_an_attachment() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = id_of(&uploaded(&t, &workflow, "a.txt", b"a").await);
    let message = message(&workflow, None, "look", &[&attachment]);
    let answers = futures_util::future::join_all((0..8).map(|_| t.chat(&message))).await;
    let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
}

#[tokio::test]
async fn a_request_repeated_with_its_key_keeps_its_attachment() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = id_of(&uploaded(&t, &workflow, "a.txt", b"a").await);
    let body = message(&workflow, None, "look", &[&attachment]).to_string();
    let headers = [JSON, ("idempotency-key", "0123456789abcdef")];
    let mut streams = Vec::new();
    for _ in 0..3 {
        let answer = t.send("POST", "/api/chat", &headers, &body).await.expect(200);
        streams.push(answer.header("x-chat-stream-id").unwrap().to_owned());
    }
    assert!(streams.iter().all(|stream| *stream == streams[0]));
    assert_eq!(t.scalar("SELECT count(*) FROM threads").await, "1");
}

#[tokio::test]
async fn unsent_attachments_expire_after_a_day_and_sent_ones_with_their_thread() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    let sent = id_of(&uploaded(&t, &workflow, "a.txt", b"kept").await);
    uploaded(&t, &workflow, "b.png", &red()).await;
    let (thread, _) = send_message(&t, &message(&workflow, None, "look", &[&sent])).await;
    let names = "SELECT string_agg(name, ' ' ORDER BY name) FROM attachments";
    let day = Duration::from_secs(24 * 3_600 + 60);
    t.restart().await;
    assert_eq!(t.scalar(names).await, "a.txt b.png");
    t.advance(day);
    t.restart().await;
    t.until_scalar("the unsent attachment to be deleted", names, "a.txt").await;
    assert_eq!(t.scalar("SELECT count(*) FROM blob_uses").await, "1");
    t.chat(&chat::ask(&workflow, "threads.delete", json!({"thread_id": thread}))).await.expect(200);
    t.advance(day);
    t.restart().await;
    t.until_scalar("all attachments to be deleted", "SELECT count(*) FROM attachments", "0").await;
    t.assert_no_rows("blob_uses").await;
    t.advance(day);
    t.restart().await;
    t.until_scalar("the bytes to be deleted", "SELECT count(*) FROM blob_chunks", "0").await;
}
