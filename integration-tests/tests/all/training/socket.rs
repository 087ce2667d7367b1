//! Trainings over the websocket: their events, request and run ids, and readers on other sockets.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, Socket, TestService, Workflow};
use kernel::{Clock, SystemClock};
use serde_json::{Value, json};

use super::model::{ModelServer, Reply};
use super::{Run, evaluation, kind, message, new_run_id, only, post, runs_of, steps, training, workflow};

const ENDS: [&str; 4] = ["run_completed", "run_failed", "run_cancelled", "error"];

/// Messages up to the run's last event, or up to an error.
async fn to_end(socket: &mut Socket) -> Vec<Value> {
    let mut all = Vec::new();
    loop {
        let message = socket.next().await;
        let is_last = ENDS.contains(&kind(&message));
        all.push(message);
        if is_last {
            return all;
        }
    }
}

/// The messages without their request id, which each of them must have.
fn unlabelled(mut messages: Vec<Value>, request_id: &str) -> Vec<Value> {
    for message in &mut messages {
        assert_eq!(message.as_object_mut().unwrap().remove("request_id"), Some(json!(request_id)));
    }
    messages
}

/// The code of the only message, which must be an error outside of any run.
fn refusal(messages: &[Value]) -> String {
    refusal_of(messages, &Value::Null)
}

/// The code of the only message, which must be an error outside of a stream, with the run that the request named.
fn refusal_of(messages: &[Value], run: &Value) -> String {
    let [error] = messages else { panic!("{messages:?}") };
    assert_eq!((kind(error), &error["run_id"], &error["seq"]), ("error", run, &json!(0)), "{error}");
    error["payload"]["code"].as_str().unwrap().to_owned()
}

async fn open(t: &TestService) -> (Workflow, Socket) {
    let workflow = workflow(t, "practice/classify").await;
    let socket = Socket::for_workflow(t, &workflow, &[]).await;
    (workflow, socket)
}

#[tokio::test]
async fn a_training_over_a_socket_has_the_events_of_http() {
    let t = TestService::start().await;
    let (workflow, mut socket) = open(&t).await;
    socket.say(&message("train_workflow", "r1", &training(json!({"epochs": 2})))).await;
    let received = unlabelled(to_end(&mut socket).await, "r1");
    assert_eq!(steps(&received)[..2], ["run_started", "training_started"]);
    assert_eq!(only(&received, "training_result")["outcome"], "improved");
    let run = Run::existing(&t.anonymous(), &workflow.id, received[0]["run_id"].as_str().unwrap());
    assert_eq!(received, run.events().await);
    // Another socket reads the whole stream, or the rest of it.
    let mut other = Socket::for_workflow(&t, &workflow, &[]).await;
    other.say(&json!({"type": "subscribe", "run_id": run.id, "after_seq": 0})).await;
    assert_eq!(to_end(&mut other).await, received);
    other.say(&json!({"type": "subscribe", "run_id": run.id, "after_seq": 100})).await;
    assert_eq!(to_end(&mut other).await, received[100..]);
    other.say(&json!({"type": "subscribe", "run_id": run.id, "after_seq": received.len()})).await;
    assert_eq!(other.settle().await, [Value::Null; 0], "nothing follows the end");
    other.close().await;
    socket.close().await;
}

#[tokio::test]
async fn a_reader_joins_while_the_training_executes() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify@20ms").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&message("train_workflow", "starter", &training(json!({"epochs": 2})))).await;
    let first = socket.next().await;
    let id = first["run_id"].as_str().unwrap().to_owned();
    let mut reader = Socket::for_workflow(&t, &workflow, &[]).await;
    reader.say(&json!({"type": "subscribe", "run_id": id, "request_id": "reader"})).await;
    // One subscription per socket and run.
    socket.say(&json!({"type": "subscribe", "run_id": id, "request_id": "again"})).await;
    let mut received = vec![first];
    while !ENDS[..3].contains(&kind(received.last().unwrap())) {
        received.push(socket.next().await);
    }
    let again =
        received.iter().position(|message| kind(message) == "error").expect("it reads the run already");
    let again = received.remove(again);
    assert_eq!(
        (&again["payload"]["code"], &again["request_id"]),
        (&json!("ws.already_subscribed"), &json!("again"))
    );
    let read = unlabelled(to_end(&mut reader).await, "reader");
    assert_eq!(read, unlabelled(received, "starter"));
}

