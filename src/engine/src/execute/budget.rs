//! Resource limits for a whole run. Limits of single nodes multiply with nesting: a `for_each` of three that calls
//! its own workflow grows exponentially with each level.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;
use wire::chat::ItemBody;

use super::Failure;
use super::ports::SentAnnotation;
use super::recorded::RecordedStep;
use crate::limits;
use crate::{NodeError, RunError};

/// Maximum node attempts, including those before a restart.
const MAX_STEPS: u64 = 100_000;
/// Maximum nodes working at once; others wait.
const MAX_WORKING: usize = 256;
/// Maximum concurrent nodes that contain other nodes. They cannot wait for one another.
const MAX_CONTAINERS: u64 = 1_024;
/// Maximum stored result bytes.
const MAX_STORED: u64 = 512 << 20;
/// Maximum input bytes for all nodes in progress.
const MAX_INPUTS: u64 = 256 << 20;
/// Limits for the items and item states that a run sends: count, JSON bytes each, JSON bytes in total.
const MAX_ITEMS: u64 = 1_000;
const MAX_ITEM: usize = 1 << 20;
const MAX_ITEM_BYTES: u64 = 64 << 20;
/// Limits for the annotations that a run sends: count and total JSON bytes.
const MAX_ANNOTATIONS: u64 = 1_000;
const MAX_ANNOTATION_BYTES: u64 = 1 << 20;

/// Counts a run's resources. Exceeding a limit ends the run, regardless of the graph's error handling.
pub(crate) struct ExecutionBudget {
    steps: AtomicU64,
    containers: AtomicU64,
    stored: AtomicU64,
    inputs: AtomicU64,
    items: AtomicU64,
    item_bytes: AtomicU64,
    annotations: AtomicU64,
    annotation_bytes: AtomicU64,
    /// Permits for nodes that do work themselves. Never closed.
    working: Semaphore,
    error: Mutex<Option<RunError>>,
    exceeded: CancellationToken,
}

/// A share of a budget, released on drop.
pub(crate) struct Share<'a> {
    counter: &'a AtomicU64,
    amount: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

