//! Attachments: uploads, messages with files, and their use by models.

mod direct;
mod duration;
mod images;
mod limits;
mod messages;
mod models;
mod owners;
mod previews;
mod two_phase;

use std::io::Cursor;

use image::{ImageFormat, Rgb, RgbImage};
use integration_tests::{Answer, AnswerExt, Raw, TestService, Workflow, events};
use serde_json::{Value, json};

const BOUNDARY: &str = "----part";

/// A form with one file.
pub(crate) fn form(name: &str, bytes: &[u8]) -> Vec<u8> {
    part("file", Some(name), bytes).into_iter().chain(format!("--{BOUNDARY}--\r\n").into_bytes()).collect()
}

/// A part of a form.
fn part(field: &str, name: Option<&str>, bytes: &[u8]) -> Vec<u8> {
    let name = name.map(|name| format!("; filename=\"{name}\"")).unwrap_or_default();
    let mut part = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"{name}\r\n\r\n")
        .into_bytes();
    part.extend(bytes);
    part.extend(b"\r\n");
    part
}

pub(crate) fn form_type() -> String {
    format!("multipart/form-data; boundary={BOUNDARY}")
}

/// Uploads a file for a workflow's chat without cookies.
async fn upload(t: &TestService, workflow: &Workflow, name: &str, bytes: &[u8]) -> Answer {
    let path = format!("/api/chat/upload?workflow_id={}", workflow.id);
    t.send("POST", &path, &[("content-type", &form_type())], form(name, bytes)).await
}

/// A connection that has sent the head of an upload with this body.
async fn begin_upload(t: &TestService, workflow: &Workflow, body: &[u8]) -> Raw {
    let mut connection = t.raw().await;
    let head = format!(
        "POST /api/chat/upload?workflow_id={} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        workflow.id,
        t.address(),
        form_type(),
        body.len()
    );
    connection.write(head).await;
    connection
}

/// Like [`upload`], but returns the attachment.
async fn uploaded(t: &TestService, workflow: &Workflow, name: &str, bytes: &[u8]) -> Value {
    let answer = upload(t, workflow, name, bytes).await;
    assert_eq!(answer.status, 200, "{name}: {}", answer.text());
    answer.value()
}

fn id_of(attachment: &Value) -> String {
    attachment["id"].as_str().unwrap().to_owned()
}

/// An encoded image of one colour.
fn picture(format: ImageFormat, width: u32, height: u32, colour: [u8; 3]) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::from_pixel(width, height, Rgb(colour)).write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A red PNG, 64 by 48 pixels.
pub(crate) fn red() -> Vec<u8> {
    picture(ImageFormat::Png, 64, 48, [220, 20, 20])
}

/// A message with attachments; `thread`: the thread to continue.
fn message(workflow: &Workflow, thread: Option<&str>, text: &str, attachments: &[&str]) -> Value {
    let content = if text.is_empty() { json!([]) } else { json!([{"type": "input_text", "text": text}]) };
    let input = json!({"content": content, "attachments": attachments, "inference_options": {}});
    match thread {
        None => json!({"type": "threads.create", "workflow_id": workflow.id, "params": {"input": input}}),
        Some(thread) => json!({"type": "threads.add_user_message", "workflow_id": workflow.id,
                               "params": {"thread_id": thread, "input": input}}),
    }
}

/// Sends a message; returns its thread and the events of its turn.
async fn send_message(t: &TestService, message: &Value) -> (String, Vec<Value>) {
    let answer = t.chat(message).await.expect(200);
    let events = events(&answer.text());
    let item = events.iter().find(|event| event["type"] == "thread.item.done").unwrap();
    (item["item"]["thread_id"].as_str().unwrap().to_owned(), events)
}

/// The user's message of a turn.
fn users_message(events: &[Value]) -> Value {
    let is_users = |event: &&Value| event["item"]["type"] == "user_message";
    events.iter().find(is_users).unwrap()["item"].clone()
}

/// The text of the reply.
fn answer_text(events: &[Value]) -> String {
    let items = events.iter().filter(|event| event["type"] == "thread.item.done");
    let mut texts = items.filter_map(|event| event["item"]["content"][0]["text"].as_str());
    texts.next_back().unwrap_or_default().to_owned()
}
