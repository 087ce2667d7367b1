//! How many files are uploaded at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// Of all callers of the instance.
const PER_INSTANCE: usize = 8;
/// Of one session.
pub(super) const PER_SESSION: usize = 2;
/// Of one network, and of one workspace: half of all.
pub(in crate::http::chat) const PER_PARTY: usize = 4;
/// Seconds after which a refused client should try again.
const RETRY_SECONDS: i64 = 2;

/// The uploads that are in progress, by what limits them. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::http) struct UploadPermits(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    all: usize,
    by_party: HashMap<String, usize>,
}

impl UploadPermits {
    /// Takes a permit, unless one of these parties has as many as it may; dropping the permit returns it.
    pub(in crate::http) fn acquire(&self, parties: Vec<(String, usize)>) -> ApiResult<UploadPermit> {
        let mut open = self.0.lock();
        let has_room =
            |(party, most): &(String, usize)| open.by_party.get(party).copied().unwrap_or_default() < *most;
        if open.all >= PER_INSTANCE || !parties.iter().all(has_room) {
            return Err(ApiError::new(ErrorCode::ChatRateLimitedUploads).retry_after(RETRY_SECONDS));
        }
        open.all += 1;
        let parties: Vec<String> = parties.into_iter().map(|(party, _)| party).collect();
        for party in &parties {
            *open.by_party.entry(party.clone()).or_default() += 1;
        }
        Ok(UploadPermit { parties, permits: self.clone() })
    }
}

/// The permit of an upload.
pub(in crate::http) struct UploadPermit {
    parties: Vec<String>,
    permits: UploadPermits,
}

impl Drop for UploadPermit {
    fn drop(&mut self) {
        let mut open = self.permits.0.lock();
        open.all = open.all.saturating_sub(1);
        for party in &self.parties {
            if let Some(count) = open.by_party.get_mut(party) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    open.by_party.remove(party);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_two_permits_a_network_four_and_the_instance_eight() {
        let permits = UploadPermits::default();
        let of = |session: &str, network: &str| {
            permits.acquire(vec![(format!("s{session}"), PER_SESSION), (format!("n{network}"), PER_PARTY)])
        };
        let first = of("a", "1").unwrap();
        let second = of("a", "1").unwrap();
        assert!(of("a", "2").is_err(), "of the session");
        drop(first);
        let third = of("a", "1").unwrap();
        let others: Vec<_> = ["b", "c"].map(|session| of(session, "1").unwrap()).into();
        assert!(of("d", "1").is_err(), "of the network");
        let more: Vec<_> = ["e", "f", "g", "h"].map(|session| of(session, "2").unwrap()).into();
        assert!(of("i", "3").is_err(), "eight are open");
        drop((second, third, others, more));
        let open = permits.0.lock();
        assert!(open.all == 0 && open.by_party.is_empty());
    }
}
