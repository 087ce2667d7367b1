//! Today's usage of accounts with a limit: rows, which an instance reads at most once a second, plus its own calls
//! since: reserved or used.

use std::sync::Arc;
use std::time::Duration;

use chrono::NaiveDate;
use dashmap::DashMap;
use engine::ports::Spending;
use kernel::Clock;
use store::{ChatUsageSum, Store, StoreError};
use uuid::Uuid;
use wire::ErrorCode;

use super::limits::{AccountKey, BudgetLimit};

/// Maximum age before a sum is read again.
const MAX_AGE: Duration = Duration::from_secs(1);
/// Above this number, old sums without a call in progress are dropped.
const MAX_SUMS: usize = 10_000;

/// Sums on this instance. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Sums(Arc<DashMap<AccountKey, Sum>>);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// Usage from the rows, plus usage that this instance has recorded since.
    spent: Spending,
    day: NaiveDate,
    /// When the rows were read, in monotonic time.
    read_at: Option<Duration>,
    /// Maximum usage by calls in progress.
    reserved: Spending,
    /// Usage by calls whose steps are not recorded yet.
    unrecorded: Spending,
}

impl Sum {
    fn used(&self) -> Spending {
        self.spent.plus(&self.unrecorded)
    }

    fn is_fresh(&self, day: NaiveDate, now: Duration) -> bool {
        self.day == day && self.read_at.is_some_and(|read_at| now.saturating_sub(read_at) < MAX_AGE)
    }
}

impl Sums {
    /// Reads a sum again if it is older than [`MAX_AGE`].
    pub(super) async fn refresh(
        &self,
        key: &AccountKey,
        store: &Store,
        clock: &dyn Clock,
    ) -> Result<(), StoreError> {
        let (day, now) = (clock.now().date_naive(), clock.monotonic());
        if self.0.get(key).is_some_and(|sum| sum.is_fresh(day, now)) {
            return Ok(());
        }
        // Concurrent callers use the old sum meanwhile, if it is from today.
        self.change(key, |sum| {
            if sum.day == day && sum.read_at.is_some() {
                sum.read_at = Some(now);
            }
        });
        let read = store.chat_usage_of(key.workflow, key.session.as_deref(), day).await?;
        if self.0.len() > MAX_SUMS {
            self.0.retain(|_, sum| {
                sum.reserved.calls > 0 || sum.day == day && sum.unrecorded.calls > 0 || sum.is_fresh(day, now)
            });
        }
        let mut sum = self.0.entry(key.clone()).or_default();
        if sum.day != day {
            // A run whose end was never stored leaves unrecorded usage.
            sum.unrecorded = Spending::default();
        }
        (sum.spent, sum.day, sum.read_at) = (spending(read), day, Some(now));
        Ok(())
    }

    /// Whether usage has reached a limit. Calls in progress do not count: they may use less than they reserved.
    pub(super) fn is_reached(&self, limit: &BudgetLimit, key: &AccountKey) -> bool {
        self.0.get(key).is_some_and(|sum| limit.is_reached(&sum.used()))
    }

    /// Reserves in the session's and the workflow's account, where limited; all or nothing.
    pub(super) fn reserve(
        &self,
        workflow: Uuid,
        session: &str,
        limits: &[BudgetLimit],
        expected: &Spending,
    ) -> Result<(), ErrorCode> {
        let mut done: Vec<AccountKey> = Vec::new();
        for key in keys(workflow, session, limits) {
            let mut sum = self.0.entry(key.clone()).or_default();
            let total = sum.used().plus(&sum.reserved).plus(expected);
            let is_exceeded = |limit: &&BudgetLimit| {
                limit.key(workflow, session) == key && limit.is_exceeded(&total, expected)
            };
            if let Some(limit) = limits.iter().find(is_exceeded) {
                drop(sum);
                for key in &done {
                    self.change(key, |sum| sum.reserved = minus(&sum.reserved, expected));
                }
                return Err(limit.code());
            }
            sum.reserved = sum.reserved.plus(expected);
            drop(sum);
            done.push(key);
        }
        Ok(())
    }

    /// Ends the reservation when its call has ended.
    pub(super) fn release(&self, workflow: Uuid, session: &str, expected: &Spending, used: &Spending) {
        for key in both(workflow, session) {
            self.change(&key, |sum| {
                sum.reserved = minus(&sum.reserved, expected);
                sum.unrecorded = sum.unrecorded.plus(used);
            });
        }
    }

    /// Moves usage from unrecorded to recorded: its row exists now.
    pub(super) fn recorded(&self, workflow: Uuid, session: &str, used: &Spending) {
        for key in both(workflow, session) {
            self.change(&key, |sum| {
                sum.unrecorded = minus(&sum.unrecorded, used);
                sum.spent = sum.spent.plus(used);
            });
        }
    }

