//! Daily model usage per chat (UTC days) and its limits, shared by all instances.

mod limits;
mod sums;

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::NodeError;
use engine::ports::{ModelBudget, Spending, StepRecord};
use kernel::Clock;
use parking_lot::Mutex;
use store::batch::ChatUsageRow;
use store::{ChatUsageSum, Store, StoreError};
use uuid::Uuid;
use wire::{ChatLimits, ErrorCode};

use self::limits::{BudgetLimit, next_day};
use self::sums::{Sums, minus};
use super::journal::number;
use crate::plans::Plans;

/// The account that pays for a run's models.
#[derive(Debug, Clone)]
pub(crate) struct BudgetAccount {
    /// The workflow.
    workflow: Uuid,
    /// The session whose limits apply.
    session: String,
    /// Whether the run counts as a turn.
    is_turn: bool,
    /// Usage in steps that are not recorded yet.
    unrecorded: Arc<Mutex<Spending>>,
}

impl BudgetAccount {
    pub(crate) fn of_turn(workflow: Uuid, session: String) -> Self {
        Self { workflow, session, is_turn: true, unrecorded: Arc::default() }
    }

    pub(crate) fn without_turn(workflow: Uuid, session: String) -> Self {
        Self { is_turn: false, ..Self::of_turn(workflow, session) }
    }

    fn key(&self) -> (Uuid, &str) {
        (self.workflow, &self.session)
    }

    /// The usage row for a run, or for one of its steps.
    fn usage_row(
        &self,
        run_id: Uuid,
        step: Option<(String, i32, i32)>,
        spent: &Spending,
        now: DateTime<Utc>,
    ) -> ChatUsageRow {
        let ChatUsageSum { calls, input_tokens, output_tokens, usd } = usage_sum(spent);
        ChatUsageRow {
            run_id,
            step,
            day: now.date_naive(),
            workflow_id: self.workflow,
            session: self.session.clone(),
            turns: 0,
            calls,
            input_tokens,
            output_tokens,
            usd,
        }
    }
}

/// Converts usage to its stored form.
pub(crate) fn usage_sum(spent: &Spending) -> ChatUsageSum {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    ChatUsageSum {
        calls: whole(spent.calls),
        input_tokens: whole(spent.input_tokens),
        output_tokens: whole(spent.output_tokens),
        usd: spent.dollars,
    }
}

/// A limit has been reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a limit of the chat's models is reached")]
pub struct BudgetSpent {
    /// `chat.budget.session` or `chat.budget.workflow`.
    pub code: ErrorCode,
    /// When the limit resets.
    pub until: DateTime<Utc>,
}

/// Budgets on this instance. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Budgets {
    sums: Sums,
}

impl Budgets {
    /// Checks whether the limits allow another turn in a session.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub(crate) async fn check(
        &self,
        workflow: Uuid,
        session: &str,
        limits: &ChatLimits,
        store: &Store,
        clock: &dyn Clock,
    ) -> Result<Option<BudgetSpent>, StoreError> {
        for limit in BudgetLimit::all(limits) {
            let key = limit.key(workflow, session);
            self.sums.refresh(&key, store, clock).await?;
            if self.sums.is_reached(&limit, &key) {
                return Ok(Some(BudgetSpent { code: limit.code(), until: next_day(clock.now()) }));
            }
        }
        Ok(None)
    }

    /// The usage row for a step, if it used a model.
    pub(super) fn of_step(
        &self,
        account: &BudgetAccount,
        run: Uuid,
        step: &StepRecord,
        now: DateTime<Utc>,
    ) -> Option<ChatUsageRow> {
        let used = step.spending.as_ref()?;
        self.recorded(account, used);
        let key = (step.node.clone(), number(step.visit), number(step.attempt));
        Some(account.usage_row(run, Some(key), used, now))
    }

    /// The usage row for a run that ends (`ends`) or enters the queue: abandoned calls, which no step has recorded.
    pub(super) fn of_rest(
        &self,
        account: &BudgetAccount,
        run: Uuid,
        ends: bool,
        now: DateTime<Utc>,
    ) -> Option<ChatUsageRow> {
        let rest = *account.unrecorded.lock();
        self.recorded(account, &rest);
        let turns = i64::from(ends && account.is_turn);
        let row = || ChatUsageRow { turns, ..account.usage_row(run, None, &rest, now) };
        (turns > 0 || rest.calls > 0).then(row)
    }

    /// Moves usage from unrecorded to recorded: its row exists now.
    pub(crate) fn recorded(&self, account: &BudgetAccount, used: &Spending) {
        let (workflow, session) = account.key();
        self.sums.recorded(workflow, session, used);
        let mut unrecorded = account.unrecorded.lock();
        *unrecorded = minus(&unrecorded, used);
    }
}

/// The budget for one run.
pub(crate) struct RunBudget<'a> {
    pub(crate) account: Option<BudgetAccount>,
    pub(crate) budgets: &'a Budgets,
    pub(crate) plans: &'a Plans,
    pub(crate) store: &'a Store,
    pub(crate) clock: &'a dyn Clock,
}

impl RunBudget<'_> {
    async fn limits(&self, workflow: Uuid) -> Result<Vec<BudgetLimit>, NodeError> {
        let unreadable =
            |_| NodeError::retryable(ErrorCode::NodeFailed, "the limits of the chat cannot be read now");
        let runnable = self.plans.runnable(workflow).await.map_err(unreadable)?;
        Ok(runnable.map(|runnable| BudgetLimit::all(&runnable.workflow.chat.limits)).unwrap_or_default())
    }
}

#[async_trait]
impl ModelBudget for RunBudget<'_> {
    async fn reserve(&self, expected: &Spending) -> Result<(), NodeError> {
        let Some(account) = &self.account else { return Ok(()) };
        let (workflow, session) = account.key();
        let limits = self.limits(workflow).await?;
        let sums = &self.budgets.sums;
        for limit in &limits {
            let read = sums.refresh(&limit.key(workflow, session), self.store, self.clock).await;
            read.map_err(|_| {
                NodeError::retryable(ErrorCode::NodeFailed, "the chat's usage cannot be read now")
            })?;
        }
        let reserved = sums.reserve(workflow, session, &limits, expected);
        reserved.map_err(|code| NodeError::new(code, code.message()))
    }

    fn release(&self, expected: &Spending, used: &Spending) {
        let Some(account) = &self.account else { return };
        let (workflow, session) = account.key();
        self.budgets.sums.release(workflow, session, expected, used);
        let mut unrecorded = account.unrecorded.lock();
        *unrecorded = unrecorded.plus(used);
    }
}
