//! Cancelled trainings and evaluations: they end soon, with their results so far.

use std::time::Duration;

use integration_tests::{AnswerExt, Socket, TestService, until};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::{Run, SEED, evaluation, kind, only, payloads, steps, training, workflow};

/// Maximum time from the request to the run's end.
const SOON: Duration = Duration::from_secs(2);
/// Concurrent cases, unless the request says otherwise.
const CONCURRENCY: usize = 4;

/// A model that responds only to the first requests.
async fn stuck_model(answered: usize) -> ModelServer {
    let reply = move |number, _: &Value| match number <= answered {
        true => Reply::Text("shipping".to_owned()),
        false => Reply::Held("billing".to_owned()),
    };
    ModelServer::start(reply).await
}

/// Waits until the maximum number of calls is in flight.
async fn filled(model: &ModelServer, answered: usize) {
    until("calls are in flight", async || model.request_count() == answered + CONCURRENCY).await;
}

#[tokio::test]
async fn a_cancelled_training_ends_within_two_seconds_with_a_stuck_model() {
    let model = stuck_model(6).await;
    let t = model.service().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "openai/test").await);
    let run = Run::start(&client, &workflow.id, &training(json!({"epochs": 1}))).await;
    filled(&model, 6).await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let record = run.controlled("cancel").await;
    let took = clock.monotonic() - begun;
    assert!(took < SOON, "{took:?}");
    assert_eq!((&record["status"], &record["stop_reason"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(record["error"]["code"], "run.cancelled");
    let events = run.events().await;
    assert_eq!(steps(&events), ["run_started", "training_started", "training_result", "run_cancelled"]);
    let result = only(&events, "training_result");
    assert_eq!((&result["stop_reason"], &result["prompts"]["rules"]), (&json!("cancelled"), &json!(SEED)));
    assert_eq!(payloads(&events, "training_progress").len(), 6, "what was answered is kept");
    // Calls in flight are dropped with their connections, but still count.
    until("the connections are closed", async || model.gone() == CONCURRENCY).await;
    assert_eq!(
        (model.request_count(), &record["usage"]["llm_calls"]),
        (6 + CONCURRENCY, &json!(6 + CONCURRENCY))
    );
    assert_eq!(run.record().await, record);
    for operation in ["cancel", "pause", "resume"] {
        assert_eq!(run.control(operation).await.refusal(), "409 run.not_active", "{operation}");
    }
    assert_eq!(run.record().await, record);
}

#[tokio::test]
async fn a_cancelled_evaluation_scores_its_executed_cases() {
    let model = stuck_model(8).await;
    let t = model.service().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "openai/test").await);
    let run = Run::start(&client, &workflow.id, &evaluation(24, json!({}))).await;
    filled(&model, 8).await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    assert_eq!(run.controlled("cancel").await["status"], "cancelled");
    assert!(clock.monotonic() - begun < SOON);
    let events = run.events().await;
    assert_eq!(steps(&events), ["run_started", "evaluation_result", "run_cancelled"]);
    let result = only(&events, "evaluation_result");
    assert_eq!((&result["stop_reason"], &result["n_cases"]), (&json!("cancelled"), &json!(8)));
    assert_eq!(payloads(&events, "evaluation_progress").len(), 8);
    let right = payloads(&events, "evaluation_progress").into_iter();
    let right = right.filter(|case| case["evaluations"]["label"]["passed"] == true).count();
    assert_eq!(result["score"], json!(f64::from(u8::try_from(right).unwrap()) / 8.0));
}

#[tokio::test]
async fn the_last_event_reports_a_cancellation_over_the_websocket() {
    let model = stuck_model(2).await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&super::message("train_workflow", "t", &training(json!({"epochs": 1})))).await;
    let id = socket.next().await["run_id"].clone();
    filled(&model, 2).await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    socket.say(&json!({"type": "cancel", "run_id": id, "request_id": "c"})).await;
    let received = socket.until("run_cancelled").await;
    assert!(clock.monotonic() - begun < SOON);
    let last: Vec<&str> = received[received.len() - 2..].iter().map(kind).collect();
    assert_eq!(last, ["training_result", "run_cancelled"]);
    assert!(received.iter().all(|message| message["request_id"] == "t"), "the run's events alone");
    socket.say(&json!({"type": "cancel", "run_id": id, "request_id": "c"})).await;
    let refused = socket.next().await;
    assert_eq!(
        (&refused["payload"]["code"], &refused["request_id"]),
        (&json!("run.not_active"), &json!("c"))
    );
    assert_eq!(socket.settle().await, [Value::Null; 0], "nothing follows");
}

/// Asserts that the best checkpoint's prompts are returned, whatever the run does when it is cancelled.
async fn assert_best_is_kept(pauses: bool) {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@40ms").await);
    let run = Run::start(&client, &workflow.id, &training(json!({"epochs": 3}))).await;
    run.live(&t).await.until("training_epoch_complete").await;
    if pauses {
        assert_eq!(run.controlled("pause").await["status"], "paused");
    }
    assert_eq!(run.controlled("cancel").await["status"], "cancelled");
    let events = run.events().await;
    assert_eq!(kind(events.last().unwrap()), "run_cancelled");
    let best =
        payloads(&events, "training_checkpoint").into_iter().rfind(|it| it["is_best"] == true).unwrap();
    assert!(best["metadata"]["score"].as_f64().unwrap() > 0.9, "{best}");
    let result = only(&events, "training_result");
    assert_eq!(result["prompts"]["rules"], best["runnable_config"]["prompts"]["rules"]["text"], "{result}");
    assert_eq!((&result["outcome"], &result["best_checkpoint"]["id"]), (&json!("improved"), &best["id"]));
    let written = payloads(&events, "training_checkpoint").len();
    assert_eq!(result["checkpoints"].as_array().unwrap().len(), written);
    assert_eq!(run.record().await["best_checkpoint"], best["id"]);
}

#[tokio::test]
async fn a_training_cancelled_while_running_returns_the_best_so_far() {
    assert_best_is_kept(false).await;
}

#[tokio::test]
async fn a_training_cancelled_while_paused_returns_the_best_so_far() {
    assert_best_is_kept(true).await;
}

/// A cancelled run has ended normally: another run may start from its prompts.
#[tokio::test]
async fn a_cancelled_training_can_be_continued_by_another_one() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@40ms").await);
    let run = Run::start(&client, &workflow.id, &training(json!({"epochs": 3}))).await;
    run.live(&t).await.until("training_epoch_complete").await;
    run.controlled("cancel").await;
    let returned = only(&run.events().await, "training_result")["prompts"].clone();
    let next = training(json!({"name": "none", "resume": {"run_id": run.id}}));
    let events = Run::start(&client, &workflow.id, &next).await.events().await;
    assert_eq!(only(&events, "training_result")["prompts"], returned);
}

#[tokio::test]
async fn an_evaluation_cancelled_before_its_first_case_has_no_score() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@20000ms").await);
    let run = Run::start(&client, &workflow.id, &evaluation(4, json!({}))).await;
    run.becomes("running").await;
    let record = run.controlled("cancel").await;
    assert_eq!((&record["status"], &record["best_score"]), (&json!("cancelled"), &Value::Null), "{record}");
    assert_eq!(record["progress"]["best_score"], Value::Null, "{record}");
    assert_eq!(only(&run.events().await, "evaluation_result")["n_cases"], 0);
}
