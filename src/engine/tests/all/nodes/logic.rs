//! `set`, `template`, `transform`, `filter`, `merge`, `json`, `assert`, `log`.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::world::{refused, result};

fn node(kind: &str, fields: Value) -> Value {
    let mut node = json!({"name": "n", "type": kind});
    node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    node
}

/// Returns the result of a node with this type, for inputs of many kinds.
async fn result_of(kind: &str, fields: Value) -> Value {
    result(node(kind, fields.clone()), inputs()).await.unwrap_or_else(|error| panic!("{fields}: {error}"))
}

/// Returns its error message.
async fn fails(kind: &str, fields: Value) -> String {
    let error = match result(node(kind, fields.clone()), inputs()).await {
        Ok(done) => panic!("{fields}: {done}"),
        Err(error) => error,
    };
    assert_eq!((error.code, error.node.as_deref()), (ErrorCode::NodeFailed, Some("n")), "{error}");
    assert!(!error.retryable && !error.message.contains('\n'), "{error}");
    error.message
}

fn inputs() -> Value {
    json!({"n": 3, "half": 0.5, "yes": true, "none": null, "text": "word", "list": [1, "b", {"c": null}],
           "map": {"a": 1, "b": {"c": [2]}}, "json": "{\"a\": [1, 2.5]}",
           "rows": [{"id": 1, "p": 10.5}, {"id": 2, "p": 4}, {"id": 3, "p": 20}]})
}

#[tokio::test]
async fn set_names_values_of_every_type() {
    let values = json!({
        "number": "{{ inputs.n }}", "half": "{{ inputs.half }}", "yes": "{{ inputs.yes }}",
        "none": "{{ inputs.none }}", "list": "{{ inputs.list }}", "map": "{{ inputs.map }}",
        "mixed": "{{ inputs.n }} of {{ inputs.list }}", "plain": "p", "fixed": [1, {"deep": ["{{ inputs.n + 1 }}"]}],
        "with {{ name }}": 1, "big": 9_007_199_254_740_993_i64, "long": "{{ 9007199254740993 }}",
        "is": "{{ inputs.n > 2 }}", "fallback": "{{ inputs.missing | default('d') }}",
    });
    assert_eq!(
        result_of("set", json!({"values": values})).await,
        json!({
            "number": 3, "half": 0.5, "yes": true, "none": null, "list": inputs()["list"], "map": inputs()["map"],
            "mixed": "3 of [1,\"b\",{\"c\":null}]", "plain": "p", "fixed": [1, {"deep": [4]}],
            "with {{ name }}": 1, "big": 9_007_199_254_740_993_i64, "long": 9_007_199_254_740_993_i64, "is": true,
            "fallback": "d",
        })
    );
    assert_eq!(result_of("set", json!({"values": {}})).await, json!({}));
    for (fields, problem) in [
        (json!({}), "/values required"),
        (json!({"values": null}), "/values required"),
        (json!({"values": "{{ inputs }}"}), "/values type"),
        (json!({"values": []}), "/values type"),
        (json!({"values": {"a/b": "{{"}}), "/values/a~1b template"),
        (json!({"values": {}, "value": 1}), "/value unknown_field"),
    ] {
        assert_eq!(refused(&node("set", fields)), [problem]);
    }
    assert!(fails("set", json!({"values": {"a": {"b": ["{{ inputs.nix }}"]}}})).await.contains("inputs.nix"));
}

