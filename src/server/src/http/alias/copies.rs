//! A size-limited cache for the apps that an instance serves.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::served::ServedApp;

/// Maximum cached apps.
const MAX_COPIES: usize = 4_096;
/// The approximate memory limit for all copies. A single copy may exceed it.
const MAX_BYTES: usize = 128 << 20;

/// A cached app.
#[derive(Debug, Clone)]
pub(super) struct Copy {
    /// The monotonic time before the database read began.
    pub(super) read_at: Duration,
    /// `None` means that the database must be read.
    pub(super) app: Option<Arc<ServedApp>>,
}

impl Copy {
    fn bytes(&self) -> usize {
        self.app.as_ref().map_or(0, |app| app.release.bytes)
    }
}

/// Copies by alias.
#[derive(Debug, Default)]
pub(super) struct Copies {
    copies: HashMap<String, Copy>,
    bytes: usize,
}

impl Copies {
    pub(super) fn get(&self, alias: &str) -> Option<&Copy> {
        self.copies.get(alias)
    }

    /// Inserts a copy unless the cached one was read later. Evicts the copies with the oldest reads to make room.
    pub(super) fn insert(&mut self, alias: &str, copy: Copy) {
        if self.get(alias).is_some_and(|known| known.read_at > copy.read_at) {
            return;
        }
        self.remove(alias);
        while !self.copies.is_empty()
            && (self.copies.len() >= MAX_COPIES || self.bytes.saturating_add(copy.bytes()) > MAX_BYTES)
        {
            let oldest = self.copies.iter().min_by_key(|(_, copy)| copy.read_at);
            let Some(oldest) = oldest.map(|(alias, _)| alias.clone()) else { break };
            self.remove(&oldest);
        }
        self.bytes = self.bytes.saturating_add(copy.bytes());
        self.copies.insert(alias.to_owned(), copy);
    }

    fn remove(&mut self, alias: &str) {
        if let Some(copy) = self.copies.remove(alias) {
            self.bytes = self.bytes.saturating_sub(copy.bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use chrono::DateTime;
    use uuid::Uuid;
    use wire::AppAccess;

    use super::super::served::ServedRelease;
    use super::*;

    fn copy(second: u64, bytes: usize) -> Copy {
        let release = ServedRelease {
            id: Uuid::nil(),
            deployment: Uuid::nil(),
            bindings: BTreeMap::new(),
            collections: BTreeMap::new(),
            spa: false,
            frame_ancestors: Vec::new(),
            created_at: DateTime::UNIX_EPOCH,
            bytes,
        };
        let app = ServedApp {
            id: Uuid::nil(),
            workspace: Uuid::nil(),
            alias: String::new(),
            name: String::new(),
            access: AppAccess::Public,
            release: Arc::new(release),
        };
        Copy { read_at: Duration::from_secs(second), app: Some(Arc::new(app)) }
    }

    #[test]
    fn the_oldest_copies_are_evicted_first() {
        let mut copies = Copies::default();
        for second in 0..5 {
            copies.insert(&second.to_string(), copy(second, MAX_BYTES / 4));
        }
        assert!(copies.get("0").is_none() && copies.get("1").is_some());
        // A copy that exceeds the limit replaces all others.
        copies.insert("large", copy(9, 2 * MAX_BYTES));
        assert_eq!((copies.copies.len(), copies.bytes), (1, 2 * MAX_BYTES));
        copies.insert("small", copy(10, 1));
        assert_eq!((copies.copies.len(), copies.bytes), (1, 1));
        for second in 0..=MAX_COPIES {
            copies.insert(&second.to_string(), copy(u64::try_from(second).unwrap(), 0));
        }
        assert_eq!((copies.copies.len(), copies.bytes), (MAX_COPIES, 1));
    }

    #[test]
    fn a_copy_is_not_replaced_by_an_older_one() {
        let mut copies = Copies::default();
        copies.insert("desk", copy(2, 10));
        copies.insert("desk", copy(1, 20));
        assert_eq!((copies.get("desk").unwrap().read_at.as_secs(), copies.bytes), (2, 10));
        copies.insert("desk", Copy { read_at: Duration::from_secs(3), app: None });
        assert_eq!(copies.bytes, 0);
        copies.insert("desk", copy(2, 10));
        assert!(copies.get("desk").unwrap().app.is_none());
    }
}
