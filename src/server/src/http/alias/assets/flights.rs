//! Reads that several requests wait for are made once.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// Locks by key. Those that are not held any more are dropped when there are many.
pub(super) struct Flights<K> {
    turns: Mutex<HashMap<K, Weak<Turn<()>>>>,
}

/// Locks, held or not, before those that are not held are dropped.
const MAX_IDLE: usize = 1_024;

impl<K> Default for Flights<K> {
    fn default() -> Self {
        Self { turns: Mutex::default() }
    }
}

impl<K: Hash + Eq> Flights<K> {
    /// Waits until no other caller reads the key. The caller reads it next, unless it is known by then.
    pub(super) async fn join(&self, key: K) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.turns.lock();
            if turns.len() >= MAX_IDLE {
                turns.retain(|_, turn| turn.strong_count() > 0);
            }
            let known = turns.get(&key).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let turn = Arc::default();
                turns.insert(key, Arc::downgrade(&turn));
                turn
            })
        };
        turn.lock_owned().await
    }
}