#[tokio::test]
async fn template_fills_a_text() {
    for (template, text) in [
        ("Good day", "Good day"),
        ("", ""),
        ("{{ inputs.n }}", "3"),
        ("{{ inputs.map }}", r#"{"a":1,"b":{"c":[2]}}"#),
        ("{{ inputs.none }}", "null"),
        ("{% for x in inputs.rows %}{{ x.id }}{% if not loop.last %},{% endif %}{% endfor %}", "1,2,3"),
        ("{{ inputs.text | upper }}!\n", "WORD!\n"),
    ] {
        assert_eq!(
            result_of("template", json!({"template": template})).await,
            json!({"text": text}),
            "{template}"
        );
    }
    for (fields, problem) in [
        (json!({}), "/template required"),
        (json!({"template": ["x"]}), "/template type"),
        (json!({"template": "{% if %}"}), "/template template"),
        (json!({"template": "{{ a.b }}"}), "/template unknown_name"),
        (json!({"template": "", "text": ""}), "/text unknown_field"),
    ] {
        assert_eq!(refused(&node("template", fields)), [problem]);
    }
    assert!(
        fails("template", json!({"template": "{{ inputs.n }} {{ inputs.x.y }}"}))
            .await
            .starts_with("template")
    );
}

#[tokio::test]
async fn transform_by_an_expression() {
    for (fields, expected) in [
        (json!({"expression": "inputs.n * 2"}), json!(6)),
        (json!({"expression": "inputs.rows | map(attribute='p') | list"}), json!([10.5, 4, 20])),
        (json!({"expression": "input[0].id", "input": "{{ inputs.rows }}"}), json!(1)),
        (json!({"expression": "input.k + 1", "input": {"k": "{{ inputs.n }}"}}), json!(4)),
        (json!({"expression": "input", "input": "plain"}), json!("plain")),
        (json!({"expression": "none"}), json!(null)),
        (
            json!({"expression": "inputs.rows | selectattr('p', 'gt', 5) | map(attribute='id') | list"}),
            json!([1, 3]),
        ),
        (json!({"expression": "{'a': inputs.yes}"}), json!({"a": true})),
        (json!({"expression": "input is none"}), json!(true)),
    ] {
        assert_eq!(result_of("transform", fields.clone()).await, expected, "{fields}");
    }
    assert!(fails("transform", json!({"expression": "inputs.x"})).await.contains("inputs.x"));
    assert!(fails("transform", json!({"expression": "inputs.text + 1"})).await.starts_with("expression"));
    for (fields, problem) in [
        (json!({}), "/expression required"),
        (json!({"input": 1}), "/expression required"),
        (json!({"expression": "1", "path": "$"}), "/expression exclusive"),
        (json!({"expression": "1 +"}), "/expression condition"),
        (json!({"expression": "item"}), "/expression unknown_name"),
        (json!({"expression": 1}), "/expression type"),
        (json!({"expression": "1".repeat(1_025)}), "/expression condition"),
        (json!({"expression": "1", "input": "{{ 1 + }}"}), "/input template"),
    ] {
        assert_eq!(refused(&node("transform", fields)), [problem]);
    }
}

#[tokio::test]
async fn transform_by_a_path() {
    let path =
        async |path: &str| result_of("transform", json!({"path": path, "input": "{{ inputs }}"})).await;
    for (text, expected) in [
        ("$.n", json!(3)),
        ("$['map']['b'].c[0]", json!(2)),
        ("$.list[-1]", json!({"c": null})),
        ("$.nothing.here", json!(null)),
        ("$", inputs()),
        ("$.rows[*].id", json!([1, 2, 3])),
        ("$.rows[0:2].id", json!([1, 2])),
        ("$..c", json!([null, [2]])),
        ("$.rows[?@.p > 5].id", json!([1, 3])),
        ("$.rows[0, 2].id", json!([1, 3])),
        ("$.rows[?search(@.p, 'x')].id", json!([])),
        ("$.none[*]", json!([])),
    ] {
        assert_eq!(path(text).await, expected, "{text}");
    }
    let odd = json!({"input": {"schema:name": "a", "b,c": "b", "*": "c", "x..y?": "d", "it's": "e"}});
    for (text, expected) in [
        ("$['schema:name']", "a"),
        ("$[\"b,c\"]", "b"),
        ("$['*']", "c"),
        ("$['x..y?']", "d"),
        ("$['it\\'s']", "e"),
    ] {
        let mut fields = odd.clone();
        fields["path"] = json!(text);
        assert_eq!(result_of("transform", fields).await, json!(expected), "{text}: one place");
    }
    for (fields, problem) in [
        (json!({"path": "$.a"}), "/input required"),
        (json!({"path": "a", "input": 1}), "/path path"),
        (json!({"path": "$[", "input": 1}), "/path path"),
        (json!({"path": 5, "input": 1}), "/path type"),
    ] {
        assert_eq!(refused(&node("transform", fields)), [problem]);
    }
}

#[tokio::test]
async fn filter_keeps_items_that_match() {
    for (items, when, expected) in [
        (json!("{{ inputs.rows }}"), "item.p > 5", json!([{"id": 1, "p": 10.5}, {"id": 3, "p": 20}])),
        (json!("{{ inputs.rows }}"), "index == 1", json!([{"id": 2, "p": 4}])),
        (json!([1, "{{ inputs.n }}", 5]), "item >= inputs.n", json!([3, 5])),
        (json!([]), "item.x.y", json!([])),
        (json!(["{{ 'keep' }}", ""]), "item", json!(["keep"])),
    ] {
        assert_eq!(result_of("filter", json!({"items": items, "when": when})).await, expected, "{when}");
    }
    assert_eq!(
        fails("filter", json!({"items": "{{ inputs.map }}", "when": "true"})).await,
        "items must be a list, not an object"
    );
    assert!(fails("filter", json!({"items": [1], "when": "item.a.b"})).await.starts_with("condition"));
    for (fields, problems) in [
        (json!({}), vec!["/items required", "/when required"]),
        (json!({"items": [], "when": "{{ item }}"}), vec!["/when condition"]),
        (json!({"items": "{{ item }}", "when": "item"}), vec!["/items unknown_name"]),
        (json!({"items": [], "when": true}), vec!["/when type"]),
        (json!({"items": 5, "when": "item"}), vec!["/items type"]),
        (json!({"items": "a, b", "when": "item"}), vec!["/items type"]),
        (json!({"items": [], "when": "item", "concurrency": 1}), vec!["/concurrency unknown_field"]),
    ] {
        assert_eq!(refused(&node("filter", fields)), problems);
    }
}

#[tokio::test]
async fn merge_combines_several_values() {
    for (inputs, expected) in [
        (json!([{"a": 1, "b": 1}, {"b": 2}, "{{ {'c': inputs.n} }}"]), json!({"a": 1, "b": 2, "c": 3})),
        (json!([[1], "{{ inputs.list }}", []]), json!([1, 1, "b", {"c": null}])),
        (json!([]), json!({})),
        (json!("{{ [inputs.map, {'z': 0}] }}"), json!({"a": 1, "b": {"c": [2]}, "z": 0})),
    ] {
        assert_eq!(result_of("merge", json!({"inputs": inputs})).await, expected);
    }
    for (inputs, kind) in
        [(json!([{}, []]), "an object"), (json!([[1], 2]), "a number"), (json!([null]), "null")]
    {
        let message = fails("merge", json!({"inputs": inputs})).await;
        assert!(message.contains("all objects or all lists") && message.contains(kind), "{message}");
    }
    assert!(fails("merge", json!({"inputs": "{{ inputs.n }}"})).await.contains("a list, not a number"));
    for (fields, problem) in [
        (json!({}), "/inputs required"),
        (json!({"inputs": {}}), "/inputs type"),
        (json!({"inputs": "plain"}), "/inputs type"),
        (json!({"inputs": [{"a": "{{ x }}"}]}), "/inputs/0/a unknown_name"),
        (json!({"inputs": [], "items": []}), "/items unknown_field"),
    ] {
        assert_eq!(refused(&node("merge", fields)), [problem]);
    }
}

#[tokio::test]
async fn json_reads_and_writes() {
    for (fields, expected) in [
        (json!({"parse": "{{ inputs.json }}"}), json!({"a": [1, 2.5]})),
        (json!({"parse": "[{{ inputs.n }}, null]"}), json!([3, null])),
        (json!({"parse": "{{ inputs.map }}"}), inputs()["map"].clone()),
        (json!({"stringify": {"a": "{{ inputs.list }}"}}), json!(r#"{"a":[1,"b",{"c":null}]}"#)),
        (json!({"stringify": "{{ inputs.text }}"}), json!("\"word\"")),
        (json!({"stringify": 1.5}), json!("1.5")),
    ] {
        assert_eq!(result_of("json", fields.clone()).await, expected, "{fields}");
    }
    for text in ["{{ inputs.text }}", "", "[1,]", "{{ '[' * 200 ~ ']' * 200 }}"] {
        assert!(fails("json", json!({"parse": text})).await.starts_with("the text is not JSON"), "{text}");
    }
    for (fields, problem) in [
        (json!({}), "/parse required"),
        (json!({"parse": "1", "stringify": 1}), "/parse exclusive"),
        (json!({"parse": 5}), "/parse type"),
        (json!({"stringify": ["{{"]}), "/stringify/0 template"),
        (json!({"parse": "1", "text": "1"}), "/text unknown_field"),
    ] {
        assert_eq!(refused(&node("json", fields)), [problem]);
    }
}

#[tokio::test]
async fn assert_fails_with_its_message() {
    assert_eq!(result_of("assert", json!({"when": "inputs.n == 3"})).await, json!({"ok": true}));
    assert_eq!(
        fails("assert", json!({"when": "inputs.n > 3"})).await,
        "the condition is false: inputs.n > 3"
    );
    let message = fails("assert", json!({"when": "inputs.n > 3", "message": "only {{ inputs.n }}"})).await;
    assert_eq!(message, "only 3");
    assert_eq!(fails("assert", json!({"when": "false", "message": "{{ inputs.n }}"})).await, "3");
    assert!(fails("assert", json!({"when": "inputs.x"})).await.starts_with("condition"));
    assert!(
        fails("assert", json!({"when": "false", "message": "{{ inputs.x }}"})).await.starts_with("template")
    );
    let unused = json!({"when": "true", "message": "{{ inputs.x }}"});
    assert_eq!(result_of("assert", unused).await, json!({"ok": true}), "an unused message is not rendered");
    for (fields, problem) in [
        (json!({}), "/when required"),
        (json!({"when": ""}), "/when condition"),
        (json!({"when": "true", "message": 1}), "/message type"),
        (json!({"when": "true", "text": ""}), "/text unknown_field"),
    ] {
        assert_eq!(refused(&node("assert", fields)), [problem]);
    }
}

#[tokio::test]
async fn log_writes_one_line() {
    assert_eq!(
        result_of("log", json!({"message": "{{ inputs.n }}"})).await,
        json!({"message": "3", "level": "info"})
    );
    for level in ["debug", "info", "warn", "error"] {
        let logged = result_of("log", json!({"message": "a\nb", "level": level})).await;
        assert_eq!(logged, json!({"message": "a\nb", "level": level}));
    }
    let long = result_of("log", json!({"message": "{{ 'é' * 5000 }}"})).await;
    assert_eq!(long["message"].as_str().unwrap().chars().count(), 4_096);
    for (fields, problem) in [
        (json!({}), "/message required"),
        (json!({"message": "", "level": "warning"}), "/level choice"),
        (json!({"message": {}}), "/message type"),
        (json!({"message": "", "text": ""}), "/text unknown_field"),
    ] {
        assert_eq!(refused(&node("log", fields)), [problem]);
    }
}
