//! Images that a workflow shows: from messages, and its own.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::ImageFormat;
use integration_tests::{AnswerExt, TestService, Workflow, chat, events, graphs};
use serde_json::{Value, json};

use super::{id_of, message, picture, red, send_message, uploaded};

/// Shows an image from `inputs.metadata`.
async fn gallery(t: &TestService, image: &Value) -> Workflow {
    let show = json!({"name": "show", "type": "show", "kind": "image", "image": image});
    t.workflow().graph(graphs::chain(&[show], None)).published().create().await
}

/// Sends a message with this metadata; returns its thread and the events of its turn.
async fn send_metadata(t: &TestService, workflow: &Workflow, metadata: Value) -> (String, Vec<Value>) {
    let mut request = message(workflow, None, "show it", &[]);
    request["metadata"] = metadata;
    send_message(t, &request).await
}

fn base64(bytes: &[u8]) -> Value {
    json!({"base64": STANDARD.encode(bytes)})
}

/// The image of the last item.
fn image(events: &[Value]) -> Value {
    let is_image = |event: &&Value| event["item"]["type"] == "generated_image";
    events.iter().rfind(is_image).map(|event| event["item"]["image"].clone()).unwrap_or_default()
}

fn path(t: &TestService, image: &Value) -> String {
    let url = image["url"].as_str().unwrap();
    url.strip_prefix(&format!("http://{}", t.address())).unwrap_or_else(|| panic!("{url}")).to_owned()
}

/// The error of the last run.
async fn code(t: &TestService) -> String {
    t.scalar("SELECT error::json->>'code' FROM runs ORDER BY id DESC LIMIT 1").await
}

const KEPT: &str = "SELECT concat_ws(' ', a.name, a.mime_type, a.size, a.width, a.height, a.colour, a.contained, a.owner_kind, u.kind)
    FROM attachments a JOIN blob_uses u ON u.owner = a.id";

