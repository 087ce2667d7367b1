//! Usage of model calls.

use std::collections::BTreeMap;

use serde::Serialize;
pub use wire::{CallUsage, RoleCalls};

use super::key::CallKey;

/// Nanodollars per US dollar. Sums of whole numbers do not depend on their order.
const NANODOLLARS: f64 = 1_000_000_000.0;

/// The purpose of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A node of the workflow.
    Task,
    /// An evaluator.
    Judge,
    /// An optimizer's proposal.
    Optimizer,
    /// Text embeddings.
    Embedding,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 4] = [Self::Task, Self::Judge, Self::Optimizer, Self::Embedding];

    /// Finds a role by name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == name)
    }

    /// The wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Judge => "judge",
            Self::Optimizer => "optimizer",
            Self::Embedding => "embedding",
        }
    }
}

/// The actual or maximum usage of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Requests.
    pub calls: u64,
    /// Tokens that the model reads.
    pub input_tokens: u64,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// Cost in nanodollars; 0 for a model without a price.
    pub nanodollars: u64,
}

impl Amount {
    /// Input plus output tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds two amounts.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            nanodollars: self.nanodollars.saturating_add(other.nanodollars),
        }
    }

    /// Subtracts another amount; not below 0.
    #[must_use]
    pub const fn minus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(other.calls),
            input_tokens: self.input_tokens.saturating_sub(other.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(other.output_tokens),
            nanodollars: self.nanodollars.saturating_sub(other.nanodollars),
        }
    }
}

/// Usage of a case's calls; replayed calls count with their original usage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spent {
    /// The total.
    pub used: Amount,
    /// Answered calls, with or without a request.
    pub answered: u64,
    /// Whether a price is missing, so that the cost is unknown.
    pub is_unpriced: bool,
    /// The number of times each request was made.
    asked: BTreeMap<CallKey, u32>,
}

impl Spent {
    pub(super) fn add(&mut self, used: &Amount, answered: u64) {
        self.used = self.used.plus(used);
        self.answered = self.answered.saturating_add(answered);
    }

    /// The number of earlier times this request was made; counts it.
    pub(super) fn ask(&mut self, key: CallKey) -> u32 {
        let asked = self.asked.entry(key).or_default();
        *asked = asked.saturating_add(1);
        asked.saturating_sub(1)
    }

    /// The cost since `before`, in nanodollars; `None` if a price is unknown.
    #[must_use]
    pub fn cost_since(&self, before: &Self) -> Option<u64> {
        let is_known = !self.is_unpriced || self.used.calls == before.used.calls;
        is_known.then(|| self.used.nanodollars.saturating_sub(before.used.nanodollars))
    }
}

/// Converts US dollars to whole nanodollars; 0 for negative amounts.
#[must_use]
pub fn nanodollars(dollars: f64) -> u64 {
    // Formatting a float without decimals rounds it to the nearest whole number.
    format!("{:.0}", (dollars * NANODOLLARS).max(0.0)).parse().unwrap_or_default()
}

/// Converts whole nanodollars to US dollars.
#[must_use]
pub fn dollars(nanodollars: u64) -> f64 {
    format!("{nanodollars}e-9").parse().unwrap_or_default()
}

/// Counts a request.
pub(super) fn count(calls: &mut RoleCalls, role: Role) {
    let counter = match role {
        Role::Task => &mut calls.task,
        Role::Judge => &mut calls.judge,
        Role::Optimizer => &mut calls.optimizer,
        Role::Embedding => &mut calls.embedding,
    };
    *counter = counter.saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_counted_in_whole_numbers() {
        for (dollars, expected) in
            [(0.0, 0), (0.1, 100_000_000), (1e-9, 1), (0.000_000_000_4, 0), (-1.0, 0), (f64::NAN, 0)]
        {
            assert_eq!(nanodollars(dollars), expected, "{dollars}");
        }
        assert_eq!((dollars(1), dollars(100_000_000), dollars(0)), (1e-9, 0.1, 0.0));
        let tenth = Amount { nanodollars: nanodollars(0.1), ..Amount::default() };
        let sum = (0..10).fold(Amount::default(), |sum, _| sum.plus(&tenth));
        assert_eq!(sum.nanodollars, nanodollars(1.0));
    }
}
