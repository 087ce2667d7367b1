//! Deleted and retained data.

use std::sync::Arc;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use kernel::{Clock, Ids, ManualClock, SystemRandom};
use store::batch::{Batch, ItemRow, OutboxRow};
use store::{EVENTS_KEPT, NewWorkspace, RunState, WorkspaceChange};
use uuid::Uuid;

use crate::support::{Turn, World, user_message};

/// A complete turn with these start and end times.
async fn turn_at(world: &World, started: DateTime<Utc>, ended: Option<DateTime<Utc>>) -> Turn {
    let lease = world.writer().await;
    let ids = Ids::new(Arc::new(ManualClock::new(started)), Arc::new(SystemRandom::new()));
    world.store.ensure_partitions(started.date_naive()).await.unwrap();
    let mut turn = world.turn();
    (turn.run, turn.stream, turn.now) = (ids.uuid().unwrap(), ids.uuid().unwrap(), started);
    world.commit(lease, &turn.begin()).await.unwrap();
    if let Some(ended) = ended {
        turn.now = ended;
        world.commit(lease, &turn.end()).await.unwrap();
    }
    turn
}

fn day(year: i32, month: u32, day: u32) -> DateTime<Utc> {
    NaiveDate::from_ymd_opt(year, month, day).unwrap().and_hms_opt(12, 0, 0).unwrap().and_utc()
}

