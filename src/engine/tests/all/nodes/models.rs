//! `classify`, `extract`, `judge`, `embed`: with the practice model, and with invalid answers.

use std::sync::Arc;

use async_trait::async_trait;
use kernel::SystemClock;
use models::{
    EmbedRequest, Embeddings, Model, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, Models, Pieces,
    Usage,
};
use parking_lot::Mutex;
use practice::Practice;
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::ports::{alone, plan};
use crate::world::{World, refused};

fn practice() -> World {
    let mut world = World::new();
    world.models = Models::default().with("practice", Arc::new(Practice::new(Arc::new(SystemClock::new()))));
    world
}

fn with(mut node: Value, more: &Value) -> Value {
    node.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    node
}

fn classify(more: Value) -> Value {
    let node = json!({"name": "kind", "type": "classify", "model": "practice/classify", "input": "{{ inputs.text }}",
                      "labels": ["refund", {"name": "delivery", "description": "where a parcel is"}, "other"]});
    with(node, &more)
}

#[tokio::test]
async fn one_or_several_labels_are_chosen() {
    let instructions =
        "If the message mentions \"parcel\", answer \"delivery\". Otherwise, answer \"other\".";
    for (text, label) in
        [("I want a refund!", "refund"), ("Where is my parcel?", "delivery"), ("Nice shop.", "other")]
    {
        let node = classify(json!({"instructions": if label == "refund" { "" } else { instructions }}));
        let world = practice().inputs(json!({"text": text}));
        let done = world.run(&plan(&alone(&node))).await.unwrap();
        assert_eq!(done["label"], label, "{text}");
        assert_eq!((&done["model"], &done["usage"]["cost_usd"]), (&json!("practice/classify"), &json!(0.0)));
        assert_eq!(done["usage"]["calls"], 1);
    }
    let world = practice().inputs(json!({"text": "The delivery failed, I want a refund"}));
    let done = world.run(&plan(&alone(&classify(json!({"multiple": true}))))).await.unwrap();
    assert_eq!(done["labels"], json!(["refund", "delivery"]));
    assert!(done.get("label").is_none());
}

#[tokio::test]
async fn an_unknown_label_is_requested_again() {
    let world = World::new()
        .inputs(json!({"text": "x"}))
        .answers(&["{\"label\": \"money\", \"reason\": \"\"}"], Ok(()))
        .answers(&["{\"label\": \"refund\", \"reason\": \"says so\"}"], Ok(()));
    let done = world.run(&plan(&alone(&classify(json!({"model": "test/x"}))))).await.unwrap();
    let unknown = json!({"calls": 2, "input_tokens": null, "output_tokens": null, "cost_usd": null});
    assert_eq!(done, json!({"label": "refund", "reason": "says so", "usage": unknown, "model": null}));
    let requests = world.model.requests.lock();
    assert_eq!(requests[0].response_schema.as_ref().unwrap()["properties"]["label"]["enum"][1], "delivery");
    let system = &requests[0].messages[0].content;
    assert!(
        system.contains("Labels: refund, delivery, other.")
            && system.contains("- delivery: where a parcel is")
    );
}

#[tokio::test]
async fn extracted_data_matches_its_schema() {
    let schema = json!({"type": "object", "required": ["email"],
                        "properties": {"email": {"type": "string"}, "order": {"type": ["string", "null"]}}});
    let node = json!({"name": "data", "type": "extract", "model": "practice/extract", "input": "{{ inputs.text }}",
                      "schema": schema, "instructions": "order: the word after \"order\"."});
    let world = practice().inputs(json!({"text": "Please cancel order A17. Write to ann@example.com"}));
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(done["data"]["email"], "ann@example.com");
    assert_eq!(done["data"]["order"].as_str().map(str::to_lowercase).as_deref(), Some("a17"));

    let node = with(node, &json!({"model": "test/x", "retry": {"max_attempts": 1}}));
    let world = World::new().inputs(json!({"text": "x"})).answers(&["{}"], Ok(())).answers(&["{}"], Ok(()));
    let error = world.run(&plan(&alone(&node))).await.unwrap_err();
    assert_eq!((error.code, world.model.requests.lock().len()), (ErrorCode::ModelBadAnswer, 2));
}

