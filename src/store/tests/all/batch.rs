//! Lane commits.

use std::sync::Arc;

use chrono::DateTime;
use kernel::{Ids, ManualClock, SystemRandom};
use store::batch::Batch;
use store::{LaneError, RunState};
use wire::chat::Dialect;

use crate::support::{World, frames, micros, user_message};

#[tokio::test]
async fn committed_rows_are_read_back() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();

    let run = world.store.run(turn.run).await.unwrap().unwrap();
    assert_eq!((run.status, run.started_at), (RunState::Queued, None));
    assert_eq!((run.thread_id, run.stream_id), (Some(turn.thread), Some(turn.stream)));
    assert_eq!((run.inputs.as_str(), run.created_at), (r#"{"text":"Hi"}"#, micros(turn.now)));
    let stream = world.store.stream(turn.stream).await.unwrap().unwrap();
    assert_eq!((stream.run_id, stream.thread_id), (turn.run, Some(turn.thread)));
    assert_eq!((stream.dialect, stream.ended), (Some(Dialect::Chatkit), false));
    let thread = world.store.thread(turn.thread).await.unwrap().unwrap();
    assert_eq!((thread.owner_kind, thread.owner_id.as_deref()), (store::OwnerKind::Visitor, Some("v1")));

    world.commit(lease, &turn.end()).await.unwrap();
    let run = world.store.run(turn.run).await.unwrap().unwrap();
    assert_eq!((run.status, run.started_at), (RunState::Succeeded, Some(turn.now)));
    assert!(world.store.stream(turn.stream).await.unwrap().unwrap().ended);
    let items = world.store.thread_items(turn.thread).await.unwrap();
    let texts: Vec<String> = items.iter().map(|stored| stored.item.as_message().unwrap().1).collect();
    assert_eq!(texts, ["Hi", "Bye"]);
    let journal = world.store.journal(turn.run).await.unwrap();
    assert_eq!((journal.len(), journal[0].status.as_str()), (1, "succeeded"));
    assert_eq!(journal[0].result.as_deref(), Some(r#"{"n":1}"#));
    let events = world.store.frames_after(turn.stream, 0, 100).await.unwrap();
    let text: String = events.into_iter().map(|row| row.frames).collect();
    assert_eq!(text, frames(turn.stream, 1..=5));
    let output = world.database.scalar("SELECT output FROM runs").await;
    assert_eq!(output, r#"{"text":"Bye"}"#);
}

#[tokio::test]
async fn a_turn_in_one_batch_equals_a_turn_in_two() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut whole = turn.begin();
    whole.append(turn.end());
    world.commit(lease, &whole).await.unwrap();
    let at_once = world.everything().await;
    assert!(at_once.contains("succeeded"), "{at_once}");
    world
        .database
        .execute(
            "TRUNCATE stream_events_kept, threads, thread_items, runs, streams, run_steps, stream_events, chat_usage",
        )
        .await
        .unwrap();
    world.commit(lease, &turn.begin()).await.unwrap();
    world.commit(lease, &turn.end()).await.unwrap();
    assert_eq!(world.everything().await, at_once);
}

#[tokio::test]
async fn a_run_outcome_is_written_with_a_repeated_first_batch() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    let mut whole = turn.begin();
    whole.append(turn.end());
    world.commit(lease, &whole).await.unwrap();
    assert_eq!(world.store.run(turn.run).await.unwrap().unwrap().status, RunState::Succeeded);
}

#[tokio::test]
async fn the_same_batch_twice_changes_nothing() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    let after_start = world.everything().await;
    world.commit(lease, &turn.begin()).await.unwrap();
    assert_eq!(world.everything().await, after_start);
    world.commit(lease, &turn.end()).await.unwrap();
    let ended = world.everything().await;
    assert_ne!(ended, after_start);
    // The first batch arrives late, as from a connection that was considered dead.
    for batch in [turn.end(), turn.begin()] {
        world.commit(lease, &batch).await.unwrap();
        assert_eq!(world.everything().await, ended);
    }
}

#[tokio::test]
async fn a_finished_run_does_not_change() {
    let world = World::new().await;
    let lease = world.writer().await;
    let late = [RunState::Running, RunState::Failed, RunState::Cancelled];
    let turns = [world.turn(), world.turn(), world.turn()];
    for (turn, late) in turns.iter().zip(late) {
        // In separate batches, in one batch, and in the batch that creates the run.
        world.commit(lease, &turn.begin()).await.unwrap();
        world.commit(lease, &turn.end()).await.unwrap();
        let update = Batch { updates: vec![turn.update(late)], ..Batch::default() };
        world.commit(lease, &update).await.unwrap();
        let one =
            Batch { updates: vec![turn.update(RunState::Succeeded), turn.update(late)], ..Batch::default() };
        let (other, third) = (world.turn(), world.turn());
        world.commit(lease, &other.begin()).await.unwrap();
        let one_of = |turn: &crate::support::Turn| {
            let mut batch = one.clone();
            batch.updates.iter_mut().for_each(|update| update.id = turn.run);
            batch
        };
        world.commit(lease, &one_of(&other)).await.unwrap();
        let mut all = third.begin();
        all.append(one_of(&third));
        world.commit(lease, &all).await.unwrap();
        for run in [turn.run, other.run, third.run] {
            assert_eq!(world.store.run(run).await.unwrap().unwrap().status, RunState::Succeeded, "{late:?}");
        }
        let cancelled = world.store.request_cancel(turn.run).await.unwrap().unwrap();
        assert!(!cancelled.cancel_requested);
    }
}

#[tokio::test]
async fn the_first_start_time_of_a_run_is_kept() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut later = turn;
    later.now += chrono::Duration::hours(1);
    world.commit(lease, &turn.begin()).await.unwrap();
    let update =
        |turn: crate::support::Turn, status| Batch { updates: vec![turn.update(status)], ..Batch::default() };
    world.commit(lease, &update(turn, RunState::Running)).await.unwrap();
    world.commit(lease, &update(later, RunState::Waiting)).await.unwrap();
    let mut both = update(later, RunState::Running);
    both.updates[0].started_at = None;
    both.append(update(later, RunState::Failed));
    world.commit(lease, &both).await.unwrap();
    let run = world.store.run(turn.run).await.unwrap().unwrap();
    assert_eq!((run.status, run.started_at), (RunState::Failed, Some(turn.now)));
    assert_eq!(run.error.as_deref(), Some(r#"{"code":"x"}"#));
}

#[tokio::test]
async fn an_attempt_starts_and_ends_in_one_batch_or_in_two() {
    let world = World::new().await;
    let lease = world.writer().await;
    let (one, two) = (world.turn(), world.turn());
    let started = Batch { steps: vec![two.step("started")], ..Batch::default() };
    world.commit(lease, &started).await.unwrap();
    let journal = world.store.journal(two.run).await.unwrap();
    assert_eq!((journal[0].status.as_str(), journal[0].result.as_deref()), ("started", None));
    let ended = Batch { steps: vec![two.step("succeeded")], ..Batch::default() };
    world.commit(lease, &ended).await.unwrap();
    // A late start, alone or after the outcome, does not reset the step.
    world.commit(lease, &started).await.unwrap();
    let both = Batch {
        steps: vec![one.step("started"), two.step("started"), one.step("succeeded"), one.step("started")],
        ..Batch::default()
    };
    world.commit(lease, &both).await.unwrap();
    for run in [one.run, two.run] {
        let journal = world.store.journal(run).await.unwrap();
        assert_eq!((journal.len(), journal[0].status.as_str()), (1, "succeeded"));
        assert_eq!(journal[0].result.as_deref(), Some(r#"{"n":1}"#));
    }
}

#[tokio::test]
async fn attempts_and_visits_have_separate_rows() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut steps = Vec::new();
    for (visit, attempt) in [(2, 1), (1, 2), (1, 1)] {
        steps.push(store::batch::StepRow { visit, attempt, ..turn.step("failed") });
    }
    world.commit(lease, &Batch { steps, ..Batch::default() }).await.unwrap();
    let journal = world.store.journal(turn.run).await.unwrap();
    let keys: Vec<_> = journal.iter().map(|step| (step.visit, step.attempt)).collect();
    assert_eq!(keys, [(1, 1), (1, 2), (2, 1)]);
}

#[tokio::test]
async fn a_nul_in_a_users_text_survives() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut batch = turn.begin();
    batch.items[0].content = user_message("a\0b \u{1F600} \u{FFFF}");
    batch.runs[0].inputs = serde_json::json!({"text": "a\0b"}).to_string();
    assert!(batch.items[0].content.contains(r"a\u0000b"));
    world.commit(lease, &batch).await.unwrap();
    let items = world.store.thread_items(turn.thread).await.unwrap();
    assert_eq!(items[0].item.as_message().unwrap().1, "a\0b \u{1F600} \u{FFFF}");
    assert_eq!(world.store.run(turn.run).await.unwrap().unwrap().inputs, batch.runs[0].inputs);
}

#[tokio::test]
async fn a_raw_nul_poisons_the_whole_batch_and_not_the_lane() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    let mut lane = world.store.lane().await.unwrap();
    let mut batch = turn.begin();
    batch.items.push(turn.item(1, "a\0b"));
    let before = world.everything().await;
    let error = lane.commit(lease, &batch).await.unwrap_err();
    assert!(matches!(error, LaneError::Poisoned(_)), "{error}");
    assert_eq!(world.everything().await, before);
    lane.commit(lease, &turn.begin()).await.unwrap();
    assert_eq!(world.count("threads").await, "1");
}

#[tokio::test]
async fn several_batches_are_committed_together_or_not_at_all() {
    let world = World::new().await;
    let lease = world.writer().await;
    let (a, b) = (world.turn(), world.turn());
    let mut lane = world.store.lane().await.unwrap();
    let (good, mut bad) = (a.begin(), b.begin());
    bad.items[0].content = "\0".to_owned();
    let error = lane.commit_all(lease, &[&good, &bad, &a.end()]).await.unwrap_err();
    assert!(matches!(error, LaneError::Poisoned(_)), "{error}");
    assert_eq!(world.count("threads").await, "0");
    lane.commit_all(lease, &[&good, &Batch::default(), &b.begin(), &a.end()]).await.unwrap();
    assert_eq!(world.count("threads").await, "2");
    assert_eq!(world.store.run(a.run).await.unwrap().unwrap().status, RunState::Succeeded);
    assert_eq!(world.store.run(b.run).await.unwrap().unwrap().status, RunState::Queued);
}

#[tokio::test]
async fn events_of_a_day_without_a_partition_wait_for_it() {
    let world = World::new().await;
    let lease = world.writer().await;
    let long_ago = Arc::new(ManualClock::new(DateTime::from_timestamp(1_500_000_000, 0).unwrap()));
    let mut turn = world.turn();
    turn.stream = Ids::new(long_ago, Arc::new(SystemRandom::new())).uuid().unwrap();
    let error = world.commit(lease, &turn.begin()).await.unwrap_err();
    let day = store::day_of(turn.stream);
    assert!(matches!(&error, LaneError::NoPartition(days) if days.iter().eq([&day])), "{error:?}");
    assert_eq!(world.count("runs").await, "0");
    world.store.ensure_partitions(day).await.unwrap();
    world.commit(lease, &turn.begin()).await.unwrap();
    let stored = world.store.frames_after(turn.stream, 0, 10).await.unwrap();
    assert_eq!(stored[0].frames, frames(turn.stream, 1..=2));
}

#[tokio::test]
async fn a_cancel_request_is_stored_once_and_only_for_an_existing_run() {
    let world = World::new().await;
    let (lease, turn) = (world.writer().await, world.turn());
    world.commit(lease, &turn.begin()).await.unwrap();
    assert!(!world.store.run(turn.run).await.unwrap().unwrap().cancel_requested);
    assert!(world.store.request_cancel(turn.run).await.unwrap().unwrap().cancel_requested);
    let first = world.database.scalar("SELECT cancel_requested_at FROM runs").await;
    assert!(world.store.request_cancel(turn.run).await.unwrap().unwrap().cancel_requested);
    assert_eq!(world.database.scalar("SELECT cancel_requested_at FROM runs").await, first);
    assert!(world.store.request_cancel(world.uuid()).await.unwrap().is_none());
}

#[tokio::test]
async fn unfinished_runs_are_found_by_thread_and_by_writer() {
    let world = World::new().await;
    let (lease, other) = (world.writer().await, world.writer().await);
    let turns = [world.turn(), world.turn(), world.turn()];
    for turn in &turns {
        world.commit(lease, &turn.begin()).await.unwrap();
    }
    world.commit(other, &world.turn().begin()).await.unwrap();
    world.commit(lease, &turns[1].end()).await.unwrap();
    let of_writer = async |since| -> Vec<uuid::Uuid> {
        let runs = world.store.unfinished_of_writer(lease.writer_id, since).await.unwrap();
        runs.into_iter().map(|run| run.id).collect()
    };
    assert_eq!(of_writer(uuid::Uuid::nil()).await, [turns[0].run, turns[2].run]);
    assert_eq!(of_writer(turns[1].run).await, [turns[2].run]);
    let of_thread = async |turn: &crate::support::Turn, writer| {
        world.store.unfinished_of_thread(turn.thread, writer).await.unwrap().len()
    };
    assert_eq!(of_thread(&turns[0], lease.writer_id).await, 1);
    assert_eq!(of_thread(&turns[0], other.writer_id).await, 0);
    assert_eq!(of_thread(&turns[1], lease.writer_id).await, 0);
}
