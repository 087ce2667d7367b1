//! Recomputes the inputs of a run's steps from its journal.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use engine::{Activity, FilledInput};
use futures_util::FutureExt as _;
use store::{StoreError, StoredRun};

use super::kind::{Kinds, PastRun};
use super::{Adapters, Reach, RunPorts, read_journal};
use crate::text::stored_json;

/// Maximum attempts, and maximum bytes of their results, for a journal that a client reads as a whole.
pub(crate) const MAX_JOURNAL: (i64, i64) = (10_000, 16 << 20);
/// Maximum time for the computation.
const LIMIT: Duration = Duration::from_secs(5);

/// Returns the inputs of visits, `(node, visit)`, without secrets. `None` if the run is too large, its version is gone,
/// too many other requests are active, or it takes too long, for example while the vault does not answer.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub(crate) async fn inputs(
    ports: &RunPorts,
    kinds: &Kinds,
    stored: &StoredRun,
    wanted: HashSet<(String, u32)>,
) -> Result<Option<Vec<FilledInput>>, StoreError> {
    let (attempts, bytes) = ports.store.journal_size(stored.id).await?;
    if attempts > MAX_JOURNAL.0 || bytes > MAX_JOURNAL.1 {
        return Ok(None);
    }
    let Some(version) = ports.plans.usable_version(stored.version_id).await? else { return Ok(None) };
    let Ok(inputs) = stored_json(&stored.inputs) else { return Ok(None) };
    let Some(kind) = kinds.for_trigger(&stored.trigger) else { return Ok(None) };
    let Ok(_permit) = ports.refilling.try_acquire() else { return Ok(None) };
    let filling = async {
        let recorded = read_journal(&ports.store, stored.id).await?;
        let input = kind.past_input(PastRun { stored, inputs, version: &version }).await?;
        let reach = Reach {
            run: stored.id,
            workspace: stored.workspace_id,
            workflow: stored.workflow_id,
            thread: stored.thread_id,
            app: None,
            account: None,
            shows_items: false,
        };
        let adapters = Adapters::new(reach, ports);
        let (nowhere, activity) = (engine::ports::Nowhere, Activity::default());
        let engine = adapters.ports(ports, &nowhere, &nowhere, &activity);
        Ok(engine::refill(&version.plan, input, recorded, wanted, engine).await)
    };
    match kernel::timeout(&*ports.clock, LIMIT, AssertUnwindSafe(filling).catch_unwind()).await {
        Some(Ok(filled)) => filled.map(Some),
        Some(Err(_)) => {
            kernel::warn_once_a_minute!("trace.panicked", run = %stored.id, "recomputing the inputs of steps panicked");
            Ok(None)
        }
        None => Ok(None),
    }
}
