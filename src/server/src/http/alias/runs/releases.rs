//! Bindings of releases that are not active any more: runs that they have started are read as they were frozen.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use store::{StoreError, StoredAppRun};
use uuid::Uuid;
use wire::FrozenBinding;

use super::super::error::{AliasError, AliasResult};
use super::super::visitor::Visitor;

/// Releases that are kept before all are dropped and read anew. They do not change.
const MAX_RELEASES: usize = 256;

type Bindings = Arc<BTreeMap<String, FrozenBinding>>;

/// Releases that were read.
#[derive(Default)]
pub(in crate::http) struct FrozenBindings(Mutex<HashMap<Uuid, Bindings>>);

/// Calls `with` with the binding of a run, as its release froze it.
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
    let known = cache.lock().get(&run.release).cloned();
    let bindings = match known {
        Some(known) => known,
        None => {
            let stored = visitor.store().release(served.id, run.release).await?.ok_or_else(missing)?;
            let read: Bindings =
                serde_json::from_str(&stored.bindings).map(Arc::new).map_err(|_| missing())?;
            let mut cache = cache.lock();
            if cache.len() >= MAX_RELEASES {
                cache.clear();
            }
            cache.insert(run.release, Arc::clone(&read));
            read
        }
    };
    bindings.get(&run.binding).map(with).ok_or_else(missing)
}
