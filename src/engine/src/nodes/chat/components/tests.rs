use serde_json::json;

use super::*;

fn problems_of(widget: Value) -> Vec<String> {
    problems(&widget, "/widget")
        .iter()
        .map(|problem| format!("{} {}", problem.pointer, problem.code))
        .collect()
}

fn nested(levels: usize) -> Value {
    (1..levels).fold(json!({"type": "Text"}), |inner, _| json!({"type": "Card", "children": [inner]}))
}

#[test]
fn invalid_components_are_reported() {
    for (widget, problems) in [
        (
            json!({"type": "Card", "children": [{"type": "New", "id": "a"}, {"type": "Icon", "name": "lucide:x"}]}),
            vec![],
        ),
        (json!({"type": "ListView"}), vec![]),
        (json!({"type": "Card", "children": {"type": "Text", "icon": "check"}}), vec![]),
        (json!("Card"), vec!["/widget type"]),
        (json!([]), vec!["/widget type"]),
        (json!({}), vec!["/widget required"]),
        (json!({"type": 1}), vec!["/widget/type type"]),
        (json!({"type": "Basic"}), vec!["/widget/type choice"]),
        (json!({"type": "Text", "value": "x"}), vec!["/widget/type choice"]),
        (json!({"type": "Card", "children": "x"}), vec!["/widget/children type"]),
        (
            json!({"type": "Card", "children": [1, {"value": "x"}]}),
            vec!["/widget/children/0 type", "/widget/children/1 required"],
        ),
        (json!({"type": "Card", "id": 1, "key": true}), vec!["/widget/id type", "/widget/key type"]),
        (
            json!({"type": "Card", "id": "a", "children": [{"type": "Row", "children": [{"type": "Text", "id": "a"}]}]}),
            vec!["/widget/children/0/children/0/id unique"],
        ),
        (
            json!({"type": "Card", "children": [{"type": "Icon", "name": "upload"}, {"type": "Button", "iconStart": "x", "iconEnd": 1}]}),
            vec![
                "/widget/children/0/name choice",
                "/widget/children/1/iconStart choice",
                "/widget/children/1/iconEnd choice",
            ],
        ),
        (
            json!({"type": "Card", "status": {"text": "s", "icon": "nope"}}),
            vec!["/widget/status/icon choice"],
        ),
        // Application data is not a component.
        (
            json!({"type": "Card", "children": [{"type": "Button", "onClickAction": {"type": "a", "payload": {"children": 1, "id": 2}}}]}),
            vec![],
        ),
    ] {
        assert_eq!(problems_of(widget.clone()), problems, "{widget}");
    }
}

#[test]
fn a_widget_has_limits() {
    assert!(problems_of(nested(32)).is_empty());
    assert_eq!(problems_of(nested(33)).len(), 1);
    let many =
        |count: usize| json!({"type": "Card", "children": vec![json!({"type": "Divider"}); count - 1]});
    assert!(problems_of(many(2_000)).is_empty());
    assert_eq!(problems_of(many(2_001)), ["/widget/children/1999 length"]);
    let long = |bytes: usize| json!({"type": "Card", "value": "x".repeat(bytes)});
    let around = long(0).to_string().len();
    assert!(problems_of(long((256 << 10) - around)).is_empty());
    assert_eq!(problems_of(long((256 << 10) - around + 1)), ["/widget length"]);
}

#[test]
fn unset_members_are_not_sent() {
    let widget = json!({"type": "Card", "id": null, "children": [
        {"type": "Text", "value": "x", "streaming": false, "color": null},
        {"type": "Button", "onClickAction": {"type": "a", "payload": {"none": null}}}], "confirm": {"label": null}});
    let sent = json!({"type": "Card", "children": [
        {"type": "Text", "value": "x"},
        {"type": "Button", "onClickAction": {"type": "a", "payload": {"none": null}}}], "confirm": {"label": null}});
    assert_eq!(as_sent(widget), sent);
    assert_eq!(
        as_sent(json!({"type": "Card", "children": {"type": "Text", "id": null}})),
        json!({"type": "Card", "children": {"type": "Text"}})
    );
    assert_eq!(as_sent(json!("x")), json!("x"));
}
