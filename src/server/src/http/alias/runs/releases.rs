//! Bindings of inactive releases: their runs are read with the frozen bindings.

use std::collections::BTreeMap;
use std::sync::Arc;

use moka::sync::Cache;
use store::{StoreError, StoredAppRun};
use uuid::Uuid;
use wire::FrozenBinding;

use super::super::error::{AliasError, AliasResult};
use super::super::visitor::Visitor;

/// Maximum JSON bytes in the binding cache. Bindings never change.
const MAX_KEPT: u64 = 16 << 20;
/// Approximate overhead per release, in addition to its JSON.
const OVERHEAD: usize = 200;

/// A release's bindings and their JSON bytes.
#[derive(Clone)]
struct Bindings {
    by_name: Arc<BTreeMap<String, FrozenBinding>>,
    bytes: usize,
}

/// A cache for frozen bindings by release.
pub(in crate::http) struct FrozenBindings(Cache<Uuid, Bindings>);

impl Default for FrozenBindings {
    fn default() -> Self {
        let weight = |_: &Uuid, kept: &Bindings| {
            u32::try_from(kept.bytes.saturating_add(OVERHEAD)).unwrap_or(u32::MAX)
        };
        Self(Cache::builder().weigher(weight).max_capacity(MAX_KEPT).build())
    }
}

/// Calls `with` with a run's binding as frozen in its release.
pub(super) async fn with_binding<T>(
    visitor: &Visitor,
    run: &StoredAppRun,
    with: impl FnOnce(&FrozenBinding) -> T,
) -> AliasResult<T> {
    let missing =
        || AliasError::from(StoreError::Corrupt(format!("release {} has no such binding", run.release)));
    let served = &visitor.served;
    if served.release.id == run.release {
        let binding = served.release.bindings.get(&run.binding).ok_or_else(missing)?;
        return Ok(with(&binding.frozen));
    }
    let cache = &visitor.frozen_bindings().0;
    let bindings = match cache.get(&run.release) {
        Some(known) => known,
        None => {
            let stored = visitor.store().release(served.id, run.release).await?.ok_or_else(missing)?;
            let by_name = serde_json::from_str(&stored.bindings).map(Arc::new).map_err(|_| missing())?;
            let read = Bindings { by_name, bytes: stored.bindings.len() };
            cache.insert(run.release, read.clone());
            read
        }
    };
    bindings.by_name.get(&run.binding).map(with).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_by_bytes() {
        let cache = FrozenBindings::default().0;
        for release in 0..100 {
            cache.insert(Uuid::from_u128(release), Bindings { by_name: Arc::default(), bytes: 1 << 20 });
        }
        cache.run_pending_tasks();
        assert!(cache.weighted_size() <= MAX_KEPT && cache.entry_count() > 0);
    }
}
