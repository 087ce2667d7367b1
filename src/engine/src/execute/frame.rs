//! What is the same for everything in one run, and for everything in one graph of it.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;

use super::budget::Budget;
use super::ports::{JournalError, Ports};
use super::recorded::Recorded;
use super::refill::Refill;
use super::{RunInput, Stop};
use crate::redact::Redactor;
use crate::{Plan, RunError};

/// Super-steps of a graph unless its config says otherwise.
const RECURSION_LIMIT: u32 = 50;
/// Most super-steps that a config may ask for.
const RECURSION_MAX: u32 = 250;
/// Most nodes that run at the same time.
const CONCURRENCY_MAX: u32 = 32;

/// How soon the vault is asked again when it cannot be read.
const AGAIN: Duration = Duration::from_secs(1);

/// The same for the whole run.
pub(crate) struct Env<'a> {
    pub(crate) ports: Ports<'a>,
    pub(super) recorded: Recorded,
    /// Secrets that nodes have used.
    pub(super) redactor: Redactor,
    /// Attachments that readers were told about.
    pub(super) noticed: Mutex<BTreeSet<String>>,
    /// What the whole run may use.
    pub(super) budget: Budget,
    /// The first warning of a workflow inside the run.
    pub(super) warning: Mutex<Option<RunError>>,
    /// If set, nothing is executed: inputs are filled again for it.
    pub(super) refill: Option<Refill>,
}

impl Env<'_> {
    /// What an earlier life has used, a server may repeat in this one. Those that are gone from the vault by now are
    /// not known any more.
    pub(super) async fn learn_again(&self, plan: &Plan) {
        if self.recorded.is_empty() {
            return;
        }
        let names = self.redactor.not_learned(plan.credentials.iter());
        if names.is_empty() {
            return;
        }
        // Rather not going on for a while than saying a secret.
        loop {
            match self.ports.credentials.those_there(&names).await {
                Ok(secrets) => return secrets.iter().for_each(|secret| self.redactor.learn(secret)),
                Err(error) => {
                    tracing::warn!(cause = error.message, "a run does not go on without its secrets")
                }
            }
            self.ports.clock.sleep(AGAIN).await;
        }
    }
}

/// One graph of a run: the outermost, or a sub-workflow's.
pub(crate) struct Frame {
    /// What stands before the names of its nodes in the journal: empty, or `outer/`.
    pub(super) prefix: String,
    /// The outermost graph's super-step; `None` for that graph itself.
    pub(super) step: Option<u32>,
    /// How many sub-workflows it is inside of.
    pub(super) depth: u32,
    /// The clock at its start.
    pub(super) now: DateTime<Utc>,
    /// Cancelled when a node has failed: what only waits is not waited for.
    pub(super) halt: CancellationToken,
    /// Whether the run continues if this graph fails.
    pub(super) tolerated: bool,
    pub(super) input: RunInput,
}

impl Frame {
    /// The frame of the outermost graph.
    pub(super) fn outermost(now: DateTime<Utc>, input: RunInput) -> Self {
        let halt = CancellationToken::new();
        Self { prefix: String::new(), step: None, depth: 0, now, halt, tolerated: false, input }
    }

    pub(super) fn recursion_limit(&self) -> Result<u32, Stop> {
        self.limit("recursion_limit", RECURSION_LIMIT, RECURSION_MAX)
    }

    pub(super) fn max_concurrency(&self) -> Result<u32, Stop> {
        self.limit("max_concurrency", CONCURRENCY_MAX, CONCURRENCY_MAX)
    }

    fn limit(&self, name: &str, default: u32, max: u32) -> Result<u32, Stop> {
        let Some(wanted) = self.input.config.get(name).filter(|wanted| !wanted.is_null()) else {
            return Ok(default);
        };
        let limit = wanted.as_u64().and_then(|limit| u32::try_from(limit).ok());
        limit.filter(|limit| (1..=max).contains(limit)).ok_or_else(|| {
            let message = format!("{name} must be a whole number from 1 to {max}");
            Stop::Failed(RunError::whole(ErrorCode::NodeFailed, message))
        })
    }

    /// The name of a node in the journal.
    pub(super) fn path(&self, node: &str) -> String {
        format!("{}{node}", self.prefix)
    }

    pub(super) fn inputs(&self) -> &Value {
        &self.input.inputs
    }
}

pub(super) fn lost(error: &JournalError) -> Stop {
    Stop::Failed(RunError::whole(ErrorCode::Internal, error.to_string()))
}
