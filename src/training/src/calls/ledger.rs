//! The budget and the usage of a run: each request reserves what it may use, and settles what it has used.

use parking_lot::Mutex;

use super::budget::{Budget, BudgetLimits, Exhausted};
use super::usage::{Amount, CallUsage, Role, dollars, nanodollars};

/// Budget and usage, which change together.
pub(super) struct Ledger(Mutex<Accounts>);

struct Accounts {
    budget: Budget,
    usage: CallUsage,
}

impl Ledger {
    /// Of a run that has used this before.
    pub(super) fn new(limits: BudgetLimits, usage: CallUsage) -> Self {
        let used = Amount {
            calls: usage.llm_calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            nanodollars: nanodollars(usage.cost_usd),
        };
        Self(Mutex::new(Accounts { budget: Budget::new(limits, used), usage }))
    }

    pub(super) fn usage(&self) -> CallUsage {
        self.0.lock().usage.clone()
    }

    pub(super) fn covers(&self, count: u64, each: &Amount) -> bool {
        self.0.lock().budget.covers(count, each)
    }

    /// A call was answered without a request.
    pub(super) fn cached(&self) {
        let usage = &mut self.0.lock().usage;
        usage.cached_calls = usage.cached_calls.saturating_add(1);
    }

    /// Reserves what a request may use.
    pub(super) fn reserve(&self, expected: Amount) -> Result<Reserved<'_>, Exhausted> {
        self.0.lock().budget.reserve(&expected)?;
        Ok(Reserved { ledger: self, expected, used: Amount::default(), is_estimated: false })
    }
}

/// A request that has reserved its budget; settled when it is dropped.
pub(super) struct Reserved<'a> {
    ledger: &'a Ledger,
    expected: Amount,
    used: Amount,
    is_estimated: bool,
}

impl Reserved<'_> {
    /// The request is sent. If it is given up from now on, it has used `input`.
    pub(super) fn sent(mut self, role: Role, is_retry: bool, input: Amount) -> Self {
        {
            let usage = &mut self.ledger.0.lock().usage;
            usage.llm_calls = usage.llm_calls.saturating_add(1);
            usage.retries = usage.retries.saturating_add(u64::from(is_retry));
            usage.by_role.count(role);
        }
        (self.used, self.is_estimated) = (input, true);
        self
    }

    /// The endpoint has answered.
    pub(super) fn answered(mut self, used: Amount, is_estimated: bool) {
        (self.used, self.is_estimated) = (used, is_estimated);
    }

    /// The endpoint has not answered: it was a request, and used no tokens.
    pub(super) fn failed(mut self) {
        (self.used, self.is_estimated) = (Amount { calls: 1, ..Amount::default() }, false);
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let Accounts { budget, usage } = &mut *self.ledger.0.lock();
        budget.settle(&self.expected, &self.used);
        let used = budget.used();
        (usage.input_tokens, usage.output_tokens) = (used.input_tokens, used.output_tokens);
        usage.cost_usd = dollars(used.nanodollars);
        usage.estimated |= self.is_estimated;
    }
}
