//! Trainings with an optimizer that an earlier version had.

use integration_tests::{AnswerExt, TestService};
use serde_json::{Value, json};

use super::{Run, get, only, post, runs_of, steps, training, workflow};

/// Optimizers that were removed.
const REMOVED: [&str; 3] = ["mipro", "opro", "random"];
const MESSAGE: &str = "must be one of textgrad, gepa, fewshot, none, auto";

/// Stores `new` as the run's optimizer in place of `old`.
async fn store_optimizer(t: &TestService, run: &Run, old: &str, new: &str) {
    let renamed =
        |column: &str| format!(r#"{column} = replace({column}, '"name":"{old}"', '"name":"{new}"')"#);
    let columns = ["request", "start"].map(renamed).join(", ");
    t.execute(&format!("UPDATE training_runs SET {columns} WHERE run_id = '{}'", run.id)).await;
}

#[tokio::test]
async fn a_request_that_names_a_removed_optimizer_is_rejected() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    for name in REMOVED {
        let refused = post(&client, &runs_of(&workflow.id), &training(json!({"name": name}))).await;
        assert_eq!(
            (refused.refusal().as_str(), refused.problems()),
            ("422 request.invalid", vec!["/training/optimizer/name choice".to_owned()]),
            "{name}"
        );
        assert_eq!(refused.value()["detail"]["errors"][0]["message"], MESSAGE, "{name}");
    }
}

#[tokio::test]
async fn an_ended_training_with_a_removed_optimizer_lists_and_shows_as_before() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await);
    let run = Run::start(&client, &workflow.id, &training(json!({"name": "none"}))).await;
    let before = run.becomes("succeeded").await;
    store_optimizer(&t, &run, "none", "mipro").await;
    let mut expected = before;
    expected["optimizer"]["name"] = json!("mipro");
    assert_eq!(run.record().await, expected);
    let listed = get(&client, &runs_of(&workflow.id)).await.value();
    assert_eq!(listed["data"][0]["optimizer"]["name"], "mipro", "{listed}");
    assert_eq!(get(&client, &format!("{}/report", run.path)).await.status, 200);
}

#[tokio::test]
async fn an_unfinished_training_with_a_removed_optimizer_fails_when_it_resumes() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify@30ms").await);
    let request = training(json!({"name": "textgrad", "epochs": 1}));
    let run = Run::start(&client, &workflow.id, &request).await;
    run.live(&t).await.until("training_progress").await;
    run.controlled("pause").await;
    run.becomes("paused").await;
    store_optimizer(&t, &run, "textgrad", "mipro").await;
    run.controlled("resume").await;
    let record = run.becomes("failed").await;
    let message = format!("The request does not validate. /training/optimizer/name: {MESSAGE}");
    let error = &record["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!("request.invalid"), &json!(message)));
    let events = run.events().await;
    assert_eq!(only(&events, "run_failed")["error"]["code"], "request.invalid");
    assert_eq!(steps(&events).last(), Some(&"run_failed"));
    assert_eq!(record["optimizer"]["name"], Value::from("mipro"), "it is still shown");
}
