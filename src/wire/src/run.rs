//! Runs of workflows: what starts one, its record, its events, its trace.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::NoticeLevel;
use crate::{Timestamp, WaitsFor};

/// `POST /api/workflows/{ref}/runs`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateRun {
    /// What the graph's `inputs` schema asks for; `{}` unless given.
    #[serde(default)]
    pub inputs: Option<Value>,
    /// The version's number; the live version unless given.
    #[serde(default)]
    pub version: Option<i32>,
    /// Laid over the version's runnable config; prompts one by one.
    #[serde(default)]
    pub config: Option<Map<String, Value>>,
    /// Seconds until the run fails with `run.timeout`, from its start.
    #[serde(default)]
    pub timeout_seconds: Option<f64>,
    /// For the caller's own use.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// Accepted, not begun.
    Queued,
    /// Under way.
    Running,
    /// Waits for a time or for an answer.
    Waiting,
    /// Ended well.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Stopped.
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

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// Why a run failed or was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunProblem {
    /// Stable dotted code.
    pub code: String,
    /// For people.
    pub message: String,
    /// The node that failed, if one did: its whole path, as `outer/inner` in a sub-workflow and `outer[3]` for an item.
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
    /// The number of the version it runs; null for a draft.
    pub version: Option<i32>,
    /// The id of the version or draft.
    pub version_id: String,
    /// How it stands.
    pub status: RunState,
    /// What it was given.
    pub inputs: Value,
    /// What it came to, once it has succeeded.
    pub output: Value,
    /// Why it did not.
    pub error: Option<RunProblem>,
    /// `run.incomplete` with the node, if it succeeded although a join was not met or no branch reached END.
    #[serde(default)]
    pub warning: Option<RunProblem>,
    /// What began it: `api`, `chat`, `websocket` or `rerun`.
    pub trigger: String,
    /// The run that it repeats from a step on, or whose turn it continues with an answer.
    pub origin_run_id: Option<String>,
    /// What it waits for from people.
    #[serde(default)]
    pub waits_for: Vec<WaitsFor>,
    /// The run that has continued the turn of this one, which had ended with a question.
    #[serde(default)]
    pub continued_by: Option<String>,
    /// When a waiting run resumes by itself: at the end of a delay, of a pause before another attempt, of a question or of its own
    /// limit. Null if it does not wait, or for an answer alone.
    #[serde(default)]
    pub resumes_at: Option<Timestamp>,
    /// For the caller's own use.
    pub metadata: Map<String, Value>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// A run in a list of a workspace: without its inputs, output and metadata.
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
    /// The number of the version it runs; null for a draft.
    pub version: Option<i32>,
    /// The id of the version or draft.
    pub version_id: String,
    /// Its state.
    pub status: RunState,
    /// What started it: `api`, `app`, `chat`, `cron`, `webhook`, `websocket` or `rerun`.
    pub trigger: String,
    /// Why it failed or was cancelled.
    pub error: Option<RunProblem>,
    /// As in the run's record.
    #[serde(default)]
    pub warning: Option<RunProblem>,
    /// Whether an open question waits for an answer.
    pub waits: bool,
    /// The run that it repeats from a step on, or whose turn it continues with an answer.
    pub origin_run_id: Option<String>,
    /// The thread of a chat turn; null for callers who may not read threads.
    pub thread_id: Option<String>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// `POST /api/runs/{id}/inputs/{key}`: the answer itself, any JSON.
pub type RunInput = Value;

/// `POST /api/runs/{id}/rerun`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Rerun {
    /// The super-step to start from, from 1; the results of earlier steps are copied. The failed step unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_step: Option<u32>,
    /// Values of channels of `state` from that step on.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub patch: Map<String, Value>,
    /// Inputs in place of those of the run; no result is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// The version in place of that of the run; no result is copied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<RerunVersion>,
}

/// The version that a repeated run executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RerunVersion {
    /// A version by its number.
    Number(i32),
    /// The live version.
    Live(Live),
}

/// The word for the live version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Live {
    /// The version that is live now.
    Live,
}

/// `GET /api/runs/{id}/trace`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace {
    /// The run.
    pub run: RunRecord,
    /// What its models have used so far, in all of its attempts; null on later pages.
    pub usage: Option<RunUsage>,
    /// A page of its journal, in the order of the steps' starts. Read a run that has not ended again from the start: attempts
    /// that end later may have started before the last one of a page.
    pub steps: Vec<TraceStep>,
    /// Where the next page starts; null: nothing follows.
    #[serde(default)]
    pub next_cursor: Option<String>,
    /// Attempts that were in progress when a crash or a restart of the service cut the run off, the earliest first; what became of
    /// each is in its step. On the first page, at most 1,000. Of chat turns, and of runs with more than 2,000 events, those of nodes
    /// that store their start.
    #[serde(default)]
    pub interrupted: Vec<InterruptedAttempt>,
    /// What its steps have left to be sent, in the order in which they left it; until seven days after each is over.
    #[serde(default)]
    pub deliveries: Vec<DeliveryRecord>,
}

