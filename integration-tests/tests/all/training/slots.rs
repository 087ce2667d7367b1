//! `SERVICE_TRAINING_MAX_RUNS`: trainings beyond the maximum are queued.

use integration_tests::{AnswerExt, JSON, TestService, until};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::{Run, evaluation, kind, reasons, steps, training, workflow};

/// A service that executes one training at a time, and a model that holds all but the first request until its release.
async fn one_at_a_time() -> (ModelServer, TestService) {
    let model = ModelServer::start(|number, _| match number {
        1 => Reply::Text("shipping".to_owned()),
        _ => Reply::Held("shipping".to_owned()),
    })
    .await;
    // Each instance has separate slots.
    let t = model.builder().alone().set("SERVICE_TRAINING_MAX_RUNS", "1").start().await;
    (model, t)
}

/// An evaluation that occupies the only slot until the release.
async fn occupy_slot(model: &ModelServer, t: &TestService) -> Run {
    let workflow = workflow(t, "openai/test").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(6, json!({}))).await;
    until("requests are in flight", async || model.request_count() == 5).await;
    assert_eq!(run.becomes("running").await["finished_at"], Value::Null);
    run
}

#[tokio::test]
async fn queued_trainings_start_oldest_first() {
    let (model, t) = one_at_a_time().await;
    let first = occupy_slot(&model, &t).await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let body = training(json!({"epochs": 1}));
    let (second, third) =
        (Run::start(&client, &workflow.id, &body).await, Run::start(&client, &workflow.id, &body).await);
    // Runs of other kinds do not wait.
    let echo = t.workflow().echo().create().await;
    let path = echo.path("/runs?wait=20");
    assert_eq!(
        super::post(&client, &path, &json!({"inputs": {"message": "x"}})).await.value()["status"],
        "succeeded"
    );
    for queued in [&second, &third] {
        let record = queued.record().await;
        assert_eq!((&record["status"], &record["started_at"]), (&json!("queued"), &Value::Null));
        assert_eq!(
            t.scalar(&format!("SELECT count(*) FROM stream_events_kept WHERE stream_id = '{}'", queued.id))
                .await,
            "0"
        );
    }
    model.release();
    for run in [&first, &second, &third] {
        assert_eq!(kind(run.events().await.last().unwrap()), "run_completed");
    }
    let started = async |run: &Run| run.record().await["started_at"].as_str().unwrap().to_owned();
    let finished = async |run: &Run| run.record().await["finished_at"].as_str().unwrap().to_owned();
    assert!(finished(&first).await <= started(&second).await);
    assert!(finished(&second).await <= started(&third).await, "one at a time, the oldest first");
}

#[tokio::test]
async fn a_queued_training_is_cancelled_at_once() {
    let (model, t) = one_at_a_time().await;
    let first = occupy_slot(&model, &t).await;
    let workflow = workflow(&t, "practice/classify").await;
    let queued = Run::start(&t.anonymous(), &workflow.id, &training(json!({"epochs": 1}))).await;
    assert_eq!(queued.record().await["status"], "queued");
    assert_eq!(queued.controlled("cancel").await["status"], "cancelled");
    let events = queued.events().await;
    assert_eq!(steps(&events), ["run_started", "training_started", "training_result", "run_cancelled"]);
    assert_eq!(queued.record().await["usage"]["llm_calls"], 0);
    assert_eq!(first.record().await["status"], "running");
    model.release();
    first.becomes("succeeded").await;
}

#[tokio::test]
async fn a_paused_queued_training_uses_no_slot() {
    let (model, t) = one_at_a_time().await;
    let first = occupy_slot(&model, &t).await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let paused = Run::start(&client, &workflow.id, &training(json!({"epochs": 1}))).await;
    assert_eq!(paused.controlled("pause").await["status"], "paused");
    assert_eq!(paused.record().await["usage"]["llm_calls"], 0);
    let third = Run::start(&client, &workflow.id, &training(json!({"epochs": 1}))).await;
    model.release();
    first.becomes("succeeded").await;
    third.becomes("succeeded").await;
    assert_eq!(paused.record().await["status"], "paused");
    assert_eq!(paused.controlled("resume").await["status"], "running");
    let events = paused.events().await;
    assert_eq!(
        (reasons(&events, "training_paused"), kind(events.last().unwrap())),
        (vec!["client"], "run_completed")
    );
    assert_eq!(super::payloads(&events, "training_started").len(), 1);
}

#[tokio::test]
async fn pausing_a_running_training_frees_its_slot() {
    let t = TestService::builder().alone().set("SERVICE_TRAINING_MAX_RUNS", "1").start().await;
    let (client, slow, quick) = (
        t.anonymous(),
        workflow(&t, "practice/classify@50ms").await,
        workflow(&t, "practice/classify").await,
    );
    let first = Run::start(&client, &slow.id, &training(json!({"epochs": 1}))).await;
    first.live(&t).await.until("training_progress").await;
    let second = Run::start(&client, &quick.id, &training(json!({"epochs": 1}))).await;
    assert_eq!(second.record().await["status"], "queued");
    assert_eq!(first.controlled("pause").await["status"], "paused");
    second.becomes("succeeded").await;
    assert_eq!(first.record().await["status"], "paused");
    first.controlled("resume").await;
    first.becomes("succeeded").await;
}

