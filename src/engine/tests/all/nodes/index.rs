//! `index_upsert`, `index_search`.

use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, plan};
use crate::world::{World, refused};

fn node(kind: &str, fields: Value) -> Value {
    let mut node = json!({"name": "n", "type": kind, "index": "there"});
    node.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    node
}

fn upsert(fields: Value) -> Value {
    let mut all = json!({"document": "a.md", "chunks": "{{ inputs.chunks }}"});
    all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    node("index_upsert", all)
}

fn world() -> World {
    World::new().inputs(json!({"chunks": [
        {"text": "Red apples", "metadata": {"kind": "fruit"}, "vector": [2, 0], "index": 0},
        {"text": "Red, red cars", "metadata": {"kind": "thing"}, "vector": [0, 3]}, "Green"]}))
}

#[tokio::test]
async fn indexed_chunks_are_found_by_words_and_vectors() {
    let world = world();
    let put = world.run(&plan(&alone(&upsert(json!({}))))).await.unwrap();
    assert_eq!(put, json!({"index": "there", "document": "a.md", "chunks": 3, "replaced": 0}));
    let again = world.run(&plan(&alone(&upsert(json!({}))))).await.unwrap();
    assert_eq!(again["replaced"], 3);
    let search = async |fields: Value| {
        let found = world.run(&plan(&alone(&node("index_search", fields)))).await.unwrap();
        found["hits"].as_array().unwrap().clone()
    };
    let hits = search(json!({"query": "RED?"})).await;
    assert_eq!(
        hits[0],
        json!({"document": "a.md", "chunk": 1, "text": "Red, red cars", "score": 1.0 / 61.0, "rank_text": 1,
               "metadata": {"kind": "thing"}})
    );
    assert_eq!(hits.len(), 2);
    let both = search(json!({"query": "red", "vector": [5, 0], "limit": 1})).await;
    assert_eq!(
        (&both[0]["chunk"], &both[0]["rank_text"], &both[0]["rank_vector"]),
        (&json!(0), &json!(2), &json!(1))
    );
    let words = search(json!({"query": "red", "mode": "text", "vector": [5, 0]})).await;
    assert_eq!((&words[0]["score"], &words[1]["score"]), (&json!(2.0), &json!(1.0)));
    let near = search(json!({"vector": [0, 1], "mode": "vector"})).await;
    assert_eq!((near.len(), &near[0]["chunk"], &near[0]["score"]), (1, &json!(1), &json!(1.0)));
    let filtered = search(json!({"query": "red", "filter": {"kind": "fruit"}})).await;
    assert_eq!(filtered.len(), 1);
    assert_eq!(search(json!({"query": "!"})).await.len(), 0);
}

#[tokio::test]
async fn invalid_chunks_are_an_error() {
    for (fields, code, says) in [
        (json!({"index": "full"}), ErrorCode::IndexFull, "full"),
        (json!({"index": ""}), ErrorCode::NodeFailed, "'index' must have 1 to 200 characters"),
        (json!({"index": ".."}), ErrorCode::NodeFailed, "and not be '.' or '..'"),
        (json!({"document": "a\u{0}"}), ErrorCode::NodeFailed, "'document' must have"),
        (json!({"chunks": [5]}), ErrorCode::NodeFailed, "chunk 0: must be a string or"),
        (json!({"chunks": ["a", {"texts": "b"}]}), ErrorCode::NodeFailed, "chunk 1: has no 'text'"),
        (
            json!({"chunks": [{"text": "a", "metadata": []}]}),
            ErrorCode::NodeFailed,
            "'metadata' must be an object",
        ),
        (json!({"chunks": [{"text": "a", "metadata": {"b": "\u{0}"}}]}), ErrorCode::NodeFailed, "U+0000"),
        (
            json!({"chunks": [{"text": "a", "metadata": {"b": "x".repeat(9_000)}}]}),
            ErrorCode::NodeFailed,
            "8192 bytes",
        ),
        (json!({"chunks": [{"text": "a", "vector": [0]}]}), ErrorCode::NodeFailed, "all zeros"),
        (json!({"chunks": [{"text": "a", "vector": ["1"]}]}), ErrorCode::NodeFailed, "a list of numbers"),
        (json!({"vectors": [[1]]}), ErrorCode::NodeFailed, "1 vectors for 3 chunks"),
        (
            json!({"vectors": [[1], [1], [1, 2]]}),
            ErrorCode::IndexDimensions,
            "chunk 2: its vector has 2 numbers",
        ),
    ] {
        let error = world().run(&plan(&alone(&upsert(fields.clone())))).await.unwrap_err();
        assert_eq!((error.code, error.retryable), (code, false), "{fields}: {error}");
        assert!(error.message.contains(says), "{error}");
    }
    for (fields, code, says) in [
        (json!({"query": "a", "index": "zebra"}), ErrorCode::IndexNotFound, "no 'zebra'"),
        (
            json!({"query": "a", "filter": {"b": "{{ [1] }}"}}),
            ErrorCode::NodeFailed,
            "the filter's 'b' must be",
        ),
        (json!({"query": "a", "vector": "{{ 5 }}"}), ErrorCode::NodeFailed, "a list of numbers"),
        (json!({"mode": "vector", "vector": "{{ none }}"}), ErrorCode::NodeFailed, "the vector is missing"),
    ] {
        let error = world().run(&plan(&alone(&node("index_search", fields.clone())))).await.unwrap_err();
        assert_eq!(error.code, code, "{fields}: {error}");
        assert!(error.message.contains(says), "{error}");
    }
}

#[test]
fn fields_are_checked() {
    assert_eq!(refused(&node("index_search", json!({}))), ["/query required"]);
    assert_eq!(refused(&node("index_search", json!({"mode": "vector"}))), ["/vector required"]);
    assert_eq!(refused(&node("index_search", json!({"query": "a", "limit": 51}))), ["/limit range"]);
    assert_eq!(refused(&node("index_search", json!({"query": "a", "mode": "both"}))), ["/mode choice"]);
    assert_eq!(refused(&node("index_search", json!({"query": "a", "filter": []}))), ["/filter type"]);
    assert_eq!(refused(&node("index_search", json!({"query": "a", "vector": "none"}))), ["/vector type"]);
    assert_eq!(refused(&upsert(json!({"chunks": "none"}))), ["/chunks type"]);
    assert_eq!(refused(&upsert(json!({"vectors": 5}))), ["/vectors type"]);
}
