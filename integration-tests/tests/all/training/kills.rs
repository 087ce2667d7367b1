//! `kill -9` of the real binary during a training: the next process resumes it, and it ends with the same candidates,
//! checkpoints and result as an undisturbed one.
//!
//! `CALLBOARD_CRASH_KILLS` (6) and `CALLBOARD_CRASH_SEED` set the number of kills and their moments.
#![allow(clippy::print_stdout, reason = "the seed, for the reader of the test's output")]

use std::time::Duration;

use integration_tests::{Client, WorkflowBuilder, pause, until};
use kernel::{Clock, SeededRandom, SystemClock};
use serde_json::{Value, json};
use store::testing::TestDatabase;

use super::{
    Run, SEED, assert_same, evaluation, get, only, payloads, prompts, reasons, sorting, training, without,
};
use crate::crash::service::Service;
use crate::crash::{folder, number, random_number, seed};

/// Maximum time from a process's readiness to the resumption of the interrupted run.
const RESUMED: Duration = Duration::from_secs(15);

/// Starts the process, and waits until it is ready. Returns a client without the old connections.
pub(super) async fn started(service: &mut Service) -> Client {
    service.start();
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    until("the service is ready", async || client.ready().await.is_ok_and(|answer| answer.status == 200))
        .await;
    client
}

pub(crate) async fn workflow(client: &Client, model: &str) -> String {
    workflow_of(client, sorting(model)).await
}

/// A workflow with this graph and the trainable prompt `rules`.
pub(super) async fn workflow_of(client: &Client, graph: Value) -> String {
    WorkflowBuilder::new(client.clone()).graph(graph).config(prompts(SEED)).create().await.id
}

/// Number of occurrences of a text in a run's events.
pub(super) async fn count_in_events(database: &TestDatabase, run: &Run, text: &str) -> usize {
    let frames = format!(
        "SELECT coalesce(string_agg(frames, '' ORDER BY first_seq), '') FROM stream_events_kept WHERE stream_id = '{}'",
        run.id
    );
    database.scalar(&frames).await.matches(text).count()
}

/// Kills the process, and waits until the next one has resumed the run.
pub(super) async fn kill_and_resume(database: &TestDatabase, service: &mut Service, run: &mut Run) {
    let before = count_in_events(database, run, "\"type\":\"training_resumed\"").await;
    service.kill();
    *run = run.over(&started(service).await);
    resumed(database, run, before).await;
}

/// Kills the process at most `kills` times, until the run has completed, at random moments from `earliest` milliseconds
/// after its start. Returns the number of kills.
pub(super) async fn kill_at_random_moments(
    database: &TestDatabase,
    service: &mut Service,
    run: &mut Run,
    random: &SeededRandom,
    kills: u64,
    earliest: u64,
) -> usize {
    let (mut lives, mut stored) = (0, Lives::default());
    for _ in 0..kills {
        pause(earliest + random_number(random) % 700).await;
        stored.may_end(database, run).await;
        if count_in_events(database, run, "\"type\":\"run_completed\"").await > 0 {
            break;
        }
        if count_in_events(database, run, "\"type\":\"run_started\"").await > 0 {
            kill_and_resume(database, service, run).await;
        } else {
            service.kill();
            *run = run.over(&started(service).await);
        }
        lives += 1;
    }
    lives
}

/// Waits until the new process has reported the resumption, unless the run has ended.
async fn resumed(database: &TestDatabase, run: &Run, before: usize) {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    until("the run is resumed", async || {
        count_in_events(database, run, "\"type\":\"training_resumed\"").await > before
            || count_in_events(database, run, "\"type\":\"run_completed\"").await > 0
    })
    .await;
    let took = clock.monotonic() - begun;
    assert!(took < RESUMED, "{took:?}");
}

/// Decides when to end a life, so that at least every second one stores something: a run that stores nothing in three
/// would fail with `run.crashed`.
#[derive(Default)]
struct Lives {
    rows: u64,
    was_idle: bool,
}

