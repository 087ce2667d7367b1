//! How many files are uploaded at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};

/// Of one session.
const SESSION: usize = 2;
/// Of the instance.
const INSTANCE: usize = 8;
/// Seconds after which a refused client should try again.
const AGAIN: i64 = 2;

/// The uploads that are in progress, by session. Cheap to clone.
#[derive(Clone, Default)]
pub(in crate::http) struct UploadPlaces(Arc<Mutex<HashMap<String, usize>>>);

impl UploadPlaces {
    /// Takes a place; dropping it gives it back.
    pub(in crate::http) fn take(&self, session: &str) -> ApiResult<UploadPlace> {
        let mut open = self.0.lock();
        let all: usize = open.values().sum();
        let own = open.get(session).copied().unwrap_or_default();
        if all >= INSTANCE || own >= SESSION {
            return Err(ApiError::new(ErrorCode::ChatRateLimitedUploads).retry_after(AGAIN));
        }
        open.insert(session.to_owned(), own + 1);
        Ok(UploadPlace { session: session.to_owned(), places: self.clone() })
    }
}

/// The place of an upload.
pub(in crate::http) struct UploadPlace {
    session: String,
    places: UploadPlaces,
}

impl Drop for UploadPlace {
    fn drop(&mut self) {
        let mut open = self.places.0.lock();
        if let Some(count) = open.get_mut(&self.session) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_two_places_and_the_instance_eight() {
        let places = UploadPlaces::default();
        let first = places.take("a").unwrap();
        let second = places.take("a").unwrap();
        assert!(places.take("a").is_err());
        drop(first);
        let third = places.take("a").unwrap();
        let others: Vec<_> = (0..6).map(|session| places.take(&session.to_string()).unwrap()).collect();
        assert!(places.take("another").is_err(), "eight are open");
        drop((second, third, others));
        assert!(places.0.lock().is_empty());
    }
}