#[tokio::test]
async fn workflow_images_are_stored_with_their_thread() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = gallery(&t, &json!("{{ inputs.metadata }}")).await;
    // Larger than a preview may be: it is served unchanged.
    let large = picture(ImageFormat::Jpeg, 1_600, 1_200, [0, 0, 255]);
    let (thread, events) = send_metadata(&t, &workflow, base64(&large)).await;
    let shown = image(&events);
    let served = t.get(&path(&t, &shown)).await;
    assert_eq!((served.status, served.header("content-type")), (200, Some("image/jpeg")));
    assert_eq!(served.header("content-security-policy"), Some("default-src 'none'; sandbox"));
    assert!(served.body[..] == large[..]);
    let stored_row = t.scalar(KEPT).await;
    assert_eq!(stored_row, format!("image.jpeg image/jpeg {} 1600 1200 blue t visitor image", large.len()));
    let params = json!({"thread_id": thread});
    let read = t.chat(&chat::ask(&workflow, "threads.get_by_id", params.clone())).await.value();
    assert_eq!(read["items"]["data"][1]["image"], shown);
    let stored = t.scalar("SELECT content FROM thread_items ORDER BY id DESC LIMIT 1").await;
    assert!(stored.contains(r#""url":"""#), "addresses expire: {stored}");
    let threads = t.get(&workflow.path("/chat/threads")).await.value();
    let visitor = threads["data"][0]["visitor"].as_str().unwrap();
    let export =
        t.get(&format!("/api/workflows/{}/chat/visitors/{visitor}/export", workflow.id)).await.text();
    let types: Vec<&str> =
        export.lines().filter_map(|line| line.strip_prefix(r#"{"type":""#)?.split('"').next()).collect();
    assert_eq!(
        types,
        ["visitor", "thread", "item", "item", "attachment", "attachment_chunk", "end"],
        "{export}"
    );
    let params_of_image = json!({"attachment_id": shown["id"]});
    let deleted = t.chat(&chat::ask(&workflow, "attachments.delete", params_of_image)).await;
    assert_eq!(deleted.refusal(), "409 attachment.in_use");
    assert_eq!(t.chat(&chat::ask(&workflow, "threads.delete", params)).await.status, 200);
    assert_eq!(t.get(&path(&t, &shown)).await.refusal(), "404 attachment.not_found");
    t.advance(Duration::from_secs(86_400 + 60));
    t.restart().await;
    t.until_scalar("the image to be deleted", "SELECT count(*) FROM attachments", "0").await;
    t.assert_no_rows("blob_uses").await;
}

#[tokio::test]
async fn equal_images_of_a_thread_are_stored_once() {
    let t = TestService::start().await;
    let image_of =
        |name: &str| json!({"name": name, "type": "show", "kind": "image", "image": base64(&red())});
    let graph = graphs::chain(&[image_of("one"), image_of("two")], None);
    let workflow = t.workflow().graph(graph).published().create().await;
    let (thread, events) = send_message(&t, &message(&workflow, None, "show", &[])).await;
    let first = image(&events);
    let (_, events) = send_message(&t, &message(&workflow, Some(&thread), "again", &[])).await;
    assert_eq!(image(&events), first);
    assert_eq!(t.scalar(KEPT).await.split(' ').next_back(), Some("image"));
    assert_eq!(t.scalar("SELECT count(*) FROM attachments").await, "1");
    send_message(&t, &message(&workflow, None, "show", &[])).await;
    assert_eq!(t.scalar("SELECT count(*) FROM attachments").await, "2", "another thread stores its own copy");
    assert_eq!(t.scalar("SELECT count(*) FROM blobs").await, "1");
}

#[tokio::test]
async fn only_images_of_the_threads_messages_are_shown() {
    let t = TestService::start().await;
    let workflow = gallery(
        &t,
        &json!({"attachment": "{{ inputs.metadata.id if inputs.metadata else inputs.attachments[0].id }}"}),
    )
    .await;
    let picture = id_of(&uploaded(&t, &workflow, "red.png", &red()).await);
    let (_, events) = send_message(&t, &message(&workflow, None, "this", &[&picture])).await;
    assert_eq!(image(&events)["id"], json!(picture));
    assert_eq!(t.get(&path(&t, &image(&events))).await.body[..], red()[..]);
    let text = id_of(&uploaded(&t, &workflow, "a.txt", b"text").await);
    send_message(&t, &message(&workflow, None, "this", &[&text])).await;
    assert_eq!(code(&t).await, "attachment.type_not_allowed");
    for foreign in [picture.as_str(), "atc_00", "x"] {
        let (_, events) = send_metadata(&t, &workflow, json!({"id": foreign})).await;
        assert_eq!(code(&t).await, "attachment.not_found", "{foreign}");
        assert_eq!(image(&events), Value::Null, "{foreign}");
    }
}

#[tokio::test]
async fn files_that_are_not_images_are_rejected_and_not_stored() {
    let t = TestService::start().await;
    let workflow = gallery(&t, &json!("{{ inputs.metadata }}")).await;
    let damaged = &red()[..60];
    for (metadata, expected) in [
        (json!({"base64": "%%"}), "node.failed"),
        (json!({"base64": format!("data:image/png;base64,{}", STANDARD.encode(red()))}), "node.failed"),
        (json!({"base64": ""}), "node.failed"),
        (json!({}), "node.failed"),
        (json!({"base64": "AAAA", "url": "https://example.org/i"}), "node.failed"),
        (base64(b"only a text"), "attachment.type_not_allowed"),
        (base64(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"), "attachment.type_not_allowed"),
        (base64(damaged), "attachment.damaged"),
    ] {
        send_metadata(&t, &workflow, metadata.clone()).await;
        assert_eq!(code(&t).await, expected, "{metadata}");
    }
    let long = gallery(&t, &json!({"base64": "{{ 'AAAA' * 1747628 }}"})).await;
    send_metadata(&t, &long, json!({})).await;
    assert_eq!(code(&t).await, "attachment.too_large");
    t.assert_no_rows("attachments").await;
    t.assert_no_rows("blob_uses").await;
}

#[tokio::test]
async fn an_image_after_a_question_uses_the_clients_base_url() {
    let t = TestService::start().await;
    let ask = json!({"name": "ask", "type": "ask", "inputs": [{"id": "ok", "type": "freeform", "question": "Which?"}]});
    let show = json!({"name": "show", "type": "show", "kind": "image", "image": base64(&red())});
    let workflow = t.workflow().graph(graphs::chain(&[ask, show], None)).published().create().await;
    let (thread, question) = send_message(&t, &message(&workflow, None, "show", &[])).await;
    let params = json!({"thread_id": thread, "item_id": question.last().unwrap()["item"]["id"],
                        "input": {"answers": {"ok": {"values": ["red"]}}}});
    let continued = t.chat(&chat::ask(&workflow, "threads.add_structured_input", params)).await;
    let shown = image(&events(&continued.text()));
    assert_eq!(t.get(&path(&t, &shown)).await.status, 200, "{shown}");
}

#[tokio::test]
async fn image_urls_use_the_configured_base_url() {
    let t = TestService::builder()
        .set("SERVICE_PUBLIC_BASE_URL", "https://chat.example.org/callboard")
        .start()
        .await;
    let workflow = gallery(&t, &base64(&red())).await;
    let (_, events) = send_metadata(&t, &workflow, json!({})).await;
    let url = image(&events)["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with("https://chat.example.org/callboard/api/chat/attachments/atc_"), "{url}");
    assert_eq!(t.scalar("SELECT coalesce(options, '-') FROM runs").await, "-");
}

#[tokio::test]
async fn images_without_a_stored_item_are_deleted_after_a_day() {
    let mut t = TestService::with_manual_clock().await;
    let show = json!({"name": "show", "type": "show", "kind": "image", "key": "i", "more": true, "image": base64(&red())});
    let remove = json!({"name": "remove", "type": "show", "kind": "image", "key": "i", "image": null});
    let workflow = t.workflow().graph(graphs::chain(&[show, remove], None)).published().create().await;
    send_message(&t, &message(&workflow, None, "show", &[])).await;
    assert_eq!(t.scalar("SELECT contained::text FROM attachments").await, "false");
    t.advance(Duration::from_secs(86_400 + 60));
    t.restart().await;
    t.until_scalar("the image to be deleted", "SELECT count(*) FROM attachments", "0").await;
    t.assert_no_rows("blob_uses").await;
}

#[tokio::test]
async fn runs_outside_chats_and_traces_store_no_images() {
    let t = TestService::start().await;
    let workflow = gallery(&t, &base64(&red())).await;
    let done = t.post(&workflow.path("/runs?wait=10"), &json!({"inputs": {}}).to_string()).await.value();
    assert_eq!(done["status"], "succeeded", "{done}");
    t.assert_no_rows("attachments").await;
    send_message(&t, &message(&workflow, None, "show", &[])).await;
    t.execute("DELETE FROM attachments").await;
    let run = t.scalar("SELECT id::text FROM runs WHERE thread_id IS NOT NULL").await;
    let trace = t.get(&format!("/api/runs/{run}/trace")).await.value();
    assert_eq!(trace["steps"][0]["input"]["content"]["base64"], base64(&red())["base64"], "{trace}");
    t.assert_no_rows("attachments").await;
}

#[tokio::test]
async fn an_answer_on_another_day_does_not_resend_the_image() {
    let t = TestService::with_manual_clock().await;
    let show =
        json!({"name": "show", "type": "show", "kind": "image", "key": "map", "image": base64(&red())});
    let ask = json!({"name": "ask", "type": "ask", "inputs": [{"id": "ok", "type": "freeform", "question": "Which?"}]});
    let done = json!({"name": "done", "type": "reply", "text": "Done."});
    let workflow = t.workflow().graph(graphs::chain(&[show, ask, done], None)).published().create().await;
    let answer = t.while_time_passes(t.chat(&message(&workflow, None, "show", &[]))).await;
    let question = events(&answer.text());
    let thread = question.last().unwrap()["item"]["thread_id"].clone();
    let first = image(&question);
    t.execute("DELETE FROM blob_uses").await;
    t.advance(Duration::from_secs(50 * 3_600));
    let params = json!({"thread_id": thread, "item_id": question.last().unwrap()["item"]["id"],
                        "input": {"answers": {"ok": {"values": ["red"]}}}});
    let answer = chat::ask(&workflow, "threads.add_structured_input", params);
    let continued = events(&t.while_time_passes(t.chat(&answer)).await.text());
    assert_eq!(image(&continued), Value::Null, "{continued:#?}");
    assert!(continued.iter().any(|event| event["item"]["content"][0]["text"] == "Done."), "{continued:#?}");
    t.assert_no_rows("blob_uses").await;
    let read = t.chat(&chat::ask(&workflow, "threads.get_by_id", json!({"thread_id": thread}))).await.value();
    let now = &read["items"]["data"][1]["image"];
    assert_eq!(now["id"], first["id"]);
    assert_ne!(now["url"], first["url"]);
}
