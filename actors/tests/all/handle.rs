//! The mailbox bound, and the delivery of messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use actors::runtime::{ActorKind, Guardian, Handle, RestartPolicy, TellError};
use parking_lot::Mutex;
use tokio::sync::{Barrier, Notify};

use crate::support::probe::{Birth, Probe, Record, Say, plain_guardian, quick};
use crate::support::{system, until};

const THREAD: ActorKind = ActorKind::Thread;

#[test]
fn a_mailbox_takes_messages_up_to_its_limit_from_any_number_of_senders() {
    system(async {
        let record = Arc::new(Record::default());
        let handle = plain_guardian().supervise(THREAD, Probe::born(&record, |_| Birth::Deaf));
        until("the actor waits", || record.lives() == 1).await;
        let start = Arc::new(Barrier::new(1_000));
        let senders = (0..1_000).map(|note| {
            let (handle, start) = (handle.clone(), Arc::clone(&start));
            tokio::spawn(async move {
                start.wait().await;
                handle.tell(Say::Note(note))
            })
        });
        let results = futures_util::future::join_all(senders).await;
        let taken = results.iter().filter(|results| matches!(results, Ok(Ok(())))).count();
        let full = results.iter().filter(|results| matches!(results, Ok(Err(TellError::Full)))).count();
        assert_eq!((taken, full), (THREAD.policy().mailbox, 1_000 - THREAD.policy().mailbox));
    });
}

#[test]
fn a_mailbox_slot_is_free_after_its_message_is_handled() {
    system(async {
        let (record, gate) = (Arc::new(Record::default()), Arc::new(Notify::new()));
        let handle = plain_guardian().supervise(THREAD, Probe::gated(&record, &gate));
        let slots = THREAD.policy().mailbox;
        // The message at index 10 panics its handler; a new life continues.
        for note in 0..slots {
            handle.tell(if note == 10 { Say::Panic } else { Say::Note(note) }).unwrap();
        }
        assert_eq!(handle.tell(Say::Note(0)), Err(TellError::Full));
        gate.notify_one();
        until("all are handled", || record.heard.lock().len() == slots - 1).await;
        for note in 0..slots {
            until("a place", || handle.tell(Say::Note(note)).is_ok()).await;
        }
        until("all are handled", || record.heard.lock().len() == 2 * slots - 1).await;
    });
}

#[test]
fn messages_of_a_dropped_sender_are_handled() {
    system(async {
        let (record, gate) = (Arc::new(Record::default()), Arc::new(Notify::new()));
        let handle = plain_guardian().supervise(THREAD, Probe::gated(&record, &gate));
        let (sent, sender) = (Arc::new(Notify::new()), handle.clone());
        let tell = {
            let sent = Arc::clone(&sent);
            tokio::spawn(async move {
                sender.tell(Say::Note(1)).unwrap();
                sent.notify_one();
                std::future::pending::<()>().await;
            })
        };
        sent.notified().await;
        tell.abort();
        assert!(tell.await.unwrap_err().is_cancelled());
        drop(handle);
        gate.notify_one();
        until("the note", || record.notes() == [1]).await;
    });
}

/// A policy with a mailbox that is never full.
fn roomy() -> RestartPolicy {
    RestartPolicy { mailbox: SENDERS * EACH, ..quick() }
}

const SENDERS: usize = 4;
const EACH: usize = 2_500;

/// Acts as a registry: creates the actor again after it has passivated.
struct Registry {
    guardian: Guardian,
    record: Arc<Record>,
    actor: Mutex<Handle<Say>>,
    made: AtomicUsize,
    full: AtomicBool,
    sent: AtomicUsize,
}

impl Registry {
    fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }

    fn tell(&self, say: Say) {
        let mut say = Some(say);
        while let Some(next) = say.take() {
            let mut actor = self.actor.lock();
            match actor.reserve() {
                Ok(place) => {
                    self.sent.fetch_add(1, Ordering::SeqCst);
                    place.put(next);
                }
                Err(TellError::Gone) => {
                    *actor = self.guardian.supervise_with(THREAD, roomy(), Probe::sound(&self.record));
                    self.made.fetch_add(1, Ordering::SeqCst);
                    say = Some(next);
                }
                // There is room for all messages.
                Err(TellError::Full) => self.full.store(true, Ordering::SeqCst),
            }
        }
    }
}

#[test]
fn no_message_is_lost_while_an_actor_passivates_after_every_message() {
    system(async {
        let record = Arc::new(Record::default());
        record.passivates.store(true, Ordering::SeqCst);
        let guardian = plain_guardian();
        let first = guardian.supervise_with(THREAD, roomy(), Probe::sound(&record));
        let registry = Arc::new(Registry {
            guardian,
            record: Arc::clone(&record),
            actor: Mutex::new(first),
            made: AtomicUsize::new(1),
            full: AtomicBool::new(false),
            sent: AtomicUsize::new(0),
        });
        let senders = (0..SENDERS).map(|sender| {
            let registry = Arc::clone(&registry);
            tokio::task::spawn_blocking(move || {
                for n in 0..EACH {
                    registry.tell(Say::Note(sender * EACH + n));
                    // The next message comes just when the actor becomes idle.
                    while n % 2 == 0 && registry.record.heard.lock().len() < registry.sent() {
                        std::thread::yield_now();
                    }
                }
            })
        });
        futures_util::future::join_all(senders).await;
        assert!(!registry.full.load(Ordering::SeqCst), "a passivating actor reported a full mailbox");
        until("all are handled", || record.heard.lock().len() == SENDERS * EACH).await;
        let mut notes = record.notes();
        notes.sort_unstable();
        notes.dedup();
        assert_eq!(notes.len(), SENDERS * EACH, "handled twice");
        let made = registry.made.load(Ordering::SeqCst);
        assert!(made > 100, "it passivated {made} times only");
    });
}
