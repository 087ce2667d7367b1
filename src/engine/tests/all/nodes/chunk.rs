//! `chunk`.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::world::{refused, result};

fn node(fields: Value) -> Value {
    let mut node = json!({"name": "n", "type": "chunk", "text": "{{ inputs.text }}", "size": 12});
    node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn every_chunk_has_its_position_in_the_text() {
    let inputs = json!({"text": "Größe one. Two 👍 here.", "source": "a.txt"});
    let metadata = json!({"source": "{{ inputs.source }}"});
    assert_eq!(
        result(node(json!({"metadata": metadata})), inputs.clone()).await.unwrap(),
        json!({"count": 2, "chunks": [
            {"text": "Größe one.", "index": 0, "start": 0, "end": 10, "metadata": {"source": "a.txt"}},
            {"text": "Two 👍 here.", "index": 1, "start": 11, "end": 22, "metadata": {"source": "a.txt"}}]})
    );
    let words = result(node(json!({"by": "words", "size": 2, "overlap": 1})), inputs).await.unwrap();
    assert_eq!(words["count"], 3);
    assert_eq!(words["chunks"][1], json!({"text": "one. Two 👍", "index": 1, "start": 6, "end": 16}));
    let none = result(node(json!({})), json!({"text": " \n"})).await.unwrap();
    assert_eq!(none, json!({"count": 0, "chunks": []}));
}

#[tokio::test]
async fn unsplittable_input_is_an_error() {
    for (inputs, fields, says) in [
        (json!({"text": 5}), json!({}), "the text must be a string, not a number"),
        (json!({"text": "a ".repeat(50_000)}), json!({"size": 2}), "more than 10000 chunks; raise 'size'"),
    ] {
        let error = result(node(fields), inputs).await.unwrap_err();
        assert_eq!((error.code, error.retryable), (ErrorCode::NodeFailed, false));
        assert!(error.message.contains(says), "{error}");
    }
    assert_eq!(refused(&node(json!({"size": 0}))), ["/size range"]);
    assert_eq!(refused(&node(json!({"size": null}))), ["/size required"]);
    assert_eq!(refused(&node(json!({"overlap": 7}))), ["/overlap range"]);
    assert_eq!(refused(&node(json!({"by": "word"}))), ["/by choice"]);
    assert_eq!(refused(&node(json!({"metadata": []}))), ["/metadata type"]);
}
