//! The workflows for the clients: small graphs with a known reply to each message.

use client::Client;
use integration_tests::WorkflowBuilder;
use integration_tests::graphs::chain;
use serde_json::{Value, json};

/// Graphs with their replies; `{message}` is replaced by the message.
fn graphs() -> Vec<(&'static str, Vec<Value>, &'static str)> {
    let words = |name: &str, text: &str, pause_ms: u64| json!({"name": name, "type": "reply", "text": text, "pieces": "words", "pause_ms": pause_ms});
    let quoted = json!({"name": "quoted", "type": "template", "template": "«{{ inputs.message }}»"});
    let wait = json!({"name": "wait", "type": "delay", "seconds": 0.3});
    vec![
        ("reply", vec![words("say", "You said: {{ inputs.message }}", 20)], "You said: {message}"),
        (
            "template and reply",
            vec![quoted, words("say", "{{ results.quoted.text }}, indeed.", 10)],
            "«{message}», indeed.",
        ),
        (
            "delay and reply",
            vec![wait, words("say", "At last: {{ inputs.message }}", 5)],
            "At last: {message}",
        ),
        (
            "two replies",
            vec![
                words("one", "First {{ inputs.message }} ", 5),
                words("two", "and {{ inputs.message }}.", 10),
            ],
            "First {message} and {message}.",
        ),
    ]
}

/// Creates and publishes them; returns their description for the oracle.
pub(super) async fn create(base: &str) -> Value {
    let client = Client::builder(base).keep_cookies(false).build().unwrap();
    let mut created = Vec::new();
    for (name, nodes, expect) in graphs() {
        let id = publish(&client, name, &nodes).await;
        created.push(json!({"id": id, "expect": expect}));
    }
    Value::Array(created)
}

/// Creates and publishes a workflow with these nodes in sequence; returns its id.
pub(super) async fn publish(client: &Client, name: &str, nodes: &[Value]) -> String {
    let workflow = WorkflowBuilder::new(client.clone()).named(name).graph(chain(nodes, None));
    workflow.published().create().await.id
}
