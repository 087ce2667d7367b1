//! Workflow runs: requests, records, events and traces.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::NoticeLevel;
use crate::{Timestamp, WaitsFor};

/// `POST /api/workflows/{ref}/runs`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// Inputs according to the graph's `inputs` schema; `{}` by default.
    #[serde(default)]
    pub inputs: Option<Value>,
    /// The version's number (default: the live version).
    #[serde(default)]
    pub version: Option<i32>,
    /// Overlay for the version's runnable config; prompts are merged one by one.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Seconds from the run's start until it fails with `run.timeout`.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// For the caller's own use.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
}

/// A run's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Accepted, not started.
    Queued,
    /// Executing.
    Running,
    /// Waiting for a time or for an answer.
    Waiting,
    /// Ended with an output.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl RunState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Waiting, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// Its name in rows and on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Parses a state name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether no other state can follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// Reason for a run's failure or cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunProblem {
    /// Stable dotted code.
    pub code: String,
    /// For people.
    pub message: String,
    /// The node that failed, if any: its whole path, as `outer/inner` in a sub-workflow and `outer[3]` for an item.
    #[serde(default)]
    pub node: Option<String>,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Its version number; null for a draft.
    pub version: Option<i32>,
    /// The id of its version or draft.
    pub version_id: String,
    /// Its state.
    pub status: RunState,
    /// Its inputs.
    pub inputs: Value,
    /// Its output, after it has succeeded.
    pub output: Value,
    /// Reason for a failure or cancellation.
    pub error: Option<RunProblem>,
    /// `run.incomplete` with the node, if it succeeded although a join was not met or no branch reached END.
    #[serde(default)]
    pub warning: Option<RunProblem>,
    /// Its origin: `api`, `chat`, `websocket` or `rerun`.
    pub trigger: String,
    /// The run that it repeats from a step, or whose turn it continues with an answer.
    pub origin_run_id: Option<String>,
    /// The answers that it waits for.
    #[serde(default)]
    pub waits_for: Vec<WaitsFor>,
    /// The run that continued this run's turn, which had ended with a question.
    #[serde(default)]
    pub continued_by: Option<String>,
    /// Time at which a waiting run resumes automatically: after a delay, a retry pause, a question's expiry or the
    /// run's own timeout. Null if it does not wait, or waits only for an answer.
    #[serde(default)]
    pub resumes_at: Option<Timestamp>,
    /// For the caller's own use.
    pub metadata: Map<String, Value>,
    /// Acceptance time.
    pub created_at: Timestamp,
    /// Start time.
    pub started_at: Option<Timestamp>,
    /// End time.
    pub finished_at: Option<Timestamp>,
}

/// A run in a workspace's list: without its inputs, output and metadata.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunSummary {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// The workflow's handle.
    pub workflow_handle: String,
    /// The workflow's name.
    pub workflow_name: String,
    /// Its version number; null for a draft.
    pub version: Option<i32>,
    /// The id of its version or draft.
    pub version_id: String,
    /// Its state.
    pub status: RunState,
    /// Its origin: `api`, `app`, `chat`, `cron`, `webhook`, `websocket` or `rerun`.
    pub trigger: String,
    /// Reason for a failure or cancellation.
    pub error: Option<RunProblem>,
    /// As in the run's record.
    #[serde(default)]
    pub warning: Option<RunProblem>,
    /// Whether an open question waits for an answer.
    pub waits: bool,
    /// The run that it repeats from a step, or whose turn it continues with an answer.
    pub origin_run_id: Option<String>,
    /// A chat turn's thread; null for callers who may not read threads.
    pub thread_id: Option<String>,
    /// Acceptance time.
    pub created_at: Timestamp,
    /// Start time.
    pub started_at: Option<Timestamp>,
    /// End time.
    pub finished_at: Option<Timestamp>,
}

/// `POST /api/runs/{id}/inputs/{key}`: the answer itself, any JSON.
pub type RunInput = Value;

/// `POST /api/runs/{id}/rerun`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// The super-step to start from, from 1; the results of earlier steps are copied (default: the failed step).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u32>,
    /// Values for channels of `state` from that step on.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub patch: Map<String, Value>,
    /// Inputs that replace the run's inputs; no result is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// The version that replaces the run's version; no result is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<RerunVersion>,
}

/// The version for a repeated run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RerunVersion {
    /// A version by its number.
    Number(i32),
    /// The live version.
    Live(Live),
}

/// The keyword for the live version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Live {
    /// The currently live version.
    Live,
}

/// `GET /api/runs/{id}/trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// The run.
    pub run: RunRecord,
    /// Model usage so far, all attempts included; null on later pages.
    pub usage: Option<RunUsage>,
    /// A page of its journal, in the order of the steps' starts. Read an unfinished run again from the start: attempts
    /// that end later may have started before the last one on a page.
    pub steps: Vec<TraceStep>,
    /// The cursor of the next page; null: nothing follows.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// Attempts that a service crash or restart interrupted, the earliest first; each step shows its outcome. Only on
    /// the first page, at most 1,000. Chat turns, and runs with more than 2,000 events, list only nodes that store
    /// their start.
    #[serde(default)]
    pub interrupted: Vec<InterruptedAttempt>,
    /// Deliveries that its steps have enqueued, in order; each is listed until seven days after its end.
    #[serde(default)]
    pub deliveries: Vec<DeliveryRecord>,
}