/// An attempt of a node that was in progress when a crash or a restart of the service cut its run off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InterruptedAttempt {
    /// The node, as in [`TraceStep::node`].
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: i32,
    /// Which attempt of the visit, from 1.
    pub attempt: i32,
    /// When it began.
    pub started_at: Timestamp,
    /// When the run was taken up again.
    pub noticed_at: Timestamp,
}

/// An event of `webhook_send` or a mail of `email_send`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeliveryRecord {
    /// As `delivery_id` in the step's result.
    pub id: String,
    /// What has become of it.
    pub status: DeliveryState,
    /// How often it was tried.
    pub attempts: i32,
    /// When its step was done.
    pub created_at: Timestamp,
    /// When it is tried next, or the attempt under way counts as lost; null once it is over.
    pub next_attempt_at: Option<Timestamp>,
    /// When it was taken, or given up.
    pub finished_at: Option<Timestamp>,
    /// Why the last attempt was not taken.
    pub error: Option<String>,
}

/// What has become of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It waits for an attempt.
    Queued,
    /// The receiver has taken it.
    Sent,
    /// It is not tried any more.
    Failed,
}

/// What the models of a run have used, failed attempts included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunUsage {
    /// Calls that were answered.
    pub calls: u64,
    /// Tokens that were sent; null if an endpoint did not count them.
    pub input_tokens: Option<u64>,
    /// Tokens that were written; null if an endpoint did not count them.
    pub output_tokens: Option<u64>,
    /// What that costs by list prices; null if tokens or the price of a model are not known.
    pub cost_usd: Option<f64>,
}

/// An attempt of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceStep {
    /// The super-step, from 1.
    pub step: i32,
    /// The node; `outer/inner` inside a sub-workflow, `outer[3]` for an item of a `for_each` and for a call of an agent's
    /// model, `outer[3].tool[0]` for a tool that this call asked for.
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: i32,
    /// Which attempt of the visit, from 1.
    pub attempt: i32,
    /// `started`, `succeeded` or `failed`.
    pub status: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// SHA-256 of what the node was given, lower-case hexadecimal.
    pub input_digest: String,
    /// What it was given: its fields, filled again from the journal; without secrets. Null if that is not known any more, or if
    /// the run is too large: more than 10,000 attempts or 16 MiB of results.
    #[serde(default)]
    pub input: Value,
    /// The prompts of the config that its fields have read, sorted. Null where `input` is.
    #[serde(default)]
    pub prompts_read: Option<Vec<String>>,
    /// Its result.
    pub result: Value,
    /// Why it failed.
    pub error: Option<RunProblem>,
}

/// An event of a run, as SSE and the websocket send it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFrame {
    /// What happened: `type` and `payload`.
    #[serde(flatten)]
    pub event: RunEvent,
    /// The run.
    pub run_id: String,
    /// Counts from 1 without gaps.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
}

/// What happens in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum RunEvent {
    /// It begins, or resumes: after a wait, or after a restart of the service.
    RunStarted {
        /// Its workflow.
        workflow_id: String,
        /// The number of the version it runs; null for a draft.
        version: Option<i32>,
        /// Whether an earlier life had begun it.
        resumed: bool,
    },
    /// An attempt of a node begins. The same attempt again, or the next one, makes void what it had put out.
    StepStarted {
        /// The node.
        node: String,
        /// Which visit of the node, from 1.
        visit: u32,
        /// Which attempt of the visit, from 1.
        attempt: u32,
    },
    /// An attempt has a result.
    StepCompleted {
        /// The node.
        node: String,
        /// Which visit of the node, from 1.
        visit: u32,
        /// Which attempt of the visit, from 1.
        attempt: u32,
        /// The result; null where it is too large for an event, see `result_bytes` and the trace.
        result: Value,
        /// Bytes of a result that is too large for an event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result_bytes: Option<usize>,
    },
    /// An attempt failed.
    StepFailed {
        /// The node.
        node: String,
        /// Which visit of the node, from 1.
        visit: u32,
        /// Which attempt of the visit, from 1.
        attempt: u32,
        /// Why.
        error: RunProblem,
    },
    /// It waits for an answer: `POST /api/runs/{id}/inputs/{key}`.
    RunWaiting(WaitsFor),
    /// A piece of a node's text.
    OutputDelta {
        /// The node.
        node: String,
        /// The text to append to what the node's current attempt has put out.
        text: String,
    },
    /// What the run is doing.
    Progress {
        /// One line.
        text: String,
    },
    /// A message for the readers.
    Notice {
        /// How urgent.
        level: NoticeLevel,
        /// Markdown.
        message: String,
        /// A heading.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// It has ended well; nothing follows.
    RunCompleted {
        /// What it came to.
        output: Value,
        /// As in the run's record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<RunProblem>,
    },
    /// It has failed; nothing follows.
    RunFailed {
        /// Why.
        error: RunProblem,
    },
    /// It was stopped; nothing follows.
    RunCancelled {
        /// Why.
        error: RunProblem,
    },
}
