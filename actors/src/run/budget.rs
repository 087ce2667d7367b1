//! Limits of what the models of a chat use each UTC day, shared by all instances: the sums are rows, which an instance reads at
//! most once a second; to these it adds what its own calls have reserved.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use dashmap::DashMap;
use engine::NodeError;
use engine::ports::{Budget, Spending, StepRecord};
use kernel::Clock;
use parking_lot::Mutex;
use serde_json::Value;
use store::batch::ChatUsageRow;
use store::{ChatUsageSum, Store, StoreError};
use uuid::Uuid;
use wire::{ChatLimits, ErrorCode};

use super::journal::number;
use crate::plans::Plans;
use crate::text::stored_json;

/// How old a sum may be.
const FRESH: Duration = Duration::from_secs(1);
/// Sums that are kept; those without a call in progress are dropped first.
const KEPT: usize = 10_000;

/// The chat of a workflow, or one session of it.
type Key = (Uuid, Option<String>);

/// Sums of this instance. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Budgets {
    sums: Arc<DashMap<Key, Mutex<Sum>>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    /// As the rows had it, and what this instance has used since.
    spent: Spending,
    day: NaiveDate,
    /// When the rows were read, in monotonic time.
    read_at: Option<Duration>,
    /// What calls in progress may use.
    reserved: Spending,
    /// What calls have used whose steps are not recorded yet.
    unrecorded: Spending,
}

impl Sum {
    fn total(&self) -> Spending {
        self.spent.plus(&self.unrecorded).plus(&self.reserved)
    }
}

/// The chat that a run's models are used for.
#[derive(Debug, Clone)]
pub(crate) struct ChatSession {
    /// The workflow.
    pub(crate) workflow: Uuid,
    /// Whose the caller's limits are.
    pub(crate) session: String,
    /// What the run has used in steps that are not recorded yet.
    pub(crate) unrecorded: Arc<Mutex<Spending>>,
}

impl ChatSession {
    /// What a step has used, `(run, step)`.
    fn usage_row(
        &self,
        (run_id, step): (Uuid, Option<(String, i32, i32)>),
        spent: &Spending,
        now: DateTime<Utc>,
    ) -> ChatUsageRow {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        ChatUsageRow {
            run_id,
            step,
            day: now.date_naive(),
            workflow_id: self.workflow,
            session: self.session.clone(),
            turns: 0,
            calls: whole(spent.calls),
            input_tokens: whole(spent.input_tokens),
            output_tokens: whole(spent.output_tokens),
            usd: spent.dollars,
        }
    }

    /// The end of a turn that has used a model, with what no step has recorded: calls that were given up.
    fn turn_row(&self, run: Uuid, rest: &Spending, now: DateTime<Utc>) -> ChatUsageRow {
        ChatUsageRow { turns: 1, ..self.usage_row((run, None), rest, now) }
    }

    /// The session, and the whole workflow.
    fn keys(&self) -> [Key; 2] {
        [(self.workflow, Some(self.session.clone())), (self.workflow, None)]
    }
}

/// Whose limits a run's models have, as its row says.
pub(crate) fn session_of(options: Option<&str>) -> Option<String> {
    let options = stored_json(options?).ok()?;
    options.get("session").and_then(Value::as_str).map(str::to_owned)
}

/// A limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a limit of the chat's models is reached")]
pub struct BudgetSpent {
    /// `chat.budget.session` or `chat.budget.workflow`.
    pub code: ErrorCode,
    /// Until when.
    pub until: DateTime<Utc>,
}

