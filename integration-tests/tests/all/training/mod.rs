//! Trainings and evaluations: started, watched, controlled, resumed, and deleted.

mod budget;
mod calibration;
mod cancel;
mod datasets;
mod evaluations;
mod faults;
mod fewshot;
mod functions;
mod gates;
mod instances;
mod judge;
pub(crate) mod kills;
mod model;
mod pause;
mod refusals;
mod removed;
mod report;
mod rescored;
mod resume;
mod retention;
mod rights;
mod secrecy;
mod services;
mod settings;
mod slots;
mod socket;
mod trained;

use std::sync::{Arc, LazyLock};

use integration_tests::{
    Answer, AnswerExt, Client, JSON, RawAnswer, TestService, Workflow, events, graphs, until,
};
use kernel::{Ids, SystemClock, SystemRandom};
use serde_json::{Value, json};

/// The initial prompt of trainings.
const SEED: &str = "Sort the message into shipping, billing or account.";

/// Messages with their labels: the cases from the example, whose labels have no comma.
static CASES: LazyLock<Vec<(&'static str, &'static str)>> = LazyLock::new(|| {
    let rows = include_str!("../../../../examples/message-sorting/cases.csv").lines().skip(1);
    rows.filter_map(|row| row.rsplit_once(','))
        .map(|(message, label)| (message.trim_matches('"'), label))
        .collect()
});

/// The first cases, in request form.
fn cases(count: usize) -> Vec<Value> {
    let case =
        |(message, label): &(&str, &str)| json!({"inputs": {"message": message}, "expected_output": label});
    CASES.iter().take(count).map(case).collect()
}

/// Asks a model for a message's label, with the trainable prompt `rules`.
pub(crate) fn sorting(model: &str) -> Value {
    let sort = json!({"name": "sort", "type": "llm", "model": model,
                      "system": "{{ config.prompts.rules.text }}", "user": "{{ inputs.message }}"});
    graphs::chain(&[sort], Some(json!("{{ results.sort.text }}")))
}

/// A config with the trainable prompt `rules`.
pub(crate) fn prompts(text: &str) -> Value {
    json!({"prompts": {"rules": {"text": text, "requires_grad": true, "metadata": {}, "model_kwargs": {},
                                 "type": "TextTensor"}}})
}

/// A workflow that sorts messages with this model. A pace such as `practice/classify@50ms` makes each case that slow.
async fn workflow(t: &TestService, model: &str) -> Workflow {
    t.workflow().graph(sorting(model)).config(prompts(SEED)).create().await
}

fn label() -> Value {
    json!([{"id": "label", "entrypoint": "builtin:exact_match"}])
}

/// The request for a training with these cases.
fn training_of(cases: Vec<Value>, optimizer: Value) -> Value {
    json!({"training": {"dataset": {"cases": cases}, "evaluators": label(), "optimizer": optimizer}})
}

/// The request for a training with all cases.
pub(crate) fn training(optimizer: Value) -> Value {
    training_of(cases(CASES.len()), optimizer)
}

/// The request for an evaluation of the first cases; `more`: additional fields.
pub(crate) fn evaluation(count: usize, more: Value) -> Value {
    let mut request = json!({"dataset": {"cases": cases(count)}, "evaluators": label()});
    request.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    json!({"evaluation": request})
}

/// A request as a websocket message.
fn message(kind: &str, request_id: &str, body: &Value) -> Value {
    let mut message = body.clone();
    let members = message.as_object_mut().unwrap();
    members.extend([("type".to_owned(), json!(kind)), ("request_id".to_owned(), json!(request_id))]);
    message
}

/// A run id chosen by the client.
fn new_run_id() -> String {
    let ids = Ids::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom::new()));
    ids.uuid().unwrap().to_string()
}

async fn get(client: &Client, path: &str) -> Answer {
    client.send("GET", path, &[], "").await.unwrap()
}

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.send("POST", path, &[JSON], body.to_string()).await.unwrap()
}

pub(crate) fn runs_of(workflow: &str) -> String {
    format!("/api/workflows/{workflow}/trainer/runs")
}

fn checkpoints_of(workflow: &str) -> String {
    format!("/api/workflows/{workflow}/trainer/checkpoints")
}

/// A started training or evaluation.
#[derive(Clone)]
struct Run {
    client: Client,
    path: String,
    id: String,
}

impl Run {
    /// Starts the requested run.
    async fn start(client: &Client, workflow: &str, body: &Value) -> Self {
        let answer = post(client, &runs_of(workflow), body).await.expect(202);
        Self::existing(client, workflow, answer.value()["id"].as_str().unwrap())
    }

