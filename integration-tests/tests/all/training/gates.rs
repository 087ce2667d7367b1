//! Gates: the conditions that a new version must pass before it becomes live.

use integration_tests::{Answer, AnswerExt, JSON, TestService, graphs, until};
use serde_json::{Value, json};
use store::testing::TestDatabase;

use super::kills::started;
use super::{SEED, label, prompts, sorting};
use crate::crash::folder;
use crate::crash::service::Service;

/// Replies with this input of its case.
fn answering(input: &str) -> Value {
    let node = json!({"name": "t", "type": "template", "template": format!("{{{{ inputs.{input} }}}}")});
    graphs::chain(&[node], Some(json!("{{ results.t.text }}")))
}

/// Cases that `good` answers all, `half` half, and `bad` none.
fn cases() -> Value {
    let case = |n: usize| {
        json!({"inputs": {"good": "x", "half": if n.is_multiple_of(2) { "x" } else { "y" }, "bad": "z", "message": format!("Message {n}")},
               "expected_output": "x", "metadata": {"n": n}})
    };
    (0..8).map(case).collect::<Vec<_>>().into()
}

fn gate(more: Value) -> Value {
    let mut gate = json!({"dataset": "orders", "evaluators": label(), "threshold": 0.4});
    gate.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    json!({"gate": gate})
}

/// A workflow with a dataset, and its operations.
struct Desk<'a> {
    t: &'a TestService,
    path: String,
}

impl<'a> Desk<'a> {
    async fn new(t: &'a TestService, graph: Option<Value>) -> Self {
        let builder = t.workflow();
        let workflow = match graph {
            Some(graph) => builder.graph(graph).create().await,
            None => builder.without_version().create().await,
        };
        let desk = Self { t, path: workflow.path("") };
        desk.post("/datasets", json!({"name": "orders", "cases": cases()})).await.expect(201);
        desk
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.t.post(&format!("{}{path}", self.path), &body.to_string()).await
    }

    async fn put(&self, body: Value) -> Answer {
        self.t.send("PUT", &format!("{}/rollout", self.path), &[JSON], &body.to_string()).await
    }

    async fn set(&self, body: Value) {
        self.put(body).await.expect(200);
    }

    /// Saves a version, which starts its gate.
    async fn save(&self, graph: Value) -> i64 {
        let saved = self.post("/versions", json!({"graph": graph})).await.expect(201).value();
        assert_eq!(saved["gate"]["status"], "running", "{saved}");
        saved["version"].as_i64().unwrap()
    }

    async fn gate(&self, version: i64) -> Value {
        self.t.get(&format!("{}/versions/{version}", self.path)).await.value()["gate"].clone()
    }

    /// Waits until the gate of a version has decided.
    async fn decided(&self, version: i64) -> Value {
        until("the gate has decided", async || self.gate(version).await["status"] != "running").await;
        self.gate(version).await
    }

    async fn live(&self) -> Value {
        self.t.get(&self.path).await.value()["live_version"].clone()
    }
}

async fn evaluations(t: &TestService) -> String {
    t.scalar("SELECT string_agg(v.number::text, ' ' ORDER BY v.number) FROM runs r JOIN workflow_versions v ON v.id = r.version_id WHERE r.trigger = 'gate'").await
}

