//! State shared by a whole run, and by one graph in it.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;

use super::budget::ExecutionBudget;
use super::ports::{JournalError, Ports};
use super::recorded::Recorded;
use super::refill::Refill;
use super::{GraphStop, RunInput};
use crate::redact::Redactor;
use crate::{Plan, RunError};

/// Default super-step limit per graph.
const RECURSION_LIMIT: u32 = 50;
/// Maximum super-step limit in a config.
const RECURSION_MAX: u32 = 250;
/// Maximum nodes running at once.
const CONCURRENCY_MAX: u32 = 32;

/// Retry interval if the vault cannot be read.
const AGAIN: Duration = Duration::from_secs(1);

/// State shared by the whole run.
pub(crate) struct Env<'a> {
    pub(crate) ports: Ports<'a>,
    pub(super) recorded: Recorded,
    /// Redacts secrets that nodes have used.
    pub(super) redactor: Redactor,
    /// Attachments that readers have been notified about.
    pub(super) noticed: Mutex<BTreeSet<String>>,
    /// The reason for the last missing model answer, unless it was streamed.
    pub(super) missing_answer: Mutex<Option<&'static str>>,
    /// Limits for the whole run.
    pub(super) budget: ExecutionBudget,
    /// The first warning from a workflow inside the run.
    pub(super) warning: Mutex<Option<RunError>>,
    /// If set, nothing is executed: only inputs are filled again.
    pub(super) refill: Option<Refill>,
}

impl Env<'_> {
    /// Relearns secrets used before a restart, because a server may repeat them now. Secrets that have left the vault
    /// are unknown.
    pub(super) async fn learn_again(&self, plan: &Plan) {
        if self.recorded.is_empty() {
            return;
        }
        let names = self.redactor.not_learned(plan.credentials.iter());
        if names.is_empty() {
            return;
        }
        // The run pauses rather than leak a secret.
        loop {
            match self.ports.credentials.those_there(&names).await {
                Ok(secrets) => return secrets.iter().for_each(|secret| self.redactor.learn(secret)),
                Err(error) => {
                    tracing::warn!(cause = error.message, "run paused: its secrets are unavailable; retrying")
                }
            }
            self.ports.clock.sleep(AGAIN).await;
        }
    }
}

/// One graph of a run: the outermost, or a sub-workflow's.
pub(crate) struct Frame {
    /// Journal prefix of its node names: empty, or `outer/`.
    pub(super) prefix: String,
    /// The outermost graph's super-step; `None` for that graph itself.
    pub(super) step: Option<u32>,
    /// Nesting depth of sub-workflows.
    pub(super) depth: u32,
    /// The clock at its start.
    pub(super) now: DateTime<Utc>,
    /// Cancelled when a node fails: pending waits end.
    pub(super) halt: CancellationToken,
    /// Whether the run continues if this graph fails.
    pub(super) tolerated: bool,
    pub(super) input: RunInput,
}

impl Frame {
    /// Creates the outermost graph's frame.
    pub(super) fn outermost(now: DateTime<Utc>, input: RunInput) -> Self {
        let halt = CancellationToken::new();
        Self { prefix: String::new(), step: None, depth: 0, now, halt, tolerated: false, input }
    }

    pub(super) fn recursion_limit(&self) -> Result<u32, GraphStop> {
        self.limit("recursion_limit", RECURSION_LIMIT, RECURSION_MAX)
    }

    pub(super) fn max_concurrency(&self) -> Result<u32, GraphStop> {
        self.limit("max_concurrency", CONCURRENCY_MAX, CONCURRENCY_MAX)
    }

    fn limit(&self, name: &str, default: u32, max: u32) -> Result<u32, GraphStop> {
        let Some(wanted) = self.input.config.get(name).filter(|wanted| !wanted.is_null()) else {
            return Ok(default);
        };
        let limit = wanted.as_u64().and_then(|limit| u32::try_from(limit).ok());
        limit.filter(|limit| (1..=max).contains(limit)).ok_or_else(|| {
            let message = format!("{name} must be a whole number from 1 to {max}");
            GraphStop::Failed(RunError::whole(ErrorCode::NodeFailed, message))
        })
    }

    /// Returns a node's journal name.
    pub(super) fn path(&self, node: &str) -> String {
        format!("{}{node}", self.prefix)
    }

    pub(super) fn inputs(&self) -> &Value {
        &self.input.inputs
    }
}

pub(super) fn lost(error: &JournalError) -> GraphStop {
    GraphStop::Failed(RunError::whole(ErrorCode::Internal, error.to_string()))
}
