//! Trainings on two instances: one takes over from the other, and either accepts controls for the owner.

use integration_tests::{Socket, TestService};
use kernel::{Clock, SystemClock};
use serde_json::json;

use super::{Run, assert_same, kind, only, reasons, steps, training, workflow};

#[tokio::test]
async fn an_instance_takes_over_a_training_from_a_stopping_one() {
    let mut t = TestService::start().await;
    let other = t.another_instance().await;
    let body = training(json!({"epochs": 2}));
    let undisturbed = workflow(&other, "practice/classify@40ms").await;
    let undisturbed = Run::start(&other.anonymous(), &undisturbed.id, &body).await.events().await;
    let workflow = workflow(&t, "practice/classify@40ms").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &body).await;
    run.live(&t).await.until("training_checkpoint").await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    t.stop().await;
    // The shutdown waits for the cases in flight, but not for the full grace period.
    let took = clock.monotonic() - begun;
    assert!(took.as_secs() < 4, "{took:?}");
    let run = run.over(&other.anonymous());
    let events = run.events().await;
    assert_eq!(
        (reasons(&events, "training_paused"), reasons(&events, "training_resumed")),
        (vec!["shutdown"], vec!["takeover"])
    );
    assert_eq!(kind(events.last().unwrap()), "run_completed");
    only(&events, "training_started");
    assert_same(&events, &undisturbed);
    let record = run.record().await;
    assert_eq!(record["usage"]["llm_calls"], only(&undisturbed, "training_result")["usage"]["llm_calls"]);
}

#[tokio::test]
async fn an_instance_cancels_the_training_of_another_one() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = workflow(&t, "practice/classify@100ms").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &training(json!({"epochs": 3}))).await;
    run.live(&t).await.until("training_progress").await;
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    let record = run.over(&other.anonymous()).controlled("cancel").await;
    assert_eq!(record["status"], "cancelled", "{record}");
    let took = clock.monotonic() - begun;
    assert!(took.as_secs() < 2, "{took:?}");
    let events = run.events().await;
    assert_eq!(steps(&events)[steps(&events).len() - 2..], ["training_result", "run_cancelled"]);
}

/// A client does not know which instance executes its training.
#[tokio::test]
async fn an_instance_pauses_and_resumes_the_training_of_another_one() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = workflow(&t, "practice/classify@100ms").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &training(json!({"epochs": 2}))).await;
    run.live(&t).await.until("training_progress").await;
    let there = run.over(&other.anonymous());
    assert_eq!(there.controlled("pause").await["status"], "paused");
    assert_eq!(run.record().await["status"], "paused");
    // Either may claim it from the queue.
    assert_eq!(there.controlled("resume").await["status"], "running");
    let events = run.events().await;
    assert_eq!(
        (reasons(&events, "training_paused"), reasons(&events, "training_resumed")),
        (vec!["client"], vec!["client"])
    );
    assert_eq!(kind(events.last().unwrap()), "run_completed");
}

#[tokio::test]
async fn a_training_of_another_instance_is_read_live() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = workflow(&t, "practice/classify@20ms").await;
    let run = Run::start(&t.anonymous(), &workflow.id, &training(json!({"epochs": 1}))).await;
    let mut socket = Socket::open(other.address(), &format!("/ws/workflow/{}", workflow.id), &[]).await;
    socket.say(&json!({"type": "subscribe", "run_id": run.id})).await;
    let read = socket.until("run_completed").await;
    assert_eq!(read, run.events().await);
    assert_eq!(read, run.over(&other.anonymous()).events().await);
}
