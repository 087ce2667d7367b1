//! Nothing is told before it is stored, and whoever is slow is slow alone.

use actors::publish::{Reader, Readout};
use kernel::SystemClock;

use crate::support::lanes::{LANE, Lanes, events, numbers, read_to};
use crate::support::{millis, until};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_stored_when_it_arrives() {
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
async fn nothing_arrives_while_the_commit_is_on_its_way_however_often_its_connection_breaks() {
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
        assert!(early.is_none(), "told before it was stored");
        let kill = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE {LANE} AND wait_event_type = 'Lock'"
        );
        assert_eq!(lanes.database.scalar(&kill).await, "1");
    }
    hold.release().await;
    assert_eq!(read_to(&mut reader, 3).await, [1, 2, 3]);
    assert_eq!(lanes.rows(stream).await, "1-3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_too_slow_is_cut_and_resumes_with_every_event_once() {
    const LAST: u64 = 300;
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let (mut slow, mut quick) = (lanes.reader(stream, 0, true), lanes.reader(stream, 0, true));
    // Each commit is acknowledged though the slow one reads nothing; the quick one has each event at once.
    for seq in 1..=LAST {
        lanes.write(stream, seq..=seq).await.unwrap();
        assert_eq!(read_to(&mut quick, seq).await, [seq]);
    }
    let all: Vec<u64> = (1..=LAST).collect();
    assert_eq!(read_to(&mut slow, LAST).await, all);
    // It has caught up, and goes on live.
    lanes.write(stream, LAST + 1..=LAST + 2).await.unwrap();
    assert_eq!(read_to(&mut slow, LAST + 2).await, [LAST + 1, LAST + 2]);
    assert_eq!(read_to(&mut lanes.reader(stream, 0, false), LAST + 2).await.len() as u64, LAST + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_that_lag_and_come_and_go_while_it_is_written_see_every_event_once() {
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
                    // Each goes away after a while and comes back with the last number that it saw.
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
async fn all_readers_are_handed_the_same_bytes() {
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
async fn a_reader_resumes_in_the_middle_of_what_was_committed_together() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut live = lanes.reader(stream, 2, true);
    lanes.write(stream, 1..=5).await.unwrap();
    assert_eq!(read_to(&mut live, 5).await, [3, 4, 5]);
    assert_eq!(read_to(&mut lanes.reader(stream, 4, false), 5).await, [5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_topic_is_left_of_a_stream_that_has_ended() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    let mut reader = lanes.reader(stream, 0, true);
    let mut last = events(stream, 1..=1);
    last.end = true;
    lanes.db.commit(stream, store::batch::Batch::default(), Some(last)).await.unwrap();
    assert!(matches!(reader.next().await.unwrap(), Readout::Frames(_)));
    assert_eq!(reader.next().await.unwrap(), Readout::End);
    drop(reader);
    drop(lanes.reader(lanes.id(), 0, false));
    until("no topic is left", || lanes.topics.is_empty()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_catch_up_at_once_take_turns_and_none_is_broken_off() {
    let lanes = Lanes::start(1).await;
    let stream = lanes.make_stream().await;
    let _produced = lanes.topics.produce(stream);
    lanes.write(stream, 1..=3).await.unwrap();
    let other = crate::support::session(lanes.database.dsn()).await;
    other.batch_execute("BEGIN; LOCK TABLE streams IN ACCESS EXCLUSIVE MODE").await.unwrap();
    // Ten for each connection of the pool: nobody gets one before the lock is gone, longer than anybody waits for one.
    let mut readers: Vec<_> = (0..40).map(|_| lanes.reader(stream, 0, false)).collect();
    let read = async |reader: &mut Reader| match reader.next().await.unwrap() {
        Readout::Frames(frames) => numbers(std::str::from_utf8(&frames).unwrap()),
        Readout::End => panic!("it ended"),
    };
    let reading = futures_util::future::join_all(readers.iter_mut().map(read));
    let letting_go = async {
        crate::support::pause(millis(6_000)).await;
        other.batch_execute("COMMIT").await.unwrap();
    };
    let (seen, ()) = tokio::join!(reading, letting_go);
    assert!(seen.iter().all(|seen| *seen == [1, 2, 3]), "{seen:?}");
}
