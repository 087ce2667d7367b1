//! A NUL in a visitor's text: PostgreSQL cannot store it, and nothing fails because of that.

use integration_tests::{AnswerExt, TestService, chat, events, graphs, within};
use serde_json::{Value, json};

const MESSAGE: &str = "7\0";

/// The events of a turn with this node.
async fn run_turn(t: &TestService, node: Value) -> Vec<Value> {
    let say = json!({"name": "say", "type": "reply", "text": "Done."});
    let workflow = t.workflow().graph(graphs::chain(&[node, say], None)).published().create().await;
    let answer = within("the turn ends", t.chat(&chat::create(&workflow, MESSAGE))).await.expect(200);
    events(&answer.text())
}

async fn failure(t: &TestService) -> String {
    t.scalar("SELECT coalesce(error, '') FROM runs ORDER BY id DESC LIMIT 1").await
}

#[tokio::test]
async fn a_key_with_a_control_character_fails_its_node() {
    let t = TestService::start().await;
    for node in [
        json!({"name": "n", "type": "widget", "key": "order {{ inputs.message }}", "widget": {"type": "Card", "children": []}}),
        json!({"name": "n", "type": "show", "kind": "task", "key": "{{ inputs.message }}", "task": {"type": "custom", "title": "t"}}),
        json!({"name": "n", "type": "reply", "key": "{{ inputs.message }}", "text": "hi"}),
    ] {
        let stream_events = run_turn(&t, node.clone()).await;
        assert_eq!(stream_events.last().unwrap()["type"], "error", "{node}");
        let error: Value = serde_json::from_str(&failure(&t).await).unwrap();
        assert_eq!(error["code"], "node.failed", "{node}");
        assert!(error["message"].as_str().unwrap().contains("/key: "), "{error}");
    }
}

#[tokio::test]
async fn nul_is_removed_from_titles_reasons_and_questions() {
    let t = TestService::start().await;
    let thread = json!({"name": "n", "type": "thread", "title": "Order {{ inputs.message }}", "status": "locked", "reason": "Wait, {{ inputs.message }}!"});
    let stream_events = run_turn(&t, thread).await;
    let changed = stream_events.iter().rfind(|event| event["type"] == "thread.updated").unwrap();
    assert_eq!(changed["thread"]["title"], "Order 7");
    assert_eq!(changed["thread"]["status"], json!({"type": "locked", "reason": "Wait, 7 !"}));
    assert_eq!(stream_events.last().unwrap()["item"]["content"][0]["text"], "Done.");
    let ask = json!({"name": "n", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "Which, {{ inputs.message }}?"}]});
    let stream_events = run_turn(&t, ask).await;
    assert_eq!(stream_events.last().unwrap()["item"]["status"], "pending", "{stream_events:#?}");
}

#[tokio::test]
async fn failed_turns_with_nul_can_be_erased() {
    let t = TestService::start().await;
    let fail =
        json!({"name": "n", "type": "assert", "when": "false", "message": "No order {{ inputs.message }}"});
    let workflow = t.workflow().graph(graphs::chain(&[fail], None)).published().create().await;
    let answer = t.chat(&chat::create(&workflow, MESSAGE)).await;
    assert_eq!(events(&answer.text()).pop().unwrap()["type"], "error");
    assert!(failure(&t).await.contains(r"No order 7\u0000"), "{}", failure(&t).await);
    let threads = workflow.path("/chat/threads");
    let visitor = t.get(&threads).await.value()["data"][0]["visitor"].as_str().unwrap().to_owned();
    let path = format!("/api/workflows/{}/chat/visitors/{visitor}", workflow.id);
    let erased = t.send("DELETE", &path, &[], "").await;
    assert_eq!((erased.status, erased.value()), (200, json!({"threads": 1})));
    t.assert_no_rows("thread_items").await;
    t.get(&format!("{threads}?visitor=visitor:%00")).await.expect(422);
}
