//! Paused and resumed trainings: no calls are made meanwhile, and the result is the same as without a pause.

use integration_tests::{AnswerExt, Socket, TestService, graphs, until};
use serde_json::{Value, json};

use super::model::{COLOURS, ModelServer, Reply, colours, painter};
use super::{
    Run, assert_same, kind, message, post, prompts, reasons, sorting, steps, training, training_of, workflow,
};

/// A model with slow replies.
async fn slow_painter() -> ModelServer {
    ModelServer::start(|_, request| Reply::After(15, painter(request))).await
}

async fn colour_workflow(t: &TestService) -> String {
    t.workflow().graph(sorting("openai/test")).config(prompts(COLOURS)).create().await.id
}

fn colour_training() -> Value {
    training_of(colours(&[("train", 2), ("val", 2)]), json!({"epochs": 2}))
}

#[tokio::test]
async fn a_paused_training_calls_no_model_and_has_the_same_result() {
    let model = slow_painter().await;
    let t = model.service().await;
    let client = t.anonymous();
    let undisturbed =
        Run::start(&client, &colour_workflow(&t).await, &colour_training()).await.events().await;
    let before = model.request_count();
    let run = Run::start(&client, &colour_workflow(&t).await, &colour_training()).await;
    until("the training has started", async || model.request_count() > before + 10).await;
    let paused = run.controlled("pause").await;
    assert_eq!(paused["status"], "paused");
    let calls = model.request_count();
    assert_eq!(
        paused["usage"]["llm_calls"],
        calls - before,
        "what was in flight has finished, and is stored"
    );
    // Other work continues meanwhile.
    let echo = t.workflow().echo().create().await;
    for _ in 0..3 {
        let path = echo.path("/runs?wait=20");
        assert_eq!(
            post(&client, &path, &json!({"inputs": {"message": "x"}})).await.value()["status"],
            "succeeded"
        );
    }
    assert_eq!((model.request_count(), &run.record().await), (calls, &paused));
    assert_eq!(run.controlled("resume").await["status"], "running");
    let events = run.events().await;
    assert_eq!(reasons(&events, "training_paused"), ["client"]);
    assert_eq!(reasons(&events, "training_resumed"), ["client"]);
    // No event lies between the two.
    let kinds: Vec<&str> = events.iter().map(kind).collect();
    let at = kinds.iter().position(|kind| *kind == "training_paused").unwrap();
    assert_eq!(kinds[at + 1], "training_resumed");
    assert_same(&events, &undisturbed);
    assert_eq!(
        run.record().await["usage"]["llm_calls"],
        model.request_count() - before,
        "no request was repeated"
    );
    assert_eq!(before, model.request_count() - before, "as many calls as without the pause");
}

#[tokio::test]
async fn a_repeated_control_changes_nothing() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@30ms").await);
    let run = Run::start(&client, &workflow.id, &training(json!({"epochs": 1}))).await;
    run.live(&t).await.until("training_progress").await;
    assert_eq!(run.controlled("resume").await["status"], "running", "it was not paused");
    let paused = run.controlled("pause").await;
    assert_eq!((paused["status"].clone(), run.controlled("pause").await), (json!("paused"), paused));
    assert_eq!(run.controlled("resume").await["status"], "running");
    assert_eq!(run.control("resume").await.status, 200);
    let events = run.events().await;
    assert_eq!(
        (reasons(&events, "training_paused"), reasons(&events, "training_resumed")),
        (vec!["client"], vec!["client"])
    );
    assert_eq!(run.control("pause").await.refusal(), "409 run.not_active");
}

#[tokio::test]
async fn a_training_is_paused_and_resumed_over_the_websocket() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify@30ms").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&message("train_workflow", "t", &training(json!({"epochs": 1})))).await;
    let id = socket.until("training_progress").await[0]["run_id"].clone();
    socket.say(&json!({"type": "pause", "run_id": id, "request_id": "p"})).await;
    let received = socket.until("training_paused").await;
    assert_eq!(received.last().unwrap()["payload"], json!({"reason": "client"}));
    let run = Run::existing(&t.anonymous(), &workflow.id, id.as_str().unwrap());
    run.becomes("paused").await;
    assert_eq!(socket.settle().await, [Value::Null; 0], "nothing follows");
    socket.say(&json!({"type": "resume", "run_id": id})).await;
    assert_eq!(socket.next().await["type"], "training_resumed");
    assert_eq!(kind(socket.until("run_completed").await.last().unwrap()), "run_completed");
}

#[tokio::test]
async fn an_evaluation_is_paused_like_a_training() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@50ms").await);
    let run = Run::start(&client, &workflow.id, &super::evaluation(24, json!({"max_concurrency": 2}))).await;
    run.live(&t).await.until("evaluation_progress").await;
    assert_eq!(run.controlled("pause").await["status"], "paused");
    run.controlled("resume").await;
    let events = run.events().await;
    assert_eq!(
        steps(&events),
        ["run_started", "training_paused", "training_resumed", "evaluation_result", "run_completed"]
    );
    assert_eq!(super::only(&events, "evaluation_result")["n_cases"], 24);
}