#[tokio::test]
async fn a_version_becomes_live_only_after_it_passes() {
    let t = TestService::start().await;
    let desk = Desk::new(&t, Some(answering("half"))).await;
    desk.set(gate(json!({}))).await;
    assert_eq!(desk.gate(1).await, Value::Null, "saved before the gate");
    let second = desk.save(answering("good")).await;
    let passed = desk.decided(second).await;
    assert_eq!(
        (
            &passed["status"],
            &passed["score"],
            &passed["live_version"],
            &passed["live_score"],
            &passed["error"]
        ),
        (&json!("passed"), &json!(1.0), &json!(1), &json!(0.5), &Value::Null)
    );
    assert_eq!(desk.live().await, 2);
    let run =
        t.get(&format!("{}/trainer/runs/{}", desk.path, passed["run_id"].as_str().unwrap())).await.value();
    assert_eq!(
        (&run["kind"], &run["version"], &run["best_score"]),
        (&json!("evaluation"), &json!(2), &json!(1.0))
    );
    let report = format!("{}/trainer/runs/{}/report", desk.path, passed["run_id"].as_str().unwrap());
    let report = t.get(&report).await.value();
    assert!(!report["distribution"].as_array().unwrap().is_empty(), "{report}");
    // A score below the threshold.
    let third = desk.save(answering("bad")).await;
    let failed = desk.decided(third).await;
    assert_eq!((&failed["status"], &failed["score"]), (&json!("failed"), &json!(0.0)));
    assert!(failed["error"].as_str().unwrap().contains("below the threshold 0.4"), "{failed}");
    // A score too far below the live version's, which is known from its own gate.
    let mut half = answering("half");
    half["nodes"][0]["name"] = json!("u");
    half["edges"][0]["to"] = json!("u");
    half["edges"][1]["from"] = json!("u");
    half["output"] = json!("{{ results.u.text }}");
    let fourth = desk.save(half).await;
    let failed = desk.decided(fourth).await;
    assert_eq!(
        (&failed["status"], &failed["score"], &failed["live_score"]),
        (&json!("failed"), &json!(0.5), &json!(1.0))
    );
    assert_eq!(evaluations(&t).await, "1 2 3 4", "each version was evaluated once");
    assert_eq!(desk.live().await, 2);
    let run = desk.post("/runs?wait=10", json!({"inputs": {}})).await.value();
    assert_eq!(run["version"], 2, "a run without a version runs the live version");

    let refused = desk.post("/versions/3/live", json!({})).await;
    assert_eq!(refused.refusal(), "409 version.gate_failed");
    assert!(refused.message().contains("below the threshold"), "{}", refused.message());
    assert_eq!(desk.post("/versions/3/live", json!({"force": true})).await.value()["live_version"], 3);
    assert_eq!(desk.post("/versions/1/live", json!({})).await.value()["live_version"], 1);
    let listed = t.get(&format!("{}/versions", desk.path)).await.value();
    let statuses: Vec<&Value> =
        listed["data"].as_array().unwrap().iter().map(|it| &it["gate"]["status"]).collect();
    assert_eq!(statuses, [&json!("failed"), &json!("failed"), &json!("passed"), &Value::Null]);
    let rows = "SELECT string_agg(actor_kind || ': ' || reason, ', ' ORDER BY id) FROM audit_log WHERE action = 'workflow.live_version_set'";
    assert_eq!(
        t.scalar(rows).await,
        "system: the gate passed: from version 1 to 2, anonymous: forced: from version 2 to 3, anonymous: from version 3 to 1"
    );
    let sets = "SELECT string_agg(reason, ', ') FROM audit_log WHERE action = 'workflow.rollout_set'";
    assert_eq!(t.scalar(sets).await, "gate: dataset orders version 1, threshold 0.4, drop 0.02; no canary");
    // Without the gate, versions become live when saved.
    desk.set(json!({})).await;
    assert_eq!(desk.live().await, 1);
    assert_eq!(
        desk.post("/versions", json!({"graph": graphs::reply("x")})).await.value()["gate"],
        Value::Null
    );
    assert_eq!(desk.live().await, 5);
}

#[tokio::test]
async fn a_workflow_without_a_live_version_is_not_published() {
    let t = TestService::start().await;
    let desk = Desk::new(&t, None).await;
    desk.set(gate(json!({}))).await;
    assert_eq!(desk.post("/publish", json!({})).await.refusal(), "409 version.gate_failed");
    let first = desk.save(answering("bad")).await;
    assert_eq!(desk.decided(first).await["status"], "failed");
    assert_eq!(desk.live().await, Value::Null);
    assert_eq!(desk.post("/publish", json!({})).await.refusal(), "409 version.gate_failed");
    let second = desk.save(answering("good")).await;
    let passed = desk.decided(second).await;
    assert_eq!(
        (&passed["status"], &passed["live_version"], &passed["live_score"]),
        (&json!("passed"), &Value::Null, &Value::Null)
    );
    assert_eq!(desk.live().await, 2);
    assert_eq!(desk.post("/publish", json!({})).await.status, 201);
}

