//! `reply`: the text in the turn's message.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::ports::{graph, plan};
use crate::world::{World, settle};

async fn sent_pieces(reply: Value, inputs: Value) -> (Vec<String>, Value) {
    let mut node = json!({"name": "r", "type": "reply"});
    node.as_object_mut().unwrap().extend(reply.as_object().unwrap().clone());
    let world = World::new().inputs(inputs);
    let output =
        world.run(&plan(&graph(json!([node]), json!([["START", "r"], ["r", "END"]])))).await.unwrap();
    let pieces = world.sink.pieces.lock().iter().map(|(_, piece)| piece.clone()).collect::<Vec<_>>();
    (pieces, output["r"]["text"].clone())
}

#[tokio::test]
async fn a_reply_is_sent_whole_or_in_words() {
    let text = "Grüße,  schöne\nWelt 👋 \u{a0}!";
    let (pieces, result) = sent_pieces(json!({"text": text}), json!({})).await;
    assert_eq!((pieces, result), (vec![text.to_owned()], json!(text)));
    let (pieces, result) = sent_pieces(json!({"text": text, "pieces": "words"}), json!({})).await;
    assert_eq!(pieces, ["Grüße, ", " ", "schöne\n", "Welt ", "👋 ", "\u{a0}", "!"]);
    assert_eq!(result, json!(text));
    for pieces in ["words", "whole"] {
        let (pieces, result) = sent_pieces(json!({"text": "", "pieces": pieces}), json!({})).await;
        assert_eq!((pieces, result), (vec![], json!("")), "empty pieces are not sent");
    }
}

#[tokio::test]
async fn other_values_than_text_are_sent_as_json() {
    for (value, expected) in [
        (json!({"a": [1, null]}), r#"{"a":[1,null]}"#),
        (json!(3), "3"),
        (json!(true), "true"),
        (json!(null), "null"),
        (json!("text"), "text"),
    ] {
        let (pieces, result) = sent_pieces(json!({"text": "{{ inputs.v }}"}), json!({"v": value})).await;
        assert_eq!((pieces.concat(), result), (expected.to_owned(), json!(expected)));
    }
}

#[tokio::test]
async fn a_pause_separates_two_pieces() {
    let node = json!({"name": "r", "type": "reply", "text": "a b c", "pieces": "words", "pause_ms": 250});
    let world = World::new();
    let run = world.begin(&plan(&graph(json!([node]), json!([["START", "r"]]))));
    for (so_far, ended) in [("a ", false), ("a b ", false), ("a b c", true)] {
        settle().await;
        assert_eq!((world.sink.text().as_str(), run.has_ended()), (so_far, ended));
        world.clock.advance(Duration::from_millis(250));
    }
}

#[tokio::test]
async fn text_of_a_reply_that_timed_out_is_undone() {
    let node = json!({"name": "r", "type": "reply", "text": "a b c", "pieces": "words", "pause_ms": 250,
                      "timeout_seconds": 0.4});
    let next = json!({"name": "s", "type": "reply", "text": "!"});
    let world = World::new();
    let edges = json!([["START", "r"], ["START", "s"]]);
    let error = world.run(&plan(&graph(json!([node, next]), edges))).await.unwrap_err();
    assert_eq!(error.node.as_deref(), Some("r"));
    assert_eq!(world.sink.text(), "!");
}

proptest! {
    #[test]
    fn pieces_add_up_to_the_text(text in "\\PC{0,40}", words: bool) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let pieces = if words { "words" } else { "whole" };
        let reply = json!({"text": "{{ inputs.v }}", "pieces": pieces});
        let (sent, result) = runtime.block_on(sent_pieces(reply, json!({"v": text})));
        prop_assert_eq!(sent.concat(), text.clone());
        prop_assert!(sent.iter().all(|piece| !piece.is_empty()));
        prop_assert_eq!(result, json!(text));
    }
}
