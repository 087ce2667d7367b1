//! Events are published only after they are stored, and a slow reader delays no other.

use actors::streams::{Reader, Readout};
use futures_util::FutureExt;
use kernel::SystemClock;

use crate::support::lanes::{LANE, Lanes, events, key, numbers, read_to};
use crate::support::{millis, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_arrives_after_it_is_stored() {
    let lanes = Lanes::start(4).await;
    let streams: Vec<_> = (0..8).map(|_| lanes.id()).collect();
    let mut readers: Vec<_> = streams
        .iter()
        .map(|stream| {
            let _produced = lanes.topics.produce(*stream);
            lanes.reader(*stream, 0, true)
        })
        .collect();
    for seq in 1..=20 {
        for stream in &streams {
            lanes.hand_over(*stream, seq..=seq).unwrap();
        }
        for reader in &mut readers {
            let Readout::Frames(frames) = reader.next().await.unwrap() else { panic!("it ended") };
            assert_eq!(numbers(std::str::from_utf8(&frames).unwrap()), [seq]);
            let stored = lanes.rows(reader.stream()).await;
            assert!(stored.ends_with(&format!("{seq}-{seq}")), "{stored}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_event_arrives_before_its_commit_even_after_broken_connections() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.id();
    let _produced = lanes.topics.produce(stream);
    let mut reader = lanes.reader(stream, 0, true);
    lanes.write(lanes.id(), 1..=1).await.unwrap();
    let hold = lanes.hold().await;
    lanes.hand_over(stream, 1..=3).unwrap();
    for _ in 0..3 {
        lanes.waiting_lanes(1).await;
        let early = kernel::timeout(&SystemClock::new(), millis(50), reader.next()).await;
        assert!(early.is_none(), "sent before it was stored");
        let kill = format!(
            "SELECT count(*) FILTER (WHERE pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
             WHERE {LANE} AND wait_event_type = 'Lock'"
        );
        assert_eq!(lanes.database.scalar(&kill).await, "1");
    }
    hold.release().await;
    assert_eq!(read_to(&mut reader, 3).await, [1, 2, 3]);
    assert_eq!(lanes.rows(stream).await, "1-3");
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_hundreds_of_commits_behind_continue_without_the_database() {
    const LAST: u64 = 600;
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let (mut slow, mut quick) = (lanes.reader(stream, 0, true), lanes.reader(stream, 0, true));
    // Each commit is acknowledged although the slow reader reads nothing; the quick one receives each event at once.
    for seq in 1..=LAST {
        lanes.write(stream, seq..=seq).await.unwrap();
        assert_eq!(read_to(&mut quick, seq).await, [seq]);
    }
    hide(&lanes).await;
    let all: Vec<u64> = (1..=LAST).collect();
    assert_eq!(read_to(&mut slow, LAST).await, all);
    // New readers too, at any position.
    for after in (0..LAST).step_by(3) {
        let mut reader = lanes.reader(stream, after, false);
        let Readout::Frames(frames) = reader.next().await.unwrap() else { panic!("it ended") };
        let first = numbers(std::str::from_utf8(&frames).unwrap());
        assert!(first.len() as u64 >= (LAST - after).min(100), "{} at once", first.len());
        let rest = if first.last() == Some(&LAST) { Vec::new() } else { read_to(&mut reader, LAST).await };
        assert!([first, rest].concat().into_iter().eq(after + 1..=LAST), "after {after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_far_behind_reads_the_database_and_returns_to_live_events() {
    const LAST: u64 = 20_000;
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut slow = lanes.reader(stream, 0, true);
    for first in (1..=LAST).step_by(200) {
        lanes.write(stream, first..=first + 199).await.unwrap();
    }
    hide(&lanes).await;
    assert!(slow.next().await.is_err(), "this many events are not kept");
    show(&lanes).await;
    assert!(read_to(&mut slow, LAST).await.into_iter().eq(1..=LAST));
    for seq in LAST + 1..=LAST + 100 {
        lanes.write(stream, seq..=seq).await.unwrap();
    }
    hide(&lanes).await;
    assert!(read_to(&mut slow, LAST + 100).await.into_iter().eq(LAST + 1..=LAST + 100));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_buffered_without_readers() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut first = lanes.reader(stream, 0, true);
    lanes.write(stream, 1..=3).await.unwrap();
    assert_eq!(read_to(&mut first, 3).await, [1, 2, 3]);
    hide(&lanes).await;
    assert_eq!(read_to(&mut lanes.reader(stream, 1, false), 3).await, [2, 3]);
    drop(first);
    // Even a reader opened as fresh does not miss events published before it.
    assert!(lanes.reader(stream, 0, true).next().await.is_err());
    show(&lanes).await;
    // A reader of the second commit knows that the first one is published.
    lanes.write(stream, 4..=5).await.unwrap();
    lanes.write(stream, 6..=6).await.unwrap();
    hide(&lanes).await;
    assert!(lanes.reader(stream, 3, false).next().await.is_err());
    show(&lanes).await;
    assert_eq!(read_to(&mut lanes.reader(stream, 0, true), 6).await, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_dropped_while_waiting_loses_nothing() {
    const LAST: u64 = 400;
    let lanes = std::sync::Arc::new(Lanes::start(1).await);
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    lanes.write(stream, 1..=3).await.unwrap();
    let readers: Vec<_> = (0..4_u64)
        .map(|number| {
            let lanes = std::sync::Arc::clone(&lanes);
            tokio::spawn(async move {
                let mut reader = lanes.reader(stream, 0, false);
                let (mut seen, mut dropped) = (Vec::new(), 0_u64);
                while seen.last() != Some(&LAST) {
                    // First while it waits for its permit or the database, then while it waits for the next commit.
                    let limit = match dropped {
                        3.. if seen.is_empty() => millis(5_000),
                        _ => std::time::Duration::from_micros((dropped + number) % 40 * 150),
                    };
                    // A timer takes at least a millisecond, which is long enough for a read.
                    let next = match dropped {
                        0 => reader.next().now_or_never(),
                        _ => kernel::timeout(&SystemClock::new(), limit, reader.next()).await,
                    };
                    match next {
                        Some(Ok(Readout::Frames(frames))) => {
                            seen.extend(numbers(std::str::from_utf8(&frames).unwrap()));
                        }
                        Some(other) => panic!("{other:?}"),
                        None => dropped += 1,
                    }
                }
                (seen, dropped)
            })
        })
        .collect();
    for seq in 4..=LAST {
        lanes.write(stream, seq..=seq).await.unwrap();
    }
    for reader in readers {
        let (seen, dropped) = reader.await.unwrap();
        assert!(seen.into_iter().eq(1..=LAST));
        assert!(dropped > 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_events_are_queried_once() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut first = lanes.reader(stream, 0, true);
    lanes.write(stream, 1..=3).await.unwrap();
    assert_eq!(read_to(&mut first, 3).await, [1, 2, 3]);
    drop(first);
    lanes.database.execute("DELETE FROM stream_events").await.unwrap();
    let mut reader = lanes.reader(stream, 0, false);
    assert!(kernel::timeout(&SystemClock::new(), millis(500), reader.next()).await.is_none());
    hide(&lanes).await;
    assert!(kernel::timeout(&SystemClock::new(), millis(200), reader.next()).await.is_none());
    show(&lanes).await;
    lanes.write(stream, 4..=4).await.unwrap();
    assert_eq!(read_to(&mut reader, 4).await, [4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lagging_and_reconnecting_readers_see_every_event_once() {
    const LAST: u64 = 400;
    let lanes = std::sync::Arc::new(Lanes::start(2).await);
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let readers: Vec<_> = (0..8_u64)
        .map(|number| {
            let lanes = std::sync::Arc::clone(&lanes);
            tokio::spawn(async move {
                let mut seen: Vec<u64> = Vec::new();
                while seen.last() != Some(&LAST) {
                    // Each reader disconnects after a while, and reconnects with the last number that it saw.
                    let mut reader = lanes.reader(stream, seen.last().copied().unwrap_or(0), false);
                    let until = (seen.len() as u64 + 10 + 15 * number).min(LAST);
                    while seen.last().copied().unwrap_or(0) < until {
                        crate::support::pause(millis(3 * number)).await;
                        let Readout::Frames(frames) = reader.next().await.unwrap() else {
                            panic!("it ended")
                        };
                        seen.extend(numbers(std::str::from_utf8(&frames).unwrap()));
                    }
                }
                seen
            })
        })
        .collect();
    for seq in (1..=LAST).step_by(2) {
        lanes.write(stream, seq..=seq + 1).await.unwrap();
    }
    let all: Vec<u64> = (1..=LAST).collect();
    for reader in readers {
        assert_eq!(reader.await.unwrap(), all);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_readers_share_the_same_bytes() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.id();
    let _produced = lanes.topics.produce(stream);
    let (mut one, mut two) = (lanes.reader(stream, 0, true), lanes.reader(stream, 0, true));
    lanes.write(stream, 1..=5).await.unwrap();
    let (Readout::Frames(one), Readout::Frames(two)) = (one.next().await.unwrap(), two.next().await.unwrap())
    else {
        panic!("it ended")
    };
    assert_eq!(one.as_ptr(), two.as_ptr());
    assert_eq!(one, events(stream, 1..=5).frames);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_resumes_in_the_middle_of_a_commit() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut live = lanes.reader(stream, 2, true);
    lanes.write(stream, 1..=5).await.unwrap();
    assert_eq!(read_to(&mut live, 5).await, [3, 4, 5]);
    assert_eq!(read_to(&mut lanes.reader(stream, 4, false), 5).await, [5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_stream_leaves_no_topic() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut reader = lanes.reader(stream, 0, true);
    let mut last = events(stream, 1..=1);
    last.end = true;
    lanes.db.commit(key(stream), store::batch::Batch::default(), Some(last)).await.unwrap();
    assert!(matches!(reader.next().await.unwrap(), Readout::Frames(_)));
    assert_eq!(reader.next().await.unwrap(), Readout::End);
    drop(reader);
    drop(lanes.reader(lanes.id(), 0, false));
    until("no topic is left", || lanes.topics.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_a_removed_topic_reads_to_its_end() {
    const LAST: u64 = 200;
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut slow = lanes.reader(stream, 0, true);
    for seq in 1..=LAST {
        let mut last = events(stream, seq..=seq);
        last.end = seq == LAST;
        lanes.db.commit(key(stream), store::batch::Batch::default(), Some(last)).await.unwrap();
    }
    until("the topic is gone", || lanes.topics.is_empty()).await;
    hide(&lanes).await;
    assert!(read_to(&mut slow, LAST).await.into_iter().eq(1..=LAST));
    assert_eq!(slow.next().await.unwrap(), Readout::End);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_catch_up_at_once_take_turns_without_errors() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    lanes.write(stream, 1..=3).await.unwrap();
    let other = crate::support::session(lanes.database.dsn()).await;
    other.batch_execute("BEGIN; LOCK TABLE streams IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // Ten readers per pool connection: none can read until the lock is released, which takes longer than the pool's
    // wait timeout.
    let mut readers: Vec<_> = (0..40).map(|_| lanes.reader(stream, 0, false)).collect();
    let read = async |reader: &mut Reader| match reader.next().await.unwrap() {
        Readout::Frames(frames) => numbers(std::str::from_utf8(&frames).unwrap()),
        Readout::Live | Readout::End => panic!("it ended"),
    };
    let reading = futures_util::future::join_all(readers.iter_mut().map(read));
    let letting_go = async {
        crate::support::pause(millis(6_000)).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (seen, ()) = tokio::join!(reading, letting_go);
    assert!(seen.iter().all(|seen| *seen == [1, 2, 3]), "{seen:?}");
}

/// Makes all stream queries fail.
async fn hide(lanes: &Lanes) {
    lanes.database.execute("ALTER TABLE streams RENAME TO hidden").await.unwrap();
}

async fn show(lanes: &Lanes) {
    lanes.database.execute("ALTER TABLE hidden RENAME TO streams").await.unwrap();
}
