//! Image previews.

use std::time::Duration;

use image::{GenericImageView, ImageFormat};
use integration_tests::{AnswerExt, TestService, chat};
use serde_json::{Value, json};

use super::{id_of, message, picture, red, send_message, uploaded, users_message};

fn path(t: &TestService, attachment: &Value) -> String {
    let url = attachment["preview_url"].as_str().unwrap();
    url.strip_prefix(&format!("http://{}", t.address())).unwrap().to_owned()
}

#[tokio::test]
async fn a_small_image_is_its_own_preview() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = uploaded(&t, &workflow, "red.png", &red()).await;
    let preview = t.get(&path(&t, &attachment)).await;
    assert_eq!((preview.status, &preview.body[..]), (200, &red()[..]));
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "cross-origin"),
        ("content-security-policy", "default-src 'none'; sandbox"),
        ("cache-control", "private, max-age=86400"),
        ("content-length", &red().len().to_string()),
    ] {
        assert_eq!(preview.header(name), Some(value), "{name}");
    }
    assert_eq!(t.open("HEAD", &path(&t, &attachment), &[], "").await.status, 200);
}

#[tokio::test]
async fn a_large_image_is_scaled_down() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment =
        uploaded(&t, &workflow, "wide.jpg", &picture(ImageFormat::Jpeg, 1_600, 400, [0, 0, 255])).await;
    let preview = t.get(&path(&t, &attachment)).await;
    assert_eq!(preview.header("content-type"), Some("image/webp"));
    let shown = image::load_from_memory_with_format(&preview.body, ImageFormat::WebP).unwrap();
    assert_eq!(shown.dimensions(), (1_024, 256));
    let look = "SELECT concat_ws(' ', width, height, colour) FROM attachments";
    assert_eq!(t.scalar(look).await, "1600 400 blue");
    assert_eq!(t.scalar("SELECT count(*) FROM blob_uses").await, "2");
}

#[tokio::test]
async fn preview_urls_are_signed_and_expire() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = uploaded(&t, &workflow, "red.png", &red()).await;
    let good = path(&t, &attachment);
    let other = path(&t, &uploaded(&t, &workflow, "b.png", &red()).await);
    let (base, query) = good.split_once('?').unwrap();
    let (other_base, _) = other.split_once('?').unwrap();
    for wrong in [base.to_owned(), format!("{other_base}?{query}"), format!("{base}?exp=9999999999&sig=x")] {
        assert_eq!(t.get(&wrong).await.refusal(), "403 attachment.link_invalid", "{wrong}");
    }
    assert_eq!(t.get(&format!("{good}&x=1")).await.status, 422, "an unknown parameter");
    t.advance(Duration::from_secs(48 * 3_600));
    assert_eq!(t.get(&good).await.status, 200);
    t.advance(Duration::from_secs(25 * 3_600));
    assert_eq!(t.get(&good).await.refusal(), "403 attachment.link_invalid");
}

#[tokio::test]
async fn reading_a_thread_later_returns_fresh_urls() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = uploaded(&t, &workflow, "red.png", &red()).await;
    let id = id_of(&attachment);
    let (thread, events) = send_message(&t, &message(&workflow, None, "look", &[&id])).await;
    let first = users_message(&events)["attachments"][0]["preview_url"].clone();
    assert_eq!(first, attachment["preview_url"]);
    let stored = t.scalar("SELECT content FROM thread_items ORDER BY id LIMIT 1").await;
    assert!(stored.contains(&id) && !stored.contains("preview_url"), "{stored}");
    t.advance(Duration::from_secs(100 * 3_600));
    let read = t.chat(&chat::ask(&workflow, "threads.get_by_id", json!({"thread_id": thread}))).await.value();
    let items = t
        .chat(&chat::ask(&workflow, "items.list", json!({"thread_id": thread, "order": "asc"})))
        .await
        .value();
    for items in [&read["items"]["data"], &items["data"]] {
        let fresh = &items[0]["attachments"][0];
        assert_ne!(fresh["preview_url"], first);
        assert_eq!(t.get(&path(&t, fresh)).await.status, 200);
    }
    let expired = t.get(&path(&t, &attachment)).await;
    assert_eq!(expired.refusal(), "403 attachment.link_invalid");
}

#[tokio::test]
async fn other_files_and_deleted_images_have_no_preview() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let attachment = uploaded(&t, &workflow, "red.png", &red()).await;
    let params = json!({"attachment_id": attachment["id"]});
    let deleted = t.chat(&chat::ask(&workflow, "attachments.delete", params)).await;
    assert_eq!((deleted.status, deleted.value()), (200, json!({})));
    assert_eq!(t.get(&path(&t, &attachment)).await.refusal(), "404 attachment.not_found");
    let params = json!({"name": "later.png", "size": 9, "mime_type": "image/png"});
    let announced = t.chat(&chat::ask(&workflow, "attachments.create", params)).await.value();
    assert_eq!(t.get(&path(&t, &announced)).await.refusal(), "404 attachment.not_found");
}
