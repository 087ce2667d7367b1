//! Small graphs.

use std::time::Duration;

use serde_json::{Value, json};

/// Nodes in sequence, and the graph's output.
#[must_use]
pub fn chain(nodes: &[Value], output: Option<Value>) -> Value {
    let mut edges = Vec::new();
    let mut from = "START".to_owned();
    for node in nodes {
        let name = node["name"].as_str().expect("a node has a name").to_owned();
        edges.push(json!({"from": from, "to": name}));
        from = name;
    }
    edges.push(json!({"from": from, "to": "END"}));
    let mut graph = json!({"format": "graph/1", "nodes": nodes, "edges": edges});
    if let Some(output) = output {
        graph["output"] = output;
    }
    graph
}

/// Says a text in one piece.
#[must_use]
pub fn reply(text: &str) -> Value {
    chain(&[json!({"name": "say", "type": "reply", "text": text})], None)
}

/// Says a text word by word.
#[must_use]
pub fn words(text: &str, pause_ms: u64) -> Value {
    let say = json!({"name": "say", "type": "reply", "text": text, "pieces": "words", "pause_ms": pause_ms});
    chain(&[say], None)
}

/// A node that keeps its run busy for this time: a longer `delay` would park it.
#[must_use]
pub fn busy(name: &str, seconds: f64) -> Value {
    if seconds <= 10.0 {
        return json!({"name": name, "type": "delay", "seconds": seconds});
    }
    // A practice model waits at most 10 s before a word.
    let millis = Duration::from_secs_f64(seconds).as_millis();
    let words = millis.div_ceil(10_000);
    let model = format!("practice/rewrite@{}ms", millis / words);
    let text = (0..words).map(|_| "go").collect::<Vec<_>>().join(" ");
    json!({"name": name, "type": "llm", "model": model, "user": text, "timeout_seconds": 86_400})
}

/// Says a text, parks for `seconds`, says another.
#[must_use]
pub fn parked(first: &str, seconds: f64, second: &str) -> Value {
    around(first, json!({"name": "wait", "type": "delay", "seconds": seconds}), second)
}

/// Says a text, is busy for `seconds`, says another.
#[must_use]
pub fn interrupted(first: &str, seconds: f64, second: &str) -> Value {
    around(first, busy("wait", seconds), second)
}

/// A text before and after a node.
fn around(first: &str, node: Value, second: &str) -> Value {
    let say = |name: &str, text: &str| json!({"name": name, "type": "reply", "text": text});
    chain(&[say("first", first), node, say("second", second)], None)
}

/// Waits, then says a text.
#[must_use]
pub fn delayed(seconds: f64, text: &str) -> Value {
    chain(&[busy("wait", seconds), json!({"name": "say", "type": "reply", "text": text})], None)
}
