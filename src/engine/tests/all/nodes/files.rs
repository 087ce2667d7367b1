//! Attachments in model requests, including documents.

use models::{Models, Part};
use serde_json::{Value, json};
use wire::ErrorCode;

use super::document_read::PDF;
use crate::ports::{alone, plan};
use crate::world::{World, refused};

/// Asks with these message parts, in the second of two messages.
fn ask(model: &str, parts: &[Value], more: Value) -> Value {
    let messages = json!([{"role": "user", "content": "earlier", "parts": []},
                          {"role": "user", "content": "look", "parts": parts}]);
    let mut node = json!({"name": "ask", "type": "llm", "model": model, "messages": messages});
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

/// The parts that the model received besides the last message's text.
fn received(world: &World) -> Vec<String> {
    let requests = world.model.requests.lock();
    let parts = &requests.last().unwrap().messages.last().unwrap().parts;
    let text_of = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Image(image) => format!("{} {}x{} {}", image.name, image.width, image.height, image.data.len()),
    };
    parts.iter().map(text_of).collect()
}

#[tokio::test]
async fn a_model_receives_only_files_that_it_supports() {
    let world = World::new();
    let long = "ä".repeat(40_000);
    let sheet = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
    let parts = [
        json!({"type": "text", "text": "look"}),
        world.attachments.add("a.png", "image/png", b"pixels"),
        world.attachments.add("a.txt", "text/plain", "\u{feff}words".as_bytes()),
        world.attachments.add("long.md", "text/markdown", long.as_bytes()),
        world.attachments.add("a.mp3", "audio/mpeg", b"sound"),
        world.attachments.add("a.xlsx", sheet, b"x"),
    ];
    let done = world.run(&plan(&alone(&ask("test/x", &parts, json!({}))))).await.unwrap();
    let cut = format!("long.md\n\n{}", "ä".repeat(32 << 10));
    let expected = ["a.png 64x48 6", "a.txt\n\nwords", &cut, "[a.mp3: not shown]", "[a.xlsx: not shown]"];
    assert_eq!(received(&world), expected);
    let unseen = json!([{"attachment": "atc_4", "name": "a.mp3", "reason": "type"},
                        {"attachment": "atc_5", "name": "a.xlsx", "reason": "type"}]);
    assert_eq!(done["unseen"], unseen);
    let rows = world.journal.rows.lock();
    assert!(rows.iter().all(|row| !format!("{row:?}").contains("pixels")), "bytes stay out of the journal");
}

#[tokio::test]
async fn the_newest_images_come_first() {
    let world = World::new();
    let large = vec![0; 8 << 20];
    let parts = ["a.png", "b.png", "c.png"].map(|name| world.attachments.add(name, "image/png", &large));
    let done = world.run(&plan(&alone(&ask("test/x", &parts, json!({}))))).await.unwrap();
    assert_eq!(received(&world)[0], "[a.png: not shown]");
    assert_eq!(done["unseen"], json!([{"attachment": "atc_1", "name": "a.png", "reason": "budget"}]));
}

#[tokio::test]
async fn a_model_may_read_text_only_or_be_sent_no_files() {
    let mut world = World::new();
    world.models = Models::default().with("openai", world.model.clone());
    let parts = [world.attachments.add("a.png", "image/png", b"pixels")];
    let done = world.run(&plan(&alone(&ask("openai/o3-mini", &parts, json!({}))))).await.unwrap();
    assert_eq!(done["unseen"][0]["reason"], "model");
    let world = World::new();
    let parts = [world.attachments.add("a.mp3", "audio/mpeg", b"sound")];
    let none = json!({"attachments": "none"});
    let done = world.run(&plan(&alone(&ask("test/x", &parts, none)))).await.unwrap();
    assert_eq!((received(&world).len(), done.get("unseen")), (0, None));
    assert_eq!(refused(&ask("test/x", &[], json!({"attachments": "all"}))), ["/attachments choice"]);
}

#[tokio::test]
async fn a_file_of_another_thread_fails_the_node() {
    let world = World::new();
    let stranger = json!({"type": "image", "attachment": "atc_9", "name": "a", "mime_type": "image/png", "size": 1,
                          "digest": "00"});
    let failed = world.run(&plan(&alone(&ask("test/x", &[stranger], json!({}))))).await.unwrap_err();
    assert_eq!(failed.code, ErrorCode::AttachmentNotFound);
    assert!(world.model.requests.lock().is_empty());
}

#[tokio::test]
async fn an_agent_lists_unsupported_files_once() {
    let world = World::new();
    let parts = [world.attachments.add("a.mp3", "audio/mpeg", b"sound")];
    let mut node = ask("test/x", &parts, json!({"tools": []}));
    node["type"] = json!("agent");
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(done["unseen"], json!([{"attachment": "atc_1", "name": "a.mp3", "reason": "type"}]));
    assert_eq!(received(&world), ["[a.mp3: not shown]"]);
}

#[tokio::test]
async fn a_document_is_a_url_or_an_attachment() {
    let world = World::new();
    world.attachments.add("notes.csv", "text/csv", b"a,b");
    world.attachments.add("a.png", "image/png", b"\x89PNG");
    let read = |id: Value| json!({"name": "doc", "type": "document_read", "attachment": id});
    for id in [json!("atc_1"), json!({"id": "atc_1", "name": "x"}), json!("{{ {'id': 'atc_1'} }}")] {
        let done = world.run(&plan(&alone(&read(id.clone())))).await;
        assert_eq!(done, Ok(json!({"text": "a,b", "name": "notes.csv"})), "{id}");
    }
    for (id, code) in [
        (json!("atc_2"), ErrorCode::DocumentUnsupported),
        (json!("atc_9"), ErrorCode::AttachmentNotFound),
        (json!("{{ 7 }}"), ErrorCode::NodeFailed),
    ] {
        let failed = world.run(&plan(&alone(&read(id.clone())))).await.unwrap_err();
        assert_eq!(failed.code, code, "{id}");
    }
    assert_eq!(refused(&read(json!(7))), ["/attachment type"]);
    assert_eq!(refused(&read(json!({"name": "x"}))), ["/attachment type"]);
    let both =
        json!({"name": "doc", "type": "document_read", "attachment": "atc_1", "url": "https://example.org/"});
    assert_eq!(refused(&both), ["/url conflict"]);
    assert_eq!(refused(&json!({"name": "doc", "type": "document_read"})), ["/url required"]);
}

#[tokio::test]
async fn the_text_of_a_document_is_extracted_once() {
    let world = World::new();
    let parts = [
        world.attachments.add("page.pdf", "application/pdf", PDF.as_bytes()),
        world.attachments.add("broken.pdf", "application/pdf", b"%PDF-1.4 and no more"),
    ];
    let graph = plan(&alone(&ask("test/x", &parts, json!({}))));
    for _ in 0..2 {
        let done = world.run_outside(&graph).await.unwrap();
        assert_eq!(received(&world), ["page.pdf\n\nPage one", "[broken.pdf: not shown]"]);
        assert_eq!(done["unseen"][0]["reason"], "damaged");
        assert_eq!(world.attachments.texts(), [Some("Page one".to_owned()), Some(String::new())]);
    }
}