impl Lives {
    /// Waits until this life may end.
    async fn may_end(&mut self, database: &TestDatabase, run: &Run) {
        let stored = format!(
            "SELECT (SELECT count(*) FROM training_calls WHERE run_id = '{0}')
                 + (SELECT count(*) FROM training_cases WHERE run_id = '{0}')",
            run.id
        );
        let rows = async || -> u64 { database.scalar(&stored).await.parse().unwrap() };
        if self.was_idle {
            until("the run stores something, or ends", async || {
                rows().await > self.rows
                    || count_in_events(database, run, "\"type\":\"run_completed\"").await > 0
            })
            .await;
        }
        let now = rows().await;
        self.was_idle = now == self.rows;
        self.rows = now;
    }
}

/// Asserts that a killed run has the same results and events as an undisturbed one.
pub(super) async fn assert_undisturbed(database: &TestDatabase, run: &Run, undisturbed: &[Value]) {
    // Event numbers have no gaps.
    let events = run.events().await;
    only(&events, "training_started");
    assert_same(&events, undisturbed);
    let usage = |events: &[Value]| without(&only(events, "training_result")["usage"], &["lost_calls"]);
    assert_eq!(usage(&events), usage(undisturbed));
    // Each case is executed, stored and announced once.
    let cases = |events: &[Value]| -> Vec<String> {
        let executed =
            payloads(events, "training_progress").into_iter().filter(|case| case["cached"] == false);
        let mut keys: Vec<String> = executed
            .map(|it| {
                format!("{} {} {}: {}", it["candidate_id"], it["case_index"], it["sample"], it["output"])
            })
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(cases(&events), cases(undisturbed));
    let rows =
        database.scalar(&format!("SELECT count(*) FROM training_cases WHERE run_id = '{}'", run.id)).await;
    assert_eq!(rows, cases(&events).len().to_string());
    let reused = |events: &[Value]| {
        payloads(events, "training_progress").iter().filter(|it| it["cached"] == true).count()
    };
    assert_eq!(reused(&events), reused(undisturbed));
    // All announced checkpoints exist, and no others.
    let announced = payloads(&events, "training_checkpoint");
    let path = run.path.split("/runs/").next().unwrap();
    for checkpoint in &announced {
        let read =
            get(&run.client, &format!("{path}/checkpoints/{}", checkpoint["id"].as_str().unwrap())).await;
        assert_eq!(serde_json::from_str::<Value>(&read.text()).unwrap(), **checkpoint);
    }
    let written = format!("SELECT count(*) FROM training_checkpoints WHERE run_id = '{}'", run.id);
    assert_eq!(database.scalar(&written).await, announced.len().to_string());
    let [rows, different] = ["count(*)", "count(DISTINCT key)"].map(|expression| {
        format!("SELECT {expression} FROM training_calls WHERE run_id = '{}' AND reply IS NOT NULL", run.id)
    });
    assert_eq!(
        database.scalar(&rows).await,
        database.scalar(&different).await,
        "no answered call is sent again"
    );
    assert!(reasons(&events, "training_paused").is_empty());
}

#[tokio::test]
async fn kills_at_random_moments_change_no_result() {
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-random"), Some(database.dsn()));
    let kills = number("CALLBOARD_CRASH_KILLS", 6).min(100);
    let seed = seed();
    println!("CALLBOARD_CRASH_SEED={seed} ({kills} kills)");
    let random = SeededRandom::new(seed);
    let mut client = started(&mut service).await;
    for optimizer in [json!({"epochs": 3, "validation_split": 0.5}), json!({"name": "gepa", "epochs": 4})] {
        let body = training(optimizer);
        let undisturbed = workflow(&client, "practice/classify@60ms").await;
        let undisturbed = Run::start(&client, &undisturbed, &body).await.events().await;
        let mut run = Run::start(&client, &workflow(&client, "practice/classify@60ms").await, &body).await;
        let lives = kill_at_random_moments(&database, &mut service, &mut run, &random, kills, 20).await;
        client = run.client.clone();
        assert!(kills == 0 || lives > 0, "no kill hit the run");
        assert_undisturbed(&database, &run, &undisturbed).await;
        let events = run.events().await;
        assert!(reasons(&events, "training_resumed").iter().all(|reason| *reason == "restart"));
    }
    service.stop();
}

/// Right after the start, in the headroom test, after a candidate, a checkpoint and an epoch, and in the final.
#[tokio::test]
async fn kills_at_every_stage_change_no_result() {
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-stages"), Some(database.dsn()));
    let client = started(&mut service).await;
    let body = training(json!({"epochs": 2}));
    let undisturbed = workflow(&client, "practice/classify@60ms").await;
    let undisturbed = Run::start(&client, &undisturbed, &body).await.events().await;
    let mut run = Run::start(&client, &workflow(&client, "practice/classify@60ms").await, &body).await;
    let stages = [
        "\"type\":\"training_started\"",
        "\"phase\":\"headroom\"",
        "\"type\":\"training_candidate\"",
        "\"type\":\"training_checkpoint\"",
        "\"type\":\"training_epoch_complete\"",
        "\"phase\":\"final\"",
    ];
    service.kill();
    run = run.over(&started(&mut service).await);
    for stage in stages {
        until(stage, async || count_in_events(&database, &run, stage).await > 0).await;
        kill_and_resume(&database, &mut service, &mut run).await;
    }
    assert_undisturbed(&database, &run, &undisturbed).await;
    let events = run.events().await;
    let lives = reasons(&events, "training_resumed");
    assert!(lives.len() >= stages.len() - 1 && lives.iter().all(|reason| *reason == "restart"), "{lives:?}");
    service.stop();
}

#[tokio::test]
async fn another_instance_takes_over_a_training_from_a_killed_owner() {
    let database = TestDatabase::create().await;
    let folder = folder("training-pair");
    let [mut first, mut second] =
        ["one", "two"].map(|name| Service::new(&folder, Some(database.dsn())).named(name));
    let (here, there) = (started(&mut first).await, started(&mut second).await);
    let body = training(json!({"epochs": 2}));
    let undisturbed = workflow(&there, "practice/classify@60ms").await;
    let undisturbed = Run::start(&there, &undisturbed, &body).await.events().await;
    let run = Run::start(&here, &workflow(&here, "practice/classify@60ms").await, &body).await;
    until("a checkpoint", async || {
        count_in_events(&database, &run, "\"type\":\"training_checkpoint\"").await > 0
    })
    .await;
    first.kill();
    let run = run.over(&there);
    assert_undisturbed(&database, &run, &undisturbed).await;
    assert_eq!(reasons(&run.events().await, "training_resumed"), ["takeover"]);
    second.stop();
}

/// Requests in flight are counted separately, and sent again.
#[tokio::test]
async fn requests_lost_by_a_kill_are_counted_separately() {
    let database = TestDatabase::create().await;
    let mut service = Service::new(&folder("training-lost"), Some(database.dsn()));
    let client = started(&mut service).await;
    let body = evaluation(6, json!({"max_concurrency": 3}));
    let mut run = Run::start(&client, &workflow(&client, "practice/classify@1500ms").await, &body).await;
    let in_flight = format!("SELECT in_flight FROM training_runs WHERE run_id = '{}'", run.id);
    let lost = format!("SELECT lost_calls FROM training_runs WHERE run_id = '{}'", run.id);
    for kills in 0..2 {
        until("the run is continued", async || database.scalar(&lost).await == (3 * kills).to_string()).await;
        until("requests are in flight", async || database.scalar(&in_flight).await == "3").await;
        service.kill();
        run = run.over(&started(&mut service).await);
    }
    let usage = run.becomes("succeeded").await["usage"].clone();
    assert_eq!((&usage["llm_calls"], &usage["lost_calls"]), (&json!(6), &json!(6)), "{usage}");
    assert_eq!(database.scalar(&in_flight).await, "0");
    service.stop();
}