impl ExecutionBudget {
    /// Creates a run's budget, including its journal from before a restart.
    pub(super) fn new(recorded: &[RecordedStep]) -> Self {
        let bytes = recorded.iter().filter_map(|step| step.result.as_ref()).map(limits::size);
        let stored =
            bytes.fold(0_u64, |sum, bytes| sum.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)));
        Self {
            steps: AtomicU64::new(u64::try_from(recorded.len()).unwrap_or(u64::MAX)),
            containers: AtomicU64::new(0),
            stored: AtomicU64::new(stored),
            inputs: AtomicU64::new(0),
            items: AtomicU64::new(0),
            item_bytes: AtomicU64::new(0),
            annotations: AtomicU64::new(0),
            annotation_bytes: AtomicU64::new(0),
            working: Semaphore::new(MAX_WORKING),
            error: Mutex::new(None),
            exceeded: CancellationToken::new(),
        }
    }

    /// Counts an attempt at this node.
    pub(super) fn step(&self, node: &str) -> Result<(), Failure> {
        let steps = self.steps.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if steps > MAX_STEPS {
            let message = format!("more than {MAX_STEPS} steps, including those of nested nodes");
            return Err(self.exceed(ErrorCode::RunStepLimit, node, message));
        }
        Ok(())
    }

    /// Counts an item or an item state.
    pub(super) fn item(&self, body: Option<&ItemBody>) -> Result<(), NodeError> {
        let text = body.map(serde_json::to_string).and_then(Result::ok).unwrap_or_default();
        if text.len() > MAX_ITEM {
            return Err(limits::too_large(&format!("an item of {} bytes, more than {MAX_ITEM}", text.len())));
        }
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let items = self.items.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let all = self.item_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if items > MAX_ITEMS || all > MAX_ITEM_BYTES {
            let most = format!("more than {MAX_ITEMS} items or {MAX_ITEM_BYTES} bytes of items in one run");
            return Err(limits::too_large(&most));
        }
        Ok(())
    }

    /// Counts a text message. Its size is limited like the node's result.
    pub(super) fn message(&self) -> Result<(), NodeError> {
        if self.items.fetch_add(1, Ordering::Relaxed) >= MAX_ITEMS {
            return Err(limits::too_large(&format!("more than {MAX_ITEMS} items in one run")));
        }
        Ok(())
    }

    /// Counts message annotations.
    pub(super) fn annotations(&self, added: &[SentAnnotation]) -> Result<(), NodeError> {
        let sizes = added.iter().filter_map(|annotation| serde_json::to_string(&annotation.source).ok());
        let bytes: usize = sizes.map(|text| text.len()).sum();
        let add = |counter: &AtomicU64, amount: usize| {
            let amount = u64::try_from(amount).unwrap_or(u64::MAX);
            counter.fetch_add(amount, Ordering::Relaxed).saturating_add(amount)
        };
        let (count, all) = (add(&self.annotations, added.len()), add(&self.annotation_bytes, bytes));
        if count > MAX_ANNOTATIONS || all > MAX_ANNOTATION_BYTES {
            let most = format!(
                "more than {MAX_ANNOTATIONS} annotations or {MAX_ANNOTATION_BYTES} bytes of them in one run"
            );
            return Err(limits::too_large(&most));
        }
        Ok(())
    }

    /// Waits for a permit to work. If the run fails first, the node does nothing more.
    pub(super) async fn permit(&self, halt: &CancellationToken) -> Result<SemaphorePermit<'_>, Failure> {
        if let Ok(permit) = self.working.try_acquire() {
            return Ok(permit);
        }
        tokio::select! {
            biased;
            () = halt.cancelled() => Err(Failure::Halted),
            permit = self.working.acquire() => permit.map_err(|_| Failure::Halted),
        }
    }

    /// Counts a node in progress that contains others.
    pub(super) fn container(&self, node: &str) -> Result<Share<'_>, Failure> {
        self.share(&self.containers, 1, MAX_CONTAINERS).ok_or_else(|| {
            let message = format!("more than {MAX_CONTAINERS} nodes with nested nodes at the same time");
            self.exceed(ErrorCode::RunNodesLimit, node, message)
        })
    }

    /// Counts a node in progress with an input of this size.
    pub(super) fn input(&self, node: &str, bytes: usize) -> Result<Share<'_>, Failure> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.share(&self.inputs, bytes, MAX_INPUTS).ok_or_else(|| {
            let message = format!("inputs of nodes in progress have more than {} MiB", MAX_INPUTS >> 20);
            self.exceed(ErrorCode::RunBytesLimit, node, message)
        })
    }

    /// Counts a result of this size before it is stored.
    pub(super) fn store(&self, node: &str, bytes: usize) -> Result<(), Failure> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let stored = self.stored.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if stored > MAX_STORED {
            let message = format!("results have more than {} MiB", MAX_STORED >> 20);
            return Err(self.exceed(ErrorCode::RunBytesLimit, node, message));
        }
        Ok(())
    }

    /// The exceeded limit; `None` if the run is within its limits.
    pub(super) fn error(&self) -> Option<RunError> {
        self.error.lock().clone()
    }

    /// Waits until the run exceeds a limit.
    pub(super) async fn exceeded(&self) -> RunError {
        self.exceeded.cancelled().await;
        self.error().unwrap_or_else(|| RunError::whole(ErrorCode::Internal, "a budget without an error"))
    }

    fn share<'a>(&self, counter: &'a AtomicU64, amount: u64, limit: u64) -> Option<Share<'a>> {
        let used = counter.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        let share = Share { counter, amount };
        (used <= limit).then_some(share)
    }

    fn exceed(&self, code: ErrorCode, node: &str, message: String) -> Failure {
        let error = RunError { node: Some(node.to_owned()), ..RunError::whole(code, message) };
        self.error.lock().get_or_insert(error);
        self.exceeded.cancel();
        Failure::Halted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_exceeded_limit_ends_the_run_with_the_first_reason() {
        let budget = ExecutionBudget::new(&[]);
        budget.steps.store(MAX_STEPS - 1, Ordering::Relaxed);
        assert!(budget.step("a").is_ok());
        assert_eq!(budget.step("b"), Err(Failure::Halted));
        assert_eq!(budget.store("c", usize::MAX), Err(Failure::Halted));
        let error = budget.exceeded().await;
        assert_eq!((error.code, error.node.as_deref()), (ErrorCode::RunStepLimit, Some("b")));
    }

    #[tokio::test]
    async fn a_node_without_a_permit_does_nothing_after_its_run_has_failed() {
        let budget = ExecutionBudget::new(&[]);
        let halt = CancellationToken::new();
        let all = budget.working.acquire_many(u32::try_from(MAX_WORKING).unwrap()).await.unwrap();
        let mut waits = std::pin::pin!(budget.permit(&halt));
        assert!(futures_util::poll!(&mut waits).is_pending());
        halt.cancel();
        drop(all);
        assert!(matches!(waits.await, Err(Failure::Halted)));
    }

    #[test]
    fn steps_stored_by_earlier_lives_count() {
        let step = RecordedStep {
            node: "a".to_owned(),
            visit: 1,
            attempt: 1,
            input_digest: [0; 32],
            result: Some(serde_json::json!({"text": "x".repeat(1_000)})),
            error: None,
            note: None,
            started_at: chrono::DateTime::UNIX_EPOCH,
            finished_at: None,
        };
        let budget = ExecutionBudget::new(&[step.clone(), RecordedStep { result: None, ..step }]);
        assert_eq!(budget.steps.load(Ordering::Relaxed), 2);
        let stored = budget.stored.load(Ordering::Relaxed);
        assert!((1_000..1_100).contains(&stored), "{stored}");
        assert!(budget.store("b", usize::try_from(MAX_STORED - stored).unwrap()).is_ok());
        assert!(budget.store("c", 1).is_err());
    }

    #[test]
    fn a_dropped_input_share_is_returned() {
        let budget = ExecutionBudget::new(&[]);
        let half = usize::try_from(MAX_INPUTS / 2).unwrap();
        let first = budget.input("a", half).ok();
        let second = budget.input("b", half).ok();
        assert!(first.is_some() && second.is_some());
        drop(first);
        let third = budget.input("c", half).ok();
        assert!(third.is_some());
        assert!(budget.input("d", half).is_err(), "the second and the third exceed the limit");
    }
}
