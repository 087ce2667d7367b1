//! What the models of a training have used.

use serde::{Deserialize, Serialize};

/// What the models of a run have used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallUsage {
    /// Requests that were sent, repeated ones included.
    pub llm_calls: u64,
    /// Of these, requests that were sent again after a failure.
    pub retries: u64,
    /// Calls that were answered without a request.
    pub cached_calls: u64,
    /// Requests that were in flight for at least 100 ms when the service was killed, at most `max_concurrency` each time. They count neither in
    /// `llm_calls` nor in the budget, because their answers are unknown.
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
