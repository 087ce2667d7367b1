//! Item limits per turn: 1 MiB of JSON each, 1,000 in total.

use engine::RunError;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, plan};
use crate::world::World;

/// Runs the node in a chat; returns the readers' text, or the error.
async fn sent(node: &Value, inputs: Value) -> Result<String, RunError> {
    let world = World::new().in_a_chat().inputs(inputs);
    let ran = world.run(&plan(&alone(node))).await;
    let text = world.sink.text();
    ran.map(|_| text).inspect_err(|error| {
        assert_eq!(error.code, ErrorCode::NodeResultTooLarge, "{error}");
        assert!(!error.retryable && error.message.len() < 300, "{error}");
    })
}

/// A quotation mark takes two bytes in JSON.
const TEXTS: [(&str, usize, bool); 4] =
    [("x", 1_000_000, true), ("x", 1_100_000, false), ("\"", 500_000, true), ("\"", 600_000, false)];

#[tokio::test]
async fn an_item_over_one_mebibyte_of_json_fails_its_node() {
    let node = json!({"name": "n", "type": "reply", "key": "k", "text": "{{ inputs.letter * inputs.n }}"});
    for (letter, n, fits) in TEXTS {
        let inputs = json!({"letter": letter, "n": n});
        let ran = sent(&node, inputs.clone()).await;
        match fits {
            true => assert!(ran.unwrap().len() > n, "{letter} {n}"),
            false => assert_eq!(ran.unwrap_err().node.as_deref(), Some("n"), "{letter} {n}"),
        }
        // Outside a chat it is only a result.
        let alone = World::new().inputs(inputs).run(&plan(&alone(&node))).await;
        assert_eq!(alone.unwrap()["text"].as_str().unwrap().len(), n);
    }
}

#[tokio::test]
async fn a_too_large_item_is_not_sent_in_part() {
    let node = json!({"name": "n", "type": "reply", "key": "k", "text": "{{ 'x' * 1100000 }}", "on_error": "continue"});
    let world = World::new().in_a_chat();
    let output = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(output["error"]["code"], "node.result_too_large");
    assert_eq!(world.sink.text(), "");
}

#[tokio::test]
async fn text_has_the_size_limit_of_a_result() {
    let node = json!({"name": "n", "type": "reply", "text": "{{ inputs.letter * inputs.n }}"});
    for (n, fits) in [(7 << 20, true), (9 << 20, false)] {
        assert_eq!(sent(&node, json!({"letter": "x", "n": n})).await.is_ok(), fits, "{n}");
    }
}

#[tokio::test]
async fn messages_without_a_key_count_as_items() {
    let body = json!({"type": "reply", "text": "{{ item }}", "new_message": true});
    let node =
        json!({"name": "n", "type": "for_each", "items": "{{ range(inputs.n) | list }}", "body": body});
    for (n, fits) in [(1_000, true), (1_001, false)] {
        assert_eq!(sent(&node, json!({"n": n})).await.is_ok(), fits, "{n}");
    }
}