fn judge(more: Value) -> Value {
    let node = json!({"name": "verdict", "type": "judge", "model": "practice/judge", "input": "Where is it?",
                      "output": "{{ inputs.answer }}", "expected": "The parcel is in Graz."});
    with(node, &more)
}

#[tokio::test]
async fn judge_scores_an_answer_against_its_threshold() {
    for (answer, score, passed) in [("The parcel is in Graz.", 1.0, true), ("I do not know", 0.0, false)] {
        let world = practice().inputs(json!({"answer": answer}));
        let done = world.run(&plan(&alone(&judge(json!({}))))).await.unwrap();
        assert_eq!((&done["score"], &done["passed"]), (&json!(score), &json!(passed)), "{done}");
        assert!(done["reasoning"].is_string() && done["feedback"].is_string());
    }
    let half = "{\"reasoning\": \"r\", \"score\": 0.6, \"feedback\": \"f\"}";
    for (threshold, passed) in [(0.6, true), (0.61, false)] {
        let world = World::new()
            .inputs(json!({"answer": "a\nb"}))
            .answers(&["{\"score\": 7}"], Ok(()))
            .answers(&[half], Ok(()));
        let node = judge(json!({"model": "test/x", "criteria": "Be {{ 'kind' }}.", "threshold": threshold}));
        let done = world.run(&plan(&alone(&node))).await.unwrap();
        assert_eq!((&done["passed"], &done["reasoning"]), (&json!(passed), &json!("r")));
        let requests = world.model.requests.lock();
        assert!(requests[0].messages[0].content.contains("Criteria:\nBe kind."));
        assert_eq!(
            requests[0].messages[1].content,
            "Input: Where is it?\n\nExpected: The parcel is in Graz.\n\nAnswer:\na\nb"
        );
    }
}

fn embed(more: Value) -> Value {
    with(
        json!({"name": "v", "type": "embed", "model": "practice/embed", "input": "{{ inputs.text }}"}),
        &more,
    )
}

fn near(one: &Value, other: &Value) -> f64 {
    let numbers =
        |vector: &Value| vector.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect::<Vec<_>>();
    numbers(one).iter().zip(numbers(other)).map(|(a, b)| a * b).sum()
}

#[tokio::test]
async fn related_texts_have_similar_vectors() {
    let texts = json!([
        "The parcel was delivered to the wrong address",
        "Deliveries of parcels to addresses that are wrong",
        "I would like my money back, please refund me",
        "Refunding money takes two weeks",
        "The weather in Graz is sunny",
        ""
    ]);
    let world = practice().inputs(json!({"text": texts}));
    let done = world.run(&plan(&alone(&embed(json!({}))))).await.unwrap();
    let vectors = &done["vectors"];
    assert_eq!(vectors[0].as_array().unwrap().len(), 256);
    let related = [near(&vectors[0], &vectors[1]), near(&vectors[2], &vectors[3])];
    for unrelated in [(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4)] {
        let far = near(&vectors[unrelated.0], &vectors[unrelated.1]);
        assert!(related.iter().all(|near| *near > far + 0.1), "{related:?} {unrelated:?} {far}");
    }
    assert!((near(&vectors[0], &vectors[0]) - 1.0).abs() < 0.001);
    assert!(near(&vectors[5], &vectors[5]) < 0.001, "a text without words has no direction");
    assert!(done["usage"]["input_tokens"].as_u64().unwrap() > 20);

    let world = practice().inputs(json!({"text": "The parcel was delivered to the wrong address"}));
    let done = world.run(&plan(&alone(&embed(json!({"dimensions": 64}))))).await.unwrap();
    assert_eq!(done["vector"].as_array().unwrap().len(), 64);
    assert!(done.get("vectors").is_none());
}

/// Records the number of texts per request.
#[derive(Default)]
struct Counting(Mutex<Vec<usize>>);

