//! The budget of a run: each call reserves its maximum usage before it is sent. Pure.

use super::usage::Amount;

/// Run limits; `None`: unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Requests to any model.
    pub max_llm_calls: Option<u64>,
    /// Input and output tokens.
    pub max_tokens: Option<u64>,
    /// Cost in nanodollars.
    pub max_cost: Option<u64>,
}

impl BudgetLimits {
    /// The open part of a limit while `kept` thousandths are reserved for later.
    pub(crate) const fn open(limit: u64, kept: u64) -> u64 {
        // A limit up to 2^53 does not overflow here; of a larger one, less is kept.
        limit - limit.saturating_mul(kept) / 1_000
    }
}

/// A budget limit refuses the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the budget of the run is spent: {limit}")]
pub struct Exhausted {
    /// The limit's name in the request.
    pub limit: &'static str,
}

/// Used and reserved amounts of a run.
#[derive(Debug, Clone, Default)]
pub struct Budget {
    limits: BudgetLimits,
    used: Amount,
    reserved: Amount,
    /// Thousandths of each limit that are kept for later.
    kept: u64,
}

impl Budget {
    /// Creates the budget of a run that has already used `used`.
    #[must_use]
    pub fn new(limits: BudgetLimits, used: Amount) -> Self {
        Self { limits, used, reserved: Amount::default(), kept: 0 }
    }

    /// Reserves the maximum usage of a request; [`Self::settle`] must follow.
    ///
    /// # Errors
    /// [`Exhausted`] if the used, reserved and expected amounts together exceed a limit; then nothing is reserved.
    pub fn reserve(&mut self, expected: &Amount) -> Result<(), Exhausted> {
        let all = self.used.plus(&self.reserved).plus(expected);
        let open = |limit: Option<u64>| limit.map(|limit| BudgetLimits::open(limit, self.kept));
        let limits = [
            ("max_llm_calls", self.limits.max_llm_calls, all.calls),
            ("max_tokens", self.limits.max_tokens, all.tokens()),
            ("max_cost", self.limits.max_cost, all.nanodollars),
        ];
        let reached =
            limits.into_iter().find(|(_, limit, amount)| open(*limit).is_some_and(|limit| *amount > limit));
        if let Some((limit, _, _)) = reached {
            return Err(Exhausted { limit });
        }
        self.reserved = self.reserved.plus(expected);
        Ok(())
    }

    /// Keeps this part of each limit for later, in thousandths, up to 1,000.
    pub fn keep(&mut self, thousandths: u64) {
        self.kept = thousandths.min(1_000);
    }

    /// The remaining limits, including the part kept for later.
    #[must_use]
    pub fn left(&self) -> BudgetLimits {
        let left = |limit: Option<u64>, used: u64| limit.map(|limit| limit.saturating_sub(used));
        BudgetLimits {
            max_llm_calls: left(self.limits.max_llm_calls, self.used.calls),
            max_tokens: left(self.limits.max_tokens, self.used.tokens()),
            max_cost: left(self.limits.max_cost, self.used.nanodollars),
        }
    }

    /// Replaces a finished request's reservation by its actual usage.
    pub fn settle(&mut self, expected: &Amount, used: &Amount) {
        self.reserved = self.reserved.minus(expected);
        self.used = self.used.plus(used);
    }

    /// The amount used.
    #[must_use]
    pub const fn used(&self) -> &Amount {
        &self.used
    }

    /// Whether `count` requests with at most `each` fit within the limits, given the current reservations.
    #[must_use]
    pub fn covers(&self, count: u64, each: &Amount) -> bool {
        let expected = Amount {
            calls: each.calls.saturating_mul(count),
            input_tokens: each.input_tokens.saturating_mul(count),
            output_tokens: each.output_tokens.saturating_mul(count),
            nanodollars: each.nanodollars.saturating_mul(count),
        };
        self.clone().reserve(&expected).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tokens: u64, nanodollars: u64) -> Amount {
        Amount { calls: 1, input_tokens: tokens, output_tokens: 0, nanodollars }
    }

    #[test]
    fn each_limit_counts_reserved_amounts() {
        let limits = BudgetLimits { max_llm_calls: Some(3), max_tokens: Some(100), max_cost: Some(50) };
        let mut budget = Budget::new(limits, call(10, 5));
        assert_eq!(budget.reserve(&call(91, 0)), Err(Exhausted { limit: "max_tokens" }));
        assert_eq!(budget.reserve(&call(0, 46)), Err(Exhausted { limit: "max_cost" }));
        assert_eq!(budget.reserve(&call(90, 45)), Ok(()));
        assert_eq!(budget.reserve(&call(0, 0)), Ok(()), "a limit may be reached");
        assert_eq!(budget.reserve(&call(0, 0)), Err(Exhausted { limit: "max_llm_calls" }));
    }

    #[test]
    fn a_reserved_share_is_kept_until_it_is_released() {
        let limits = BudgetLimits { max_llm_calls: Some(20), ..BudgetLimits::default() };
        let mut budget = Budget::new(limits, Amount { calls: 17, ..Amount::default() });
        budget.keep(100);
        assert_eq!(budget.reserve(&call(0, 0)), Ok(()));
        assert_eq!(budget.reserve(&call(0, 0)), Err(Exhausted { limit: "max_llm_calls" }));
        budget.keep(0);
        assert_eq!((budget.reserve(&call(0, 0)), budget.reserve(&call(0, 0))), (Ok(()), Ok(())));
        assert_eq!(budget.reserve(&call(0, 0)), Err(Exhausted { limit: "max_llm_calls" }));
        assert_eq!(budget.left().max_llm_calls, Some(3));
    }

    #[test]
    fn unused_amounts_are_returned() {
        let mut budget =
            Budget::new(BudgetLimits { max_tokens: Some(100), ..BudgetLimits::default() }, Amount::default());
        assert!(!budget.covers(2, &call(51, 0)) && budget.covers(2, &call(50, 0)));
        budget.reserve(&call(100, 0)).unwrap();
        budget.settle(&call(100, 0), &call(20, 0));
        assert_eq!(budget.used(), &call(20, 0));
        assert_eq!(budget.reserve(&call(80, 0)), Ok(()));
        budget.settle(&call(80, 0), &Amount::default());
        assert_eq!(budget.used().tokens(), 20, "a request that was not sent");
    }
}
