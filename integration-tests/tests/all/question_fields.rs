//! Invalid fields of `ask` and `client_tool`: rejected when the graph is saved, or an error in the turn that fills
//! them.

use integration_tests::{AnswerExt, TestService, chat, events, graphs};
use serde_json::{Value, json};

fn ask(options: &Value) -> Value {
    json!({"name": "confirm", "type": "ask", "inputs": [
        {"id": "ok", "type": "multiple_choice", "question": "Send it back?", "options": options}]})
}

fn call(tool: &str) -> Value {
    json!({"name": "where", "type": "client_tool", "tool": tool})
}

#[tokio::test]
async fn invalid_literal_values_are_rejected_when_the_graph_is_saved() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let path = workflow.path("/versions");
    for (node, problem) in [
        (ask(&json!([])), "/nodes/0/inputs/0/options schema"),
        (ask(&json!([{"value": "yes", "label": "Yes"}])), "/nodes/0/inputs/0/options/0 schema"),
        (call(&"t".repeat(65)), "/nodes/0/tool length"),
    ] {
        let saved = t.post(&path, &json!({"graph": graphs::chain(&[node], None)}).to_string()).await;
        assert_eq!((saved.refusal(), saved.problems()), ("422 graph.invalid".into(), vec![problem.into()]));
    }
    t.assert_no_rows("workflow_versions").await;
}

#[tokio::test]
async fn invalid_template_values_fail_the_turn_without_an_item() {
    let t = TestService::start().await;
    for (node, pointer) in [
        (ask(&json!("{{ inputs.attachments }}")), "/inputs/0/options: "),
        (ask(&json!([{"value": "{{ inputs.quoted_text }}"}])), "/inputs/0/options/0/value: "),
        (call("{{ inputs.message * 33 }}"), "/tool: "),
    ] {
        let name = node["name"].clone();
        let workflow = t.workflow().graph(graphs::chain(&[node], None)).published().create().await;
        let received = events(&t.chat(&chat::create(&workflow, "hi")).await.text());
        let last = received.last().unwrap();
        assert_eq!((&last["type"], &last["error_code"]), (&json!("error"), &json!("node.failed")));
        let error = t.scalar("SELECT error FROM runs ORDER BY id DESC LIMIT 1").await;
        let error: Value = serde_json::from_str(&error).unwrap();
        assert_eq!((&error["code"], &error["node"]), (&json!("node.failed"), &name));
        assert!(error["message"].as_str().unwrap().contains(pointer), "{error}");
    }
    t.assert_no_rows("run_questions").await;
    t.assert_no_rows("question_items").await;
}
