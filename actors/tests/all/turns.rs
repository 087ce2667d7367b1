//! Turns in a thread: one at a time, in order, each with one end.

use std::sync::Arc;

use actors::kinds::turn::chat::{RunStartError, Target};
use actors::kinds::turn::thread::WAITING_TURNS;
use actors::lanes::WriteError;
use futures_util::FutureExt;
use kernel::{Clock, ManualClock, SystemClock};
use wire::chat::ChatEvent;

use crate::support::house::{House, ReceivedEvents, new_thread, until_idle, words};
use crate::support::lanes::refuse_poison;
use crate::support::{LONGEST, millis, pause, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_sends_its_answer_and_leaves_no_topic() {
    let house = House::echo(5).await;
    let instance = house.instance(1).await;
    let mut reader = instance.begin(&words(30)).await;
    let received = ReceivedEvents::until_end(&mut reader).await;
    received.assert_answer(&words(30));
    assert!(matches!(received.events.first(), Some(ChatEvent::ThreadCreated { .. })));
    instance.read(reader.stream()).await.assert_answer(&words(30));
    drop(reader);
    until_idle(&instance).await;
    assert!(instance.system.topics().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_of_a_thread_run_one_at_a_time_in_acceptance_order() {
    let house = House::echo(10).await;
    let instance = house.instance(1).await;
    let first = instance.begin(&words(5)).await.stream();
    let thread = instance.thread_of(first).await;
    let mut streams = vec![first];
    for turn in 0..8 {
        streams.push(instance.send(thread, &format!("{turn} {}", words(3))).await.stream());
    }
    for stream in &streams {
        assert_eq!(instance.read(*stream).await.errors(), Vec::<String>::new());
    }
    let overlaps =
        "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id WHERE b.started_at < a.finished_at";
    assert_eq!(house.database.scalar(overlaps).await, "0");
    let mut expected = vec![words(5)];
    expected.extend((0..8).map(|turn| format!("{turn} {}", words(3))));
    assert_eq!(house.assistant_messages(&instance.store, thread).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_do_not_wait_for_each_other() {
    let house = House::echo(100).await;
    let instance = house.instance(1).await;
    let started = SystemClock::new();
    let turns = (0..40).map(|_| async {
        let mut reader = instance.begin(&words(6)).await;
        ReceivedEvents::until_end(&mut reader).await.assert_answer(&words(6));
    });
    futures_util::future::join_all(turns).await;
    // Sequentially they would take 24 s, and more on a slow machine.
    assert!(started.monotonic() < millis(20_000), "one after the other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thread_accepts_waiting_turns_up_to_its_limit() {
    let house = House::echo(1_000).await;
    let instance = house.instance(1).await;
    let thread = instance.thread_of(instance.begin(&words(60)).await.stream()).await;
    let turns =
        (0..WAITING_TURNS + 10).map(|_| instance.chat.start(instance.turn(Target::Thread(thread), "x")));
    let outcomes = futures_util::future::join_all(turns).await;
    let taken = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let busy = outcomes.iter().filter(|outcome| matches!(outcome, Err(RunStartError::ThreadBusy))).count();
    assert_eq!((taken, busy), (WAITING_TURNS, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_arrives_during_passivation_is_not_lost() {
    let house = House::echo(0).await;
    // The sweeper finds lost turns by time, so a stopped clock disables it.
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::new(SystemClock::new().now()));
    let instance = house.instance_at(1, clock).await;
    let thread = instance.thread_of(instance.begin("first").await.stream()).await;
    for _ in 0..150 {
        let mut reader = instance.send(thread, "hello").await;
        ReceivedEvents::until_end(&mut reader).await.assert_answer("hello");
    }
    until_idle(&instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_runs_although_its_caller_left_before_it_was_stored() {
    let house = House::echo(0).await;
    let instance = house.instance(1).await;
    for _ in 0..20 {
        // Polled once: the start is handed over, and its caller no longer waits.
        let turn = instance.turn(new_thread(), "hello");
        assert!(Box::pin(instance.chat.start(turn)).now_or_never().is_none());
    }
    let sql = "SELECT count(*) FROM runs WHERE status = 'succeeded'";
    let clock = SystemClock::new();
    while house.database.scalar(sql).await != "20" {
        assert!(clock.monotonic() < LONGEST, "lost");
        pause(millis(20)).await;
    }
    until_idle(&instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_running_and_waiting_turns_once_and_keeps_the_sent_text() {
    let house = House::echo(50).await;
    let instance = house.instance(1).await;
    let mut running = instance.begin(&words(200)).await;
    let thread = instance.thread_of(running.stream()).await;
    let waiting = instance.send(thread, "never").await.stream();
    let before = ReceivedEvents::until_answer(&mut running).await.pieces();
    for stream in [waiting, running.stream()] {
        let stored = instance.chat.stream(stream).await.unwrap().unwrap();
        assert_eq!(instance.chat.stop(&stored).await.unwrap(), wire::StopStatus::Stopped);
    }
    let received = instance.read(running.stream()).await;
    let [answer] = received.answers().try_into().unwrap();
    assert!(answer.starts_with(&before) && words(200).starts_with(&answer), "{answer}");
    assert_eq!(instance.read(waiting).await.answers(), Vec::<String>::new());
    assert_eq!(house.database.scalar("SELECT count(*) FROM runs WHERE status = 'cancelled'").await, "2");
    until_idle(&instance).await;
}

/// Revokes the service's access to thread histories.
async fn hide_items(house: &House) {
    house.database.execute("REVOKE SELECT ON thread_items FROM callboard_app").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_turn_of_a_thread_is_one_commit_without_waits() {
    let house = House::echo(0).await;
    let instance = house.instance(1).await;
    // A busy machine may commit some turns' starts alone, before their first writes.
    for _ in 0..10 {
        instance.read(instance.begin("one two").await.stream()).await.assert_answer("one two");
    }
    // Rows in one transaction have the same `xmin`.
    let commits = "SELECT min(commits) FROM (SELECT thread, count(DISTINCT row::text) AS commits FROM (
                   SELECT id AS thread, xmin AS row FROM threads
                   UNION ALL SELECT thread_id, xmin FROM runs
                   UNION ALL SELECT thread_id, xmin FROM thread_items
                   UNION ALL SELECT r.thread_id, s.xmin FROM streams s JOIN runs r ON r.stream_id = s.id
                   UNION ALL SELECT r.thread_id, s.xmin FROM run_steps s JOIN runs r ON r.id = s.run_id
                   UNION ALL SELECT r.thread_id, e.xmin FROM stream_events e JOIN runs r USING (stream_id)
                   ) AS rows GROUP BY thread) AS threads";
    assert_eq!(house.database.scalar(commits).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_a_failed_actor_is_resumed_and_ends_once() {
    let house = House::counting().await;
    let instance = house.instance(1).await;
    let mut threads = Vec::new();
    for text in ["one", "two"] {
        let stream = instance.begin(text).await.stream();
        instance.read(stream).await.assert_answer("1");
        threads.push(instance.thread_of(stream).await);
    }
    hide_items(&house).await;
    let (mut second, mut third) =
        (instance.send(threads[0], "a").await, instance.send(threads[1], "b").await);
    pause(millis(150)).await;
    assert_eq!(house.unfinished().await, "2");
    house.database.execute("GRANT SELECT ON thread_items TO callboard_app").await.unwrap();
    for reader in [&mut second, &mut third] {
        let received = ReceivedEvents::until_end(reader).await;
        assert!(received.is_complete());
        assert_eq!((received.answers(), received.errors()), (vec!["3".to_owned()], Vec::new()));
    }
    until_idle(&instance).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeatedly_failing_thread_fails_its_turns_and_informs_their_readers() {
    let house = House::counting().await;
    let instance = house.instance(1).await;
    let first = instance.begin("one").await.stream();
    instance.read(first).await.assert_answer("1");
    let thread = instance.thread_of(first).await;
    hide_items(&house).await;
    let (mut running, mut waiting) = (instance.send(thread, "a").await, instance.send(thread, "b").await);
    for reader in [&mut running, &mut waiting] {
        let received = ReceivedEvents::until_end(reader).await;
        assert!(received.is_complete());
        assert_eq!(received.errors(), ["run.actor_failed"]);
        assert!(matches!(received.events.last(), Some(ChatEvent::Error { .. })));
    }
    let failed =
        "SELECT count(*) FROM runs WHERE status = 'failed' AND error::json->>'code' = 'run.actor_failed'";
    assert_eq!(house.database.scalar(failed).await, "2");
    until_idle(&instance).await;
    // The thread works again after the cause is removed.
    house.database.execute("GRANT SELECT ON thread_items TO callboard_app").await.unwrap();
    let received = ReceivedEvents::until_end(&mut instance.send(thread, "c").await).await;
    assert_eq!(received.answers(), ["5"]);
    assert_eq!(instance.system.health().fatal(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_unwritable_rows_ends_with_an_error_at_once() {
    // The bad piece is refused with the start, long before the turn ends, or with its last rows.
    for text in [
        "poison one two three four five six",
        "one two poison three four five six seven eight nine ten",
        "one two three poison",
    ] {
        let house = House::replying(text, 60).await;
        let instance = house.instance(1).await;
        refuse_poison(&house.database).await;
        let started = SystemClock::new();
        let received = ReceivedEvents::until_end(&mut instance.begin("go").await).await;
        assert!(started.monotonic() < millis(15_000), "it was retried repeatedly");
        assert!(received.is_complete());
        assert_eq!(received.errors(), ["service.internal"]);
        // The text written before is answer.
        let answer = received.answers().concat();
        assert!(text.starts_with(&answer) && !answer.contains("poison"), "{answer:?}");
        assert_eq!(house.database.scalar("SELECT string_agg(status, ' ') FROM runs").await, "failed");
        until_idle(&instance).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_turns_of_many_threads_end_once_each() {
    let house = House::echo(1).await;
    let instance = Arc::new(house.instance(1).await);
    let threads = (0..50).map(|_| async {
        let first = instance.begin("0").await.stream();
        let thread = instance.thread_of(first).await;
        let mut streams = vec![first];
        for turn in 1..6 {
            streams.push(instance.send(thread, &format!("{turn} and more")).await.stream());
        }
        for stream in streams {
            assert!(instance.read(stream).await.is_complete());
        }
        assert_eq!(house.assistant_messages(&instance.store, thread).await.len(), 6);
    });
    futures_util::future::join_all(threads).await;
    until_idle(&instance).await;
    until("no topic is left", || instance.system.topics().is_empty()).await;
    assert_eq!(house.database.scalar("SELECT count(*) FROM runs WHERE status = 'succeeded'").await, "300");
    assert_eq!(house.unfinished().await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_with_an_unwritable_start_is_rejected_and_leaves_nothing() {
    let house = House::echo(0).await;
    let instance = house.instance(1).await;
    refuse_poison(&house.database).await;
    let refused = instance.chat.start(instance.turn(new_thread(), "poison")).await;
    assert!(matches!(refused, Err(RunStartError::Write(WriteError::Poisoned(_)))));
    until("nothing is left", || instance.system.topics().is_empty() && instance.system.threads().is_empty())
        .await;
    let left = "SELECT (SELECT count(*) FROM runs) + (SELECT count(*) FROM threads) + (SELECT count(*) FROM thread_items)
                    + (SELECT count(*) FROM run_steps) + (SELECT count(*) FROM stream_events)";
    assert_eq!(house.database.scalar(left).await, "0");
    let mut reader = instance.begin("hello").await;
    ReceivedEvents::until_end(&mut reader).await.assert_answer("hello");
}