/// A client gets its run's id at once, however long the first model reply takes.
#[tokio::test]
async fn a_run_reports_its_start_before_the_first_answer() {
    let model = ModelServer::start(|_, _| Reply::Held("shipping".to_owned())).await;
    let t = model.service().await;
    let workflow = workflow(&t, "openai/test").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    for (operation, body) in
        [("train_workflow", training(json!({"epochs": 1}))), ("evaluate_workflow", evaluation(4, json!({})))]
    {
        let clock = SystemClock::new();
        let begun = clock.monotonic();
        socket.say(&message(operation, "r", &body)).await;
        let first = socket.next().await;
        // Long before a case times out.
        assert!(clock.monotonic() - begun < Duration::from_secs(5), "{operation}");
        assert_eq!((kind(&first), &first["seq"]), ("run_started", &json!(1)), "{operation}");
        let run = Run::existing(&t.anonymous(), &workflow.id, first["run_id"].as_str().unwrap());
        let record = run.becomes("running").await;
        assert_eq!(
            (record["started_at"].is_string(), &record["usage"]["llm_calls"]),
            (true, &json!(0)),
            "{operation}"
        );
        run.controlled("cancel").await;
        assert_eq!(kind(to_end(&mut socket).await.last().unwrap()), "run_cancelled", "{operation}");
    }
}

#[tokio::test]
async fn a_closed_socket_does_not_stop_its_training() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify@20ms").await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&message("train_workflow", "r", &training(json!({"epochs": 1})))).await;
    let id = socket.next().await["run_id"].as_str().unwrap().to_owned();
    // Disconnected without a close frame.
    drop(socket);
    let run = Run::existing(&t.anonymous(), &workflow.id, &id);
    let events = run.events().await;
    assert_eq!(kind(events.last().unwrap()), "run_completed");
    assert!(!steps(&events).contains(&"training_paused"));
}

#[tokio::test]
async fn a_repeated_run_id_attaches_only_with_the_same_body() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify@20ms").await;
    let mut body = training(json!({"epochs": 1}));
    body["run_id"] = json!(new_run_id());
    let start = message("train_workflow", "r1", &body);
    let mut first = Socket::for_workflow(&t, &workflow, &[]).await;
    first.say(&start).await;
    assert_eq!(first.next().await["run_id"], body["run_id"]);
    // While it executes, and after its end.
    let mut second = Socket::for_workflow(&t, &workflow, &[]).await;
    second.say(&start).await;
    let whole = to_end(&mut second).await;
    assert_eq!((&whole[0]["seq"], &whole[0]["run_id"]), (&json!(1), &body["run_id"]));
    second.say(&start).await;
    assert_eq!(to_end(&mut second).await, whole);
    let mut other = body.clone();
    other["training"]["optimizer"]["epochs"] = json!(2);
    second.say(&message("train_workflow", "r1", &other)).await;
    assert_eq!(refusal(&to_end(&mut second).await), "idempotency.key_reused");
    // The id is not valid for a run in another workflow either.
    let elsewhere = super::workflow(&t, "practice/classify").await;
    let mut third = Socket::for_workflow(&t, &elsewhere, &[]).await;
    third.say(&start).await;
    assert_eq!(refusal(&to_end(&mut third).await), "idempotency.key_reused");
    assert_eq!(t.scalar("SELECT count(*) FROM training_runs").await, "1");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

/// A returning client has a new `request_id`, which only labels its responses.
#[tokio::test]
async fn a_run_id_can_be_repeated_with_another_request_id() {
    let t = TestService::start().await;
    let (workflow, mut socket) = open(&t).await;
    let mut body = training(json!({"epochs": 1}));
    body["run_id"] = json!(new_run_id());
    socket.say(&message("train_workflow", "first", &body)).await;
    let received = unlabelled(to_end(&mut socket).await, "first");
    let mut other = Socket::for_workflow(&t, &workflow, &[]).await;
    other.say(&message("train_workflow", "second", &body)).await;
    assert_eq!(unlabelled(to_end(&mut other).await, "second"), received);
}