#[tokio::test]
async fn impossible_or_incomplete_evaluations_fail_the_gate_with_the_reason() {
    let t = TestService::start().await;
    let desk = Desk::new(&t, Some(answering("half"))).await;
    desk.set(gate(json!({"budget": {"max_llm_calls": 1}}))).await;
    let sends = json!({"name": "t", "type": "http_request", "method": "POST", "url": "https://example.org/"});
    let outbound = desk.save(graphs::chain(&[sends], None)).await;
    let failed = desk.decided(outbound).await;
    assert_eq!((&failed["status"], &failed["score"]), (&json!("failed"), &Value::Null));
    assert!(failed["error"].as_str().unwrap().contains("cannot be evaluated"), "{failed}");
    // The budget of one model call does not cover eight cases.
    let saved = desk
        .post("/versions", json!({"graph": sorting("practice/classify"), "runnable_config": prompts(SEED)}))
        .await;
    let saved = saved.value()["version"].as_i64().unwrap();
    let failed = desk.decided(saved).await;
    assert!(failed["error"].as_str().unwrap().contains("budget"), "{failed}");
    // A run that a client cancels.
    desk.set(gate(json!({}))).await;
    let slow = json!({"graph": sorting("practice/classify@2000ms"), "runnable_config": prompts(SEED)});
    let slow = desk.post("/versions", slow).await.value();
    let run = slow["gate"]["run_id"].as_str().unwrap();
    let run = format!("{}/trainer/runs/{run}", desk.path);
    until("the evaluation executes", async || t.get(&run).await.value()["status"] == "running").await;
    assert_eq!(t.post(&format!("{run}/cancel"), "").await.status, 200);
    let failed = desk.decided(slow["version"].as_i64().unwrap()).await;
    assert!(failed["error"].as_str().unwrap().contains("cancel"), "{failed}");
    assert_eq!(desk.live().await, 1);
    // A deleted dataset.
    t.send("DELETE", &format!("{}/datasets/orders", desk.path), &[], "").await.expect(204);
    let saved = desk.post("/versions", json!({"graph": answering("good")})).await.value();
    assert_eq!((&saved["gate"]["status"], &saved["gate"]["run_id"]), (&json!("failed"), &Value::Null));
    assert!(saved["gate"]["error"].as_str().unwrap().contains("'orders'"), "{saved}");
}

