//! Workflow runs as actors: taken over, ended when unreadable, cut off at shutdown, stopped.

use actors::kinds::workflow::{NewRun, RunOptions};
use serde_json::json;
use store::RunState;
use uuid::Uuid;

use crate::support::house::{House, Instance, stopped_clock};
use crate::support::{millis, until, until_sql};

const WORDS: &str = "one two three four five six seven eight nine ten";

async fn begin(instance: &Instance, text: &str) -> Uuid {
    let new = NewRun {
        limited: false,
        workspace: instance.workspace(),
        version: std::sync::Arc::clone(&instance.version),
        inputs: json!({"message": text}),
        options: RunOptions::default(),
        trigger: "api",
        idempotency: None,
    };
    instance.system.runs().start(new).await.unwrap().run
}

async fn ended(instance: &Instance, run: Uuid) -> (RunState, Option<String>) {
    instance.system.runs().wait(run, millis(20_000)).await.unwrap();
    let run = instance.store.run(run).await.unwrap().unwrap();
    (run.status, run.output.or(run.error))
}

/// All events in a run's stream, as JSON.
async fn run_events(house: &House, run: Uuid) -> Vec<serde_json::Value> {
    let sql = format!(
        "SELECT coalesce(string_agg(frames, '' ORDER BY first_seq), '') FROM stream_events WHERE stream_id = '{run}'"
    );
    let frames = house.database.scalar(&sql).await;
    wire::sse::data(&frames).map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_a_dead_instance_is_taken_over() {
    let house = House::echo(100).await;
    let (_clock, shared) = stopped_clock();
    let mut dead = house.instance_at(1, shared).await;
    let run = begin(&dead, WORDS).await;
    until_sql("it speaks", &house.database, "SELECT count(*) > 0 FROM stream_events").await;
    dead.kill();
    let expired = "UPDATE leases SET expires_at = now() - interval '1 second'";
    let other = house.instance(2).await;
    house.database.execute(&format!("{expired} WHERE writer_id = '{}'", Uuid::from_u128(1))).await.unwrap();
    until_sql(
        "it is taken over and ends",
        &house.database,
        "SELECT count(*) = 0 FROM runs WHERE finished_at IS NULL",
    )
    .await;
    assert_eq!(ended(&other, run).await.0, RunState::Succeeded);
    let events = run_events(&house, run).await;
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=events.len() as u64), "{numbers:?}");
    assert_eq!(events.last().unwrap()["type"], "run_completed");
    assert_eq!(events.iter().filter(|event| event["type"] == "run_started").count(), 2);
    until("no actor is left", || other.system.runs().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_run_ends_with_an_error() {
    let house = House::echo(100).await;
    let mut killed = house.instance(1).await;
    let run = begin(&killed, WORDS).await;
    killed.kill();
    house.database.execute(&format!("UPDATE runs SET version_id = '{}'", Uuid::nil())).await.unwrap();
    let again = house.instance(1).await;
    until_sql("it is ended", &house.database, "SELECT count(*) = 0 FROM runs WHERE finished_at IS NULL")
        .await;
    let (status, error) = ended(&again, run).await;
    assert_eq!(status, RunState::Failed);
    assert!(error.unwrap().contains("internal"));
    assert_eq!(run_events(&house, run).await.last().unwrap()["type"], "run_failed");
}

/// Simulates an older build that meets a newer build's run: it neither ends the run nor forgets it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_this_build_cannot_execute_is_left_to_a_newer_build() {
    let house = House::echo(100).await;
    let mut killed = house.instance(1).await;
    let run = begin(&killed, WORDS).await;
    killed.kill();
    let newer = "INSERT INTO workflow_versions (id, workflow_id, draft, digest, identity, graph, metadata, created_at)
                 SELECT gen_random_uuid(), workflow_id, true, digest, identity, '{\"format\": \"graph/9\"}', metadata, created_at
                 FROM workflow_versions";
    house.database.execute(newer).await.unwrap();
    let runs = async |draft: bool| {
        let sql =
            format!("UPDATE runs SET version_id = (SELECT id FROM workflow_versions WHERE draft = {draft})");
        house.database.execute(&sql).await.unwrap();
    };
    runs(true).await;
    let again = house.instance(1).await;
    until_sql("it is in the queue", &house.database, "SELECT count(*) = 1 FROM run_queue WHERE NOT turn")
        .await;
    until("no actor is left", || again.system.runs().is_empty()).await;
    assert_eq!(house.unfinished().await, "1");
    runs(false).await;
    house.database.execute("UPDATE run_queue SET due_at = now()").await.unwrap();
    assert_eq!(ended(&again, run).await.0, RunState::Succeeded);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_run_and_a_second_one_changes_nothing() {
    let house = House::echo(2_000).await;
    let instance = house.instance(1).await;
    let run = begin(&instance, WORDS).await;
    for _ in 0..2 {
        instance.system.runs().stop(run).await.unwrap();
        assert_eq!(ended(&instance, run).await.0, RunState::Cancelled);
    }
    let events = run_events(&house, run).await;
    assert_eq!(events.iter().filter(|event| event["type"] == "run_cancelled").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_interrupts_a_long_run_and_the_next_process_continues_it() {
    let house = House::echo(1_500).await;
    let mut first = house.instance(1).await;
    let run = begin(&first, WORDS).await;
    until_sql("it speaks", &house.database, "SELECT count(*) > 0 FROM stream_events").await;
    assert!(first.system.drain(millis(9_000)).await, "the run is cut before the limit");
    first.system.stop(millis(5_000)).await;
    assert_eq!(house.unfinished().await, "1");
    first.kill();
    let next = house.instance(1).await;
    until("it is resumed", || !next.system.runs().is_empty()).await;
    next.system.runs().stop(run).await.unwrap();
    assert_eq!(ended(&next, run).await.0, RunState::Cancelled);
}