/// A node attempt that a service crash or restart interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptedAttempt {
    /// The node, as in [`TraceStep::node`].
    pub node: String,
    /// The node's visit number, from 1.
    pub visit: i32,
    /// The attempt number within the visit, from 1.
    pub attempt: i32,
    /// Start time.
    pub started_at: Timestamp,
    /// Time at which the run resumed.
    pub noticed_at: Timestamp,
}

/// An event from `webhook_send` or a mail from `email_send`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeliveryRecord {
    /// Its `delivery_id` in the step's result.
    pub id: String,
    /// Its state.
    pub status: DeliveryState,
    /// Attempts so far.
    pub attempts: i32,
    /// Its step's completion time.
    pub created_at: Timestamp,
    /// Next attempt time, or time at which the current attempt counts as lost; null after the end.
    pub next_attempt_at: Option<Timestamp>,
    /// Time at which the receiver accepted it or the service gave up.
    pub finished_at: Option<Timestamp>,
    /// The last failed attempt's error.
    pub error: Option<String>,
}

/// A delivery's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It waits for an attempt.
    Queued,
    /// The receiver has accepted it.
    Sent,
    /// It has failed; the service gave up.
    Failed,
}

/// A run's model usage, failed attempts included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunUsage {
    /// Answered calls.
    pub calls: u64,
    /// Tokens sent; null if an endpoint did not count them.
    pub input_tokens: Option<u64>,
    /// Tokens received; null if an endpoint did not count them.
    pub output_tokens: Option<u64>,
    /// Cost by list prices; null if tokens or a model's price are unknown.
    pub cost_usd: Option<f64>,
}

/// A node attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceStep {
    /// The super-step, from 1.
    pub step: i32,
    /// The node; `outer/inner` inside a sub-workflow, `outer[3]` for a `for_each` item and for a model call by an
    /// agent, `outer[3].tool[0]` for a tool that this call requested.
    pub node: String,
    /// The node's visit number, from 1.
    pub visit: i32,
    /// The attempt number within the visit, from 1.
    pub attempt: i32,
    /// `started`, `succeeded` or `failed`.
    pub status: String,
    /// Start time.
    pub started_at: Timestamp,
    /// End time.
    pub finished_at: Option<Timestamp>,
    /// The node input's SHA-256, lowercase hexadecimal.
    pub input_digest: String,
    /// The node's input: its fields, refilled from the journal, without secrets. Null if no longer known, or if the run
    /// is too large: more than 10,000 attempts or 16 MiB of results.
    #[serde(default)]
    pub input: Value,
    /// The config's prompts that its fields have read, sorted. Null if `input` is.
    #[serde(default)]
    pub prompts_read: Option<Vec<String>>,
    /// Its result.
    pub result: Value,
    /// Reason for a failure.
    pub error: Option<RunProblem>,
}

/// A run event, as SSE and the websocket send it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFrame {
    /// The event: `type` and `payload`.
    #[serde(flatten)]
    pub event: RunEvent,
    /// The run.
    pub run_id: String,
    /// Counter from 1 without gaps.
    pub seq: u64,
    /// Event time.
    pub at: Timestamp,
}

/// An event in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum RunEvent {
    /// It has started or resumed: after a wait, or after a restart of the service.
    RunStarted {
        /// Its workflow.
        workflow_id: String,
        /// Its version number; null for a draft.
        version: Option<i32>,
        /// Whether it had started before.
        resumed: bool,
    },
    /// A node attempt has started. If it repeats, or the next attempt starts, its earlier output is void.
    StepStarted {
        /// The node.
        node: String,
        /// The node's visit number, from 1.
        visit: u32,
        /// The attempt number within the visit, from 1.
        attempt: u32,
    },
    /// An attempt has a result.
    StepCompleted {
        /// The node.
        node: String,
        /// The node's visit number, from 1.
        visit: u32,
        /// The attempt number within the visit, from 1.
        attempt: u32,
        /// The result; null if too large for an event, see `result_bytes` and the trace.
        result: Value,
        /// Result bytes, if the result is too large for an event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_bytes: Option<usize>,
    },
    /// An attempt failed.
    StepFailed {
        /// The node.
        node: String,
        /// The node's visit number, from 1.
        visit: u32,
        /// The attempt number within the visit, from 1.
        attempt: u32,
        /// The reason.
        error: RunProblem,
    },
    /// It waits for an answer: `POST /api/runs/{id}/inputs/{key}`.
    RunWaiting(WaitsFor),
    /// A piece of a node's text.
    OutputDelta {
        /// The node.
        node: String,
        /// The text to append to the output of the node's current attempt.
        text: String,
    },
    /// Run progress.
    Progress {
        /// One line.
        text: String,
    },
    /// A message for readers.
    Notice {
        /// The urgency.
        level: NoticeLevel,
        /// Markdown.
        message: String,
        /// A heading.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// It has succeeded; nothing follows.
    RunCompleted {
        /// Its output.
        output: Value,
        /// As in the run's record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<RunProblem>,
    },
    /// It has failed; nothing follows.
    RunFailed {
        /// The reason.
        error: RunProblem,
    },
    /// It was cancelled; nothing follows.
    RunCancelled {
        /// The reason.
        error: RunProblem,
    },
}
