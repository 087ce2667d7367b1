//! `widget`, images in `show`, and everything that `reply` sends besides its text.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, graph, plan};
use crate::world::{World, recorded, refused};

#[test]
fn bad_widgets_are_named_when_they_are_saved() {
    let of = |fields: Value| {
        let mut node = json!({"name": "n", "type": "widget"});
        node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        refused(&node)
    };
    let card = json!({"type": "Card", "children": []});
    for (fields, problems) in [
        (json!({}), vec!["/widget required"]),
        (json!({"widget": null}), vec!["/key required"]),
        (json!({"widget": card, "more": true}), vec!["/key required"]),
        (json!({"widget": card, "copy_text": 1}), vec!["/copy_text type"]),
        (json!({"widget": "Card"}), vec!["/widget type"]),
        (json!({"widget": "{{ inputs.x }}"}), vec![]),
        (
            json!({"widget": {"type": "{{ inputs.x }}", "id": "{{ inputs.x }}", "children": "{{ inputs.x }}"}}),
            vec![],
        ),
        (
            json!({"widget": {"type": "Card", "children": [{"value": "{{ inputs.x }}"}]}}),
            vec!["/widget/children/0 required"],
        ),
        (
            json!({"widget": {"type": "Card", "children": [{"type": "Icon", "name": "upload"}]}}),
            vec!["/widget/children/0/name choice"],
        ),
        (json!({"widget": card, "key": null}), vec![]),
        (json!({"widget": card, "keys": ""}), vec!["/keys unknown_field"]),
    ] {
        assert_eq!(of(fields.clone()), problems, "{fields}");
    }
}