#[tokio::test]
async fn rollout_problems_are_rejected_with_their_pointers() {
    let t = TestService::start().await;
    let desk = Desk::new(&t, Some(answering("half"))).await;
    let problems = async |body: Value| {
        let refused = desk.put(body).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{}", refused.text());
        let errors = refused.value()["detail"]["errors"].clone();
        let line = |error: &Value| {
            format!("{} {}", error["pointer"].as_str().unwrap(), error["code"].as_str().unwrap())
        };
        errors.as_array().into_iter().flatten().map(line).collect::<Vec<_>>()
    };
    assert_eq!(problems(gate(json!({"dataset": "none"}))).await, ["/gate/dataset dataset_not_found"]);
    assert_eq!(
        problems(gate(json!({"dataset_version": 9}))).await,
        ["/gate/dataset_version dataset_not_found"]
    );
    let unknown = gate(json!({"evaluators": [{"id": "a", "entrypoint": "builtin:nothing"}]}));
    assert_eq!(problems(unknown).await, ["/gate/evaluators/0/entrypoint evaluator_not_found"]);
    assert_eq!(problems(gate(json!({"budget": {"x": 1}}))).await, ["/gate/budget/x unknown_field"]);
    assert_eq!(
        problems(json!({"canary": {"version": 7, "percent": 5}})).await,
        ["/canary/version version_not_found"]
    );
    assert_eq!(
        problems(json!({"x": 1, "canary": {"version": 1}})).await,
        ["/x unknown_field", "/canary/percent required"]
    );
    // The only version cannot be its own canary.
    assert_eq!(
        desk.put(json!({"canary": {"version": 1, "percent": 5}})).await.refusal(),
        "422 request.invalid"
    );
    let shown = t.get(&format!("{}/rollout", desk.path)).await.value();
    assert_eq!(
        shown,
        json!({"live_version": 1, "gate": null, "canary": null, "counts": null, "last_canary": null}),
        "nothing was stored"
    );
    assert_eq!(desk.post("/rollout/promote", json!({})).await.refusal(), "404 version.not_found");
    // A version that has failed its gate cannot be a canary.
    desk.set(gate(json!({}))).await;
    let bad = desk.save(answering("bad")).await;
    desk.decided(bad).await;
    let canary = json!({"canary": {"version": bad, "percent": 5}});
    assert_eq!(desk.put(canary).await.refusal(), "409 version.gate_failed");
    assert_eq!(t.send("DELETE", &desk.path, &[], "").await.status, 200);
    assert_eq!(desk.put(json!({})).await.refusal(), "409 workflow.archived");
}

#[tokio::test]
async fn two_instances_decide_a_gate_once() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let desk = Desk::new(&t, Some(answering("half"))).await;
    desk.set(gate(json!({}))).await;
    let path = format!("{}/versions", desk.path);
    let saved = other.post(&path, &json!({"graph": answering("good")}).to_string()).await;
    assert_eq!(saved.value()["gate"]["status"], "running", "{}", saved.text());
    assert_eq!(desk.decided(2).await["status"], "passed");
    assert_eq!(other.get(&desk.path).await.value()["live_version"], 2);
    assert_eq!(evaluations(&t).await, "1 2");
    let moves = "SELECT count(*) FROM audit_log WHERE action = 'workflow.live_version_set'";
    assert_eq!(t.scalar(moves).await, "1");
}

#[tokio::test]
async fn a_gate_survives_kills_and_its_version_becomes_live_once() {
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-gate"), Some(database.dsn()));
    let client = started(&mut service).await;
    let workflow = super::kills::workflow(&client, "practice/classify").await;
    let path = format!("/api/workflows/{workflow}");
    let send = async |client: &integration_tests::Client, method: &str, path: &str, body: Value| {
        let answer = client
            .send(method, path, &[JSON], if method == "GET" { String::new() } else { body.to_string() })
            .await
            .unwrap();
        assert!(answer.is_success(), "{}", answer.text());
        answer.value()
    };
    let cases = json!({"name": "orders", "cases": super::cases(8)});
    send(&client, "POST", &format!("{path}/datasets"), cases).await;
    send(&client, "PUT", &format!("{path}/rollout"), gate(json!({"threshold": 0.0, "max_drop": 1.0}))).await;
    let slow = json!({"graph": sorting("practice/classify@300ms"), "runnable_config": prompts(SEED)});
    send(&client, "POST", &format!("{path}/versions"), slow).await;
    // Killed at once: the evaluation may not be stored yet.
    service.kill();
    let client = started(&mut service).await;
    let cases_done = "SELECT count(*) FROM training_cases";
    until("some cases are stored", async || database.scalar(cases_done).await != "0").await;
    service.kill();
    let client_again = started(&mut service).await;
    drop(client);
    let live = async || send(&client_again, "GET", &path, json!({})).await["live_version"].clone();
    until("the version is live", async || live().await == 2).await;
    let version = send(&client_again, "GET", &format!("{path}/versions/2"), json!({})).await;
    assert_eq!(version["gate"]["status"], "passed", "{version}");
    let runs = "SELECT count(*) || ' ' || count(DISTINCT version_id) FROM runs WHERE trigger = 'gate'";
    assert_eq!(database.scalar(runs).await, "2 2", "each version is evaluated by one run");
    let moves = "SELECT count(*) FROM audit_log WHERE action = 'workflow.live_version_set'";
    assert_eq!(database.scalar(moves).await, "1");
    service.kill();
}

