//! Two-phase uploads: announced in the chat, then sent to a signed URL.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, Workflow, chat};
use serde_json::{Value, json};

use super::{form, form_type, id_of, message, red, send_message, users_message};

async fn announce(t: &TestService, workflow: &Workflow, name: &str, size: usize, mime_type: &str) -> Value {
    let params = json!({"name": name, "size": size, "mime_type": mime_type});
    t.chat(&chat::ask(workflow, "attachments.create", params)).await.expect(200).value()
}

/// The path and query of the upload URL.
fn upload_path(t: &TestService, attachment: &Value) -> String {
    let url = attachment["upload_descriptor"]["url"].as_str().unwrap();
    url.strip_prefix(&format!("http://{}", t.address())).unwrap().to_owned()
}

#[tokio::test]
async fn files_are_announced_and_then_sent() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = announce(&t, &workflow, "red.png", red().len(), "image/png").await;
    let (id, path) = (id_of(&attachment), upload_path(&t, &attachment));
    assert_eq!(attachment["upload_descriptor"]["method"], "PUT");
    assert_eq!(attachment["upload_descriptor"]["headers"], json!({}));
    assert!(attachment["preview_url"].is_string(), "the protocol requires a preview URL for images");
    let early = t.chat(&message(&workflow, None, "look", &[&id])).await;
    assert_eq!(early.refusal(), "409 attachment.not_uploaded");
    let sent = t.send("PUT", &path, &[("content-type", "image/png")], red()).await.expect(200);
    assert_eq!((sent.value()["id"].as_str(), sent.value().get("upload_descriptor")), (Some(&*id), None));
    let again = t.send("PUT", &path, &[], red()).await;
    assert_eq!(again.status, 200, "the same bytes once more: {}", again.text());
    let mut others = red();
    others.reverse();
    assert_eq!(t.send("PUT", &path, &[], &others).await.refusal(), "415 attachment.type_not_allowed");
    let other = super::picture(image::ImageFormat::Png, 64, 48, [0, 0, 250]);
    if other.len() == red().len() {
        assert_eq!(t.send("PUT", &path, &[], other).await.refusal(), "409 attachment.in_use");
    }
    assert_eq!(
        t.scalar("SELECT string_agg(bytes::text, ' ') FROM upload_days").await,
        format!("{0} {0}", red().len()),
        "counted once for session and network"
    );
    let (_, events) = send_message(&t, &message(&workflow, None, "look", &[&id])).await;
    assert_eq!(users_message(&events)["attachments"][0]["id"], *id);
}

#[tokio::test]
async fn forms_are_accepted_and_mismatched_bytes_are_rejected() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = announce(&t, &workflow, "a.txt", 5, "text/plain").await;
    let path = upload_path(&t, &attachment);
    for (body, refusal) in [
        (&b"hell"[..], "422 attachment.size_mismatch"),
        (b"hello!", "422 attachment.size_mismatch"),
        (b"hell\0", "415 attachment.type_not_allowed"),
    ] {
        assert_eq!(t.send("PUT", &path, &[], body).await.refusal(), refusal, "raw");
        let answer = t.send("POST", &path, &[("content-type", &form_type())], form("x", body)).await;
        assert_eq!(answer.refusal(), refusal, "a form");
    }
    let answer = t.send("POST", &path, &[("content-type", &form_type())], form("other.md", b"hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.value()["name"], "a.txt", "the announced name");
    assert_eq!(t.send("PUT", &path, &[], "olleh").await.refusal(), "409 attachment.in_use");
    assert_eq!(t.scalar("SELECT count(*) FROM upload_chunks").await, "0");
}

#[tokio::test]
async fn an_upload_url_is_valid_for_its_file_and_fifteen_minutes() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = announce(&t, &workflow, "a.txt", 5, "text/plain").await;
    let path = upload_path(&t, &attachment);
    let other = upload_path(&t, &announce(&t, &workflow, "b.txt", 5, "text/plain").await);
    let (base, query) = path.split_once('?').unwrap();
    let (other_base, _) = other.split_once('?').unwrap();
    let exp = query.split('&').next().unwrap();
    for wrong in [
        base.to_owned(),
        format!("{base}?{exp}"),
        format!("{base}?{exp}&sig=AAAA"),
        format!("{other_base}?{query}"),
        path.replace("exp=1", "exp=2"),
        format!("/api/chat/attachments/atc_00?{query}"),
    ] {
        let answer = t.send("PUT", &wrong, &[], "hello").await;
        assert_eq!(answer.refusal(), "403 attachment.link_invalid", "{wrong}");
    }
    let preview = path.replace('?', "/preview?");
    assert_eq!(t.get(&preview).await.refusal(), "403 attachment.link_invalid", "for the upload only");
    t.advance(Duration::from_secs(899));
    assert_eq!(t.send("PUT", &path, &[], "hello").await.status, 200);
    t.advance(Duration::from_secs(2));
    assert_eq!(t.send("PUT", &path, &[], "hello").await.refusal(), "403 attachment.link_invalid");
}

#[tokio::test]
async fn announcements_are_validated() {
    let t = TestService::builder().set("SERVICE_CHAT_UPLOAD_MAX_BYTES", "100").start().await;
    let workflow = t.workflow().echo().published().create().await;
    let good = json!({"name": "a.txt", "size": 5, "mime_type": "text/plain"});
    for (member, value, refusal, problem) in [
        ("name", json!(1), "422 chat.invalid_request", "/params/name type"),
        ("name", json!(null), "422 chat.invalid_request", "/params/name required"),
        ("size", json!(0), "422 chat.invalid_request", "/params/size range"),
        ("size", json!(-1), "422 chat.invalid_request", "/params/size type"),
        ("size", json!(1.5), "422 chat.invalid_request", "/params/size type"),
        ("size", json!(null), "422 chat.invalid_request", "/params/size required"),
        ("size", json!(101), "413 attachment.too_large", ""),
        ("mime_type", json!([]), "422 chat.invalid_request", "/params/mime_type type"),
    ] {
        let mut params = good.clone();
        params[member] = value.clone();
        let answer = t.chat(&chat::ask(&workflow, "attachments.create", params)).await;
        assert_eq!(answer.refusal(), refusal, "{member} {value}");
        assert_eq!(answer.problems().concat(), problem, "{member} {value}");
    }
    assert_eq!(t.scalar("SELECT count(*) FROM attachments").await, "0");
    // The content decides, as in a direct upload.
    for declared in ["", "text/x-notes", "IMAGE/PNG", "text/html"] {
        let params = json!({"name": "a.md", "size": 5, "mime_type": declared});
        let attachment = t.chat(&chat::ask(&workflow, "attachments.create", params)).await.value();
        let url = attachment["upload_descriptor"]["url"].as_str().unwrap_or_else(|| panic!("{attachment}"));
        let path = url.strip_prefix(&format!("http://{}", t.address())).unwrap();
        let stored = t.send("PUT", path, &[], "words").await;
        assert_eq!(
            (stored.status, &stored.value()["mime_type"]),
            (200, &json!("text/markdown")),
            "{declared}"
        );
    }
}
