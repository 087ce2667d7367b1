//! Retention of training data, and immutable data.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, TestService, until};
use serde_json::json;

use super::{Run, checkpoints_of, evaluation, get, label, post, training, training_of, workflow};

const DAY: Duration = Duration::from_secs(86_400);

/// Tables with rows of one run only.
const OF_RUN: [&str; 6] = [
    "training_runs",
    "training_calls",
    "training_cases",
    "training_candidates",
    "training_marks",
    "stream_events_kept",
];
/// Tables with the cases from a request.
const OF_DATASET: [&str; 3] = ["datasets", "dataset_versions", "dataset_entries"];

async fn rows(t: &TestService, table: &str) -> u64 {
    t.scalar(&format!("SELECT count(*) FROM {table}")).await.parse().unwrap()
}

/// Advances the clock until the table has this many rows.
async fn until_rows(t: &TestService, table: &str, expected: u64) {
    let found = until(table, async || rows(t, table).await == expected);
    t.while_time_passes_in(Duration::from_secs(600), found).await;
}

async fn trained(t: &TestService, workflow: &str) -> Run {
    let run =
        t.while_time_passes(Run::start(&t.anonymous(), workflow, &training(json!({"epochs": 1})))).await;
    assert_eq!(t.while_time_passes(run.becomes("succeeded")).await["outcome"], "improved");
    run
}

