//! Caches results of pure nodes whose graph requests it. The cache only saves work; it is lost with the process.

use std::time::Duration;

use moka::sync;

/// Maximum cached result bytes; the least used results are evicted first.
const CAPACITY: u64 = 64 << 20;

/// The cache key: a digest of the node and its input.
pub(crate) type CacheKey = [u8; 32];

/// A result cache for pure nodes. Cheap to clone.
#[derive(Clone)]
pub struct Cache(sync::Cache<CacheKey, CachedResult>);

#[derive(Clone)]
struct CachedResult {
    result: std::sync::Arc<str>,
    /// Expiry in monotonic time.
    until: Duration,
}

impl Default for Cache {
    fn default() -> Self {
        let size =
            |_: &CacheKey, kept: &CachedResult| u32::try_from(kept.result.len() + 100).unwrap_or(u32::MAX);
        Self(sync::Cache::builder().max_capacity(CAPACITY).weigher(size).build())
    }
}

impl Cache {
    /// Returns the cached result as JSON.
    pub(crate) fn get(&self, key: &CacheKey, now: Duration) -> Option<std::sync::Arc<str>> {
        let kept = self.0.get(key)?;
        (now < kept.until).then_some(kept.result)
    }

    /// Stores a result until `until`.
    pub(crate) fn put(&self, key: CacheKey, result: &str, until: Duration) {
        self.0.insert(key, CachedResult { result: result.into(), until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_cached_until_it_expires() {
        let cache = Cache::default();
        cache.put([1; 32], "3", Duration::from_secs(10));
        assert_eq!(cache.get(&[1; 32], Duration::from_secs(9)).as_deref(), Some("3"));
        assert_eq!(cache.get(&[1; 32], Duration::from_secs(10)), None);
        assert_eq!(cache.get(&[2; 32], Duration::ZERO), None);
    }
}
