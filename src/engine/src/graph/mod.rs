//! A graph as it was written, after its shape was read.

pub(crate) mod common;
mod edge;
pub(crate) mod fields;
pub(crate) mod modules;
pub(crate) mod parse;

use serde_json::{Map, Value};

pub use common::OnError;
pub(crate) use common::{Common, OnUnknown, Retry};

use crate::channel::Channel;

/// The fixed entry.
pub const START: &str = "START";
/// The fixed exit.
pub const END: &str = "END";

/// A graph of format `graph/1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// JSON Schema of the inputs.
    pub inputs: Option<Value>,
    /// What `state` holds, in the order of their names.
    pub channels: Vec<Channel>,
    /// Code of its own, by name.
    pub modules: sandbox::Modules,
    /// In the order of the file, which is the order in which parallel results count.
    pub nodes: Vec<NodeSpec>,
    /// In the order of the file.
    pub edges: Vec<EdgeSpec>,
    /// The template of the output.
    pub output: Option<Value>,
}

impl Graph {
    /// Names of the inputs that the schema describes.
    pub(crate) fn input_names(&self) -> impl Iterator<Item = &str> {
        let properties = self.inputs.as_ref().and_then(|schema| schema.get("properties")?.as_object());
        properties.into_iter().flat_map(|properties| properties.keys().map(String::as_str))
    }

    /// Whether no inputs that fit the schema have this member.
    pub(crate) fn forbids_input(&self, name: &str) -> bool {
        const OTHERS: [&str; 5] = ["patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
        let Some(schema) = self.inputs.as_ref().and_then(Value::as_object) else { return false };
        schema.get("additionalProperties") == Some(&Value::Bool(false))
            && !OTHERS.iter().any(|other| schema.contains_key(*other))
            && !self.input_names().any(|known| known == name)
    }
}

/// A node as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSpec {
    /// Unique in the graph; empty only while problems are gathered.
    pub name: String,
    /// Its type in the catalogue; empty only while problems are gathered.
    pub kind: String,
    /// For people.
    pub description: Option<String>,
    /// What every type has.
    pub(crate) common: Common,
    /// The members that belong to the type.
    pub fields: Map<String, Value>,
    /// JSON pointer to it.
    pub pointer: String,
}

impl NodeSpec {
    /// What becomes of the run when it has failed for good.
    #[must_use]
    pub fn on_error(&self) -> &OnError {
        &self.common.on_error
    }
}

/// An edge as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeSpec {
    /// One source, or several that are all waited for; empty only while problems are gathered.
    pub from: Vec<String>,
    /// Where it leads.
    pub target: Target,
    /// JSON pointer to it.
    pub pointer: String,
}

/// Where an edge leads.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Always there.
    To(String),
    /// To the first case whose condition holds, else to `otherwise`, else nowhere.
    Cases {
        /// In the order of the file.
        cases: Vec<Case>,
        /// Where it leads when none holds.
        otherwise: Option<String>,
    },
}

/// One case of an edge.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The condition.
    pub when: String,
    /// Where it leads.
    pub to: String,
    /// JSON pointer to it.
    pub pointer: String,
}

impl Target {
    /// Every node it may lead to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (one, cases, otherwise) = match self {
            Self::To(to) => (Some(to), [].as_slice(), None),
            Self::Cases { cases, otherwise } => (None, cases.as_slice(), otherwise.as_ref()),
        };
        let cases = cases.iter().map(|case| &case.to);
        one.into_iter().chain(cases).chain(otherwise).map(String::as_str)
    }
}
