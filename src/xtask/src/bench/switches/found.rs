//! The readers' and the publisher's results so far.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::outcome::{Gates, Outcome};

/// The minimum count for each kind of switch, and for kills.
const MIN_COUNT: usize = 10;

/// The counts, and the order of the switches.
#[derive(Debug, Default)]
pub(super) struct SwitchCounts {
    pub(super) reads: AtomicUsize,
    pub(super) pages: AtomicUsize,
    pub(super) files: AtomicUsize,
    pub(super) publishes: AtomicUsize,
    pub(super) rollbacks: AtomicUsize,
    pub(super) kills: AtomicUsize,
    /// Connections that a kill broke or refused, for readers and the publisher.
    pub(super) broken: AtomicUsize,
    /// Responses after the timeout.
    pub(super) late: AtomicUsize,
    /// Reads without a response from either instance.
    pub(super) unanswered: AtomicUsize,
    /// Responses with a 5xx status.
    pub(super) errors: AtomicUsize,
    /// Pages and files with the wrong release's bytes, or from a release that was not active.
    pub(super) mixed: AtomicUsize,
    /// Responses with status 404.
    pub(super) missing: AtomicUsize,
    /// Responses with any other status except 200.
    pub(super) others: AtomicUsize,
    pub(super) ends: AtomicBool,
    order: Mutex<Order>,
}

/// The contents that were made active, in the order of the attempts.
#[derive(Debug, Default)]
struct Order {
    attempts: Vec<u64>,
    /// The last attempt that is known to be done.
    done: usize,
}

impl SwitchCounts {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a switch to this content before it is requested.
    pub(super) fn attempt(&self, content: u64) -> usize {
        let mut order = self.order();
        order.attempts.push(content);
        order.attempts.len().saturating_sub(1)
    }

    /// Records that the attempt was done: the previously active content is not active any more.
    pub(super) fn done(&self, attempt: usize) {
        self.order().done = attempt;
    }

    /// The current position, for [`Self::may_be_active`].
    pub(super) fn now(&self) -> usize {
        self.order().done
    }

    /// Whether a content may have been active at some moment since then. A switch that is not known to be done may be
    /// done.
    pub(super) fn may_be_active(&self, since: usize, content: u64) -> bool {
        self.order().attempts.get(since..).is_some_and(|attempts| attempts.contains(&content))
    }

    pub(super) fn is_enough(&self, reads: usize) -> bool {
        let enough = |counter: &AtomicUsize| number(counter) >= MIN_COUNT;
        number(&self.reads) >= reads
            && enough(&self.publishes)
            && enough(&self.rollbacks)
            && enough(&self.kills)
    }

    /// Prints the results, and returns the gates.
    pub(super) fn report(&self, reads: usize) -> Gates {
        println!(
            "\n{} reads ({} pages, {} files), {} publishes, {} rollbacks, {} kills; {} connections broke or were refused",
            number(&self.reads),
            number(&self.pages),
            number(&self.files),
            number(&self.publishes),
            number(&self.rollbacks),
            number(&self.kills),
            number(&self.broken)
        );
        let mut gates = Gates::default();
        for (name, counter, least) in [
            ("reads", &self.reads, reads),
            ("publishes", &self.publishes, MIN_COUNT),
            ("rollbacks", &self.rollbacks, MIN_COUNT),
            ("kills", &self.kills, MIN_COUNT),
        ] {
            let found = number(counter);
            gates.add(Outcome::from_passed(found >= least), format!("{name}: {found} (at least {least})"));
        }
        for (name, counter) in [
            ("responses with a server error (5xx)", &self.errors),
            ("pages and files from a wrong or inactive release", &self.mixed),
            ("files of pages from the last hour that were not found", &self.missing),
            ("responses with another status than 200", &self.others),
            ("responses after the timeout of 30 s", &self.late),
            ("reads without a response from either instance", &self.unanswered),
        ] {
            gates.add(Outcome::from_passed(number(counter) == 0), format!("{name}: {}", number(counter)));
        }
        gates
    }
}

pub(super) fn add(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::SeqCst);
}

fn number(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_may_be_active_until_the_next_completed_attempt() {
        let found = SwitchCounts::default();
        let first = found.attempt(1);
        found.done(first);
        let before = found.now();
        assert!(found.may_be_active(before, 1) && !found.may_be_active(before, 2));
        let second = found.attempt(2);
        // The switch is not known to be done: either may be seen.
        assert!(found.may_be_active(found.now(), 1) && found.may_be_active(found.now(), 2));
        found.done(second);
        assert!(!found.may_be_active(found.now(), 1) && found.may_be_active(found.now(), 2));
        // A read that began earlier may still get the first.
        assert!(found.may_be_active(before, 1));
    }

    #[test]
    fn each_count_that_must_be_zero_fails_its_gate() {
        let found = SwitchCounts::default();
        for _ in 0..MIN_COUNT {
            [&found.reads, &found.publishes, &found.rollbacks, &found.kills].into_iter().for_each(add);
        }
        assert!(found.is_enough(MIN_COUNT) && !found.is_enough(MIN_COUNT + 1));
        assert_eq!(found.report(MIN_COUNT).count(Outcome::Failed), 0);
        assert_eq!(found.report(MIN_COUNT + 1).count(Outcome::Failed), 1);
        let zero =
            [&found.errors, &found.mixed, &found.missing, &found.others, &found.late, &found.unanswered];
        for (failed, counter) in zero.into_iter().enumerate() {
            add(counter);
            assert_eq!(found.report(MIN_COUNT).count(Outcome::Failed), failed + 1);
        }
    }
}