    fn change(&self, key: &AccountKey, change: impl FnOnce(&mut Sum)) {
        if let Some(mut sum) = self.0.get_mut(key) {
            change(&mut sum);
        }
    }
}

/// Accounts with a limit.
fn keys(workflow: Uuid, session: &str, limits: &[BudgetLimit]) -> Vec<AccountKey> {
    let mut keys: Vec<AccountKey> = limits.iter().map(|limit| limit.key(workflow, session)).collect();
    keys.dedup();
    keys
}

fn both(workflow: Uuid, session: &str) -> [AccountKey; 2] {
    [Some(session.to_owned()), None].map(|session| AccountKey { workflow, session })
}

fn spending(sum: ChatUsageSum) -> Spending {
    let whole = |number: i64| u64::try_from(number).unwrap_or_default();
    Spending {
        calls: whole(sum.calls),
        input_tokens: whole(sum.input_tokens),
        output_tokens: whole(sum.output_tokens),
        dollars: sum.usd,
    }
}

pub(super) fn minus(sum: &Spending, part: &Spending) -> Spending {
    Spending {
        calls: sum.calls.saturating_sub(part.calls),
        input_tokens: sum.input_tokens.saturating_sub(part.input_tokens),
        output_tokens: sum.output_tokens.saturating_sub(part.output_tokens),
        dollars: (sum.dollars - part.dollars).max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use wire::ChatLimits;

    use super::*;

    const WORKFLOW: Uuid = Uuid::nil();
    const ONE: &str = "visitor:1";
    const TWO: &str = "visitor:2";

    fn tokens(tokens: u64) -> Spending {
        Spending { calls: 1, input_tokens: tokens, ..Spending::default() }
    }

    fn limits(session: Option<u64>, workflow: Option<u64>) -> Vec<BudgetLimit> {
        let limits =
            ChatLimits { session_tokens_per_day: session, tokens_per_day: workflow, ..ChatLimits::default() };
        BudgetLimit::all(&limits)
    }

    #[test]
    fn reserved_amounts_count_until_they_are_released() {
        let sums = Sums::default();
        let limits = limits(Some(100), Some(150));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &tokens(60)), Ok(()));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &tokens(60)), Err(ErrorCode::ChatBudgetSession));
        assert_eq!(sums.reserve(WORKFLOW, TWO, &limits, &tokens(95)), Err(ErrorCode::ChatBudgetWorkflow));
        // A refused reservation leaves no trace.
        assert_eq!(sums.reserve(WORKFLOW, TWO, &limits, &tokens(90)), Ok(()));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &tokens(1)), Err(ErrorCode::ChatBudgetWorkflow));
        sums.release(WORKFLOW, TWO, &tokens(90), &tokens(30));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &tokens(40)), Ok(()), "30 are spent, 60 reserved");
        assert_eq!(sums.reserve(WORKFLOW, TWO, &limits, &tokens(25)), Err(ErrorCode::ChatBudgetWorkflow));
    }

    #[test]
    fn a_cost_limit_does_not_stop_models_without_a_price() {
        let sums = Sums::default();
        let limits = BudgetLimit::all(&ChatLimits { usd_per_day: Some(1.0), ..ChatLimits::default() });
        let priced = |dollars| Spending { dollars, ..tokens(1) };
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &priced(0.9)), Ok(()));
        sums.release(WORKFLOW, ONE, &priced(0.9), &priced(1.5));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &tokens(50)), Ok(()));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &priced(0.1)), Err(ErrorCode::ChatBudgetWorkflow));
    }

    #[test]
    fn a_limit_is_reached_by_used_amounts_not_by_reserved_ones() {
        let sums = Sums::default();
        let limits = limits(Some(100), None);
        let key = limits[0].key(WORKFLOW, ONE);
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits, &tokens(100)), Ok(()));
        assert!(!sums.is_reached(&limits[0], &key));
        sums.release(WORKFLOW, ONE, &tokens(100), &tokens(100));
        assert!(sums.is_reached(&limits[0], &key));
        sums.recorded(WORKFLOW, ONE, &tokens(100));
        assert!(sums.is_reached(&limits[0], &key));
    }

    #[test]
    fn accounts_without_a_limit_are_not_tracked() {
        let sums = Sums::default();
        assert_eq!(sums.reserve(WORKFLOW, ONE, &[], &tokens(60)), Ok(()));
        sums.release(WORKFLOW, ONE, &tokens(60), &tokens(60));
        sums.recorded(WORKFLOW, ONE, &tokens(60));
        assert_eq!(sums.reserve(WORKFLOW, ONE, &limits(Some(100), None), &tokens(60)), Ok(()));
        assert_eq!(sums.0.len(), 1);
    }
}
