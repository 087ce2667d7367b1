//! Commits: together, in order, once, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actors::lanes::{Database, WriteError, WriterKey};
use actors::streams::Readout;
use futures_util::FutureExt;
use kernel::SystemClock;
use store::batch::Batch;
use uuid::Uuid;

use crate::support::lanes::{LANE, Lanes, events, key};
use crate::support::{millis, pause, session, until};

#[tokio::test(flavor = "multi_thread")]
async fn writes_during_a_commit_share_the_next_one_of_at_most_256_streams() {
    let lanes = Lanes::start(1).await;
    lanes.trace(0.0).await;
    let hold = lanes.hold().await;
    lanes.hand_over(lanes.id(), 1..=1).unwrap();
    lanes.waiting_lanes(1).await;
    for _ in 0..600 {
        lanes.hand_over(lanes.id(), 1..=2).unwrap();
    }
    hold.release().await;
    lanes.db.close().await;
    let commits = lanes.database.scalar("SELECT string_agg(events::text, ' ' ORDER BY n) FROM commits").await;
    assert_eq!(commits, "1 256 256 88");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_concurrent_writers_need_few_commits() {
    let lanes = Lanes::start(2).await;
    lanes.trace(0.0).await;
    let writes = (0..1_000).map(|_| lanes.write(lanes.id(), 1..=1));
    for outcome in futures_util::future::join_all(writes).await {
        outcome.unwrap();
    }
    let commits: u64 = lanes.database.scalar("SELECT count(*) FROM commits").await.parse().unwrap();
    assert!(commits <= 50, "{commits} commits");
    assert_eq!(lanes.database.scalar("SELECT sum(events) FROM commits").await, "1000");
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_of_one_stream_during_a_commit_become_one_row() {
    let lanes = Lanes::start(4).await;
    let stream = lanes.id();
    let hold = lanes.hold().await;
    lanes.hand_over(stream, 1..=1).unwrap();
    lanes.waiting_lanes(1).await;
    for seq in 2..=50 {
        lanes.hand_over(stream, seq..=seq).unwrap();
    }
    hold.release().await;
    lanes.db.flush(stream).await.unwrap();
    assert_eq!(lanes.rows(stream).await, "1-1 2-50");
    let frames = lanes.store.frames_after(stream, 0, 10).await.unwrap();
    let text: String = frames.into_iter().map(|row| row.frames).collect();
    assert_eq!(text, events(stream, 1..=50).frames);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_never_in_two_commits_at_once_and_its_writes_keep_their_order() {
    let lanes = Lanes::start(4).await;
    lanes.trace(0.008).await;
    let streams: Vec<Uuid> = (0..20).map(|_| lanes.id()).collect();
    for seq in 1..=200_u64 {
        for stream in &streams {
            lanes.hand_over(*stream, seq..=seq).unwrap();
        }
        if seq % 4 == 0 {
            pause(millis(1)).await;
        }
    }
    lanes.db.close().await;
    // For each stream: the next row's transaction saw the previous one as finished, and no number is missing.
    let sql = "SELECT count(*) FROM (
                   SELECT snap, lag(xid) OVER w AS before, t.first_seq, lag(e.last_seq) OVER w AS last
                   FROM trace t JOIN stream_events e USING (stream_id, first_seq)
                   WINDOW w AS (PARTITION BY stream_id ORDER BY t.first_seq)
               ) s WHERE NOT pg_visible_in_snapshot(before, snap) OR first_seq <> last + 1";
    assert_eq!(lanes.database.scalar(sql).await, "0");
    let ends = "SELECT count(*) FROM (SELECT max(last_seq) AS last FROM stream_events GROUP BY stream_id) s
                WHERE last = 200";
    assert_eq!(lanes.database.scalar(ends).await, "20");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_impossible_write_fails_alone_among_256() {
    let lanes = Lanes::start(1).await;
    lanes.refuse_poison().await;
    lanes.trace(0.0).await;
    let bad = lanes.id();
    let hold = lanes.hold().await;
    lanes.hand_over(lanes.id(), 1..=1).unwrap();
    lanes.waiting_lanes(1).await;
    let mut writes: Vec<_> = Vec::new();
    for n in 0..256 {
        let stream = if n == 77 { bad } else { lanes.id() };
        let mut frames = events(stream, 1..=1);
        if stream == bad {
            frames.frames = "data: poison\n\n".to_owned();
        }
        let db = lanes.db.clone();
        writes.push((
            stream,
            tokio::spawn(async move { db.commit(key(stream), Batch::default(), Some(frames)).await }),
        ));
    }
    pause(millis(50)).await;
    hold.release().await;
    for (stream, write) in writes {
        let outcome = write.await.unwrap();
        match outcome {
            Err(WriteError::Poisoned(text)) if stream == bad => assert!(text.contains("planned"), "{text}"),
            outcome => assert_eq!((stream == bad, outcome), (false, Ok(()))),
        }
    }
    assert_eq!(lanes.database.scalar("SELECT count(*) FROM stream_events").await, "256");
    // The key's writes are refused until it is forgiven; other keys' writes are accepted.
    assert!(matches!(lanes.write(bad, 2..=2).await, Err(WriteError::Poisoned(_))));
    lanes.write(lanes.id(), 1..=1).await.unwrap();
    lanes.db.forgive(bad);
    lanes.write(bad, 1..=1).await.unwrap();
    assert_eq!(lanes.rows(bad).await, "1-1");
    assert_eq!(lanes.health.fatal(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_after_an_impossible_one_are_rejected_too() {
    let lanes = Lanes::start(2).await;
    lanes.refuse_poison().await;
    let bad = lanes.id();
    lanes.write(bad, 1..=1).await.unwrap();
    let mut frames = events(bad, 2..=2);
    frames.frames = "data: poison\n\n".to_owned();
    let hold = lanes.hold().await;
    lanes.db.submit(key(bad), Batch::default(), Some(frames)).unwrap();
    lanes.waiting_lanes(1).await;
    let (late, ()) = futures_util::future::join(lanes.write(bad, 3..=3), hold.release()).await;
    assert!(matches!(late, Err(WriteError::Poisoned(_))), "{late:?}");
    assert_eq!(lanes.rows(bad).await, "1-1", "a gap");
    lanes.db.forgive(bad);
    lanes.write(bad, 2..=2).await.unwrap();
    assert_eq!(lanes.rows(bad).await, "1-1 2-2");
    lanes.db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_lost_its_lease_writes_nothing() {
    let lanes = Lanes::start(4).await;
    lanes.write(lanes.id(), 1..=1).await.unwrap();
    let before = lanes.database.scalar("SELECT count(*) FROM stream_events").await;
    lanes.store.take_lease(lanes.lease.writer_id, Uuid::nil()).await.unwrap();
    let writes = (0..50).map(|_| lanes.write(lanes.id(), 1..=1));
    for outcome in futures_util::future::join_all(writes).await {
        assert_eq!(outcome, Err(WriteError::Fenced));
    }
    assert!(lanes.health.failed().await.contains("lease"));
    assert!(!lanes.db.takes_new_work());
    assert_eq!(lanes.hand_over(lanes.id(), 1..=1), Err(WriteError::Fenced));
    assert_eq!(lanes.database.scalar("SELECT count(*) FROM stream_events").await, before);
    lanes.db.close().await;
}

/// Terminates the lanes' sessions, including active statements.
async fn end_lane_sessions(lanes: &Lanes) {
    let sql = format!("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {LANE}");
    lanes.database.scalar(&sql).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_with_repeatedly_ended_sessions_writes_everything_once() {
    let lanes = Arc::new(Lanes::start(4).await);
    let streams: Vec<Uuid> = (0..10).map(|_| lanes.id()).collect();
    let done = Arc::new(AtomicBool::new(false));
    let killer = {
        let (lanes, done) = (Arc::clone(&lanes), Arc::clone(&done));
        tokio::spawn(async move {
            while !done.load(Ordering::SeqCst) {
                end_lane_sessions(&lanes).await;
                pause(millis(5)).await;
            }
        })
    };
    let writers = streams.iter().map(|stream| {
        let lanes = Arc::clone(&lanes);
        async move {
            for seq in 1..=60 {
                lanes.write(*stream, seq..=seq).await.unwrap();
            }
        }
    });
    futures_util::future::join_all(writers).await;
    done.store(true, Ordering::SeqCst);
    killer.await.unwrap();
    let all: Vec<String> = (1..=60).map(|seq| format!("{seq}-{seq}")).collect();
    for stream in streams {
        assert_eq!(lanes.rows(stream).await, all.join(" "));
    }
    assert_eq!(lanes.health.fatal(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_waits_for_a_database_that_rejects_connections_for_a_second() {
    let lanes = Lanes::start(2).await;
    lanes.write(lanes.id(), 1..=1).await.unwrap();
    let admin = session(&std::env::var(store::testing::TEST_DSN).unwrap()).await;
    let name = lanes.database.scalar("SELECT current_database()").await;
    admin.batch_execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false")).await.unwrap();
    let kill = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    admin.batch_execute(&kill).await.unwrap();
    let streams: Vec<Uuid> = (0..40).map(|_| lanes.id()).collect();
    let mut writes = Box::pin(futures_util::future::join_all(streams.iter().map(|s| lanes.write(*s, 1..=2))));
    let early = kernel::timeout(&SystemClock::new(), millis(1_000), &mut writes).await;
    assert!(early.is_none(), "written to an unavailable database");
    admin.batch_execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true")).await.unwrap();
    assert!(writes.await.iter().all(Result::is_ok));
    for stream in streams {
        assert_eq!(lanes.rows(stream).await, "1-2");
    }
    assert_eq!(lanes.health.fatal(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_commits_everything_and_rejects_new_writes() {
    let lanes = Lanes::start(3).await;
    let streams: Vec<Uuid> = (0..700).map(|_| lanes.id()).collect();
    for stream in &streams {
        lanes.hand_over(*stream, 1..=3).unwrap();
    }
    lanes.db.close().await;
    assert_eq!(lanes.database.scalar("SELECT count(*) FROM stream_events").await, "700");
    assert_eq!(lanes.hand_over(lanes.id(), 1..=1), Err(WriteError::Closed));
    assert!(!lanes.db.takes_new_work());
    lanes.db.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_never_holds_every_lane() {
    let lanes = Lanes::start(3).await;
    let hold = lanes.hold().await;
    // More than one commit holds, so that every free lane takes some of it.
    for _ in 0..1_500 {
        lanes.hand_over(lanes.id(), 1..=1).unwrap();
    }
    lanes.waiting_lanes(2).await;
    pause(millis(100)).await;
    lanes.waiting_lanes(2).await;
    let other = WriterKey { id: lanes.id(), workspace: lanes.id() };
    lanes.db.submit(other, Batch::default(), Some(events(other.id, 1..=1))).unwrap();
    lanes.waiting_lanes(3).await;
    hold.release().await;
    lanes.db.close().await;
    assert_eq!(lanes.database.scalar("SELECT count(*) FROM stream_events").await, "1501");
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_a_busy_workspace_pause_while_others_continue() {
    let lanes = Lanes::start(1).await;
    let hold = lanes.hold().await;
    let has_room = |workspace| lanes.db.has_room(WriterKey { id: lanes.id(), workspace });
    for _ in 0..16 {
        assert!(has_room(Uuid::nil()));
        submit_large_writes(&lanes.db, lanes.id(), 1);
    }
    assert!(!has_room(Uuid::nil()));
    assert!(has_room(lanes.id()), "another workspace continues");
    assert!(lanes.db.takes_new_work());
    hold.release().await;
    until("it is written", || has_room(Uuid::nil())).await;
    lanes.db.close().await;
}

/// Hands over a megabyte.
fn submit_large_writes(db: &Database, stream: Uuid, seq: u64) {
    let mut frames = events(stream, seq..=seq);
    frames.frames = "x".repeat(1 << 20);
    db.submit(key(stream), Batch::default(), Some(frames)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_waits_while_it_has_too_many_uncommitted_bytes() {
    let lanes = Lanes::start(1).await;
    let (fast, other) = (lanes.id(), lanes.id());
    let hold = lanes.hold().await;
    submit_large_writes(&lanes.db, fast, 1);
    lanes.waiting_lanes(1).await;
    assert!(lanes.db.room(key(fast)).now_or_never().is_none());
    assert!(lanes.db.room(key(other)).now_or_never().is_some());
    let waits = {
        let db = lanes.db.clone();
        tokio::spawn(async move { db.room(key(fast)).await })
    };
    pause(millis(50)).await;
    assert!(!waits.is_finished());
    hold.release().await;
    waits.await.unwrap();
    assert_eq!(lanes.rows(fast).await, "1-1");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_work_is_rejected_while_too_many_bytes_wait() {
    let lanes = Lanes::start(1).await;
    let hold = lanes.hold().await;
    for _ in 0..64 {
        assert!(lanes.db.takes_new_work());
        submit_large_writes(&lanes.db, lanes.id(), 1);
    }
    assert!(!lanes.db.takes_new_work());
    // Work in progress continues.
    lanes.hand_over(lanes.id(), 1..=1).unwrap();
    hold.release().await;
    until("it is written", || lanes.db.takes_new_work()).await;
    lanes.db.close().await;
    assert_eq!(lanes.database.scalar("SELECT count(*) FROM stream_events").await, "65");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_of_a_dropped_writer_is_committed() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.id();
    let hold = lanes.hold().await;
    assert!(lanes.write(stream, 1..=1).now_or_never().is_none());
    lanes.waiting_lanes(1).await;
    assert!(lanes.write(stream, 2..=2).now_or_never().is_none());
    hold.release().await;
    lanes.db.close().await;
    assert_eq!(lanes.rows(stream).await, "1-1 2-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_that_panics_turns_the_health_red() {
    let lanes = Lanes::start(2).await;
    let then = Box::new(|_| panic!("planned: a task that waits for a commit"));
    let stream = lanes.id();
    lanes.db.submit_then(key(stream), Batch::default(), Some(events(stream, 1..=1)), then).unwrap();
    assert!(lanes.health.failed().await.contains("panicked"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_fails_after_its_row_is_not_acknowledged() {
    let lanes = Lanes::start(1).await;
    let late = "CREATE FUNCTION refuse_late() RETURNS trigger LANGUAGE plpgsql AS $$
                BEGIN RAISE EXCEPTION 'planned: at the commit'; END $$;
                CREATE CONSTRAINT TRIGGER late AFTER INSERT ON stream_events DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION refuse_late();";
    lanes.database.execute(late).await.unwrap();
    let stream = lanes.id();
    let _produced = lanes.topics.produce(stream);
    let mut reader = lanes.reader(stream, 0, true);
    let outcome = lanes.write(stream, 1..=1).await;
    assert!(matches!(&outcome, Err(WriteError::Poisoned(text)) if text.contains("planned")), "{outcome:?}");
    assert!(reader.next().now_or_never().is_none(), "sent although it is not stored");
    assert_eq!(lanes.rows(stream).await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn lanes_are_idle_after_readers_have_the_commits_too() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.id();
    let _produced = lanes.topics.produce(stream);
    let mut reader = lanes.reader(stream, 0, true);
    let (outcome_sender, outcome_receiver) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel();
    // Between the acknowledgement and the publication to readers.
    let then = Box::new(move |outcome| {
        let _ = outcome_sender.send(outcome);
        let _ = released.recv();
    });
    lanes.db.submit_then(key(stream), Batch::default(), Some(events(stream, 1..=1)), then).unwrap();
    outcome_receiver.await.unwrap().unwrap();
    assert!(reader.next().now_or_never().is_none());
    let idle = lanes.db.idle();
    tokio::pin!(idle);
    assert!(idle.as_mut().now_or_never().is_none());
    release.send(()).unwrap();
    idle.await;
    assert!(matches!(reader.next().now_or_never(), Some(Ok(Readout::Frames(_)))));
    lanes.db.idle().await;
}