/// A workflow that gives this score to every output.
async fn judge(desk: &Desk<'_>, path: &str, score: &str) {
    let node = json!({"name": "score", "type": "transform", "expression": score});
    let graph = graphs::chain(&[node], Some(json!({"score": "{{ results.score }}"})));
    desk.t.post(&format!("{path}/versions"), &json!({"graph": graph}).to_string()).await.expect(201);
}

#[tokio::test]
async fn a_gate_pins_its_dataset_and_judging_workflows() {
    let t = TestService::start().await;
    let desk = Desk::new(&t, Some(answering("half"))).await;
    let made =
        t.post("/api/workflows", &json!({"name": "Strict", "handle": "strict"}).to_string()).await.value();
    let strict = format!("/api/workflows/{}", made["id"].as_str().unwrap());
    judge(&desk, &strict, "0.0").await;
    let evaluators = json!([{"id": "strict", "entrypoint": "workflow:strict"}]);
    desk.set(gate(json!({"evaluators": evaluators, "max_drop": 1.0}))).await;
    let shown = t.get(&format!("{}/rollout", desk.path)).await.value()["gate"].clone();
    assert_eq!(
        (&shown["dataset"], &shown["dataset_version"], &shown["evaluators"][0]["entrypoint"]),
        (&json!("orders"), &json!(1), &json!("workflow:strict@1"))
    );
    // A caller who may save versions could pass with a kinder judge and easier cases.
    judge(&desk, &strict, "1.0").await;
    let easy = json!({"cases": [{"inputs": {"good": "x", "half": "x", "bad": "x"}, "expected_output": "x"}]});
    let added = desk.post("/datasets/orders/versions", easy).await;
    assert!(added.is_success(), "{}", added.text());
    let version = desk.save(answering("good")).await;
    let failed = desk.decided(version).await;
    assert_eq!((&failed["status"], &failed["score"]), (&json!("failed"), &json!(0.0)), "{failed}");
    let run = failed["run_id"].as_str().unwrap();
    let used = t.get(&format!("{}/trainer/runs/{run}", desk.path)).await.value()["dataset"].clone();
    assert_eq!((&used["version"], &used["n_cases"]), (&json!(1), &json!(8)), "{used}");
    // The shown gate can be set again, and keeps its versions; a gate without versions pins the current ones.
    let again = json!({"gate": shown});
    desk.set(again).await;
    let version = desk.save(answering("bad")).await;
    assert_eq!(desk.decided(version).await["status"], "failed");
    desk.set(gate(json!({"evaluators": evaluators, "max_drop": 1.0}))).await;
    let version = desk.save(answering("good")).await;
    let passed = desk.decided(version).await;
    assert_eq!((&passed["status"], &passed["score"]), (&json!("passed"), &json!(1.0)), "{passed}");
}

#[tokio::test]
async fn a_new_dataset_of_the_same_name_does_not_replace_the_gates_dataset() {
    let t = TestService::start().await;
    let desk = Desk::new(&t, Some(answering("half"))).await;
    desk.set(gate(json!({}))).await;
    let gone = t.send("DELETE", &format!("{}/datasets/orders", desk.path), &[], "").await;
    assert_eq!(gone.status, 204, "{}", gone.text());
    desk.post("/datasets", json!({"name": "orders", "cases": cases()})).await.expect(201);
    let saved = desk.post("/versions", json!({"graph": answering("good")})).await.value();
    assert_eq!(saved["gate"]["status"], "failed", "{saved}");
    assert!(saved["gate"]["error"].as_str().unwrap().contains("'orders'"), "{saved}");
}