impl Budgets {
    /// Whether the limits allow another turn.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub(crate) async fn check(
        &self,
        of: &ChatSession,
        limits: &ChatLimits,
        (store, clock): (&Store, &dyn Clock),
    ) -> Result<Option<BudgetSpent>, StoreError> {
        for limit in Limit::all(limits) {
            let key = limit.key(of);
            self.refresh(&key, store, clock).await?;
            if self.sums.get(&key).is_some_and(|sum| limit.is_reached(&sum.lock().total())) {
                return Ok(Some(BudgetSpent { code: limit.code(), until: next_day(clock.now()) }));
            }
        }
        Ok(None)
    }

    /// Reads the sum again if it is not fresh.
    async fn refresh(&self, key: &Key, store: &Store, clock: &dyn Clock) -> Result<(), StoreError> {
        let (day, now) = (clock.now().date_naive(), clock.monotonic());
        let is_fresh = |sum: &Sum| {
            sum.day == day && sum.read_at.is_some_and(|read_at| now.saturating_sub(read_at) < FRESH)
        };
        if self.sums.get(key).is_some_and(|sum| is_fresh(&sum.lock())) {
            return Ok(());
        }
        // Others use the old sum meanwhile, if it is of this day.
        let mark = |sum: &mut Sum| {
            let known = sum.day == day && sum.read_at.is_some();
            if known {
                sum.read_at = Some(now);
            }
        };
        self.change(key, mark);
        let read = store.chat_usage_of(key.0, key.1.as_deref(), day).await?;
        if self.sums.len() > KEPT {
            self.sums.retain(|_, sum| {
                let sum = sum.get_mut();
                sum.reserved.calls > 0 || sum.unrecorded.calls > 0 && sum.day == day
            });
        }
        let entry = self.sums.entry(key.clone()).or_default();
        let mut sum = entry.lock();
        if sum.day != day {
            // A run whose end was not stored leaves some.
            sum.unrecorded = Spending::default();
        }
        (sum.spent, sum.day, sum.read_at) = (spending(read), day, Some(now));
        Ok(())
    }

    /// Reserves for the session and for the workflow, or for none.
    fn reserve(&self, of: &ChatSession, limits: &[Limit], expected: &Spending) -> Result<(), ErrorCode> {
        let keys = of.keys();
        for (place, key) in keys.iter().enumerate() {
            let entry = self.sums.entry(key.clone()).or_default();
            let mut sum = entry.lock();
            let total = sum.total().plus(expected);
            let exceeded = limits.iter().find(|limit| limit.key(of) == *key && limit.is_exceeded(&total));
            if let Some(limit) = exceeded {
                drop(sum);
                drop(entry);
                for key in keys.iter().take(place) {
                    self.change(key, |sum| sum.reserved = minus(&sum.reserved, expected));
                }
                return Err(limit.code());
            }
            sum.reserved = sum.reserved.plus(expected);
        }
        Ok(())
    }

    fn release(&self, of: &ChatSession, expected: &Spending, used: &Spending) {
        for key in of.keys() {
            self.change(&key, |sum| {
                sum.reserved = minus(&sum.reserved, expected);
                sum.unrecorded = sum.unrecorded.plus(used);
            });
        }
        let mut unrecorded = of.unrecorded.lock();
        *unrecorded = unrecorded.plus(used);
    }

    /// The row of a step, if it has used a model.
    pub(super) fn of_step(
        &self,
        of: &ChatSession,
        run: Uuid,
        step: &StepRecord,
        now: DateTime<Utc>,
    ) -> Option<ChatUsageRow> {
        let used = step.spending.as_ref()?;
        self.recorded(of, used);
        let key = (step.node.clone(), number(step.visit), number(step.attempt));
        Some(of.usage_row((run, Some(key)), used, now))
    }

    /// The row of a run's end, if it has used a model.
    pub(super) fn of_end(
        &self,
        of: &ChatSession,
        run: Uuid,
        has_spent: bool,
        now: DateTime<Utc>,
    ) -> Option<ChatUsageRow> {
        let rest = *of.unrecorded.lock();
        self.recorded(of, &rest);
        (has_spent || rest.calls > 0).then(|| of.turn_row(run, &rest, now))
    }

    /// What was used is in a row by now.
    fn recorded(&self, of: &ChatSession, used: &Spending) {
        for key in of.keys() {
            self.change(&key, |sum| {
                sum.unrecorded = minus(&sum.unrecorded, used);
                sum.spent = sum.spent.plus(used);
            });
        }
        let mut unrecorded = of.unrecorded.lock();
        *unrecorded = minus(&unrecorded, used);
    }

    fn change(&self, key: &Key, change: impl FnOnce(&mut Sum)) {
        if let Some(sum) = self.sums.get(key) {
            change(&mut sum.lock());
        }
    }
}

/// The budget of one run.
pub(crate) struct BudgetOf<'a> {
    pub(crate) of: Option<ChatSession>,
    pub(crate) budgets: &'a Budgets,
    pub(crate) plans: &'a Plans,
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a dyn Clock,
}

impl BudgetOf<'_> {
    async fn limits(&self, of: &ChatSession) -> Result<Vec<Limit>, NodeError> {
        let unreadable =
            |_| NodeError::retryable(ErrorCode::NodeFailed, "the limits of the chat cannot be read now");
        let runnable = self.plans.runnable(of.workflow).await.map_err(unreadable)?;
        Ok(runnable.map(|runnable| Limit::all(&runnable.workflow.chat.limits)).unwrap_or_default())
    }
}

