use serde_json::json;
use wire::chat::WidgetRoot;

use super::*;

fn widget(root: Value) -> ItemBody {
    let Value::Object(root) = root else { panic!("an object") };
    ItemBody::Widget { widget: WidgetRoot(root), copy_text: None }
}

fn list(tasks: &[&str], summary: Option<&str>) -> ItemBody {
    let tasks: Vec<Value> = tasks.iter().map(|title| json!({"type": "custom", "title": title})).collect();
    let mut workflow = json!({"type": "custom", "tasks": tasks});
    if let Some(title) = summary {
        workflow["summary"] = json!({"title": title});
    }
    ItemBody::Workflow { workflow: serde_json::from_value(workflow).unwrap() }
}

fn image(url: Option<&str>, progress: Option<f64>) -> ItemBody {
    let image = url.map(|url| wire::chat::GeneratedImage { id: "i".into(), url: url.into() });
    ItemBody::GeneratedImage { image, progress }
}

/// Returns the update names, and the reader's state after them.
fn updates_between(known: &ItemBody, next: &ItemBody) -> (Vec<String>, ItemBody) {
    let updates = between(known, next);
    let mut body = known.clone();
    for update in &updates {
        update.apply(&mut body);
    }
    let name =
        |update: &ItemUpdate| serde_json::to_value(update).unwrap()["type"].as_str().unwrap().to_owned();
    (updates.iter().map(name).collect(), body)
}

fn card(children: Value) -> ItemBody {
    widget(json!({"type": "Card", "children": children}))
}

#[test]
fn the_smallest_update_of_a_widget_is_sent() {
    let row = |text: Value| json!({"type": "Row", "id": "row", "children": [text, {"type": "Divider"}]});
    let text = |value: &str| json!({"type": "Text", "id": "t", "value": value});
    let streaming = |value: &str| json!({"type": "Markdown", "id": "t", "value": value, "streaming": true});
    let image = |src: &str| json!({"type": "Image", "src": src});
    for (known, next, expected) in [
        (
            card(json!([row(text("He"))])),
            card(json!([row(text("Hello"))])),
            "widget.streaming_text.value_delta",
        ),
        (card(json!([streaming("é")])), card(json!([streaming("é!")])), "widget.streaming_text.value_delta"),
        (
            card(json!([streaming("a")])),
            card(json!([{"type": "Markdown", "id": "t", "value": "a"}])),
            "widget.streaming_text.value_delta",
        ),
        (card(json!([row(text("Hello"))])), card(json!([row(text("Bye"))])), "widget.component.updated"),
        (
            card(json!([streaming("a")])),
            card(json!([{"type": "Markdown", "id": "t", "value": "ab", "streaming": false}])),
            "widget.component.updated",
        ),
        // The component without an id is inside one with an id.
        (card(json!([row(image("a"))])), card(json!([row(image("b"))])), "widget.component.updated"),
        (card(json!([image("a")])), card(json!([image("b")])), "widget.root.updated"),
        (card(json!([text("a"), image("a")])), card(json!([text("b"), image("b")])), "widget.root.updated"),
        (card(json!([text("a")])), card(json!([text("a"), image("b")])), "widget.root.updated"),
        (card(json!([text("a")])), card(json!([image("b"), text("a")])), "widget.root.updated"),
        (card(json!([text("a")])), card(json!([])), "widget.root.updated"),
        (
            card(json!([])),
            widget(json!({"type": "Card", "size": "sm", "children": []})),
            "widget.root.updated",
        ),
        (
            widget(json!({"type": "Card", "id": "c"})),
            widget(json!({"type": "Card", "id": "c", "size": "sm"})),
            "widget.root.updated",
        ),
        (
            widget(json!({"type": "Card", "children": {}})),
            widget(json!({"type": "Card", "children": null})),
            "widget.root.updated",
        ),
    ] {
        let (names, body) = updates_between(&known, &next);
        assert_eq!(names, [expected], "{known:?} {next:?}");
        assert_eq!(body, next);
    }
    let same = card(json!([text("a")]));
    assert!(between(&same, &same).is_empty());
}

#[test]
fn tasks_are_updated_and_other_changes_come_with_the_complete_list() {
    let (names, body) = updates_between(&list(&["a", "b"], None), &list(&["a", "c", "d", "e"], None));
    assert_eq!(names, ["workflow.task.updated", "workflow.task.added", "workflow.task.added"]);
    assert_eq!(body, list(&["a", "c", "d", "e"], None));
    assert!(between(&list(&["a", "b"], None), &list(&["c"], None)).is_empty());
    let (names, body) = updates_between(&list(&["a"], None), &list(&["a", "b"], Some("s")));
    assert_eq!((names.len(), body), (1, list(&["a", "b"], None)));
}

#[test]
fn an_image_is_sent_with_its_progress() {
    let (names, body) = updates_between(&image(None, Some(0.1)), &image(Some("https://e.org/1"), Some(0.5)));
    assert_eq!((names.len(), body), (1, image(Some("https://e.org/1"), Some(0.5))));
    assert_eq!(between(&image(Some("u"), Some(0.5)), &image(Some("u"), Some(0.6))).len(), 1);
    // No update can remove the progress.
    assert!(between(&image(None, None), &image(None, Some(0.5))).is_empty());
}

#[test]
fn other_kinds_have_no_updates() {
    let task = |title: &str| ItemBody::Task {
        task: serde_json::from_value(json!({"type": "custom", "title": title})).unwrap(),
    };
    assert!(between(&task("a"), &task("b")).is_empty());
    assert!(between(&task("a"), &card(json!([]))).is_empty());
}
