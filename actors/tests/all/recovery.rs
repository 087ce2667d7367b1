//! Turns whose process is killed, slow or shut down.

use kernel::{Clock, ManualClock, SystemClock};
use uuid::Uuid;
use wire::chat::ChatEvent;

use crate::support::house::{House, Instance, ReceivedEvents, stopped_clock, until_idle, words};
use crate::support::lanes::LANE;
use crate::support::{LONGEST, millis, pause, session, until, until_sql};

const TEXT: usize = 40;

/// Lets an instance's turn write about this many words, and waits until they are stored.
async fn wait_for_words(house: &House, clock: &ManualClock, stream: Uuid, count: usize) {
    let has = format!(
        "SELECT coalesce(string_agg(frames, ''), '') LIKE '%word{count} %' FROM stream_events
         WHERE stream_id = '{stream}' AND first_seq > 3"
    );
    let began = SystemClock::new();
    while house.database.scalar(&has).await == "false" {
        assert!(began.monotonic() < LONGEST, "no text arrives");
        clock.advance(millis(100));
        pause(millis(5)).await;
    }
}

/// Asserts that the turn ended once, with this text, for its reader and in its thread.
async fn assert_ended_once(house: &House, instance: &Instance, stream: Uuid, text: &str) {
    instance.read(stream).await.assert_answer(text);
    let thread = instance.thread_of(stream).await;
    assert_eq!(house.assistant_messages(&instance.store, thread).await, [text]);
    let runs = format!("SELECT string_agg(status, ' ') FROM runs WHERE stream_id = '{stream}'");
    assert_eq!(house.database.scalar(&runs).await, "succeeded");
    assert_eq!(house.unfinished().await, "0");
}