    fn existing(client: &Client, workflow: &str, id: &str) -> Self {
        Self { client: client.clone(), path: format!("{}/{id}", runs_of(workflow)), id: id.to_owned() }
    }

    /// The same run, through another client.
    fn over(&self, client: &Client) -> Self {
        Self { client: client.clone(), ..self.clone() }
    }

    async fn record(&self) -> Value {
        get(&self.client, &self.path).await.expect(200).value()
    }

    /// Waits until the run has this status; returns its record.
    async fn becomes(&self, status: &str) -> Value {
        until(status, async || self.record().await["status"] == status).await;
        self.record().await
    }

    /// Pauses, resumes or cancels the run.
    async fn control(&self, operation: &str) -> Answer {
        self.client.send("POST", &format!("{}/{operation}", self.path), &[], "").await.unwrap()
    }

    /// Like [`Self::control`], but must succeed; returns the record.
    async fn controlled(&self, operation: &str) -> Value {
        self.control(operation).await.expect(200).value()
    }

    /// The body of the event stream, up to the end of the run.
    async fn stream(&self) -> String {
        let answer = get(&self.client, &format!("{}/events", self.path)).await.expect(200);
        answer.text()
    }

    /// All events, up to the end of the run. Asserts that their numbers have no gaps.
    async fn events(&self) -> Vec<Value> {
        let events = events(&self.stream().await);
        for (seq, event) in (1_u64..).zip(&events) {
            assert_eq!((&event["seq"], &event["run_id"]), (&json!(seq), &json!(self.id)), "{event}");
            assert_eq!((&event["node"], &event["event"]), (&json!("trainer"), &event["type"]), "{event}");
        }
        events
    }

    /// The event stream, read piece by piece.
    async fn live(&self, t: &TestService) -> RawAnswer {
        t.open("GET", &format!("{}/events", self.path), &[], "").await
    }
}

fn kind(event: &Value) -> &str {
    event["type"].as_str().unwrap()
}

/// The event types, without progress.
fn steps(events: &[Value]) -> Vec<&str> {
    events.iter().map(kind).filter(|kind| !kind.ends_with("_progress")).collect()
}

/// The payloads of events with this type.
fn payloads<'e>(events: &'e [Value], expected: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| kind(event) == expected).map(|event| &event["payload"]).collect()
}

/// The payload of the only event with this type.
fn only<'e>(events: &'e [Value], expected: &str) -> &'e Value {
    let found = payloads(events, expected);
    assert_eq!(found.len(), 1, "{expected} in {:?}", steps(events));
    found[0]
}

/// The reason of each pause or resumption.
fn reasons<'e>(events: &'e [Value], expected: &str) -> Vec<&'e str> {
    payloads(events, expected).into_iter().map(|payload| payload["reason"].as_str().unwrap()).collect()
}

fn without(value: &Value, names: &[&str]) -> Value {
    let mut value = value.clone();
    names.iter().for_each(|name| _ = value.as_object_mut().unwrap().remove(*name));
    value
}

/// The parts that two trainings of the same request must share, on different workflows and despite interruptions.
fn essence(events: &[Value]) -> Value {
    let checkpoint = |checkpoint: &Value| {
        let mut checkpoint = without(checkpoint, &["id", "workflow_id", "created_at"]);
        checkpoint["metadata"] = without(&checkpoint["metadata"], &["run_id", "version_id"]);
        checkpoint
    };
    let checkpoints: Vec<Value> =
        payloads(events, "training_checkpoint").into_iter().map(checkpoint).collect();
    let candidates = payloads(events, "training_candidate").into_iter();
    let candidates: Vec<Value> = candidates.map(|it| without(it, &["created_at"])).collect();
    let epochs = payloads(events, "training_epoch_complete").into_iter();
    let epochs: Vec<Value> = epochs.map(|it| without(it, &["usage", "wall_s"])).collect();
    let mut result = without(only(events, "training_result"), &["usage"]);
    for summary in result["checkpoints"].as_array_mut().unwrap() {
        *summary = without(summary, &["id"]);
    }
    if result["best_checkpoint"].is_object() {
        result["best_checkpoint"] = without(&result["best_checkpoint"], &["id"]);
    }
    json!({"checkpoints": checkpoints, "candidates": candidates, "epochs": epochs, "result": result})
}

/// Asserts that two trainings have the same results.
fn assert_same(one: &[Value], other: &[Value]) {
    let (one, other) = (essence(one), essence(other));
    for part in ["candidates", "epochs", "checkpoints", "result"] {
        assert_eq!(one[part], other[part], "{part}");
    }
}