/// It waits for a slot like any other, but the request returns at once.
#[tokio::test]
async fn a_training_resumed_without_a_free_slot_is_queued() {
    let (model, t) = one_at_a_time().await;
    let first = occupy_slot(&model, &t).await;
    let workflow = workflow(&t, "practice/classify").await;
    let paused = Run::start(&t.anonymous(), &workflow.id, &training(json!({"epochs": 1}))).await;
    paused.controlled("pause").await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    assert_eq!(paused.controlled("resume").await["status"], "queued");
    let took = clock.monotonic() - begun;
    assert!(took.as_secs() < 5, "{took:?}");
    model.release();
    first.becomes("succeeded").await;
    paused.becomes("succeeded").await;
}

/// Cases in flight have 5 s during a shutdown.
#[tokio::test]
async fn a_case_that_ends_during_the_shutdown_is_not_executed_again() {
    let model = ModelServer::start(|_, _| Reply::After(4_400, "shipping".to_owned())).await;
    let mut t = model.builder().alone().start().await;
    let workflow = workflow(&t, "openai/test").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &evaluation(1, json!({}))).await;
    until("the request is sent", async || model.request_count() == 1).await;
    t.restart().await;
    let events = run.over(&t.anonymous()).events().await;
    assert_eq!(kind(events.last().unwrap()), "run_completed");
    assert_eq!(model.request_count(), 1, "the answer was stored before the process ended");
}

/// It makes no calls, so it needs no slot.
#[tokio::test]
async fn a_rescoring_needs_no_free_slot() {
    let (model, t) = one_at_a_time().await;
    let client = t.anonymous();
    let practice = workflow(&t, "practice/classify").await;
    let ended = Run::start(&client, &practice.id, &evaluation(6, json!({}))).await;
    ended.becomes("succeeded").await;
    let first = occupy_slot(&model, &t).await;
    let body = json!({"evaluators": super::label()});
    let again = super::post(&client, &format!("{}/rescore", ended.path), &body).await.expect(202);
    let again = Run::existing(&client, &practice.id, again.value()["id"].as_str().unwrap());
    again.becomes("succeeded").await;
    assert_eq!(first.record().await["status"], "running");
    model.release();
    first.becomes("succeeded").await;
}

#[tokio::test]
async fn queued_trainings_outlive_a_restart() {
    let (model, mut t) = one_at_a_time().await;
    let first = occupy_slot(&model, &t).await;
    let workflow = workflow(&t, "practice/classify").await;
    let queued = Run::start(&t.anonymous(), &workflow.id, &training(json!({"epochs": 1}))).await;
    t.restart().await;
    let client = t.anonymous();
    assert_eq!(queued.over(&client).record().await["status"], "queued");
    model.release();
    let events = first.over(&client).events().await;
    assert_eq!(
        (reasons(&events, "training_paused"), reasons(&events, "training_resumed")),
        (vec!["shutdown"], vec!["restart"])
    );
    let events = queued.over(&client).events().await;
    assert_eq!(steps(&events)[..2], ["run_started", "training_started"]);
    assert!(reasons(&events, "training_resumed").is_empty(), "it had not started");
}

/// The oldest in each workspace first, with workspaces taking turns.
#[tokio::test]
async fn workspaces_take_turns() {
    let model = ModelServer::start(|_, _| Reply::Held("shipping".to_owned())).await;
    let builder = model.builder().alone().with_bootstrap_token();
    let t = builder.set("SERVICE_TRAINING_MAX_RUNS", "1").start().await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let make = async |slug: &str, model: &str| -> String {
        let headers = [("x-workspace", slug), JSON];
        let made =
            root.send("POST", "/api/workflows", &headers, &json!({"name": model}).to_string()).await.value();
        let id = made["id"].as_str().unwrap().to_owned();
        let version = json!({"graph": super::sorting(model), "runnable_config": super::prompts(super::SEED)});
        assert_eq!(root.post(&format!("/api/workflows/{id}/versions"), &version).await.status, 201);
        id
    };
    let start = async |workflow: &str, body: &Value| -> String {
        root.post(&super::runs_of(workflow), body).await.expect(202).member("id")
    };
    let held = make("default", "openai/test").await;
    let (here, there) =
        (make("default", "practice/classify").await, make("other", "practice/classify").await);
    start(&held, &evaluation(4, json!({}))).await;
    until("requests are in flight", async || model.request_count() == 4).await;
    let few = evaluation(2, json!({}));
    let ids = [
        start(&here, &few).await,
        start(&here, &few).await,
        start(&here, &few).await,
        start(&there, &few).await,
    ];
    model.release();
    t.until_scalar("all end", "SELECT count(*) FROM runs WHERE status = 'succeeded'", "5").await;
    let order = t.scalar("SELECT string_agg(id::text, ' ' ORDER BY started_at) FROM runs").await;
    let order: Vec<&str> = order.split(' ').skip(1).collect();
    let place = |id: &String| order.iter().position(|found| found == id).unwrap();
    assert!(place(&ids[3]) <= 1, "the other workspace is served after at most one run: {order:?} of {ids:?}");
    assert!(place(&ids[0]) < place(&ids[1]) && place(&ids[1]) < place(&ids[2]), "{order:?} of {ids:?}");
}