#[async_trait]
impl Budget for BudgetOf<'_> {
    async fn reserve(&self, expected: &Spending) -> Result<bool, NodeError> {
        let Some(of) = &self.of else { return Ok(false) };
        let limits = self.limits(of).await?;
        for limit in &limits {
            let read = self.budgets.refresh(&limit.key(of), self.store, self.clock).await;
            read.map_err(|_| {
                NodeError::retryable(ErrorCode::NodeFailed, "what the chat has used cannot be read now")
            })?;
        }
        let reserved = self.budgets.reserve(of, &limits, expected);
        reserved.map(|()| true).map_err(|code| NodeError::new(code, code.message()))
    }

    fn release(&self, expected: &Spending, used: &Spending) {
        if let Some(of) = &self.of {
            self.budgets.release(of, expected, used);
        }
    }
}

/// One of the limits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limit {
    of_session: bool,
    most: Most,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Most {
    Tokens(u64),
    Dollars(f64),
}

impl Limit {
    fn all(limits: &ChatLimits) -> Vec<Self> {
        let ChatLimits { session_tokens_per_day, session_usd_per_day, tokens_per_day, usd_per_day } = *limits;
        let tokens =
            |of_session, most: Option<u64>| most.map(|most| Self { of_session, most: Most::Tokens(most) });
        let dollars =
            |of_session, most: Option<f64>| most.map(|most| Self { of_session, most: Most::Dollars(most) });
        let all = [
            tokens(true, session_tokens_per_day),
            dollars(true, session_usd_per_day),
            tokens(false, tokens_per_day),
            dollars(false, usd_per_day),
        ];
        all.into_iter().flatten().collect()
    }

    fn key(&self, of: &ChatSession) -> Key {
        (of.workflow, self.of_session.then(|| of.session.clone()))
    }

    fn code(&self) -> ErrorCode {
        if self.of_session { ErrorCode::ChatBudgetSession } else { ErrorCode::ChatBudgetWorkflow }
    }

    fn is_reached(&self, sum: &Spending) -> bool {
        match self.most {
            Most::Tokens(most) => sum.tokens() >= most,
            Most::Dollars(most) => sum.dollars >= most,
        }
    }

    fn is_exceeded(&self, sum: &Spending) -> bool {
        match self.most {
            Most::Tokens(most) => sum.tokens() > most,
            Most::Dollars(most) => sum.dollars > most,
        }
    }
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

fn minus(sum: &Spending, part: &Spending) -> Spending {
    Spending {
        calls: sum.calls.saturating_sub(part.calls),
        input_tokens: sum.input_tokens.saturating_sub(part.input_tokens),
        output_tokens: sum.output_tokens.saturating_sub(part.output_tokens),
        dollars: (sum.dollars - part.dollars).max(0.0),
    }
}

/// The end of the UTC day.
fn next_day(now: DateTime<Utc>) -> DateTime<Utc> {
    let tomorrow = now.date_naive().succ_opt().unwrap_or(NaiveDate::MAX);
    tomorrow.and_time(NaiveTime::MIN).and_utc()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of() -> ChatSession {
        ChatSession { workflow: Uuid::nil(), session: "visitor:1".to_owned(), unrecorded: Arc::default() }
    }

    fn tokens(tokens: u64) -> Spending {
        Spending { calls: 1, input_tokens: tokens, ..Spending::default() }
    }

    #[test]
    fn what_is_reserved_counts_until_it_is_released() {
        let budgets = Budgets::default();
        let limits = ChatLimits {
            session_tokens_per_day: Some(100),
            tokens_per_day: Some(150),
            ..ChatLimits::default()
        };
        let limits = Limit::all(&limits);
        assert_eq!(budgets.reserve(&of(), &limits, &tokens(60)), Ok(()));
        assert_eq!(budgets.reserve(&of(), &limits, &tokens(60)), Err(ErrorCode::ChatBudgetSession));
        let other = ChatSession { session: "visitor:2".to_owned(), ..of() };
        assert_eq!(budgets.reserve(&other, &limits, &tokens(95)), Err(ErrorCode::ChatBudgetWorkflow));
        // A refused reservation leaves nothing behind.
        assert_eq!(budgets.reserve(&other, &limits, &tokens(90)), Ok(()));
        assert_eq!(budgets.reserve(&of(), &limits, &tokens(1)), Err(ErrorCode::ChatBudgetWorkflow));
        budgets.release(&other, &tokens(90), &tokens(30));
        assert_eq!(budgets.reserve(&of(), &limits, &tokens(40)), Ok(()), "30 are spent, 60 reserved");
        assert_eq!(budgets.reserve(&other, &limits, &tokens(25)), Err(ErrorCode::ChatBudgetWorkflow));
    }

    #[test]
    fn a_day_ends_at_midnight() {
        let now = DateTime::parse_from_rfc3339("2026-12-31T23:59:59Z").unwrap().to_utc();
        assert_eq!(next_day(now).to_rfc3339(), "2027-01-01T00:00:00+00:00");
    }
}