#[async_trait]
impl Model for Counting {
    async fn call(&self, _request: &ModelRequest, _pieces: &dyn Pieces) -> Result<ModelAnswer, ModelError> {
        unreachable!()
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, ModelError> {
        self.0.lock().push(request.texts.len());
        let first: f64 = request.texts[0].parse().unwrap();
        let usage = Some(Usage { input_tokens: 1_000, ..Usage::default() });
        Ok(Embeddings { vectors: vec![vec![first]; request.texts.len()], usage, model: None })
    }
}

#[tokio::test]
async fn many_texts_are_sent_in_batches_and_too_many_are_rejected() {
    let counting = Arc::new(Counting::default());
    let texts: Vec<String> = (0..250).map(|n| n.to_string()).collect();
    let mut world = World::new().inputs(json!({"text": texts}));
    world.models = Models::default().with("openai", counting.clone());
    let node = embed(json!({"model": "openai/text-embedding-3-small"}));
    let done = world.run(&plan(&alone(&node))).await.unwrap();
    assert_eq!(*counting.0.lock(), [100, 100, 50]);
    assert_eq!((&done["vectors"][0][0], &done["vectors"][249][0]), (&json!(0.0), &json!(200.0)));
    assert_eq!(
        done["usage"],
        json!({"calls": 3, "input_tokens": 3000, "output_tokens": 0, "cost_usd": 0.00006})
    );

    for (text, message) in [
        (json!(vec!["x"; 2_001]), "at most 2000"),
        (json!(["a", 5]), "must be a string, not a number"),
        (json!(5), "must be a text or a list of texts, not a number"),
    ] {
        let error =
            practice().inputs(json!({"text": text})).run(&plan(&alone(&embed(json!({}))))).await.unwrap_err();
        assert!(error.message.contains(message), "{error}");
    }
}

#[tokio::test]
async fn a_model_of_the_wrong_kind_is_rejected() {
    for (node, text) in [
        (embed(json!({"model": "practice/judge"})), "practice/embed"),
        (embed(json!({"model": "test/x"})), "has no embeddings"),
        (classify(json!({"model": "practice/embed"})), "with the node 'embed'"),
    ] {
        let error = practice().inputs(json!({"text": "x"})).run(&plan(&alone(&node))).await.unwrap_err();
        assert_eq!(error.code, ModelErrorKind::Rejected.code());
        assert!(error.message.contains(text), "{error}");
    }
}

#[test]
fn fields_have_limits() {
    for (node, problem) in [
        (classify(json!({"labels": null})), "/labels required"),
        (classify(json!({"labels": ["one"]})), "/labels labels"),
        (classify(json!({"labels": "a, b"})), "/labels labels"),
        (classify(json!({"labels": ["a", ""]})), "/labels/1 label"),
        (classify(json!({"labels": ["a", "b", "a"]})), "/labels/2 duplicate"),
        (classify(json!({"labels": ["a", 5]})), "/labels/1 type"),
        (classify(json!({"labels": ["a", {"name": "b", "text": ""}]})), "/labels/1/text unknown_field"),
        (classify(json!({"multiple": 1})), "/multiple type"),
        (classify(json!({"input": "{{ nobody }}"})), "/input unknown_name"),
        (classify(json!({"model": "gpt"})), "/model model"),
        (judge(json!({"expected": null})), "/criteria required"),
        (judge(json!({"threshold": 1.1})), "/threshold range"),
        (judge(json!({"output": null})), "/output required"),
        (judge(json!({"repair": 9})), "/repair range"),
        (embed(json!({"input": 5})), "/input type"),
        (embed(json!({"input": [1]})), "/input type"),
        (embed(json!({"dimensions": 0})), "/dimensions range"),
        (embed(json!({"model": 7})), "/model type"),
        (json!({"name": "x", "type": "extract", "model": "a/b", "input": ""}), "/schema required"),
        (
            json!({"name": "x", "type": "extract", "model": "a/b", "input": "", "schema": {"type": "x"}}),
            "/schema schema",
        ),
    ] {
        assert_eq!(refused(&node), [problem], "{node}");
    }
}