async fn expire(house: &House, id: u128) {
    let id = Uuid::from_u128(id);
    let sql = format!("UPDATE leases SET expires_at = now() - interval '1 second' WHERE writer_id = '{id}'");
    house.database.execute(&sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_continues_its_turn_after_a_restart() {
    let house = House::echo(100).await;
    let (clock, shared) = stopped_clock();
    let mut killed = house.instance_at(1, shared).await;
    let reader = killed.begin(&words(TEXT)).await;
    let stream = reader.stream();
    wait_for_words(&house, &clock, stream, 5).await;
    killed.kill();
    assert_eq!(house.unfinished().await, "1");
    let again = house.instance(1).await;
    let mut resumed = again.chat.open(stream, 0);
    ReceivedEvents::until_end(&mut resumed).await.assert_answer(&words(TEXT));
    assert_ended_once(&house, &again, stream, &words(TEXT)).await;
    until_idle(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_twice_sends_each_event_once() {
    let house = House::echo(100).await;
    let mut stream = None;
    // A third crash would fail the turn: it stores no journal row before its text is complete.
    for life in 0..2_usize {
        let (clock, shared) = stopped_clock();
        let mut instance = house.instance_at(1, shared).await;
        let stream = match stream {
            Some(stream) => stream,
            None => *stream.insert(instance.begin(&words(TEXT)).await.stream()),
        };
        wait_for_words(&house, &clock, stream, 3 + 4 * life).await;
        instance.kill();
    }
    let last = house.instance(1).await;
    assert_ended_once(&house, &last, stream.unwrap(), &words(TEXT)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_waiting_at_a_kill_run_in_order() {
    let house = House::echo(20).await;
    let (_clock, shared) = stopped_clock();
    let mut killed = house.instance_at(1, shared).await;
    let first = killed.begin(&words(5)).await.stream();
    let thread = killed.thread_of(first).await;
    let mut streams = vec![first];
    for turn in 0..5 {
        streams.push(killed.send(thread, &format!("turn {turn}")).await.stream());
    }
    // More turns to recover, so that the recovery takes a while.
    for _ in 0..100 {
        killed.begin("another thread").await;
    }
    killed.kill();
    let again = house.instance(1).await;
    // A message after the restart waits for those from before the kill.
    streams.push(again.send(thread, "afterwards").await.stream());
    for stream in &streams {
        assert!(again.read(*stream).await.is_complete());
    }
    let mut expected = vec![words(5)];
    expected.extend((0..5).map(|turn| format!("turn {turn}")));
    expected.push("afterwards".to_owned());
    assert_eq!(house.assistant_messages(&again.store, thread).await, expected);
    let overlaps = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id AND a.thread_id = b.thread_id
                    WHERE b.finished_at < a.finished_at";
    assert_eq!(house.database.scalar(overlaps).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_requested_before_a_kill_is_kept() {
    let house = House::echo(100).await;
    let (clock, shared) = stopped_clock();
    let mut killed = house.instance_at(1, shared).await;
    let stream = killed.begin(&words(TEXT)).await.stream();
    wait_for_words(&house, &clock, stream, 4).await;
    killed.kill();
    house.database.execute("UPDATE runs SET cancel_requested_at = now()").await.unwrap();
    let again = house.instance(1).await;
    let received = again.read(stream).await;
    assert!(received.is_complete());
    // Text that readers have received is kept.
    assert_eq!(received.answers(), [received.pieces()]);
    assert!(received.pieces().starts_with(&words(3)));
    assert_eq!(house.database.scalar("SELECT string_agg(status, ' ') FROM runs").await, "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_a_dead_instance_is_taken_over_and_its_late_writes_are_fenced() {
    let house = House::echo(100).await;
    let (clock, shared) = stopped_clock();
    let slow = house.instance_at(1, shared).await;
    let stream = slow.begin(&words(TEXT)).await.stream();
    wait_for_words(&house, &clock, stream, 5).await;
    let taker = house.instance(2).await;
    pause(millis(300)).await;
    assert_eq!(house.unfinished().await, "1", "taken from an owner with a valid lease");
    expire(&house, 1).await;
    // One reader at the taker, from the start, and one at the slow instance, which receives nothing.
    let mut late = taker.chat.open(stream, 0);
    ReceivedEvents::until_end(&mut late).await.assert_answer(&words(TEXT));
    let before = house.database.scalar("SELECT count(*) FROM stream_events").await;
    assert_eq!(slow.system.health().fatal(), None);
    for _ in 0..TEXT {
        clock.advance(millis(100));
        pause(millis(5)).await;
    }
    until("the slow instance detects it", || slow.system.health().fatal().is_some()).await;
    assert_ended_once(&house, &taker, stream, &words(TEXT)).await;
    assert_eq!(house.database.scalar("SELECT count(*) FROM stream_events").await, before);
    assert_eq!(taker.system.health().fatal(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_turn_of_a_dead_instance_gets_one_new_owner() {
    let house = House::echo(30).await;
    let (_clock, shared) = stopped_clock();
    let mut dead = house.instance_at(1, shared).await;
    let mut streams = Vec::new();
    for _ in 0..60 {
        streams.push(dead.begin(&words(6)).await.stream());
    }
    dead.kill();
    let takers = [house.instance(2).await, house.instance(3).await];
    expire(&house, 1).await;
    for (n, stream) in streams.iter().enumerate() {
        takers[n % 2].read(*stream).await.assert_answer(&words(6));
    }
    assert_eq!(house.database.scalar("SELECT count(*) FROM thread_items").await, "120");
    assert_eq!(house.unfinished().await, "0");
    for taker in &takers {
        until_idle(taker).await;
        assert_eq!(taker.system.health().fatal(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_failed_to_resume_is_found_by_the_sweeper() {
    let house = House::echo(10).await;
    let (_clock, shared) = stopped_clock();
    let mut dead = house.instance_at(1, shared).await;
    let stream = dead.begin(&words(5)).await.stream();
    dead.kill();
    let taker = house.instance(2).await;
    // Its stream cannot be read during the takeover.
    house.database.execute("ALTER TABLE streams RENAME TO hidden").await.unwrap();
    expire(&house, 1).await;
    let taken = format!("SELECT writer_id = '{}' FROM runs", Uuid::from_u128(2));
    until_sql("it is taken over", &house.database, &taken).await;
    pause(millis(200)).await;
    assert_eq!(house.unfinished().await, "1");
    assert!(taker.system.threads().is_empty());
    house.database.execute("ALTER TABLE hidden RENAME TO streams").await.unwrap();
    assert_ended_once(&house, &taker, stream, &words(5)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_hands_a_long_turn_and_its_queue_to_the_next_instance() {
    let house = House::echo(200).await;
    let first = house.instance(1).await;
    let mut reader = first.begin(&words(TEXT)).await;
    let stream = reader.stream();
    let thread = first.thread_of(stream).await;
    let waiting = first.send(thread, "the next").await.stream();
    let received = ReceivedEvents::until_answer(&mut reader).await;
    assert!(received.is_complete());
    assert!(!first.system.drain(millis(300)).await, "it takes longer than that");
    let refused = first.chat.start(first.turn(crate::support::house::new_thread(), "late")).await;
    assert!(matches!(refused, Err(actors::kinds::turn::chat::RunStartError::Draining)));
    first.system.stop(millis(5_000)).await;
    let written = house.database.scalar("SELECT count(*) FROM stream_events").await;
    pause(millis(300)).await;
    assert_eq!(
        house.database.scalar("SELECT count(*) FROM stream_events").await,
        written,
        "it continues to write"
    );
    let second = house.instance(2).await;
    second.read(stream).await.assert_answer(&words(TEXT));
    second.read(waiting).await.assert_answer("the next");
    assert_eq!(house.assistant_messages(&second.store, thread).await, [words(TEXT), "the next".to_owned()]);
    assert_eq!(house.unfinished().await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_waits_for_a_turn_that_ends_in_time() {
    let house = House::echo(40).await;
    let instance = house.instance(1).await;
    let mut reader = instance.begin(&words(15)).await;
    ReceivedEvents::until_answer(&mut reader).await;
    assert!(instance.system.drain(millis(10_000)).await);
    instance.system.stop(millis(5_000)).await;
    assert_eq!(house.unfinished().await, "0");
    instance.read(reader.stream()).await.assert_answer(&words(15));
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_survive_a_database_that_ends_every_session() {
    let house = House::echo(40).await;
    let instance = house.instance(1).await;
    let admin = session(&std::env::var(store::testing::TEST_DSN).unwrap()).await;
    let name = house.database.scalar("SELECT current_database()").await;
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(instance.begin(&words(20)).await);
    }
    let lanes = LANE.replace("current_database()", &format!("'{name}'"));
    for _ in 0..30 {
        let kill = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {lanes}");
        admin.batch_execute(&kill).await.unwrap();
        pause(millis(20)).await;
    }
    for mut reader in readers {
        ReceivedEvents::until_end(&mut reader).await.assert_answer(&words(20));
    }
    assert_eq!(house.unfinished().await, "0");
    assert_eq!(instance.system.health().fatal(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stored_message_starts_before_any_event_names_it() {
    let house = House::echo(0).await;
    let instance = house.instance(1).await;
    let mut reader = instance.begin("hello").await;
    let mut received = ReceivedEvents::default();
    received.read_more(&mut reader).await;
    let Some(ChatEvent::ItemDone { item }) =
        received.events.iter().find(|e| matches!(e, ChatEvent::ItemDone { .. }))
    else {
        panic!("{received:?}")
    };
    let thread = instance.thread_of(reader.stream()).await;
    let stored = instance.store.thread_items(thread).await.unwrap();
    assert!(stored.iter().any(|stored| stored.item.id() == item.id()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_instance_detects_that_it_lost_its_lease() {
    let house = House::echo(0).await;
    let instance = house.instance(1).await;
    instance.store.take_lease(Uuid::from_u128(1), Uuid::nil()).await.unwrap();
    until("its health is red", || instance.system.health().fatal().is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lease_names_the_oldest_run_that_has_not_ended() {
    let house = House::echo(1_000).await;
    let instance = house.instance(1).await;
    let mut short = instance.begin("hello").await;
    let long = instance.begin(&words(5)).await;
    ReceivedEvents::until_end(&mut short).await.assert_answer("hello");
    let sql = "SELECT (SELECT oldest_run FROM leases) = (SELECT id FROM runs WHERE finished_at IS NULL)";
    until_sql("it names the long one", &house.database, sql).await;
    instance.read(long.stream()).await.assert_answer(&words(5));
    until_sql(
        "it names no run",
        &house.database,
        "SELECT oldest_run > (SELECT max(id::text)::uuid FROM runs) FROM leases",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_run_ends_with_an_error_and_blocks_no_other_run() {
    let house = House::echo(10).await;
    let (_clock, shared) = stopped_clock();
    let mut killed = house.instance_at(1, shared).await;
    let bad = [killed.begin(&words(5)).await.stream(), killed.begin(&words(5)).await.stream()];
    let next = killed.send(killed.thread_of(bad[0]).await, "behind").await.stream();
    killed.kill();
    for (stream, spoilt) in
        bad.iter().zip([format!("version_id = '{}'", Uuid::nil()), "inputs = '{'".to_owned()])
    {
        let spoil = format!("UPDATE runs SET {spoilt} WHERE stream_id = '{stream}' AND finished_at IS NULL");
        house.database.execute(&spoil).await.unwrap();
    }
    let again = house.instance(1).await;
    for stream in bad {
        let received = again.read(stream).await;
        assert!(received.is_complete());
        assert_eq!(received.errors(), ["service.internal"]);
    }
    again.read(next).await.assert_answer("behind");
    assert_eq!(house.unfinished().await, "0");
    until_idle(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_instance_is_considered_dead_after_a_database_outage() {
    let house = House::echo(0).await;
    let instances = [house.instance(1).await, house.instance(2).await, house.instance(3).await];
    let admin = session(&std::env::var(store::testing::TEST_DSN).unwrap()).await;
    let name = house.database.scalar("SELECT current_database()").await;
    let epochs = house.database.scalar("SELECT max(epoch) FROM leases").await;
    admin.batch_execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false")).await.unwrap();
    let kill = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
    admin.batch_execute(&kill).await.unwrap();
    pause(millis(11_000)).await;
    admin.batch_execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true")).await.unwrap();
    let renewed = format!(
        "SELECT count(*) = 3 FROM leases WHERE expires_at > now() AND expires_at < 'infinity' AND epoch <= {epochs}"
    );
    until_sql("all have renewed", &house.database, &renewed).await;
    for instance in &instances {
        let mut reader = instance.begin("hello").await;
        ReceivedEvents::until_end(&mut reader).await.assert_answer("hello");
        assert_eq!(instance.system.health().fatal(), None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_takeover_does_not_cost_the_new_owner_its_lease() {
    let house = House::echo(1).await;
    let (_clock, shared) = stopped_clock();
    let mut dead = house.instance_at(1, shared).await;
    let turns = (0..140).map(|_| dead.begin("hello there"));
    drop(futures_util::future::join_all(turns).await);
    dead.kill();
    // Slows down each query on a stream.
    house
        .database
        .execute(
            "ALTER TABLE streams RENAME TO real_streams;
             CREATE VIEW streams AS
                 SELECT s.* FROM (SELECT pg_sleep(0.05) OFFSET 0) slow, real_streams s",
        )
        .await
        .unwrap();
    let taker = house.instance(2).await;
    expire(&house, 1).await;
    let lease_row = format!("FROM leases WHERE writer_id = '{}'", Uuid::from_u128(2));
    let epoch = house.database.scalar(&format!("SELECT epoch {lease_row}")).await;
    let good = format!("SELECT expires_at > now() AND epoch = {epoch} {lease_row}");
    let began = SystemClock::new();
    while house.unfinished().await != "0" {
        assert!(began.monotonic() < millis(120_000), "they are not resumed");
        assert_eq!(house.database.scalar(&good).await, "true", "its lease has run out");
        pause(millis(100)).await;
    }
    assert_eq!(taker.system.health().fatal(), None);
}
