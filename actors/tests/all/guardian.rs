//! Restarts, their limits, and the end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::runtime::{ActorKind, ChildExit, Exhausted, ExitReason, Health, RestartPolicy};
use futures_util::FutureExt;
use kernel::{Clock, ManualClock, SystemClock};
use tokio::sync::Notify;

use crate::support::probe::{Birth, Probe, Record, Say, guardian, plain_guardian, quick};
use crate::support::{millis, pause, system, until};

const THREAD: ActorKind = ActorKind::Thread;

/// A manual clock, in two forms: for the test, and for the guardian.
fn manual() -> (ManualClock, Arc<dyn Clock>) {
    let clock = ManualClock::new(SystemClock::new().now());
    (clock.clone(), Arc::new(clock))
}

/// Leaves time for a failure to show.
async fn a_moment() {
    pause(millis(30)).await;
}

#[test]
fn messages_after_a_panic_are_handled_by_the_next_life() {
    system(async {
        let (record, gate) = (Arc::new(Record::default()), Arc::new(Notify::new()));
        let handle = plain_guardian().supervise(THREAD, Probe::gated(&record, &gate));
        handle.tell(Say::Panic).unwrap();
        for note in 1..=3 {
            handle.tell(Say::Note(note)).unwrap();
        }
        gate.notify_one();
        until("the notes", || record.heard.lock().len() == 3).await;
        handle.tell(Say::Note(4)).unwrap();
        until("the sender still reaches it", || record.heard.lock().len() == 4).await;
        assert_eq!(*record.heard.lock(), [(2, 1), (2, 2), (2, 3), (2, 4)]);
    });
}

#[test]
fn messages_after_a_failure_are_handled_by_the_next_life() {
    system(async {
        let (record, gate) = (Arc::new(Record::default()), Arc::new(Notify::new()));
        let handle = plain_guardian().supervise(THREAD, Probe::gated(&record, &gate));
        handle.tell(Say::Fail).unwrap();
        handle.tell(Say::Note(1)).unwrap();
        gate.notify_one();
        until("the note", || record.notes() == [1]).await;
        assert_eq!(*record.heard.lock(), [(2, 1)]);
    });
}

#[test]
fn a_panic_in_a_child_task_is_a_value_and_the_actor_lives() {
    system(async {
        let record = Arc::new(Record::default());
        let handle = plain_guardian().supervise(THREAD, Probe::sound(&record));
        handle.tell(Say::Child(None, async { panic!("planned: a child") }.boxed())).unwrap();
        until("the child's end", || !record.children.lock().is_empty()).await;
        assert_eq!(*record.children.lock(), [ChildExit::Panicked("planned: a child".to_owned())]);
        handle.tell(Say::Note(1)).unwrap();
        until("the note", || record.notes() == [1]).await;
        assert_eq!(record.lives(), 1);
    });
}

#[test]
fn a_child_task_is_cut_at_its_deadline() {
    system(async {
        let (clock, shared) = manual();
        let record = Arc::new(Record::default());
        let handle = guardian(&shared, &Health::default()).supervise(THREAD, Probe::sound(&record));
        until("the actor's own wait", || clock.sleepers() == 1).await;
        handle.tell(Say::Child(Some(millis(50)), std::future::pending().boxed())).unwrap();
        until("the child's wait", || clock.sleepers() == 2).await;
        clock.advance(millis(49));
        a_moment().await;
        assert!(record.children.lock().is_empty());
        clock.advance(millis(1));
        until("the child's end", || *record.children.lock() == [ChildExit::TimedOut]).await;
    });
}

#[test]
fn children_of_a_life_end_before_the_next_life_starts() {
    system(async {
        let record = Arc::new(Record::default());
        let gone = OnDrop(Arc::clone(&record.flag));
        let handle = plain_guardian().supervise_with(THREAD, quick(), Probe::sound(&record));
        let child = async move {
            let _gone = gone;
            // It takes longer to end than the pause before a restart.
            let _slow = SlowDrop;
            std::future::pending().await
        };
        handle.tell(Say::Child(None, child.boxed())).unwrap();
        handle.tell(Say::Fail).unwrap();
        until("the next life", || record.lives() == 2).await;
        assert_eq!(*record.flags.lock(), [false, true]);
    });
}

#[test]
fn children_end_when_the_arbiters_have_stopped() {
    system(async {
        let record = Arc::new(Record::default());
        let (gone, running) = (OnDrop(Arc::clone(&record.flag)), Arc::new(Notify::new()));
        let guardian = plain_guardian();
        let handle = guardian.supervise(THREAD, Probe::sound(&record));
        let started = Arc::clone(&running);
        let child = async move {
            let _gone = gone;
            started.notify_one();
            std::future::pending().await
        };
        handle.tell(Say::Child(None, child.boxed())).unwrap();
        running.notified().await;
        tokio::task::spawn_blocking(move || guardian.stop()).await.unwrap();
        until("the child's end", || record.flag.load(Ordering::SeqCst)).await;
    });
}

