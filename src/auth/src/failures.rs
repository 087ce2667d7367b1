//! Failed sign-ins: the callers that are blocked for now.
//!
//! The exact, shared count is a sliding log in the database (`store`). This is an instance's copy of the blocked keys:
//! a blocked caller's request costs nothing, and other requests read nothing.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;

/// Maximum remembered keys; the one that is free again first is evicted.
const MOST: usize = 100_000;

/// Maximum failures within the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureLimits {
    /// From one address; `None`: unlimited.
    pub per_address: Option<NonZeroU32>,
    /// For one identity; `None`: unlimited.
    pub per_identity: Option<NonZeroU32>,
    /// The sliding window.
    pub interval: Duration,
}

impl FailureLimits {
    /// The interval as a `TimeDelta`.
    #[must_use]
    pub fn window(&self) -> TimeDelta {
        TimeDelta::from_std(self.interval).unwrap_or(TimeDelta::MAX)
    }
}

/// Seconds until `free_at`, rounded up, at least one.
#[must_use]
pub fn retry_after(free_at: DateTime<Utc>, now: DateTime<Utc>) -> i64 {
    let left = (free_at - now).num_milliseconds();
    left.saturating_add(999).div_euclid(1000).max(1)
}

/// Blocked keys and the time at which each is free again.
#[derive(Debug, Default)]
pub struct Blocked {
    known: Mutex<BlockedKeys>,
}

#[derive(Debug, Default)]
struct BlockedKeys {
    until: HashMap<String, DateTime<Utc>>,
    /// The same keys by time, to find the one to evict.
    by_time: BTreeSet<(DateTime<Utc>, String)>,
}

impl BlockedKeys {
    fn forget(&mut self, key: &str) {
        if let Some(until) = self.until.remove(key) {
            self.by_time.remove(&(until, key.to_owned()));
        }
    }

    fn remember(&mut self, key: String, until: DateTime<Utc>) {
        self.forget(&key);
        self.by_time.insert((until, key.clone()));
        self.until.insert(key, until);
        while self.until.len() > MOST {
            let Some((_, oldest)) = self.by_time.pop_first() else { break };
            self.until.remove(&oldest);
        }
    }
}

impl Blocked {
    /// The time at which the key is free again; `None` if it is free now.
    pub fn until(&self, key: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut known = self.known.lock();
        let until = known.until.get(key).copied()?;
        if until > now {
            return Some(until);
        }
        known.forget(key);
        None
    }

    /// Blocks the key until then.
    pub fn block(&self, key: &str, until: DateTime<Utc>) {
        self.known.lock().remember(key.to_owned(), until);
    }

    /// Replaces all known keys by those that the database currently reports.
    pub fn replace(&self, all: impl IntoIterator<Item = (String, DateTime<Utc>)>) {
        let mut known = BlockedKeys::default();
        for (key, until) in all {
            known.remember(key, until);
        }
        *self.known.lock() = known;
    }

    /// Number of remembered keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.lock().until.len()
    }

    /// Whether no key is blocked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[test]
    fn a_key_is_blocked_until_its_time() {
        let blocked = Blocked::default();
        blocked.block("a", at(10));
        assert_eq!(blocked.until("a", at(9)), Some(at(10)));
        assert_eq!(blocked.until("b", at(9)), None);
        assert_eq!(blocked.until("a", at(10)), None);
        assert!(blocked.is_empty(), "unblocked keys are not kept");
        blocked.block("a", at(20));
        blocked.block("a", at(30));
        assert_eq!((blocked.until("a", at(25)), blocked.len()), (Some(at(30)), 1));
        blocked.replace([("c".to_owned(), at(40))]);
        assert_eq!((blocked.until("a", at(25)), blocked.until("c", at(25))), (None, Some(at(40))));
    }

    #[test]
    fn a_flood_of_keys_does_not_grow_the_memory() {
        let blocked = Blocked::default();
        for number in 0..MOST + 1_000 {
            blocked.block(&format!("key {number}"), at(i64::try_from(number).unwrap()));
        }
        assert_eq!(blocked.len(), MOST);
        assert_eq!(blocked.known.lock().by_time.len(), MOST);
        assert_eq!(blocked.until("key 0", at(-1)), None, "the key that expires first was evicted");
        assert!(blocked.until(&format!("key {}", MOST + 999), at(-1)).is_some());
    }

    #[test]
    fn retry_after_is_at_least_one_whole_second() {
        let half = TimeDelta::milliseconds(500);
        assert_eq!(retry_after(at(10), at(4)), 6);
        assert_eq!(retry_after(at(10) + half, at(4)), 7);
        assert_eq!(retry_after(at(4), at(4)), 1);
        assert_eq!(retry_after(at(4), at(9)), 1);
    }
}
