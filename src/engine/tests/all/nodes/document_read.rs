//! `document_read`: each document format, and unreadable documents.

use std::sync::Arc;

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::endpoint::{Act, Endpoint};
use crate::ports::{alone, plan};
use crate::world::{World, refused};

pub(super) const PDF: &str = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
                   3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>endobj\n\
                   4 0 obj<</Length 46>>stream\nBT /F 10 Tf 50 700 Td (Page one) Tj ET        \nendstream endobj\n\
                   5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>endobj\n\
                   trailer<</Root 1 0 R/Size 6>>\nstartxref\n0\n%%EOF\n";

fn node(more: Value) -> Value {
    let mut node = json!({"name": "doc", "type": "document_read", "url": "{{ inputs.url }}"});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn world(endpoint: &Arc<Endpoint>, path: &str) -> World {
    let world = World::new().allowing(endpoint.at).credential("key", "sk-canary-000111222");
    world.inputs(json!({"url": format!("http://{}{path}", endpoint.at)}))
}

#[tokio::test]
async fn documents_are_read_as_text() {
    for (headers, body, path, more, result) in [
        ("Content-Type: text/markdown\r\n", "# A\r\n\r\nb", "/a", json!({}), json!({"text": "# A\n\nb"})),
        ("", "a;b\n1;2\n", "/files/a.csv", json!({}), json!({"text": "a;b\n1;2\n"})),
        (
            "Content-Type: text/html; charset=\"utf-8\"\r\n",
            "<title>x</title><p>Größe<p>b",
            "/",
            json!({}),
            json!({"text": "x\n\nGröße\n\nb"}),
        ),
        ("Content-Type: text/html\r\n", "<p>a", "/", json!({"format": "txt"}), json!({"text": "<p>a"})),
        (
            "Content-Type: application/octet-stream\r\n",
            PDF,
            "/x",
            json!({}),
            json!({"text": "Page one", "pages": 1}),
        ),
    ] {
        let endpoint = Endpoint::answering(200, headers, body).await;
        let done = world(&endpoint, path).run_outside(&plan(&alone(&node(more)))).await;
        assert_eq!(done, Ok(result), "{headers}");
    }
    let endpoint =
        Endpoint::answering(200, "Content-Type: text/plain\r\n", "the key is sk-canary-000111222").await;
    let with_key = node(json!({"headers": {"Authorization": "Bearer [[key]]"}}));
    let done = world(&endpoint, "/").run_outside(&plan(&alone(&with_key))).await;
    assert_eq!(done, Ok(json!({"text": "the key is [redacted]"})));
    let sent = endpoint.requests.lock()[0].clone();
    assert!(sent.starts_with("GET / HTTP/1.1") && sent.contains("Bearer sk-canary-000111222"), "{sent}");
}

#[tokio::test]
async fn unreadable_documents_have_a_reason() {
    for (headers, body, code, says) in [
        ("Content-Type: image/png\r\n", &b"\x89PNG"[..], ErrorCode::DocumentUnsupported, "image/png"),
        ("Content-Type: application/zip\r\n", b"PK\x03\x04", ErrorCode::DocumentUnsupported, "an archive"),
        ("Content-Type: text/plain\r\n", b"\xff\xfe\x00", ErrorCode::DocumentDamaged, "not UTF-8 text"),
        (
            "Content-Type: application/pdf\r\n",
            b"%PDF-1.4 and no more",
            ErrorCode::DocumentDamaged,
            "cannot be read",
        ),
        ("Content-Type: application/pdf\r\n", b"<html>", ErrorCode::DocumentDamaged, "cannot be read"),
    ] {
        let acts = vec![Act::Head(200, headers), Act::Chunk(body.to_vec()), Act::End];
        let endpoint = Endpoint::new(acts).await;
        let error = world(&endpoint, "/a").run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
        assert_eq!((error.code, error.retryable), (code, false), "{headers}: {error}");
        assert!(error.message.contains(says), "{error}");
    }
    let text = "Content-Type: text/plain\r\n";
    let endless = Endpoint::new(vec![Act::Head(200, text), Act::Forever(vec![b'a'; 65_536])]).await;
    let error = world(&endless, "/").run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DocumentTooLarge, "{error}");
    let long = Endpoint::new(vec![Act::Head(200, text), Act::Chunk(vec![b'a'; 5 << 20]), Act::End]).await;
    let error = world(&long, "/").run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::DocumentTooLarge, "{error}");
    let cut = Endpoint::new(vec![Act::Head(200, text), Act::Chunk(b"half".to_vec()), Act::Cut]).await;
    let error = world(&cut, "/").run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
    assert!(error.retryable, "{error}");
    let gone = Endpoint::answering(404, text, "gone").await;
    let error = world(&gone, "/").run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::NodeFailed);
    let closed = World::new().inputs(json!({"url": format!("http://{}/", gone.at)}));
    let error = closed.run_outside(&plan(&alone(&node(json!({}))))).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused);
}

#[test]
fn fields_are_checked() {
    let bare = json!({"name": "n", "type": "document_read"});
    assert_eq!(refused(&bare), ["/url required"]);
    assert_eq!(refused(&node(json!({"format": "doc"}))), ["/format choice"]);
    assert_eq!(refused(&node(json!({"headers": {"Host": "a"}}))), ["/headers/Host header"]);
}