struct SlowDrop;

impl Drop for SlowDrop {
    fn drop(&mut self) {
        std::thread::sleep(millis(200));
    }
}

/// Records that it was dropped.
struct OnDrop(Arc<std::sync::atomic::AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_panic_in_stopped_neither_aborts_the_process_nor_ends_the_actor() {
    system(async {
        let record = Arc::new(Record::default());
        let handle = plain_guardian().supervise_with(THREAD, quick(), Probe::sound(&record));
        // During a panic's unwinding, and at an orderly end.
        for (lives, end) in [(2, Say::Panic), (3, Say::Fail)] {
            record.panics_when_stopped.store(true, Ordering::SeqCst);
            handle.tell(end).unwrap();
            handle.tell(Say::Note(lives)).unwrap();
            until("the next life's note", || record.heard.lock().last() == Some(&(lives, lives))).await;
        }
    });
}

#[test]
fn a_failing_or_panicking_factory_uses_up_lives() {
    system(async {
        let record = Arc::new(Record::default());
        let births = |life| match life {
            1 => Birth::Err,
            2 => Birth::Panic,
            _ => Birth::Sound,
        };
        let handle = plain_guardian().supervise_with(THREAD, quick(), Probe::born(&record, births));
        handle.tell(Say::Note(1)).unwrap();
        until("the third life's note", || *record.heard.lock() == [(3, 1)]).await;

        let (record, policy) = (Arc::new(Record::default()), RestartPolicy { restarts: 1, ..quick() });
        let handle = plain_guardian().supervise_with(THREAD, policy, Probe::born(&record, births));
        until("the end", || !record.ended.lock().is_empty()).await;
        let reason = ExitReason::Panicked("planned: the factory".to_owned());
        assert_eq!(*record.given_up.lock(), std::slice::from_ref(&reason));
        assert_eq!(*record.ended.lock(), [reason]);
        assert!(handle.is_gone());
    });
}

#[test]
fn an_actor_that_dies_at_once_restarts_with_backoff_and_is_then_given_up() {
    system(async {
        let (clock, shared) = manual();
        let record = Arc::new(Record::default());
        let probe = Probe::born(&record, |_| Birth::DiesAtOnce);
        let handle = guardian(&shared, &Health::default()).supervise(THREAD, probe);
        let policy = THREAD.policy();
        for restart in 0..policy.restarts {
            until("the pause", || record.lives() == restart + 1 && clock.sleepers() == 1).await;
            // Jitter shortens it by half at most.
            let longest = policy.pause(restart);
            clock.advance(longest / 2 - millis(1));
            a_moment().await;
            assert_eq!(record.lives(), restart + 1, "too early");
            clock.advance(longest / 2 + millis(1));
        }
        until("the end", || !record.ended.lock().is_empty()).await;
        clock.advance(Duration::from_secs(600));
        a_moment().await;
        assert_eq!(record.lives(), policy.restarts + 1);
        assert_eq!(*record.given_up.lock(), [ExitReason::Failed("at once".to_owned())]);
        assert!(handle.is_gone());
    });
}

#[test]
fn restart_pauses_reach_their_maximum_and_no_life_starts_earlier() {
    system(async {
        let (clock, shared) = manual();
        let record = Arc::new(Record::default());
        let policy = RestartPolicy { restarts: usize::MAX, window: Duration::MAX, ..THREAD.policy() };
        let probe = Probe::born(&record, |_| Birth::DiesAtOnce);
        let _handle = guardian(&shared, &Health::default()).supervise_with(THREAD, policy, probe);
        for _ in 0..600 {
            until("it waits", || clock.sleepers() == 1).await;
            clock.advance(Duration::from_secs(1));
        }
        a_moment().await;
        // Seven shorter pauses first, then one every 15 to 30 s.
        let lives = record.lives();
        assert!((25..=50).contains(&lives), "{lives} lives in ten minutes");
    });
}

#[test]
fn distant_failures_are_not_counted_together() {
    system(async {
        let (clock, shared) = manual();
        let record = Arc::new(Record::default());
        let handle = guardian(&shared, &Health::default()).supervise(THREAD, Probe::sound(&record));
        // Four per window of a minute: never more than five.
        for life in 1..=20 {
            until("it exists", || record.lives() == life && clock.sleepers() == 1).await;
            handle.tell(Say::Fail).unwrap();
            // Repeated, because the first sleeper may still be the watchdog of the ended life.
            until("the next life", || {
                if record.deaths() == life && clock.sleepers() == 1 {
                    clock.advance(Duration::from_secs(15));
                }
                record.lives() > life
            })
            .await;
        }
        until("it lives", || record.lives() == 21).await;
        assert!(record.ended.lock().is_empty());
    });
}

#[test]
fn a_failed_essential_actor_turns_the_health_red() {
    system(async {
        let (record, health) = (Arc::new(Record::default()), Health::default());
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let policy = RestartPolicy { exhausted: Exhausted::Escalate, ..quick() };
        let probe = Probe::born(&record, |_| Birth::DiesAtOnce);
        let _handle = guardian(&clock, &health).supervise_with(ActorKind::Lease, policy, probe);
        assert_eq!(health.fatal(), None);
        let reason = health.failed().await;
        assert!(reason.contains("the lease actor failed"), "{reason}");
        assert_eq!(record.lives(), policy.restarts + 1);
        assert_eq!(*record.given_up.lock(), []);
        for kind in [ActorKind::Lease, ActorKind::Maintenance] {
            assert_eq!(kind.policy().exhausted, Exhausted::Escalate);
        }
    });
}

#[test]
fn a_stuck_actor_is_replaced_and_its_messages_are_handled() {
    system(async {
        let (clock, shared) = manual();
        let record = Arc::new(Record::default());
        let handle = guardian(&shared, &Health::default()).supervise(THREAD, Probe::sound(&record));
        handle.tell(Say::Note(1)).unwrap();
        handle.tell(Say::Stall).unwrap();
        until("the stall", || record.notes() == [1] && clock.sleepers() == 1).await;
        // Without waiting messages, the actor is not stuck.
        for _ in 0..5 {
            clock.advance(THREAD.policy().stuck_after);
            until("the next look", || clock.sleepers() == 1).await;
        }
        assert_eq!(record.lives(), 1);
        handle.tell(Say::Note(2)).unwrap();
        until("the note", || {
            if clock.sleepers() > 0 {
                clock.advance(THREAD.policy().stuck_after);
            }
            *record.heard.lock() == [(1, 1), (2, 2)]
        })
        .await;
    });
}

#[test]
fn a_busy_actor_is_not_considered_stuck() {
    system(async {
        let (clock, shared) = manual();
        let record = Arc::new(Record::default());
        let handle = guardian(&shared, &Health::default()).supervise(THREAD, Probe::sound(&record));
        for note in 0..20 {
            until("it looks", || clock.sleepers() == 1).await;
            handle.tell(Say::Note(note)).unwrap();
            clock.advance(THREAD.policy().stuck_after);
            until("the note", || record.notes().len() == note + 1).await;
        }
        assert_eq!(record.lives(), 1);
    });
}

#[test]
fn a_drain_ends_every_actor_and_reports_success() {
    system(async {
        let guardian = plain_guardian();
        let records: Vec<_> = (0..20).map(|_| Arc::new(Record::default())).collect();
        for record in &records {
            // Each actor dies in its first life, and is in the pause before a restart.
            let births = |life| if life == 1 { Birth::DiesAtOnce } else { Birth::Sound };
            let _handle = guardian.supervise(THREAD, Probe::born(record, births));
        }
        until("they exist", || records.iter().all(|record| record.lives() > 0)).await;
        assert_eq!(guardian.alive(), 20);
        assert!(guardian.drain(Duration::from_secs(5)).await);
        assert_eq!(guardian.alive(), 0);
        assert!(records.iter().all(|record| record.ended.lock().len() == 1));
    });
}

#[test]
fn a_drain_reports_an_actor_that_exceeds_the_timeout() {
    system(async {
        let (clock, shared) = manual();
        let guardian = guardian(&shared, &Health::default());
        let (record, other) = (Arc::new(Record::default()), Arc::new(Record::default()));
        let _stubborn = guardian.supervise(THREAD, Probe::born(&record, |_| Birth::Stubborn));
        let _meek = guardian.supervise(THREAD, Probe::sound(&other));
        until("both are there", || clock.sleepers() == 2).await;
        let draining = guardian.clone();
        let drained = tokio::spawn(async move { draining.drain(Duration::from_secs(25)).await });
        until("the end of the actor that stops", || *other.ended.lock() == [ExitReason::Drain]).await;
        until("the drain waits", || clock.sleepers() == 2).await;
        assert!(!drained.is_finished());
        clock.advance(Duration::from_secs(25));
        assert!(!drained.await.unwrap());
        assert_eq!(guardian.alive(), 1);
    });
}
