//! Budget and usage of a run: each request reserves its maximum usage, then settles its actual usage.

use parking_lot::Mutex;

use super::budget::{Budget, BudgetLimits, Exhausted};
use super::usage::{Amount, CallUsage, Role, count, dollars, nanodollars};

/// Budget and usage under one lock, because they change together.
pub(super) struct Ledger(Mutex<Accounts>);

struct Accounts {
    budget: Budget,
    usage: CallUsage,
    /// Answered calls, with or without a request.
    answered: u64,
    /// The distinct ones among them.
    recorded: u64,
}

impl Ledger {
    /// Creates the ledger of a run with earlier usage. `answered`: answered calls; `recorded`: the distinct ones
    /// among them.
    pub(super) fn new(limits: BudgetLimits, usage: CallUsage, answered: u64, recorded: u64) -> Self {
        let used = Amount {
            calls: usage.llm_calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            nanodollars: nanodollars(usage.cost_usd),
        };
        Self(Mutex::new(Accounts { budget: Budget::new(limits, used), usage, answered, recorded }))
    }

    pub(super) fn usage(&self) -> CallUsage {
        let accounts = self.0.lock();
        let cached_calls = accounts.answered.saturating_sub(accounts.recorded);
        CallUsage { cached_calls, ..accounts.usage.clone() }
    }

    /// Keeps this part of the budget for later, in thousandths.
    pub(super) fn keep(&self, thousandths: u64) {
        self.0.lock().budget.keep(thousandths);
    }

    pub(super) fn covers(&self, count: u64, each: &Amount) -> bool {
        self.0.lock().budget.covers(count, each)
    }

    /// The remaining budget.
    pub(super) fn left(&self) -> BudgetLimits {
        self.0.lock().budget.left()
    }

    /// Counts an answered call; `is_new`: answered by a request.
    pub(super) fn answered(&self, is_new: bool) {
        let mut accounts = self.0.lock();
        accounts.answered = accounts.answered.saturating_add(1);
        accounts.recorded = accounts.recorded.saturating_add(u64::from(is_new));
    }

    /// Reserves the maximum usage of a request.
    pub(super) fn reserve(&self, expected: Amount) -> Result<Reserved<'_>, Exhausted> {
        self.0.lock().budget.reserve(&expected)?;
        Ok(Reserved { ledger: self, expected, used: Amount::default(), is_estimated: false })
    }
}

/// A request with reserved budget; dropping it settles the budget.
pub(super) struct Reserved<'a> {
    ledger: &'a Ledger,
    expected: Amount,
    used: Amount,
    is_estimated: bool,
}

impl Reserved<'_> {
    /// Marks the request as sent. If it is given up from now on, `input` counts as used.
    pub(super) fn sent(mut self, role: Role, is_retry: bool, input: Amount) -> Self {
        {
            let usage = &mut self.ledger.0.lock().usage;
            usage.llm_calls = usage.llm_calls.saturating_add(1);
            usage.retries = usage.retries.saturating_add(u64::from(is_retry));
            count(&mut usage.by_role, role);
        }
        (self.used, self.is_estimated) = (input, true);
        self
    }

    /// The endpoint has answered.
    pub(super) fn answered(mut self, used: Amount, is_estimated: bool) {
        (self.used, self.is_estimated) = (used, is_estimated);
    }

    /// The endpoint did not answer: the request counts, without tokens.
    pub(super) fn failed(mut self) {
        (self.used, self.is_estimated) = (Amount { calls: 1, ..Amount::default() }, false);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let Accounts { budget, usage, .. } = &mut *self.ledger.0.lock();
        budget.settle(&self.expected, &self.used);
        let used = budget.used();
        (usage.input_tokens, usage.output_tokens) = (used.input_tokens, used.output_tokens);
        usage.cost_usd = dollars(used.nanodollars);
        usage.estimated |= self.is_estimated;
    }
}