#[tokio::test]
async fn the_same_run_id_over_http_starts_one_run() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let mut body = training(json!({"epochs": 1}));
    body["run_id"] = json!(new_run_id());
    let path = runs_of(&workflow.id);
    let started = post(&client, &path, &body).await;
    assert_eq!((started.status, &started.value()["id"]), (202, &body["run_id"]));
    assert_eq!(started.header("idempotency-replayed"), None);
    Run::existing(&client, &workflow.id, body["run_id"].as_str().unwrap()).becomes("succeeded").await;
    let again = post(&client, &path, &body).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (202, Some("true")));
    assert_eq!(again.value(), started.value(), "the same answer to each retry");
    body["inputs"] = json!({"more": 1});
    assert_eq!(post(&client, &path, &body).await.refusal(), "422 idempotency.key_reused");
    for wrong in ["x", "7d444840-9dc0-41d1-b245-5ffdce74fad2"] {
        body["run_id"] = json!(wrong);
        assert_eq!(post(&client, &path, &body).await.problems(), ["/run_id format"], "{wrong}");
    }
    // A UUIDv7 contains its creation time.
    body["run_id"] = json!("01890000-0000-7000-8000-000000000001");
    assert_eq!(post(&client, &path, &body).await.problems(), ["/run_id range"]);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

/// The id of a run of another kind is taken.
#[tokio::test]
async fn a_run_id_of_another_run_is_rejected() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let path = workflow.path("/runs?wait=20");
    let plain = post(&client, &path, &json!({"inputs": {"message": "My invoice"}})).await.value();
    let mut body = training(json!({"epochs": 1}));
    body["run_id"] = plain["id"].clone();
    let refused = post(&client, &runs_of(&workflow.id), &body).await;
    assert_eq!(refused.refusal(), "422 idempotency.key_reused");
    assert_eq!(t.scalar("SELECT count(*) FROM training_runs").await, "0");
}

#[tokio::test]
async fn an_idempotency_key_starts_one_run() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let headers = [JSON, ("idempotency-key", "k1")];
    let start = async |epochs: u64| {
        let body = training(json!({"epochs": epochs})).to_string();
        client.send("POST", &runs_of(&workflow.id), &headers, body).await.unwrap()
    };
    let (first, second) = (start(1).await, start(1).await);
    assert_eq!((first.status, second.status), (202, 202), "{}", second.text());
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.value()["id"], second.value()["id"]);
    assert_eq!(start(2).await.refusal(), "422 idempotency.key_reused");
    let id = first.value()["id"].as_str().unwrap().to_owned();
    Run::existing(&client, &workflow.id, &id).becomes("succeeded").await;
    t.until_scalar("one run", "SELECT count(*) FROM training_runs", "1").await;
}

#[tokio::test]
async fn a_socket_accesses_only_runs_of_its_workflow() {
    let t = TestService::start().await;
    let (workflow, mut socket) = open(&t).await;
    let run = Run::start(&t.anonymous(), &workflow.id, &training(json!({"name": "none"}))).await;
    run.becomes("succeeded").await;
    let other = super::workflow(&t, "practice/classify").await;
    let mut elsewhere = Socket::for_workflow(&t, &other, &[]).await;
    elsewhere.say(&json!({"type": "subscribe", "run_id": run.id})).await;
    assert_eq!(refusal(&to_end(&mut elsewhere).await), "run.not_found");
    let named = json!(run.id);
    for kind in ["pause", "resume", "cancel"] {
        for (socket, code) in [(&mut elsewhere, "run.not_found"), (&mut socket, "run.not_active")] {
            socket.say(&json!({"type": kind, "run_id": run.id})).await;
            assert_eq!(refusal_of(&to_end(socket).await, &named), code, "{kind}");
        }
    }
    // The socket can still be used.
    assert_eq!(socket.settle().await, [Value::Null; 0]);
}
