//! Direct uploads: accepted files, rejected files, and cleanup.

use image::ImageFormat;
use integration_tests::{AnswerExt, TestService};
use serde_json::json;

use super::{BOUNDARY, begin_upload, form, form_type, id_of, part, picture, red, upload, uploaded};

/// Waits until rejected uploads have left nothing.
async fn assert_nothing_stored(t: &TestService) {
    let left = "SELECT (SELECT count(*) FROM upload_chunks) + (SELECT count(*) FROM attachments)
                + (SELECT count(*) FROM blob_uses) + (SELECT count(*) FROM upload_days)";
    t.until_scalar("nothing to be stored", left, "0").await;
}

#[tokio::test]
async fn an_upload_returns_the_attachment() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = uploaded(&t, &workflow, "../notes/plan.txt", b"Buy milk.").await;
    let id = id_of(&attachment);
    assert!(id.starts_with("atc_") && id.len() == 36, "{id}");
    let expected = json!({"id": id, "name": "plan.txt", "mime_type": "text/plain", "type": "file",
                          "storage_path": format!("chat/attachments/{id}/plan.txt")});
    assert_eq!(attachment, expected);
    let image = uploaded(&t, &workflow, "red.jpg", &red()).await;
    assert_eq!((image["type"].as_str(), image["mime_type"].as_str()), (Some("image"), Some("image/png")));
    let preview = image["preview_url"].as_str().unwrap();
    assert!(preview.starts_with(&format!("http://{}/api/chat/attachments/atc_", t.address())), "{preview}");
    let look = "SELECT concat_ws(' ', width, height, colour, size, preview IS NULL) FROM attachments WHERE width > 0";
    assert_eq!(t.scalar(look).await, format!("64 48 red {} t", red().len()));
    assert_eq!(t.get(&format!("/{}", attachment["storage_path"].as_str().unwrap())).await.status, 404);
}

#[tokio::test]
async fn the_content_determines_the_type() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let picture = |format| picture(format, 8, 8, [0, 0, 255]);
    for (name, bytes, mime_type) in [
        ("a.md", b"# Title".to_vec(), "text/markdown"),
        ("a.csv", b"a,b\n1,2".to_vec(), "text/csv"),
        ("a.json", b"{\"a\": 1}".to_vec(), "application/json"),
        ("a.html", b"only text".to_vec(), "text/plain"),
        ("a.png", b"only text".to_vec(), "text/plain"),
        ("a.txt", b"%PDF-1.7\n".to_vec(), "application/pdf"),
        ("a", picture(ImageFormat::Png), "image/png"),
        ("a.gif", picture(ImageFormat::Jpeg), "image/jpeg"),
        ("a.svg", picture(ImageFormat::Gif), "image/gif"),
        ("a.exe", picture(ImageFormat::WebP), "image/webp"),
    ] {
        let attachment = uploaded(&t, &workflow, name, &bytes).await;
        assert_eq!(attachment["mime_type"], mime_type, "{name}");
    }
}

#[tokio::test]
async fn rejected_files_leave_nothing() {
    let t = TestService::builder().set("SERVICE_CHAT_UPLOAD_MAX_BYTES", "300000").start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut cut = red();
    cut.truncate(60);
    let large = vec![b'a'; 300_001];
    for (name, bytes, refusal) in [
        ("empty.txt", &b""[..], "422 attachment.size_mismatch"),
        ("a.txt", b"<!DOCTYPE html><script>alert(1)</script>", "415 attachment.type_not_allowed"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "415 attachment.type_not_allowed"),
        ("a.zip", b"PK\x03\x04 \xff\0 something", "415 attachment.type_not_allowed"),
        ("a.txt", b"\x7fELF\x02\x01\x01\0\0\0\0\0", "415 attachment.type_not_allowed"),
        ("a.txt", b"caf\xe9", "415 attachment.type_not_allowed"),
        ("a.png", &cut, "422 attachment.damaged"),
        ("a.txt", &large, "413 attachment.too_large"),
    ] {
        let answer = upload(&t, &workflow, name, bytes).await;
        assert_eq!(answer.refusal(), refusal, "{name}");
    }
    assert_eq!(
        upload(&t, &workflow, "a.txt", &large[..300_000]).await.status,
        200,
        "as many bytes as allowed"
    );
    t.execute("DELETE FROM attachments; DELETE FROM blob_uses; DELETE FROM upload_days").await;
    assert_nothing_stored(&t).await;
}

#[tokio::test]
async fn forms_without_exactly_one_file_are_rejected() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let path = format!("/api/chat/upload?workflow_id={}", workflow.id);
    let end = format!("--{BOUNDARY}--\r\n").into_bytes();
    let form_type = form_type();
    let twice = [part("file", Some("a.txt"), b"a"), part("file", Some("b.txt"), b"b"), end.clone()].concat();
    let other = [part("data", Some("a.txt"), b"a"), end.clone()].concat();
    let long =
        [part("note", None, &vec![b'a'; 70_000]), part("file", Some("a.txt"), b"a"), end.clone()].concat();
    let cut = form("a.txt", &[b'a'; 200])[..200].to_vec();
    for (kind, body, refusal, problem) in [
        (&*form_type, other, "422 chat.invalid_request", "/file required"),
        (&form_type, twice, "422 chat.invalid_request", "/file repeated"),
        (&form_type, long, "422 chat.invalid_request", "/file length"),
        (&form_type, cut, "422 chat.invalid_request", " format"),
        (&form_type, b"no form".to_vec(), "422 chat.invalid_request", " format"),
        ("multipart/form-data", form("a.txt", b"a"), "422 chat.invalid_request", " format"),
        ("application/json", b"{}".to_vec(), "415 request.unsupported_media_type", ""),
        ("text/plain", b"hello".to_vec(), "415 request.unsupported_media_type", ""),
    ] {
        let answer = t.send("POST", &path, &[("content-type", kind)], body).await;
        assert_eq!(answer.refusal(), refusal, "{kind}: {}", answer.text());
        assert_eq!(answer.problems().concat(), problem, "{kind}: {}", answer.text());
    }
    let small =
        [part("note", None, b"ignored"), part("file", Some("a.txt"), b"a"), part("more", None, b"x"), end];
    t.send("POST", &path, &[("content-type", &form_type)], small.concat()).await.expect(200);
    let gzip = [("content-type", &*form_type), ("content-encoding", "gzip")];
    let answer = t.send("POST", &path, &gzip, form("a.txt", b"a")).await;
    assert_eq!(answer.refusal(), "415 request.unsupported_media_type");
}

#[tokio::test]
async fn equal_bytes_are_stored_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let bytes = vec![b'a'; 600_000];
    let first = uploaded(&t, &workflow, "a.txt", &bytes).await;
    let second = uploaded(&t, &workflow, "b.txt", &bytes).await;
    assert_ne!(first["id"], second["id"]);
    let counts = "SELECT concat_ws(' ', (SELECT count(*) FROM blobs), (SELECT count(*) FROM blob_chunks),
                  (SELECT count(*) FROM blob_uses), (SELECT count(*) FROM upload_chunks))";
    assert_eq!(t.scalar(counts).await, "1 3 2 0");
}

#[tokio::test]
async fn aborted_uploads_leave_nothing() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let body = form("a.txt", &vec![b'a'; 2_000_000]);
    let mut connection = begin_upload(&t, &workflow, &body).await;
    connection.write(&body[..1_500_000]).await;
    t.until_scalar("chunks", "SELECT count(*) >= 4 FROM upload_chunks", "true").await;
    drop(connection);
    assert_nothing_stored(&t).await;
}