#[tokio::test]
async fn an_expired_training_leaves_only_its_checkpoints() {
    // Other runs' events are deleted by whole days: just after midnight that takes almost three.
    let t = TestService::builder().manual_clock().set("SERVICE_RUN_RETENTION_DAYS", "5").start().await;
    let workflow = workflow(&t, "practice/classify").await.id;
    let run = trained(&t, &workflow).await;
    let echo = t.workflow().echo().create().await;
    let other = echo.path("/runs?wait=20");
    let other = t.while_time_passes(t.post(&other, r#"{"inputs": {"message": "x"}}"#)).await;
    assert_eq!(other.value()["status"], "succeeded");
    for table in OF_RUN.into_iter().chain(OF_DATASET).chain(["dataset_cases"]) {
        assert!(rows(&t, table).await > 0, "{table}");
    }
    let checkpoints = get(&t.anonymous(), &checkpoints_of(&workflow)).await;
    assert!(checkpoints.value().as_array().unwrap().len() > 1);
    // Training events stay readable beyond the day of other runs' events.
    t.advance(DAY + DAY / 2);
    until_rows(&t, "streams", 1).await;
    let events = t.while_time_passes(run.events()).await;
    super::only(&events, "training_result");
    t.advance(2 * DAY);
    until_rows(&t, "runs", 0).await;
    for table in OF_RUN.into_iter().chain(OF_DATASET).chain(["streams"]) {
        assert_eq!(rows(&t, table).await, 0, "{table}");
    }
    let client = t.anonymous();
    for path in [run.path.clone(), format!("{}/events", run.path)] {
        assert_eq!(get(&client, &path).await.refusal(), "404 run.not_found", "{path}");
    }
    assert_eq!(get(&client, &checkpoints_of(&workflow)).await.value(), checkpoints.value());
    // Their prompts can start a new training.
    let next = training_of(super::cases(2), json!({"name": "none", "resume": {"config_version": 1}}));
    let next = t.while_time_passes(Run::start(&client, &workflow, &next)).await;
    t.while_time_passes(next.becomes("succeeded")).await;
}

/// A case is stored by content: it stays while another dataset has it.
#[tokio::test]
async fn cases_without_a_dataset_are_deleted_after_a_day() {
    let t = TestService::builder().manual_clock().set("SERVICE_RUN_RETENTION_DAYS", "3").start().await;
    let workflow = workflow(&t, "practice/classify").await.id;
    trained(&t, &workflow).await;
    assert_eq!(rows(&t, "dataset_cases").await, 24);
    t.advance(2 * DAY);
    // The same first cases, two days later.
    let again = training_of(super::cases(5), json!({"name": "none"}));
    let again = t.while_time_passes(Run::start(&t.anonymous(), &workflow, &again)).await;
    t.while_time_passes(again.becomes("succeeded")).await;
    assert_eq!(rows(&t, "dataset_cases").await, 24, "each case is stored once");
    t.advance(DAY + DAY / 2);
    until_rows(&t, "runs", 1).await;
    until_rows(&t, "dataset_cases", 5).await;
    let cases = get(&t.anonymous(), &format!("{}/cases?limit=200", again.path)).await.value();
    assert_eq!(cases["data"].as_array().unwrap().len(), 5);
}

/// Cases of a run that was never stored: the request died in between.
#[tokio::test]
async fn cases_of_an_abandoned_start_are_deleted() {
    let t = TestService::builder().manual_clock().start().await;
    let workflow = workflow(&t, "practice/classify").await.id;
    let run = trained(&t, &workflow).await;
    let orphan = "01890000-0000-7000-8000-00000000000a";
    t.execute(&format!(
        "INSERT INTO datasets SELECT '{orphan}', workspace_id, workflow_id, NULL, created_at FROM datasets"
    ))
    .await;
    t.execute(&format!(
        "INSERT INTO dataset_entries SELECT '{orphan}', 0, 1, NULL, digest FROM dataset_entries LIMIT 1"
    ))
    .await;
    t.advance(2 * DAY);
    until_rows(&t, "datasets", 1).await;
    assert_eq!(t.scalar("SELECT id::text FROM datasets").await, run.id, "that of a run stays with it");
    assert_eq!(rows(&t, "dataset_entries").await, 24);
}

#[tokio::test]
async fn checkpoints_cannot_be_changed_or_deleted() {
    let t = TestService::start().await;
    let workflow = workflow(&t, "practice/classify").await;
    let run =
        Run::start(&t.anonymous(), &workflow.id, &training_of(super::cases(4), json!({"name": "none"})))
            .await;
    run.becomes("succeeded").await;
    let before = get(&t.anonymous(), &checkpoints_of(&workflow.id)).await.value();
    t.execute(
        "CREATE FUNCTION tried(change text) RETURNS text LANGUAGE plpgsql AS $$
         BEGIN EXECUTE change; RETURN 'done'; EXCEPTION WHEN OTHERS THEN RETURN SQLERRM; END $$",
    )
    .await;
    // A trigger stops even the tables' owner.
    for change in [
        "UPDATE training_checkpoints SET score = 1",
        "UPDATE training_checkpoints SET is_best = NOT is_best",
        "DELETE FROM training_checkpoints",
        "TRUNCATE training_checkpoints",
    ] {
        let error = t.scalar(&format!("SELECT tried('{change}')")).await;
        assert_eq!(error, "training_checkpoints is append-only", "{change}");
    }
    // The service's role lacks the privileges.
    for right in ["UPDATE", "DELETE", "TRUNCATE"] {
        let may = format!("SELECT has_table_privilege('callboard_app', 'training_checkpoints', '{right}')");
        assert_eq!(t.scalar(&may).await, "false", "{right}");
    }
    assert_eq!(
        t.scalar("SELECT has_table_privilege('callboard_app', 'training_checkpoints', 'INSERT')").await,
        "true"
    );
    assert_eq!(get(&t.anonymous(), &checkpoints_of(&workflow.id)).await.value(), before);
}

/// A run that waits for a client does not expire, however long it waits.
#[tokio::test]
async fn a_paused_training_does_not_expire() {
    let t = TestService::builder().manual_clock().set("SERVICE_RUN_RETENTION_DAYS", "3").start().await;
    let done = workflow(&t, "practice/classify").await.id;
    let slow = workflow(&t, "practice/classify@1000ms").await.id;
    let client = t.anonymous();
    let run = t.while_time_passes(Run::start(&client, &slow, &training(json!({"epochs": 1})))).await;
    assert_eq!(t.while_time_passes(run.controlled("pause")).await["status"], "paused");
    trained(&t, &done).await;
    t.advance(5 * DAY);
    until_rows(&t, "runs", 1).await;
    assert_eq!(run.record().await["status"], "paused");
    t.while_time_passes(run.controlled("resume")).await;
    assert_eq!(t.while_time_passes(run.becomes("succeeded")).await["outcome"], "improved");
}

/// Number of stored replies.
async fn replies(t: &TestService) -> String {
    t.scalar("SELECT count(reply) FROM training_calls").await
}

#[tokio::test]
async fn replies_are_erased_after_the_end_if_the_workspace_drops_them() {
    let t = TestService::start().await;
    let (client, workflow) = (t.anonymous(), workflow(&t, "practice/classify").await.id);
    let request = evaluation(4, json!({"cache": "workflow"}));
    let first = Run::start(&client, &workflow, &request).await;
    let scored = first.becomes("succeeded").await;
    assert_eq!(scored["usage"]["llm_calls"], 4);
    let cached = Run::start(&client, &workflow, &request).await;
    assert_eq!(cached.becomes("succeeded").await["usage"]["cached_calls"], 4);
    assert_eq!(replies(&t).await, "8", "they are kept");
    let traced = async |run: &Run| {
        let cases = get(&client, &format!("{}/cases?trace=true", run.path)).await.value();
        let step = cases["data"][0]["trace"][0].clone();
        (step["output"].is_object(), step["inputs"].is_object(), step["llm"].as_array().unwrap().len())
    };
    assert_eq!(traced(&first).await, (true, true, 1));
    let drop = json!({"training_calls": "drop"}).to_string();
    let changed = client.send("PATCH", "/api/workspaces/default", &[JSON], drop).await.unwrap();
    assert_eq!((changed.status, &changed.value()["training_calls"]), (200, &json!("drop")));
    // The end of a training erases its replies, and those of earlier runs.
    let trained = Run::start(&client, &workflow, &training(json!({"epochs": 1}))).await;
    assert_eq!(trained.becomes("succeeded").await["outcome"], "improved");
    until("no reply", async || replies(&t).await == "0").await;
    let left =
        "SELECT count(*) > 8 AND bool_and(length(key) = 32) AND sum(output_tokens) > 0 FROM training_calls";
    assert_eq!(t.scalar(left).await, "true");
    // Scores, usage, outputs and traces stay, without messages.
    for run in [&first, &trained] {
        assert_eq!(traced(run).await, (true, false, 0));
    }
    assert_eq!(first.record().await, scored);
    for run in [&first, &trained] {
        assert_eq!(get(&client, &format!("{}/report", run.path)).await.status, 200);
    }
    let again = post(&client, &format!("{}/rescore", first.path), &json!({"evaluators": label()})).await;
    let again = Run::existing(&client, &workflow, again.value()["id"].as_str().unwrap());
    let judged = again.becomes("succeeded").await;
    assert_eq!((&judged["best_score"], &judged["usage"]["llm_calls"]), (&scored["best_score"], &json!(0)));
    // No stored reply is left to reuse.
    let run = Run::start(&client, &workflow, &request).await;
    let used = run.becomes("succeeded").await["usage"].clone();
    assert_eq!((&used["llm_calls"], &used["cached_calls"]), (&json!(4), &json!(0)));
}