impl World {
    async fn days(&self) -> Vec<String> {
        let sql = "SELECT coalesce(string_agg(right(relname, 8), ' ' ORDER BY relname), '') FROM pg_class
                   WHERE relname LIKE 'stream\\_events\\_2031%' AND relkind = 'r'";
        self.database.scalar(sql).await.split_whitespace().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn events_of_a_day_are_dropped_after_its_last_stream_ended_long_ago() {
    let world = World::new().await;
    let (first, second) = (day(2031, 3, 1), day(2031, 3, 2));
    let over = turn_at(&world, first, Some(first + TimeDelta::hours(1))).await;
    let long = turn_at(&world, second, Some(second + TimeDelta::days(9))).await;
    let dates = |days: &[u32]| -> Vec<NaiveDate> {
        days.iter().map(|day| NaiveDate::from_ymd_opt(2031, 3, *day).unwrap()).collect()
    };
    let gone = world.store.drop_old_events(first + TimeDelta::days(2)).await.unwrap();
    assert!(!gone.contains(&dates(&[1])[0]), "a stream may start late: {gone:?}");
    let now = first + TimeDelta::days(8);
    let gone = world.store.drop_old_events(now).await.unwrap();
    // Including partitions that were created ahead and never used.
    assert!(gone.ends_with(&dates(&[1, 3, 4, 5])), "{gone:?}");
    assert_eq!(world.days().await, ["20310302"]);
    assert!(world.store.stream(over.stream).await.unwrap().is_none());
    assert_eq!(world.store.run(over.run).await.unwrap().unwrap().status, RunState::Succeeded);
    assert_eq!(world.store.last_seq(long.stream).await.unwrap(), 5);
    let end = second + TimeDelta::days(9) + EVENTS_KEPT;
    assert!(world.store.drop_old_events(end - TimeDelta::seconds(1)).await.unwrap().is_empty());
    assert_eq!(world.store.drop_old_events(end).await.unwrap(), dates(&[2]));
    assert!(world.store.stream(long.stream).await.unwrap().is_none());
    assert!(world.days().await.is_empty());
}

#[tokio::test]
async fn a_stream_that_has_not_ended_keeps_its_events() {
    let world = World::new().await;
    let started = day(2031, 3, 1);
    let turn = turn_at(&world, started, None).await;
    for late in [5, 50, 5_000] {
        world.store.drop_old_events(started + TimeDelta::days(late)).await.unwrap();
        assert_eq!(world.store.last_seq(turn.stream).await.unwrap(), 2, "after {late} days");
    }
}

/// A run that waits for a year does not retain a day of other runs' events.
#[tokio::test]
async fn a_parked_run_keeps_its_events_and_no_others() {
    let world = World::new().await;
    let started = day(2031, 3, 1);
    let (waits, over) = (turn_at(&world, started, None).await, turn_at(&world, started, Some(started)).await);
    let sql = format!(
        "INSERT INTO run_queue SELECT id, workflow_id, false, NULL FROM runs WHERE id = '{}'",
        waits.run
    );
    world.database.execute(&sql).await.unwrap();
    let before = world.store.frames_after(waits.stream, 0, 100).await.unwrap();
    let later = started + TimeDelta::days(30);
    assert!(world.store.drop_old_events(later).await.unwrap().contains(&started.date_naive()));
    assert!(world.days().await.is_empty());
    assert!(world.store.stream(over.stream).await.unwrap().is_none());
    assert_eq!(world.store.last_seq(waits.stream).await.unwrap(), 2);
    let kept = world.store.frames_after(waits.stream, 0, 100).await.unwrap();
    let texts =
        |rows: &[store::StoredFrames]| -> Vec<String> { rows.iter().map(|row| row.frames.clone()).collect() };
    assert_eq!(texts(&kept), texts(&before));
    let news = world.store.stream_news(&[(waits.stream, 0)]).await.unwrap();
    assert_eq!((news.len(), news[0].commits.len(), news[0].ended), (1, before.len(), false));
    // It resumes and ends: later events are stored in a new partition for its day.
    let lease = world.writer().await;
    let adopt = format!("UPDATE runs SET writer_id = '{}'; DELETE FROM run_queue", lease.writer_id);
    world.database.execute(&adopt).await.unwrap();
    world.store.ensure_partitions(started.date_naive()).await.unwrap();
    let ended = Turn { now: later, ..waits };
    world.commit(lease, &ended.end()).await.unwrap();
    assert_eq!(world.store.last_seq(ended.stream).await.unwrap(), 5);
    let whole = world.store.frames_after(ended.stream, 0, 100).await.unwrap();
    assert_eq!(whole.first().unwrap().first_seq, 1);
    assert!(whole.windows(2).all(|pair| pair[0].last_seq + 1 == pair[1].first_seq), "no gap");
    // A day after its end it is deleted like any other.
    world.store.drop_old_events(later + EVENTS_KEPT + TimeDelta::seconds(1)).await.unwrap();
    assert!(world.store.stream(ended.stream).await.unwrap().is_none());
    assert_eq!(world.database.scalar("SELECT count(*) FROM stream_events_kept").await, "0");
}

#[tokio::test]
async fn a_detached_partition_is_dropped_the_next_time() {
    let world = World::new().await;
    let started = day(2031, 3, 1);
    turn_at(&world, started, Some(started)).await;
    world
        .database
        .execute("ALTER TABLE stream_events DETACH PARTITION stream_events_20310301")
        .await
        .unwrap();
    let later = started + TimeDelta::days(30);
    let gone = world.store.drop_old_events(later).await.unwrap();
    assert!(gone.contains(&started.date_naive()), "{gone:?}");
    assert!(world.days().await.is_empty());
    // Two concurrent calls: one drops the partition, the other skips it.
    turn_at(&world, started, Some(started)).await;
    let (one, two) = tokio::join!(world.store.drop_old_events(later), world.store.drop_old_events(later));
    assert!(one.unwrap().len().max(two.unwrap().len()) >= 1);
    world.store.drop_old_events(later).await.unwrap();
    assert!(world.days().await.is_empty());
    world.store.ensure_partitions(started.date_naive() + Days::new(1)).await.unwrap();
    assert_eq!(world.days().await.len(), 5, "the day can be made again");
}

/// A parked run resumed while its day was being dropped, and ended before the drop.
#[tokio::test]
async fn events_of_a_run_that_ends_while_its_day_is_dropped_are_kept_for_a_day() {
    let world = World::new().await;
    let (started, later) = (day(2031, 3, 1), day(2031, 3, 31));
    let turn = turn_at(&world, started, None).await;
    world
        .database
        .execute("ALTER TABLE stream_events DETACH PARTITION stream_events_20310301")
        .await
        .unwrap();
    let lease = world.writer().await;
    world.database.execute(&format!("UPDATE runs SET writer_id = '{}'", lease.writer_id)).await.unwrap();
    let ended = Turn { now: later, ..turn };
    world.commit(lease, &ended.end()).await.unwrap();
    world.store.drop_old_events(later).await.unwrap();
    assert!(world.days().await.is_empty());
    let whole = world.store.frames_after(ended.stream, 0, 100).await.unwrap();
    assert_eq!((whole.first().unwrap().first_seq, whole.last().unwrap().last_seq), (1, 5));
    world.store.drop_old_events(later + EVENTS_KEPT).await.unwrap();
    assert!(world.store.stream(ended.stream).await.unwrap().is_none());
    assert_eq!(world.database.scalar("SELECT count(*) FROM stream_events_kept").await, "0");
}

#[tokio::test]
async fn runs_are_deleted_with_all_data_that_only_they_use() {
    let clock = Arc::new(ManualClock::new(day(2031, 3, 1)));
    let world = World::at(clock.clone()).await;
    let started = clock.now();
    let old = turn_at(&world, started, Some(started + TimeDelta::hours(1))).await;
    let late = turn_at(&world, started, Some(started + TimeDelta::days(3))).await;
    let unfinished = turn_at(&world, started, None).await;
    let all = world.everything().await;
    assert!(!world.store.forget_old_runs(started).await.unwrap());
    assert_eq!(world.everything().await, all);
    assert!(!world.store.forget_old_runs(started + TimeDelta::days(2)).await.unwrap());
    let there = async |turn: &Turn| {
        let run = world.store.run(turn.run).await.unwrap().is_some();
        let stream = world.store.stream(turn.stream).await.unwrap().is_some();
        let steps = !world.store.journal(turn.run).await.unwrap().is_empty();
        (run, stream, steps)
    };
    assert_eq!(there(&old).await, (false, false, false));
    assert_eq!(there(&late).await, (true, true, true));
    assert_eq!(there(&unfinished).await, (true, true, false));
    assert_eq!(world.count("thread_items").await, "5", "messages stay");
}

#[tokio::test]
async fn a_deleted_thread_is_erased_once_its_turns_have_ended() {
    let clock = Arc::new(ManualClock::new(day(2031, 3, 1)));
    let world = World::at(clock.clone()).await;
    let started = clock.now();
    let (deleted, running, kept) = (
        turn_at(&world, started, Some(started)).await,
        turn_at(&world, started, None).await,
        turn_at(&world, started, Some(started)).await,
    );
    let texts =
        "UPDATE threads SET title = 't', status = 'locked', status_reason = 'r', image_domains = '[]'";
    world.database.execute(texts).await.unwrap();
    for turn in [&deleted, &running] {
        assert!(world.store.delete_thread(turn.thread).await.unwrap().is_some());
    }
    assert!(!world.store.erase_deleted_threads(started).await.unwrap());
    assert_eq!(world.count("thread_items").await, "5", "not yet");
    let later = started + TimeDelta::seconds(1);
    assert!(!world.store.erase_deleted_threads(later).await.unwrap());
    assert_eq!(world.count("thread_items").await, "3");
    assert_eq!(world.store.last_seq(deleted.stream).await.unwrap(), 0, "nor is it readable in its stream");
    assert_eq!(world.store.last_seq(kept.stream).await.unwrap(), 5);
    assert!(world.store.run(deleted.run).await.unwrap().is_none());
    for turn in [&running, &kept] {
        assert!(world.store.run(turn.run).await.unwrap().is_some());
    }
    let stones = "SELECT count(*)::text FROM threads WHERE erased_at IS NOT NULL
        AND coalesce(title, status_reason, image_domains) IS NULL";
    assert_eq!(world.database.scalar(stones).await, "1");
    assert_eq!(world.count("threads").await, "3", "its id is not used again");
    world.store.erase_deleted_threads(later).await.unwrap();
    assert_eq!(world.database.scalar(stones).await, "1");
}

#[tokio::test]
async fn values_are_kept_while_a_step_uses_them_and_some_time_longer() {
    let clock = Arc::new(ManualClock::new(day(2031, 3, 1)));
    let world = World::at(clock.clone()).await;
    let started = clock.now();
    let large = |letter: &str| format!("\"{}\"", letter.repeat(300_000));
    let turn = turn_at(&world, started, None).await;
    let lease = world.writer().await;
    let step = |turn: &Turn, visit: i32, letter: &str| {
        let mut step = turn.step("succeeded");
        (step.visit, step.result) = (visit, Some(large(letter)));
        (step.started_at, step.finished_at) = (clock.now(), Some(clock.now()));
        Batch { steps: vec![step], ..Batch::default() }
    };
    world.commit(lease, &step(&turn, 1, "a")).await.unwrap();
    let nobodys = world.store.put_blob(b"nobody's").await.unwrap();
    clock.advance(std::time::Duration::from_secs(3_600));
    let young = world.store.put_blob(b"young").await.unwrap();
    assert!(world.store.forget_old_blobs(started + TimeDelta::seconds(1), None).await.unwrap().is_none());
    assert!(world.store.blob(&nobodys).await.unwrap().is_none());
    assert!(world.store.blob(&young).await.unwrap().is_some());
    assert_eq!(world.store.journal(turn.run).await.unwrap()[0].result.as_deref(), Some(large("a").as_str()));
    // Storing a value again resets its age, even before it is used.
    clock.advance(std::time::Duration::from_secs(3_600));
    world.store.put_blob(b"young").await.unwrap();
    assert!(world.store.forget_old_blobs(clock.now(), None).await.unwrap().is_none());
    assert!(world.store.blob(&young).await.unwrap().is_some());
    // The step is deleted, and another one with the same value is stored just before the scan.
    world.database.execute("DELETE FROM run_steps").await.unwrap();
    world.commit(lease, &step(&turn, 2, "a")).await.unwrap();
    world.database.execute("UPDATE run_steps SET result_blob = NULL").await.unwrap();
    assert!(world.store.forget_old_blobs(clock.now(), None).await.unwrap().is_none());
    assert_eq!(world.count("blobs").await, "2");
    assert!(world.store.forget_old_blobs(clock.now() + TimeDelta::seconds(1), None).await.unwrap().is_none());
    assert_eq!((world.count("blobs").await, world.count("blob_chunks").await), ("0".into(), "0".into()));
}

#[tokio::test]
async fn many_rows_are_deleted_in_parts() {
    let clock = Arc::new(ManualClock::new(day(2031, 3, 1)));
    let world = World::at(clock.clone()).await;
    let lease = world.writer().await;
    let turns: Vec<Turn> = (0..101).map(|_| Turn { now: clock.now(), ..world.turn() }).collect();
    for part in turns.chunks(100) {
        let mut all = Batch::default();
        for turn in part {
            all.append(turn.begin());
            all.append(Batch { updates: turn.end().updates, ..Batch::default() });
            all.items.push(ItemRow { ..turn.item(1, &user_message("Bye")) });
        }
        world.commit(lease, &all).await.unwrap();
    }
    let later = clock.now() + TimeDelta::seconds(1);
    assert!(world.store.forget_old_runs(later).await.unwrap());
    assert!(!world.store.forget_old_runs(later).await.unwrap());
    assert_eq!((world.count("runs").await, world.count("streams").await), ("0".into(), "0".into()));
}

#[tokio::test]
async fn a_value_stored_during_its_deletion_is_complete() {
    let world = World::new().await;
    let lease = world.writer().await;
    let turn = world.turn();
    world.commit(lease, &turn.begin()).await.unwrap();
    let large = format!("\"{}\"", "x".repeat(600_000));
    world.store.put_blob(large.as_bytes()).await.unwrap();
    let mut step = turn.step("succeeded");
    step.result = Some(large.clone());
    let again = Batch { steps: vec![step], ..Batch::default() };
    let deleting = world.database.hold("DELETE FROM blobs").await;
    let released = async {
        Clock::sleep(&kernel::SystemClock::new(), std::time::Duration::from_millis(300)).await;
        deleting.release().await;
    };
    let (storing, ()) = tokio::join!(world.commit(lease, &again), released);
    storing.unwrap();
    assert_eq!(world.store.journal(turn.run).await.unwrap()[0].result, Some(large));
}

#[tokio::test]
async fn a_request_of_a_deleted_run_blocks_nothing() {
    let world = World::new().await;
    let lease = world.writer().await;
    let turns = [world.turn(), world.turn()];
    for turn in &turns {
        let outbox = vec![OutboxRow {
            id: world.uuid(),
            run_id: turn.run,
            request: "{}".to_owned(),
            created_at: turn.now,
        }];
        world.commit(lease, &Batch { outbox, ..turn.begin() }).await.unwrap();
    }
    world.database.execute(&format!("DELETE FROM runs WHERE id = '{}'", turns[0].run)).await.unwrap();
    let claim = world.store.claim_deliveries(world.uuid(), TimeDelta::seconds(60), 1);
    assert_eq!(claim.await.unwrap().len(), 1);
    // Deleted together with its run.
    world.commit(lease, &turns[1].end()).await.unwrap();
    world.store.forget_old_runs(turns[1].now + TimeDelta::days(36_500)).await.unwrap();
    assert_eq!(world.count("outbox").await, "1");
}

/// A training run in this workspace with `calls` answered calls.
async fn training_in(world: &World, workspace: Uuid, ended: bool, calls: u32) -> Uuid {
    let run = world.uuid();
    let finished_at = if ended { "now()" } else { "NULL" };
    let sql = format!(
        "INSERT INTO workflows (id, workspace_id, handle, name, tags, chat, created_at, updated_at)
             VALUES ('{run}', '{workspace}', '{run}', 'w', '[]', '{{}}', now(), now());
         INSERT INTO runs (id, workspace_id, workflow_id, version_id, trigger, writer_id, status, inputs, created_at, finished_at)
             VALUES ('{run}', '{workspace}', '{run}', '{run}', 'training', '{run}', 'running', '{{}}', now(), {finished_at});
         INSERT INTO training_runs (run_id, workflow_id, dataset_id, dataset_version, fingerprint, judges, n_cases, digest, request, start)
             VALUES ('{run}', '{run}', '{run}', 1, '', '', 1, '', '{{}}', '{{}}');
         INSERT INTO training_calls SELECT '{run}', gen_random_uuid(), sha256(n::text::bytea), 'task', 'practice/classify',
             '{{}}', 1, 2, 3, 4, false, 1, 5 FROM generate_series(1, {calls}) n"
    );
    world.database.execute(&sql).await.unwrap();
    run
}

#[tokio::test]
async fn replies_of_ended_trainings_are_erased_if_the_workspace_is_set_to() {
    let world = World::new().await;
    let drops = world.workspace().await;
    let new = NewWorkspace { slug: "other", name: "Other", owner: None };
    let made = world.store.change(async |changes| changes.create_workspace(new).await).await.unwrap();
    assert_eq!(made.training_calls, "keep");
    let change = WorkspaceChange { training_calls: Some("drop".to_owned()), ..WorkspaceChange::default() };
    let changed = world.store.change(async |changes| changes.update_workspace(drops, change).await).await;
    let changed = changed.unwrap().unwrap();
    assert_eq!((changed.training_calls.as_str(), changed.name.as_str()), ("drop", "Default"));
    let over = training_in(&world, drops, true, 2_001).await;
    let running = training_in(&world, drops, false, 2).await;
    let kept = training_in(&world, made.id, true, 3).await;
    let replies = async |run: Uuid| {
        let sql =
            format!("SELECT count(*) || ' of ' || count(reply) FROM training_calls WHERE run_id = '{run}'");
        world.database.scalar(&sql).await
    };
    assert!(world.store.erase_replies_of_trainings().await.unwrap(), "a part");
    assert_eq!(replies(over).await, "2001 of 1");
    assert!(world.store.erase_replies_of_trainings().await.unwrap(), "the rest");
    assert_eq!(replies(over).await, "2001 of 0");
    assert!(!world.store.erase_replies_of_trainings().await.unwrap(), "each training once");
    let marked =
        "SELECT string_agg(run_id::text, ' ') FROM training_runs WHERE replies_erased_at IS NOT NULL";
    assert_eq!(world.database.scalar(marked).await, over.to_string());
    // A later life reuses its answers, and another workspace keeps its own.
    assert_eq!((replies(running).await, replies(kept).await), ("2 of 2".to_owned(), "3 of 3".to_owned()));
    let row = world.store.training_calls(over, Uuid::nil(), 1).await.unwrap().remove(0);
    assert_eq!((row.reply, row.key.len(), row.input_tokens, row.output_tokens), (None, 32, 2, 3));
    // No other run of the workflow finds the erased answers.
    assert!(world.store.earlier_call(over, running, &row.key).await.unwrap().is_none());
    let row = world.store.training_calls(kept, Uuid::nil(), 1).await.unwrap().remove(0);
    assert!(world.store.earlier_call(kept, running, &row.key).await.unwrap().is_some());
    let sql = "UPDATE workspaces SET training_calls = 'forget'";
    assert!(world.database.execute(sql).await.is_err(), "the table refuses unknown settings");
}