#[tokio::test]
async fn widgets_annotations_and_images_are_sent_in_order() {
    let source =
        json!({"type": "url", "title": "Order {{ inputs.n }}", "url": "https://example.org/{{ inputs.n }}"});
    let nodes = json!([
        {"name": "said", "type": "reply", "text": "Héllo", "annotations": [{"source": source, "index": 2}, {"source": source}],
         "widget": {"type": "Card", "id": null}, "copy_text": "card {{ inputs.n }}"},
        {"name": "keyed", "type": "reply", "text": "{{ inputs.n }}", "key": "m", "annotations": [{"source": source}]},
        {"name": "unkeyed", "type": "reply", "text": null, "key": "m"},
        {"name": "open", "type": "widget", "widget": {"type": "Card", "id": "{{ inputs.n }}-"}, "key": "w", "more": true},
        {"name": "gone", "type": "widget", "widget": null, "key": "w"},
        {"name": "own", "type": "widget", "widget": {"type": "ListView", "children": []}},
        {"name": "image", "type": "show", "kind": "image", "image": {"url": "https://example.org/i"}, "key": "i", "more": true, "progress": "{{ inputs.n / 4 }}"},
        {"name": "none", "type": "show", "kind": "image"},
    ]);
    let names = ["said", "keyed", "unkeyed", "open", "gone", "own", "image", "none"];
    let mut before = "START";
    let mut edges = Vec::new();
    for name in names {
        edges.push(json!([before, name]));
        before = name;
    }
    let mut graph = graph(nodes, json!(edges));
    graph["output"] = json!("{{ results }}");
    let inputs = json!({"n": 1});
    let world = World::new().in_a_chat().inputs(inputs.clone());
    let output = world.run(&plan(&graph)).await.unwrap();
    let sent = world.sink.text();
    let keys: Vec<&str> =
        sent.split(['<', '>']).filter_map(|item| item.split_once(": ")).map(|(key, _)| key).collect();
    let (first, own) = (keys[0].to_owned(), keys[5].to_owned());
    assert_eq!(keys, [first.as_str(), "m", "m", "w", "w", &own, "i"]);
    assert!(first.starts_with('~') && own.starts_with('~') && first != own);
    let source = r#"{"title":"Order 1","type":"url","url":"https://example.org/1"}"#;
    let expected = [
        "Héllo".to_owned(),
        format!(r#"<{first}: {{"type":"widget","widget":{{"type":"Card"}},"copy_text":"card 1"}}>"#),
        format!(
            r#"<m: {{"type":"assistant_message","content":[{{"type":"output_text","text":"1","annotations":[{{"type":"annotation","source":{source},"index":1}}]}}]}}>"#
        ),
        "<m: >".to_owned(),
        r#"<w: {"type":"widget","widget":{"type":"Card","id":"1-"}} …>"#.to_owned(),
        "<w: >".to_owned(),
        format!(r#"<{own}: {{"type":"widget","widget":{{"type":"ListView","children":[]}}}}>"#),
    ];
    assert!(sent.starts_with(&expected.concat()), "{sent}");
    assert!(sent.ends_with(r#""url":"https://example.org/i"}} …><{"type":"generated_image"}>"#), "{sent}");
    assert_eq!(*world.sink.aside.lock(), [format!("3 {source}"), format!("0 {source}")]);
    assert_eq!(output["own"], json!({"key": own}));
    assert_eq!(
        (&output["keyed"], &output["unkeyed"]),
        (&json!({"text": "1", "key": "m"}), &json!({"text": null, "key": "m"}))
    );
    // A resumed run produces them again.
    let rows = world.journal.rows.lock().clone();
    let resumed = World::new().in_a_chat().inputs(inputs.clone()).recorded(recorded(&rows));
    resumed.run(&plan(&graph)).await.unwrap();
    assert_eq!(
        (resumed.sink.text(), resumed.sink.aside.lock().clone()),
        (sent, world.sink.aside.lock().clone())
    );
    // Outside a chat, items are only results.
    let alone = World::new().inputs(inputs);
    assert_eq!(alone.run(&plan(&graph)).await.unwrap(), output);
    assert_eq!(alone.sink.text(), "Héllo");
}

#[tokio::test]
async fn a_run_sends_at_most_a_thousand_annotations_of_one_mebibyte_in_total() {
    let source =
        json!({"type": "entity", "title": "t", "id": "x{{ item }}", "data": {"text": "{{ inputs.data }}"}});
    let annotations = vec![json!({"source": source}); 10];
    let body = json!({"type": "reply", "text": "{{ item }}", "annotations": annotations});
    let node =
        json!({"name": "all", "type": "for_each", "items": "{{ range(inputs.n) | list }}", "body": body});
    for (count, bytes, good) in [(100, 0, true), (101, 0, false), (10, 10_000, true), (11, 10_000, false)] {
        let world = World::new().in_a_chat().inputs(json!({"n": count, "data": "x".repeat(bytes)}));
        let ran = world.run(&plan(&alone(&node))).await;
        assert_eq!(ran.is_ok(), good, "{count} {bytes}: {ran:?}");
        if let Err(error) = ran {
            assert_eq!(error.code, ErrorCode::NodeResultTooLarge);
        }
    }
}

/// A finished reply's text is in its result, even if its input no longer exists.
#[tokio::test]
async fn a_resumed_reply_sends_its_stored_text() {
    let node = json!({"name": "n", "type": "reply", "text": "{{ inputs.text }}", "key": "k{{ inputs.text }}",
                      "annotations": "{{ inputs.list }}"});
    let source = json!({"source": {"type": "file", "title": "t", "filename": "f"}, "index": 1.0});
    let first = World::new().in_a_chat().inputs(json!({"text": "said", "list": [source]}));
    first.run(&plan(&alone(&node))).await.unwrap();
    let rows = first.journal.rows.lock().clone();
    let plain = r#"<ksaid: {"type":"assistant_message","content":[{"type":"output_text","text":"said","annotations":[]}]}>"#;
    assert!(first.sink.text().contains(r#""index":1}"#), "{}", first.sink.text());
    for inputs in [json!({}), json!({"text": "other", "list": [{}]})] {
        let resumed = World::new().in_a_chat().inputs(inputs).recorded(recorded(&rows));
        resumed.run(&plan(&alone(&node))).await.unwrap();
        assert_eq!(resumed.sink.text(), plain);
    }
}
