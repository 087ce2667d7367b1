//! Counts open connections. Connections above the limit are surplus and serve only health checks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::open_files::OpenFiles;

/// Counts connections across all workers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Admissions(Arc<ConnectionCounts>);

struct ConnectionCounts {
    files: OpenFiles,
    open: AtomicU64,
    numbers: AtomicU64,
    /// The surplus connections, oldest first.
    surplus: Mutex<VecDeque<Surplus>>,
}

struct Surplus {
    number: u64,
    evicted: CancellationToken,
}

impl Admissions {
    pub(super) fn new(files: OpenFiles) -> Self {
        let (open, numbers) = (AtomicU64::new(0), AtomicU64::new(0));
        Self(Arc::new(ConnectionCounts { files, open, numbers, surplus: Mutex::default() }))
    }

    /// Admits a connection. Evicts the oldest surplus connection if there are too many.
    pub(super) fn admit(&self) -> Admission {
        let before = self.0.open.fetch_add(1, Ordering::Relaxed);
        let surplus = (before >= self.0.files.connections()).then(|| self.surplus());
        Admission { shared: Arc::clone(&self.0), surplus }
    }

    fn surplus(&self) -> Surplus {
        let number = self.0.numbers.fetch_add(1, Ordering::Relaxed);
        let evicted = CancellationToken::new();
        let mut surplus = self.0.surplus.lock();
        surplus.push_back(Surplus { number, evicted: evicted.clone() });
        while u64::try_from(surplus.len()).is_ok_and(|length| length > self.0.files.surplus()) {
            let Some(oldest) = surplus.pop_front() else { break };
            oldest.evicted.cancel();
        }
        Surplus { number, evicted }
    }
}

/// An open connection; counted until drop.
pub(super) struct Admission {
    shared: Arc<ConnectionCounts>,
    surplus: Option<Surplus>,
}

impl Admission {
    /// A token that is cancelled when the connection is evicted; `None` if it is not surplus.
    pub(super) fn evicted(&self) -> Option<CancellationToken> {
        self.surplus.as_ref().map(|surplus| surplus.evicted.clone())
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.shared.open.fetch_sub(1, Ordering::Relaxed);
        if let Some(ended) = &self.surplus {
            self.shared.surplus.lock().retain(|surplus| surplus.number != ended.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_surplus_connection_is_evicted_and_served_ones_stay() {
        let files = OpenFiles::allowed();
        let admissions = Admissions::new(files);
        admissions.0.open.store(files.connections() - 1, Ordering::Relaxed);
        let served = admissions.admit();
        assert!(served.evicted().is_none());
        let most = usize::try_from(files.surplus()).unwrap();
        let surplus: Vec<_> = (0..=most).map(|_| admissions.admit()).collect();
        let evicted: Vec<_> =
            surplus.iter().map(|admission| admission.evicted().unwrap().is_cancelled()).collect();
        assert!(evicted[0] && evicted[1..].iter().all(|is_evicted| !is_evicted));
        drop((served, surplus));
        assert_eq!(admissions.0.open.load(Ordering::Relaxed), files.connections() - 1);
        assert!(admissions.0.surplus.lock().is_empty());
        assert!(admissions.admit().evicted().is_none());
    }
}
