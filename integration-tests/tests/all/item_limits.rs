//! Items that are too large for a thread: the node fails, and the thread keeps the earlier items.

use integration_tests::{AnswerExt, TestService, chat, events, graphs};
use serde_json::{Value, json};

/// A node that sends an item larger than 1 MiB, with additional members.
fn large(members: &Value) -> Value {
    let mut node = json!({"name": "large", "type": "reply", "key": "k", "text": "{{ 'x' * 1100000 }}"});
    node.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    node
}

#[tokio::test]
async fn an_item_over_one_mebibyte_fails_its_node_and_is_not_stored() {
    let t = TestService::start().await;
    let before = json!({"name": "before", "type": "reply", "text": "Before."});
    let graph = graphs::chain(&[before.clone(), large(&json!({}))], None);
    let workflow = t.workflow().graph(graph).published().create().await;
    let turn = t.chat(&chat::create(&workflow, "hi")).await;
    let stream_events = events(&turn.text());
    let last = stream_events.last().unwrap();
    assert_eq!((&last["type"], &last["error_code"]), (&json!("error"), &json!("node.result_too_large")));
    assert_eq!(last["allow_retry"], false, "a retry would send the same large item");
    let error: Value = serde_json::from_str(&t.scalar("SELECT error FROM runs").await).unwrap();
    assert_eq!((&error["code"], &error["node"]), (&json!("node.result_too_large"), &json!("large")));
    let params = json!({"thread_id": stream_events[0]["thread"]["id"], "order": "asc"});
    let items = t.chat(&chat::ask(&workflow, "items.list", params)).await.value();
    let texts: Vec<&Value> =
        items["data"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(texts, [&json!("hi"), &json!("Before.")]);
    assert_eq!(t.scalar("SELECT max(length(content)) < 10000 FROM thread_items").await, "true");
    // The graph may continue without the item.
    let reply = json!({"name": "said", "type": "reply", "text": "{{ results.large.error.code if results.large.error is defined else 'sent' }}"});
    let graph = graphs::chain(&[before, large(&json!({"on_error": "continue"})), reply], None);
    let workflow = t.workflow().graph(graph).published().create().await;
    let stream_events = events(&t.chat(&chat::create(&workflow, "hi")).await.text());
    let text = &stream_events.last().unwrap()["item"]["content"][0]["text"];
    assert!(text.as_str().is_some_and(|text| text.ends_with("node.result_too_large")), "{stream_events:#?}");
}
