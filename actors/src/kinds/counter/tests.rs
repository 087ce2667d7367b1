#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use serde_json::{Value, json};
use store::{NewAnswer, RunState};
use uuid::Uuid;

use super::rows;
use crate::run::start::{Claimed, RunIds};
use crate::support::house::{House, Instance};
use crate::support::until_sql;

/// Starts a counter, as the entry point of a kind does.
async fn start(instance: &Instance) -> Uuid {
    let starts = instance.system.starts();
    let token = starts.admit::<RunIds>(instance.workspace(), None).await.unwrap();
    let ids = RunIds { run: token.run() };
    let Claimed::Start(ids, claim) = starts.claim(None, ids, token).await.unwrap() else {
        panic!("no earlier start without a key");
    };
    let rows = rows(instance.workspace(), &instance.version, ids.run, &starts.ports);
    starts
        .commit(claim, rows, |_| panic!("the instance that claims it from the queue owns it"))
        .await
        .unwrap();
    ids.run
}

async fn until_asked(house: &House, number: usize) {
    let query = format!(
        "SELECT (SELECT count(*) = {number} FROM run_questions) AND (SELECT count(*) = 1 FROM run_queue)"
    );
    until_sql("it asks and is parked", &house.database, &query).await;
}

async fn answer(instance: &Instance, run: Uuid) {
    let question = instance.system.runs().questions(run).await.unwrap().remove(0);
    let answered = instance.store.change(async |c| {
        let new = NewAnswer { answer: &json!("yes"), by: None, item: None, next: None };
        c.answer_question(Some(&question.step), new).await
    });
    let answered = answered.await.unwrap();
    instance.system.runs().answered(run, answered).await;
}

async fn until_ended(house: &House) {
    let ended = "SELECT count(*) = 0 FROM runs WHERE finished_at IS NULL";
    until_sql("every run has ended", &house.database, ended).await;
}

async fn events(house: &House, run: Uuid) -> Vec<Value> {
    let sql = format!(
        "SELECT string_agg(frames, '' ORDER BY first_seq) FROM stream_events WHERE stream_id = '{run}'"
    );
    let frames = house.database.scalar(&sql).await;
    wire::sse::data(&frames).map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_run_kind_is_parked_killed_resumed_and_stopped_like_every_other() {
    let house = House::with(&json!({
        "format": "graph/1",
        "nodes": [{"name": "first", "type": "wait_for_input"}, {"name": "second", "type": "wait_for_input"}],
        "edges": [{"from": "START", "to": "first"}, {"from": "first", "to": "second"}, {"from": "second", "to": "END"}],
    }))
    .await;
    let mut killed = house.instance(1).await;
    let (run, stopped) = (start(&killed).await, start(&killed).await);
    until_sql("both are parked", &house.database, "SELECT count(*) = 2 FROM run_questions").await;
    killed.system.runs().stop(stopped).await.unwrap();
    until_asked(&house, 2).await;
    killed.kill();
    let again = house.instance(1).await;
    answer(&again, run).await;
    until_asked(&house, 3).await;
    answer(&again, run).await;
    until_ended(&house).await;
    let asked_event = |node, number| json!({"type": "asked", "node": node, "number": number});
    let counted = |questions| json!({"type": "counted", "questions": questions});
    assert_eq!(events(&house, run).await, [asked_event("first", 1), asked_event("second", 2), counted(2)]);
    assert_eq!(events(&house, stopped).await, [asked_event("first", 1), counted(1)]);
    let status = async |run| again.store.run(run).await.unwrap().unwrap().status;
    assert_eq!((status(run).await, status(stopped).await), (RunState::Succeeded, RunState::Cancelled));
}

/// Simulates an older build that meets a run of a newer kind.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_an_unknown_kind_is_left_to_a_newer_build() {
    let house = House::with(&json!({
        "format": "graph/1",
        "nodes": [{"name": "first", "type": "wait_for_input"}],
        "edges": [{"from": "START", "to": "first"}, {"from": "first", "to": "END"}],
    }))
    .await;
    let instance = house.instance(1).await;
    let run = start(&instance).await;
    until_asked(&house, 1).await;
    house.database.execute("UPDATE runs SET trigger = 'newer'").await.unwrap();
    answer(&instance, run).await;
    let left = "SELECT count(*) = 1 FROM run_queue WHERE due_at > now() + interval '30 seconds'";
    until_sql("it is in the queue again", &house.database, left).await;
    house
        .database
        .execute("UPDATE runs SET trigger = 'counter'; UPDATE run_queue SET due_at = now()")
        .await
        .unwrap();
    until_ended(&house).await;
    assert_eq!(instance.store.run(run).await.unwrap().unwrap().status, RunState::Succeeded);
}
