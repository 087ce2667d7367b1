//! A graph as written, with its structure already read.

pub(crate) mod common;
mod edge;
pub(crate) mod fields;
pub(crate) mod modules;
pub(crate) mod parse;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

pub use common::OnError;
pub(crate) use common::{Common, OnUnknown, Retry};

use crate::channel::Channel;

/// The fixed entry.
pub const START: &str = "START";
/// The fixed exit.
pub const END: &str = "END";

/// A `graph/1` graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// JSON Schema of the inputs.
    pub inputs: Option<Value>,
    /// The channels in `state`, by name.
    pub channels: Vec<Channel>,
    /// The graph's own code, by name.
    pub modules: sandbox::Modules,
    /// In file order, which is also the order in which parallel results count.
    pub nodes: Vec<NodeSpec>,
    /// In file order.
    pub edges: Vec<EdgeSpec>,
    /// The output template.
    pub output: Option<Value>,
}

impl Graph {
    /// Names of the channels.
    pub(crate) fn channel_names(&self) -> BTreeSet<&str> {
        self.channels.iter().map(|channel| channel.name.as_str()).collect()
    }

    /// The inputs that the schema describes.
    fn properties(&self) -> Option<&Map<String, Value>> {
        self.inputs.as_ref()?.get("properties")?.as_object()
    }

    /// Names of the inputs that the schema describes.
    pub(crate) fn input_names(&self) -> impl Iterator<Item = &str> {
        self.properties().into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// Whether the schema rejects all inputs with this member.
    pub(crate) fn forbids_input(&self, name: &str) -> bool {
        const OTHERS: [&str; 5] = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
        let Some(schema) = self.inputs.as_ref().and_then(Value::as_object) else { return false };
        schema.get("additionalProperties") == Some(&Value::Bool(false))
            && !OTHERS.iter().any(|other| schema.contains_key(*other))
            && !self.properties().is_some_and(|properties| properties.contains_key(name))
    }
}

/// A node as written.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// Unique in the graph; empty only while problems are collected.
    pub name: String,
    /// Its type in the catalogue; empty only while problems are collected.
    pub kind: String,
    /// A description for people.
    pub description: Option<String>,
    /// Members that every type has.
    pub(crate) common: Common,
    /// Members specific to the type.
    pub fields: Map<String, Value>,
    /// JSON pointer to it.
    pub pointer: String,
}

impl NodeSpec {
    /// The run's reaction when the node has finally failed.
    #[must_use]
    pub fn on_error(&self) -> &OnError {
        &self.common.on_error
    }
}

/// An edge as written.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeSpec {
    /// One source, or several that are all awaited; empty only while problems are collected.
    pub from: Vec<String>,
    /// The target.
    pub target: Target,
    /// JSON pointer to it.
    pub pointer: String,
}

/// An edge's target.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Always this node.
    To(String),
    /// The first case whose condition holds, else `otherwise`, else none.
    Cases {
        /// In file order.
        cases: Vec<Case>,
        /// The target if no case holds.
        otherwise: Option<String>,
    },
}

/// One case of an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The condition.
    pub when: String,
    /// The target.
    pub to: String,
    /// JSON pointer to it.
    pub pointer: String,
}

impl Target {
    /// Every node that it may lead to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (one, cases, otherwise) = match self {
            Self::To(to) => (Some(to), [].as_slice(), None),
            Self::Cases { cases, otherwise } => (None, cases.as_slice(), otherwise.as_ref()),
        };
        let cases = cases.iter().map(|case| &case.to);
        one.into_iter().chain(cases).chain(otherwise).map(String::as_str)
    }
}