#[tokio::test]
async fn a_paused_training_outlives_the_service_and_stays_paused() {
    let mut t = TestService::start().await;
    let body = training(json!({"epochs": 1}));
    let [one, other] =
        [workflow(&t, "practice/classify@30ms").await, workflow(&t, "practice/classify@30ms").await];
    let undisturbed = Run::start(&t.anonymous(), &one.id, &body).await.events().await;
    let run = Run::start(&t.anonymous(), &other.id, &body).await;
    run.live(&t).await.until("training_progress").await;
    run.controlled("pause").await;
    t.restart().await;
    let run = run.over(&t.anonymous());
    assert_eq!(run.record().await["status"], "paused");
    assert_eq!(run.controlled("resume").await["status"], "running");
    let events = run.events().await;
    assert_eq!(reasons(&events, "training_resumed"), ["client"]);
    assert_same(&events, &undisturbed);
}

/// The pause waits ten seconds for a call in flight, then drops it, and the case is executed again later.
#[tokio::test]
async fn a_stuck_call_is_dropped_and_repeated_after_the_pause() {
    let model = ModelServer::start(|number, request| match number {
        5..=8 => Reply::Held(painter(request)),
        _ => Reply::Text(painter(request)),
    })
    .await;
    let t = model.builder().manual_clock().start().await;
    let client = t.anonymous();
    let workflow = colour_workflow(&t).await;
    let mut body = colour_training();
    body["training"]["optimizer"]["case_timeout_seconds"] = json!(300);
    let run = t.while_time_passes(Run::start(&client, &workflow, &body)).await;
    t.while_time_passes(until("calls are in flight", async || model.request_count() == 8)).await;
    let paused = t.while_time_passes(run.controlled("pause")).await;
    assert_eq!(paused["status"], "paused");
    until("the calls are dropped", async || model.gone() == 4).await;
    assert_eq!(
        (model.request_count(), &paused["usage"]["llm_calls"]),
        (8, &json!(8)),
        "they were requests all the same"
    );
    model.release();
    t.while_time_passes(run.controlled("resume")).await;
    let events = t.while_time_passes(run.events()).await;
    assert_eq!(kind(events.last().unwrap()), "run_completed");
    assert_eq!(run.record().await["usage"]["llm_calls"], model.request_count());
}

/// A client pauses, and changes its mind while cases in flight still finish.
#[tokio::test]
async fn a_pause_revoked_before_its_effect_stops_nothing() {
    let model = ModelServer::start(|number, request| match number {
        5..=8 => Reply::Held(painter(request)),
        _ => Reply::Text(painter(request)),
    })
    .await;
    let t = model.service().await;
    let workflow = colour_workflow(&t).await;
    let run = Run::start(&t.anonymous(), &workflow, &colour_training()).await;
    until("calls are in flight", async || model.request_count() == 8).await;
    let mut socket = Socket::open(t.address(), &format!("/ws/workflow/{workflow}"), &[]).await;
    socket.say(&json!({"type": "pause", "run_id": run.id})).await;
    let requested = "SELECT (pause_requested_at IS NOT NULL)::text FROM training_runs";
    t.until_scalar("the pause is stored", requested, "true").await;
    assert_eq!(run.record().await["status"], "running", "cases are in flight");
    run.controlled("resume").await;
    model.release();
    assert_eq!(run.becomes("succeeded").await["outcome"], "improved");
}

/// A resumed training does not wait in its workflow's queue.
#[tokio::test]
async fn a_resumed_training_does_not_count_towards_the_run_limit_of_its_workflow() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@30ms").await);
    t.configure(&workflow, &json!({"max_concurrent_runs": 1})).await.expect(200);
    let run = Run::start(&client, &workflow.id, &training(json!({"epochs": 1}))).await;
    run.live(&t).await.until("training_progress").await;
    run.controlled("pause").await;
    // The workflow's only run slot is taken until that run is cancelled.
    let busy = json!({"graph": graphs::chain(&[json!({"name": "ok", "type": "llm", "model": "practice/rewrite@10000ms",
                                                      "user": "a b c d e f"})], None)});
    post(&client, &workflow.path("/versions"), &busy).await.expect(201);
    let other = post(&client, &workflow.path("/runs"), &json!({})).await.value();
    let other = format!("/api/runs/{}", other["id"].as_str().unwrap());
    until("the other run executes", async || {
        super::get(&client, &other).await.value()["status"] == "running"
    })
    .await;
    assert_eq!(run.controlled("resume").await["status"], "running");
    run.becomes("succeeded").await;
    assert_eq!(super::get(&client, &other).await.value()["status"], "running");
    assert_eq!(client.send("POST", &format!("{other}/cancel"), &[], "").await.unwrap().status, 200);
}
