//! Model usage in a training.

use serde::{Deserialize, Serialize};

/// A run's model usage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallUsage {
    /// Sent requests, retries included.
    pub llm_calls: u64,
    /// Of these, retries after a failure.
    pub retries: u64,
    /// Calls answered without a request.
    pub cached_calls: u64,
    /// Requests that were in flight for at least 100 ms when the service was killed, at most `max_concurrency` each
    /// time. They count neither in `llm_calls` nor in the budget, because their answers are unknown.
    pub lost_calls: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// US dollars, for models with a price.
    pub cost_usd: f64,
    /// Whether tokens are estimated, because an endpoint did not count them.
    pub estimated: bool,
    /// `llm_calls` by purpose.
    pub by_role: RoleCalls,
}

/// Requests by purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoleCalls {
    /// Workflow nodes.
    pub task: u64,
    /// Evaluators.
    pub judge: u64,
    /// Proposals.
    pub optimizer: u64,
    /// Vectors.
    pub embedding: u64,
}
