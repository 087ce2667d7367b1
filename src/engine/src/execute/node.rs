//! The contract of a node: what its type declares, and what the executor calls.

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

/// A node of a compiled graph.
#[async_trait]
pub(crate) trait Node: Send + Sync {
    /// What the node works on: its fields with their templates filled. Pure; its digest goes into the journal.
    ///
    /// # Errors
    /// A template that cannot be filled.
    fn input(&self, scope: &View) -> Result<Value, NodeError>;

    /// Does the work and yields the node's result.
    ///
    /// # Errors
    /// Whatever made it fail.
    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure>;

    /// Whether the node writes to the turn's message.
    fn streams(&self) -> bool {
        false
    }

    /// Whether its name stands for the nodes inside it where a result replaces an execution.
    fn names_its_entries(&self) -> bool {
        false
    }

    /// Whether the node shows images in the chat.
    fn shows_images(&self) -> bool {
        false
    }

    /// Whether running a finished visit again only sends what it has sent: it has no other effect, or its steps are recorded.
    fn repeats(&self) -> bool {
        false
    }

    /// Sends what a finished visit has sent: by running it again if it [repeats](Self::repeats), else the text of its result.
    ///
    /// # Errors
    /// Whatever made it fail; the visit stays finished.
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

    /// Whether the moment it began must be durable before it begins.
    fn records_start(&self) -> bool {
        false
    }

    /// What a resumed attempt will have to know; noted with the start.
    ///
    /// # Errors
    /// Whatever keeps it from beginning.
    async fn begin(&self, _input: &Value, _call: &Call<'_>) -> Result<Option<Value>, Failure> {
        Ok(None)
    }

    /// What a person is asked for; recorded with the start.
    ///
    /// # Errors
    /// A question that cannot be asked.
    fn question(&self, _input: &Value, _started_at: DateTime<Utc>) -> Result<Option<Question>, NodeError> {
        Ok(None)
    }

    /// The part of its result that a model gets if it called the node as a tool.
    fn for_model(&self, result: Value) -> Value {
        result
    }

    /// Whether doing it twice does no harm, where the type of the node alone does not say.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Whether it only reads what is outside, where the type of the node alone does not say.
    fn only_reads(&self) -> bool {
        false
    }

    /// When it is tried again unless the graph says otherwise.
    fn retry(&self) -> Retry {
        Retry::NONE
    }

    /// Whether it keeps its limit by itself: counted from when its work begins, not from when it waits to begin.
    fn keeps_time(&self) -> bool {
        false
    }

    /// Limit of one attempt unless the graph says otherwise.
    fn timeout(&self) -> Option<Duration> {
        None
    }
}

/// Why a node has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It failed.
    Failed(NodeError),
    /// What it is a part of has failed, and it only waited.
    Halted,
    /// The journal did not take a row; the run cannot go on here.
    Lost(String),
}

impl From<NodeError> for Failure {
    fn from(error: NodeError) -> Self {
        Self::Failed(error)
    }
}

/// What a node does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: the same input gives the same result.
    Pure,
    /// It only waits.
    Wait,
    /// It says something to the readers of the run.
    Speaks,
    /// It reads what others may change meanwhile: twice does no harm.
    Reads,
    /// It asks a model: twice costs twice and does no harm.
    Model,
    /// It changes something outside, or may: done twice it may be there twice.
    Outbound,
    /// What its own nodes do.
    Nested,
}

impl Effect {
    /// What is done about an attempt whose outcome a crash left open, unless the graph says otherwise.
    pub(crate) fn on_unknown(self) -> OnUnknown {
        match self {
            Self::Pure | Self::Wait | Self::Speaks | Self::Reads | Self::Model | Self::Nested => {
                OnUnknown::Retry
            }
            Self::Outbound => OnUnknown::Fail,
        }
    }
}

/// A type of node.
pub struct NodeType {
    /// Its name in a graph.
    pub name: &'static str,
    /// `logic`, `models`, `chat`, …
    pub group: &'static str,
    /// One line.
    pub summary: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// Fields in which `[[name]]` is a secret; everywhere else it is text.
    pub secrets: &'static [&'static str],
    /// JSON Schema of its own fields.
    pub schema: fn() -> Value,
    /// What `results.<node>` is.
    pub result: &'static str,
    /// The members that `results.<node>` may have; none: it may have any.
    pub members: &'static [&'static str],
    /// A node of this type.
    pub example: fn() -> Value,
    /// Reads its fields.
    pub(crate) build: Build,
}

type Build = fn(&mut Fields<'_>, &NodeSpec, &mut Check) -> Option<Box<dyn Node>>;

impl NodeType {
    /// JSON Schema of a whole node of this type, the common members included.
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
