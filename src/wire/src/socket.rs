//! Messages of the workflow websocket. Events of runs go over it as they go over SSE, see [`crate::RunFrame`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{FieldError, Timestamp};

/// What a client says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketRequest {
    /// Is answered with `pong`.
    Ping {
        /// Comes back with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Begins a run, whose events follow.
    RunWorkflow {
        /// A graph, which is stored as a draft; the live version unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_config: Option<Value>,
        /// What the graph's `inputs` schema asks for; `{}` unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Value>,
        /// Laid over the version's runnable config; prompts one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Map<String, Value>>,
        /// Comes back with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Starts a training, whose events follow.
    TrainWorkflow {
        /// A graph, which is stored as a draft; the live version unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_config: Option<Value>,
        /// Inputs under those of each case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Value>,
        /// Laid over the version's runnable config; prompts one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runnable_config: Option<Map<String, Value>>,
        /// What is done.
        training: Map<String, Value>,
        /// A UUIDv7 of the client's for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// Comes back with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Starts an evaluation, whose events follow.
    EvaluateWorkflow {
        /// A graph, which is stored as a draft; the live version unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_config: Option<Value>,
        /// Inputs under those of each case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Value>,
        /// Laid over the version's runnable config; prompts one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runnable_config: Option<Map<String, Value>>,
        /// What is done.
        evaluation: Map<String, Value>,
        /// A UUIDv7 of the client's for the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// Comes back with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Pauses a training or an evaluation at the next border between cases.
    Pause {
        /// The run.
        run_id: String,
        /// Comes back with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Resumes a paused training or evaluation.
    Resume {
        /// The run.
        run_id: String,
        /// Comes back with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Asks for a run's events.
    Subscribe {
        /// The run.
        run_id: String,
        /// The last event that was seen; none unless given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_seq: Option<u64>,
        /// Comes back with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Stops a run.
    Cancel {
        /// The run.
        run_id: String,
        /// Comes back with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
}

/// What the service says that is no event of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketFrame {
    /// `type` and `payload`.
    #[serde(flatten)]
    pub message: SocketMessage,
    /// The run that it is about.
    pub run_id: Option<String>,
    /// Always 0: it does not count among a run's events.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// As the client gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum SocketMessage {
    /// To `ping`.
    Pong {},
    /// To what cannot be done. The socket stays open.
    Error(SocketProblem),
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketProblem {
    /// One plain sentence.
    pub message: String,
    /// The stable dotted code.
    pub code: String,
    /// Every problem of a message that did not validate.
    pub errors: Vec<FieldError>,
}
