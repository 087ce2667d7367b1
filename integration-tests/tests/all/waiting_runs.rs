//! Runs that wait for a time or a person, and events that wake them.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, JSON, TestService, Workflow, graphs, until, within};
use serde_json::{Value, json};

pub(crate) async fn begin(t: &TestService, workflow: &Workflow, query: &str, inputs: Value) -> Value {
    let body = json!({"inputs": inputs}).to_string();
    let begun = t.post(&format!("/api/workflows/{}/runs{query}", workflow.id), &body).await;
    assert!(begun.is_success(), "{}", begun.text());
    begun.value()
}

pub(crate) async fn record(t: &TestService, run: &Value) -> Value {
    t.get(&format!("/api/runs/{}", run["id"].as_str().unwrap())).await.value()
}

pub(crate) async fn becomes(t: &TestService, run: &Value, status: &str) -> Value {
    until(status, async || record(t, run).await["status"] == status).await;
    record(t, run).await
}

pub(crate) async fn answer(t: &TestService, run: &Value, key: &str, value: Value) -> Answer {
    let id = run["id"].as_str().unwrap();
    t.post(&format!("/api/runs/{id}/inputs/{key}"), &value.to_string()).await
}

fn approval() -> Value {
    let wait = json!({"name": "approval", "type": "wait_for_input", "message": "Refund {{ inputs.amount }}?",
                      "schema": {"type": "object", "required": ["approved"],
                                 "properties": {"approved": {"type": "boolean"}}, "additionalProperties": false},
                      "expires_seconds": 3600});
    let summary = json!({"name": "said", "type": "template",
                      "template": "{{ 'paid' if results.approval.value.approved else 'kept' }}"});
    graphs::chain(
        &[wait, summary],
        Some(json!({"text": "{{ results.said.text }}", "by": "{{ results.approval.answered_by }}"})),
    )
}

#[tokio::test]
async fn a_run_waits_for_one_answer() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(approval()).create().await;
    // A caller who waits for the end is informed that the run waits.
    let begun = within("the run waits", begin(&t, &workflow, "?wait=60", json!({"amount": 40}))).await;
    assert_eq!(begun["status"], "waiting");
    let question = &begun["waits_for"][0];
    assert_eq!((&question["key"], &question["message"]), (&json!("approval"), &json!("Refund 40?")));
    assert_eq!((&question["schema"]["type"], &question["audience"]), (&json!("object"), &json!([])));
    assert!(question["expires_at"].is_string());
    until("the run leaves memory", async || t.load().await.streams == 0).await;
    // Invalid or unexpected answers change nothing.
    let wrong = answer(&t, &begun, "approval", json!({"approved": "yes", "more": 1})).await;
    assert_eq!((wrong.status, wrong.code().as_str()), (422, "run.input_invalid"));
    assert_eq!(wrong.value()["detail"]["errors"].as_array().unwrap().len(), 2);
    let other = answer(&t, &begun, "other", json!(1)).await;
    assert_eq!((other.status, other.code().as_str()), (409, "run.not_waiting"));
    let id = begun["id"].as_str().unwrap();
    let bad = t.post(&format!("/api/runs/{id}/inputs/approval"), "{").await;
    assert_eq!((bad.status, bad.code().as_str()), (400, "request.invalid_json"));
    // Of many concurrent answers, one is accepted.
    let answers = (0..8).map(|n| {
        let value = json!({"approved": n % 2 == 0});
        let (t, begun) = (&t, &begun);
        async move { (n, answer(t, begun, "approval", value).await.status) }
    });
    let answers: Vec<(i32, u16)> = futures_util::future::join_all(answers).await;
    let taken: Vec<i32> = answers.iter().filter(|(_, status)| *status == 202).map(|(n, _)| *n).collect();
    assert_eq!(taken.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|(_, status)| [202, 409].contains(status)), "{answers:?}");
    let ended = becomes(&t, &begun, "succeeded").await;
    let text = if taken[0] % 2 == 0 { "paid" } else { "kept" };
    assert_eq!(ended["output"], json!({"text": text, "by": null}));
    assert_eq!(ended["waits_for"], json!([]));
    let late = answer(&t, &begun, "approval", json!({"approved": true})).await;
    assert_eq!((late.status, late.code().as_str()), (409, "run.not_waiting"));
    // Its events: it asked once, and continues as the same run.
    let body = t.open("GET", &format!("/api/runs/{id}/events"), &[], "").await.rest().await;
    let kinds: Vec<String> = integration_tests::events(&body)
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .filter(|kind| kind.starts_with("run_"))
        .collect();
    assert_eq!(kinds, ["run_started", "run_waiting", "run_started", "run_completed"]);
}

