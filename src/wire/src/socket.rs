//! Messages on the workflow websocket. Run events have the same form as over SSE, see [`crate::RunFrame`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{FieldError, Timestamp};

/// A client message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketRequest {
    /// Answered with `pong`.
    Ping {
        /// Returned with the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Starts a run, whose events follow.
    RunWorkflow {
        /// A graph, stored as a draft (default: the live version).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_config: Option<Value>,
        /// Inputs according to the graph's `inputs` schema; `{}` by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Value>,
        /// Overlay for the version's runnable config; prompts are merged one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        config: Option<Map<String, Value>>,
        /// Returned with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Starts a training, whose events follow.
    TrainWorkflow {
        /// A graph, stored as a draft (default: the live version).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_config: Option<Value>,
        /// Default inputs, overridden by each case's inputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Value>,
        /// Overlay for the version's runnable config; prompts are merged one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runnable_config: Option<Map<String, Value>>,
        /// The training's settings.
        training: Map<String, Value>,
        /// The run's id, a UUIDv7 that the client chooses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// Returned with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Starts an evaluation, whose events follow.
    EvaluateWorkflow {
        /// A graph, stored as a draft (default: the live version).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        graph_config: Option<Value>,
        /// Default inputs, overridden by each case's inputs.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inputs: Option<Value>,
        /// Overlay for the version's runnable config; prompts are merged one by one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runnable_config: Option<Map<String, Value>>,
        /// The evaluation's settings.
        evaluation: Map<String, Value>,
        /// The run's id, a UUIDv7 that the client chooses.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
        /// Returned with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Pauses a training or an evaluation before its next case.
    Pause {
        /// The run.
        run_id: String,
        /// Returned with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Resumes a paused training or evaluation.
    Resume {
        /// The run.
        run_id: String,
        /// Returned with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Subscribes to a run's events.
    Subscribe {
        /// The run.
        run_id: String,
        /// The last event that the client has received; none by default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        after_seq: Option<u64>,
        /// Returned with every event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
    /// Cancels a run.
    Cancel {
        /// The run.
        run_id: String,
        /// Returned with an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
    },
}

/// A service message that is not a run event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketFrame {
    /// `type` and `payload`.
    #[serde(flatten)]
    pub message: SocketMessage,
    /// The run that it concerns.
    pub run_id: Option<String>,
    /// Always 0: it does not count among a run's events.
    pub seq: u64,
    /// Message time.
    pub at: Timestamp,
    /// The client's value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A service message by type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum SocketMessage {
    /// The answer to `ping`.
    Pong {},
    /// The answer to a failed request. The socket stays open.
    Error(SocketProblem),
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SocketProblem {
    /// One plain sentence.
    pub message: String,
    /// The stable dotted code.
    pub code: String,
    /// Every problem in an invalid message.
    pub errors: Vec<FieldError>,
}
