//! What calls of models have used.

use serde::Serialize;

/// Nanodollars of a US dollar. Sums of whole numbers do not depend on their order.
const NANODOLLARS: f64 = 1_000_000_000.0;

/// For what a model is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A node of the workflow.
    Task,
    /// An evaluator.
    Judge,
    /// A proposal of an optimizer.
    Optimizer,
    /// Vectors of texts.
    Embedding,
}

impl Role {
    /// Its name on the wire.
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

/// What one call uses, or may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Requests.
    pub calls: u64,
    /// Tokens that the model reads.
    pub input_tokens: u64,
    /// Tokens that it writes.
    pub output_tokens: u64,
    /// Money, in nanodollars; 0 for a model without a price.
    pub nanodollars: u64,
}

impl Amount {
    /// Input and output.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            nanodollars: self.nanodollars.saturating_add(other.nanodollars),
        }
    }

    /// What is left of this without the other.
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

/// US dollars as whole nanodollars; 0 for less than nothing.
#[must_use]
pub fn nanodollars(dollars: f64) -> u64 {
    // The text of a float without decimals is that of the nearest whole number.
    format!("{:.0}", (dollars * NANODOLLARS).max(0.0)).parse().unwrap_or_default()
}

/// Whole nanodollars as US dollars.
#[must_use]
pub fn dollars(nanodollars: u64) -> f64 {
    format!("{nanodollars}e-9").parse().unwrap_or_default()
}

/// What a run's calls have used so far: `usage` of records and events.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallUsage {
    /// Requests that were sent, retries included.
    pub llm_calls: u64,
    /// Of these, those that repeat a failed one.
    pub retries: u64,
    /// Calls that were answered without a request.
    pub cached_calls: u64,
    /// Requests that were in flight when the service died; not in `llm_calls`.
    pub lost_calls: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// US dollars, of models with a price.
    pub cost_usd: f64,
    /// Whether tokens are estimated, because an endpoint did not count them.
    pub estimated: bool,
    /// `llm_calls` by what they are for.
    pub by_role: RoleCalls,
}

/// Requests by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RoleCalls {
    /// Nodes of the workflow.
    pub task: u64,
    /// Evaluators.
    pub judge: u64,
    /// Proposals.
    pub optimizer: u64,
    /// Vectors.
    pub embedding: u64,
}

impl RoleCalls {
    /// One more.
    pub(super) fn count(&mut self, role: Role) {
        let counter = match role {
            Role::Task => &mut self.task,
            Role::Judge => &mut self.judge,
            Role::Optimizer => &mut self.optimizer,
            Role::Embedding => &mut self.embedding,
        };
        *counter = counter.saturating_add(1);
    }
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
