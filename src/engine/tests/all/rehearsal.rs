//! Mocked results, delays that end at once, and the model call observer.

use std::sync::Arc;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{ModelCall, ModelObserver, Rehearsal};
use models::{EmbedRequest, Embeddings, ModelAnswer, ModelRequest, Pieces};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::ports::{alone, delay, graph, plan, template};
use crate::world::{World, settle};

/// Results by path and visit.
struct Results(Vec<(&'static str, u32, Value)>);

impl Rehearsal for Results {
    fn mock(&self, node: &str, visit: u32) -> Option<Value> {
        let found = self.0.iter().find(|(path, number, _)| *path == node && *number == visit);
        found.map(|(_, _, result)| result.clone())
    }

    fn may_send(&self) -> bool {
        false
    }
}

fn rehearsing(results: Vec<(&'static str, u32, Value)>) -> World {
    World { rehearsal: Some(Arc::new(Results(results))), ..World::new() }
}

#[tokio::test]
async fn a_result_replaces_an_execution() {
    let send =
        json!({"name": "send", "type": "http_request", "method": "POST", "url": "http://127.0.0.1:1/"});
    let mut graph = graph(
        json!([send, template("after", "{{ results.send.status }}")]),
        json!([["START", "send"], ["send", "after"]]),
    );
    graph["output"] = json!("{{ results.after.text }}");
    let world = rehearsing(vec![("send", 1, json!({"status": 201}))]);
    assert_eq!(world.run(&plan(&graph)).await.unwrap(), "201");
    assert_eq!(world.journal.lines(), ["1 send.1 succeeded", "2 after.1 succeeded"]);
}

#[tokio::test]
async fn sending_nodes_fail_without_a_mocked_result() {
    for (node, error) in [
        (
            json!({"type": "http_request", "method": "POST", "url": "http://127.0.0.1:1/"}),
            "would send something",
        ),
        (json!({"type": "webhook_send", "url": "http://127.0.0.1:1/", "json": {}}), "would send something"),
        (
            json!({"type": "index_upsert", "index": "i", "document": "d", "chunks": []}),
            "would send something",
        ),
        // It only reads: the network guard refuses the address, so the node was executed.
        (json!({"type": "http_request", "url": "http://127.0.0.1:1/"}), "127.0.0.1"),
    ] {
        let each = json!({"name": "each", "type": "for_each", "items": [1], "body": node});
        let failed = rehearsing(Vec::new()).run_outside(&plan(&alone(&each))).await.unwrap_err();
        assert!(failed.message.contains(error), "{node}: {failed}");
    }
}

#[tokio::test]
async fn mocked_results_apply_to_loop_entries_not_to_the_loop() {
    let each = json!({"name": "each", "type": "for_each", "items": ["a", "b"],
                      "body": {"type": "template", "template": "{{ item }}"}});
    let world = rehearsing(vec![("each", 1, json!("never")), ("each[1]", 1, json!({"text": "given"}))]);
    let done = world.run(&plan(&alone(&each))).await.unwrap();
    assert_eq!(done["items"], json!([{"text": "a"}, {"text": "given"}]));
}

#[tokio::test]
async fn text_of_a_mocked_result_is_streamed() {
    let say = json!({"name": "say", "type": "llm", "model": "test/m", "user": "hi", "stream": true});
    let world = rehearsing(vec![("say", 1, json!({"text": "Given."}))]).in_a_chat();
    world.run(&plan(&alone(&say))).await.unwrap();
    assert_eq!(world.sink.text(), "Given.");
    assert!(world.model.requests.lock().is_empty());
}

#[tokio::test]
async fn a_delay_ends_at_once() {
    let world = rehearsing(Vec::new());
    let started = world.begin(&plan(&alone(&delay("wait", 3_600))));
    settle().await;
    // The clock does not move.
    assert!(started.has_ended());
    assert_eq!(started.end().await.unwrap(), json!({"seconds": 3_600.0}));
}

/// Answers calls itself and records them.
#[derive(Default)]
struct Answering(Mutex<Vec<String>>);

#[async_trait]
impl ModelObserver for Answering {
    async fn call(
        &self,
        call: ModelCall<'_>,
        request: &ModelRequest,
        pieces: &dyn Pieces,
    ) -> Result<ModelAnswer, NodeError> {
        let calls = {
            let mut calls = self.0.lock();
            let messages = request.messages.len();
            calls.push(format!("{}.{} {} {} {messages}", call.node, call.visit, call.ordinal, call.model));
            calls.len()
        };
        let text = match calls {
            4 => "{\"n\": 1}",
            _ => "no JSON",
        };
        pieces.piece(text).await;
        Ok(ModelAnswer { text: text.to_owned(), ..ModelAnswer::default() })
    }

    async fn embed(&self, call: ModelCall<'_>, request: &EmbedRequest) -> Result<Embeddings, NodeError> {
        self.0.lock().push(format!("{} {} {}", call.node, call.ordinal, request.texts.len()));
        let vectors = vec![vec![0.0]; request.texts.len()];
        Ok(Embeddings { vectors, ..Embeddings::default() })
    }
}

#[tokio::test]
async fn calls_of_a_visit_are_numbered_over_its_attempts() {
    let ask = json!({"name": "ask", "type": "llm", "model": "test/m", "user": "hi", "retry": {"max_attempts": 2},
                     "response_schema": {"type": "object", "required": ["n"]}});
    let observer = Arc::new(Answering::default());
    let world = World { observer: Arc::<Answering>::clone(&observer), ..World::new() };
    let done = world.run(&plan(&alone(&ask))).await.unwrap();
    assert_eq!(done["json"], json!({"n": 1}));
    // The first attempt calls twice, because its answer is invalid, and fails; so does the second.
    let expected = ["ask.1 0 test/m 1", "ask.1 1 test/m 3", "ask.1 2 test/m 1", "ask.1 3 test/m 3"];
    assert_eq!(*observer.0.lock(), expected);
    assert!(world.model.requests.lock().is_empty(), "the observer has answered");
}

#[tokio::test]
async fn embedding_batches_go_through_the_observer_too() {
    let texts: Vec<String> = (0..150).map(|n| n.to_string()).collect();
    let embed = json!({"name": "embed", "type": "embed", "model": "test/m", "input": texts});
    let observer = Arc::new(Answering::default());
    let world = World { observer: Arc::<Answering>::clone(&observer), ..World::new() };
    let done = world.run(&plan(&alone(&embed))).await.unwrap();
    assert_eq!(done["vectors"].as_array().unwrap().len(), 150);
    assert_eq!(*observer.0.lock(), ["embed 0 100", "embed 1 50"]);
}
