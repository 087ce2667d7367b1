//! The node contract: declarations of a node type, and the calls by the executor.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use minijinja::Value as View;
use serde_json::{Value, json};

use super::Call;
use super::ports::Question;
use crate::NodeError;
use crate::check::Check;
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, OnUnknown, Retry, common};

/// A node in a compiled graph.
#[async_trait]
pub(crate) trait Node: Send + Sync {
    /// Builds the node's input: its fields with their templates filled. Pure; its digest goes into the journal.
    ///
    /// # Errors
    /// A template that cannot be filled.
    fn input(&self, scope: &View) -> Result<Value, NodeError>;

    /// Does the work and returns the node's result.
    ///
    /// # Errors
    /// The cause of the failure.
    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure>;

    /// Whether the node writes to the turn's message.
    fn streams(&self) -> bool {
        false
    }

    /// Whether its nested nodes use its name when a mock replaces an execution.
    fn names_its_entries(&self) -> bool {
        false
    }

    /// Whether the node shows images in the chat.
    fn shows_images(&self) -> bool {
        false
    }

    /// Whether a finished visit can run again to repeat its output: it has no other effect, or its steps are
    /// recorded.
    fn repeats(&self) -> bool {
        false
    }

    /// Repeats the output of a finished visit: runs it again if it [repeats](Self::repeats), else sends its result's
    /// text.
    ///
    /// # Errors
    /// The cause of the failure; the visit stays finished.
    async fn say_again(
        &self,
        result: &Value,
        call: &Call<'_>,
        input: &Result<Value, NodeError>,
    ) -> Result<(), Failure> {
        if self.repeats() {
            return self.run(input.clone()?, call).await.map(drop);
        }
        if let Some(text) = result.get("text").and_then(Value::as_str) {
            call.say(text).await;
        }
        Ok(())
    }

    /// Whether its start must be durable before it begins.
    fn records_start(&self) -> bool {
        false
    }

    /// Returns data that a resumed attempt needs, recorded with the start.
    ///
    /// # Errors
    /// The reason why it cannot begin.
    async fn begin(&self, _input: &Value, _call: &Call<'_>) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    /// Returns a question for a person, recorded with the start.
    ///
    /// # Errors
    /// The question is invalid.
    fn question(&self, _input: &Value, _started_at: DateTime<Utc>) -> Result<Option<Question>, NodeError> {
        Ok(None)
    }

    /// Returns the part of its result for a model that called the node as a tool.
    fn for_model(&self, result: Value) -> Value {
        result
    }

    /// Whether repeating it is harmless, if its type alone does not say so.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Whether it only reads external state, if its type alone does not say so.
    fn only_reads(&self) -> bool {
        false
    }

    /// Default retry policy.
    fn retry(&self) -> Retry {
        Retry::NONE
    }

    /// Whether it enforces its time limit itself: from the start of its work, not from the start of its wait.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Default time limit per attempt.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// The reason why a node has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The node failed.
    Failed(NodeError),
    /// The enclosing node or graph has failed while this one only waited.
    Halted,
    /// The journal did not accept a row; the run cannot continue here.
    Lost(String),
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Failed(error)
    }
}

/// A node's effect on the outside world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// None: the same input gives the same result.
    Pure,
    /// Only waits.
    Wait,
    /// Writes to the run's readers.
    Speaks,
    /// Reads external state that may change; repeating it is harmless.
    Reads,
    /// Calls a model; repeating it costs twice but is harmless.
    Model,
    /// Changes external state, or may; repeating it may duplicate the change.
    Outbound,
    /// The effects of its nested nodes.
    Nested,
}

impl Effect {
    /// Default handling of an attempt whose outcome is unknown after a crash.
    pub(crate) fn on_unknown(self) -> OnUnknown {
        match self {
            Self::Pure | Self::Wait | Self::Speaks | Self::Reads | Self::Model | Self::Nested => {
                OnUnknown::Retry
            }
            Self::Outbound => OnUnknown::Fail,
        }
    }
}

/// A node type.
pub struct NodeType {
    /// Its name in a graph.
    pub name: &'static str,
    /// `logic`, `models`, `chat`, …
    pub group: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Its effect on the outside world.
    pub effect: Effect,
    /// Fields in which `[[name]]` is a secret; everywhere else it is text.
    pub secrets: &'static [&'static str],
    /// JSON Schema of the type-specific fields.
    pub schema: fn() -> Value,
    /// The value of `results.<node>`.
    pub result: &'static str,
    /// The members that `results.<node>` may have; empty: it may have any.
    pub members: &'static [&'static str],
    /// An example node.
    pub example: fn() -> Value,
    /// Builds a node from its fields.
    pub(crate) build: Build,
}

type Build = fn(&mut Fields<'_>, &NodeSpec, &mut Check) -> Option<Box<dyn Node>>;

impl NodeType {
    /// Returns the JSON Schema of a node of this type, including the common members.
    #[must_use]
    pub fn whole_schema(&self) -> Value {
        let mut schema = (self.schema)();
        let mut properties = serde_json::Map::new();
        let name = json!({"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$",
                          "description": "Its name in edges and in `results`; unique in the graph."});
        properties.insert("name".to_owned(), name);
        properties.insert("type".to_owned(), json!({"const": self.name}));
        if let Some(own) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.append(own);
        }
        if let Value::Object(mut shared) = common::schema() {
            properties.append(&mut shared);
        }
        let mut required = vec![json!("name"), json!("type")];
        if let Some(own) = schema.get("required").and_then(Value::as_array) {
            required.extend(own.iter().cloned());
        }
        if let Some(members) = schema.as_object_mut() {
            members.insert("properties".to_owned(), Value::Object(properties));
            members.insert("required".to_owned(), Value::Array(required));
            members.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        schema
    }
}