#[tokio::test]
async fn an_answer_with_an_idempotency_key_counts_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(approval()).create().await;
    let begun = begin(&t, &workflow, "?wait=60", json!({"amount": 1})).await;
    let path = format!("/api/runs/{}/inputs/approval", begun["id"].as_str().unwrap());
    let headers = [JSON, ("idempotency-key", "k1")];
    let first = t.send("POST", &path, &headers, r#"{"approved": true}"#.to_owned()).await;
    let again = t.send("POST", &path, &headers, r#"{"approved": true}"#.to_owned()).await;
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    becomes(&t, &begun, "succeeded").await;
}

#[tokio::test]
async fn a_waiting_run_outlives_a_restart() {
    let mut t = TestService::start().await;
    let workflow = t.workflow().graph(approval()).create().await;
    let begun = begin(&t, &workflow, "?wait=60", json!({"amount": 1})).await;
    t.restart().await;
    assert_eq!(record(&t, &begun).await["status"], "waiting");
    assert_eq!(answer(&t, &begun, "approval", json!({"approved": true})).await.status, 202);
    assert_eq!(becomes(&t, &begun, "succeeded").await["output"]["text"], "paid");
}

#[tokio::test]
async fn a_waiting_run_is_cancelled_at_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(approval()).create().await;
    let begun = begin(&t, &workflow, "?wait=60", json!({"amount": 1})).await;
    let stopped = t.post(&format!("/api/runs/{}/cancel", begun["id"].as_str().unwrap()), "").await;
    assert_eq!((stopped.status, stopped.value()["status"].as_str()), (200, Some("cancelled")));
    assert_eq!(answer(&t, &begun, "approval", json!({"approved": true})).await.code(), "run.not_waiting");
}

#[tokio::test]
async fn a_long_delay_parks_the_run_and_ends_on_time() {
    let t = TestService::with_manual_clock().await;
    let workflow = t
        .workflow()
        .graph(graphs::chain(
            &[
                json!({"name": "wait", "type": "delay", "seconds": 86_400}),
                json!({"name": "t", "type": "template", "template": "done"}),
            ],
            None,
        ))
        .create()
        .await;
    let begun = t.while_time_passes(begin(&t, &workflow, "?wait=60", json!({}))).await;
    assert_eq!((&begun["status"], &begun["waits_for"]), (&json!("waiting"), &json!([])));
    t.advance(Duration::from_secs(80_000));
    integration_tests::pause(100).await;
    assert_eq!(record(&t, &begun).await["status"], "waiting");
    t.advance(Duration::from_secs(6_400));
    t.while_time_passes(becomes(&t, &begun, "succeeded")).await;
    assert_eq!(t.scalar("SELECT count(*)::text FROM run_queue").await, "0");
}

#[tokio::test]
async fn an_unanswered_question_times_out() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(approval()).create().await;
    let begun = t.while_time_passes(begin(&t, &workflow, "?wait=60", json!({"amount": 1}))).await;
    t.advance(Duration::from_secs(3_600));
    let ended = t.while_time_passes(becomes(&t, &begun, "failed")).await;
    assert_eq!(ended["error"]["code"], "node.input_expired");
}

#[tokio::test]
async fn the_run_time_limit_includes_waiting() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(approval()).create().await;
    let body = json!({"inputs": {"amount": 1}, "timeout_seconds": 600}).to_string();
    let begun = t.while_time_passes(t.post(&workflow.path("/runs?wait=60"), &body)).await.value();
    assert_eq!(begun["status"], "waiting");
    t.advance(Duration::from_secs(600));
    let ended = t.while_time_passes(becomes(&t, &begun, "failed")).await;
    assert_eq!(ended["error"]["code"], "run.timeout");
}

#[tokio::test]
async fn two_concurrent_questions_are_both_answered() {
    let t = TestService::start().await;
    let each = json!({"name": "each", "type": "for_each", "items": ["a", "b"],
                      "body": {"type": "wait_for_input", "key": "ok-{{ item }}", "schema": {"type": "integer"}}});
    let graph =
        graphs::chain(&[each], Some(json!("{{ results.each['items'] | map(attribute='value') | list }}")));
    let workflow = t.workflow().graph(graph).create().await;
    let begun = begin(&t, &workflow, "?wait=60", json!({})).await;
    let mut keys: Vec<&str> =
        begun["waits_for"].as_array().unwrap().iter().map(|q| q["key"].as_str().unwrap()).collect();
    // A run that yields its slot may ask the second question first.
    keys.sort_unstable();
    assert_eq!(keys, ["ok-a", "ok-b"]);
    assert_eq!(answer(&t, &begun, "ok-b", json!(2)).await.status, 202);
    until("one question is left", async || {
        let record = record(&t, &begun).await;
        record["status"] == "waiting" && record["waits_for"].as_array().unwrap().len() == 1
    })
    .await;
    assert_eq!(answer(&t, &begun, "ok-a", json!(1)).await.status, 202);
    assert_eq!(becomes(&t, &begun, "succeeded").await["output"], json!([1, 2]));
}

#[tokio::test]
async fn a_chat_turn_waits_for_its_answer_with_an_open_stream() {
    let t = TestService::start().await;
    let graph = graphs::chain(
        &[
            json!({"name": "ok", "type": "wait_for_input", "schema": {"type": "string"}}),
            json!({"name": "say", "type": "reply", "text": "You said {{ results.ok.value }}."}),
        ],
        None,
    );
    let workflow = t.workflow().graph(graph).published().create().await;
    let message = integration_tests::chat::create(&workflow, "hi");
    let turn = t.chat(&message);
    let helper = async {
        let mut run = String::new();
        until("the question is asked", async || {
            run = t.scalar("SELECT coalesce(max(run_id::text), '') FROM run_questions").await;
            !run.is_empty()
        })
        .await;
        answer(&t, &json!({"id": run}), "ok", json!("yes")).await.expect(202);
    };
    let (turn, ()) = futures_util::join!(turn, helper);
    assert!(turn.text().contains("You said yes."), "{}", turn.text());
}
