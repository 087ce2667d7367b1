//! The plan of a graph: names become indices, types become nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use sandbox::Modules;
use serde_json::{Map, Value};
use wire::{FieldError, MOST_PROBLEMS};

use super::node::{Effect, Node};
use crate::Problems;
use crate::channel::Channel;
use crate::graph::fields::{escape, listed, nearest};
use crate::graph::{Common, END, OnError};
use crate::schema::Schema;

/// A graph that is ready to run.
pub struct Plan {
    pub(crate) inputs: Option<Schema>,
    pub(crate) written_inputs: Option<Value>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) nodes: Vec<Arc<PlanNode>>,
    pub(crate) edges: Vec<PlanEdge>,
    pub(crate) output: Option<Arc<Value>>,
    pub(crate) reads_messages: bool,
    pub(crate) reads_action: bool,
    pub(crate) prompts_named: Vec<PromptUse>,
    /// Names of the secrets that its nodes use.
    pub(crate) credentials: Vec<String>,
    /// The graph's code, by name.
    pub(crate) modules: Arc<Modules>,
    /// Functions of the surveyed modules, by module.
    pub(crate) surveyed: Mutex<BTreeMap<String, Vec<String>>>,
}

/// A template that reads a prompt from the config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptUse {
    /// The node that owns the field; `None` for edges and the output.
    pub node: Option<String>,
    /// The prompt; `None` if the template does not spell out its name and may read any.
    pub prompt: Option<String>,
    /// Whether a model's instructions read it; the prompt's demos follow them.
    pub instructs: bool,
}

/// Parses the prompt in a dotted name; the inner value is `None` if the name does not say which one.
pub(crate) fn prompt_named(name: &str) -> Option<Option<String>> {
    let mut parts = name.split('.');
    // `config` as a whole contains the prompts.
    let is_prompt = parts.next() == Some("config") && parts.next().is_none_or(|part| part == "prompts");
    is_prompt.then(|| parts.next().map(str::to_owned))
}

impl Plan {
    /// Lists the prompts that templates name, in graph order. Which ones are read is only known after filling.
    #[must_use]
    pub fn prompts_named(&self) -> &[PromptUse] {
        &self.prompts_named
    }

    /// Whether a template names `messages`, so that a thread's history must be loaded.
    #[must_use]
    pub fn reads_messages(&self) -> bool {
        self.reads_messages
    }

    /// Whether a node may end a chat turn with a question, itself or through nested nodes.
    #[must_use]
    pub fn may_ask(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.effect, Effect::Wait | Effect::Nested))
    }

    /// Whether a node may call a model, itself or through nested nodes.
    #[must_use]
    pub fn may_use_models(&self) -> bool {
        self.nodes.iter().any(|node| matches!(node.effect, Effect::Model | Effect::Nested))
    }

    /// Whether a node may show an image that the thread keeps, itself or through nested nodes.
    #[must_use]
    pub fn may_show_images(&self) -> bool {
        self.nodes.iter().any(|node| node.effect == Effect::Nested || node.node.shows_images())
    }

    /// Whether a template or a condition names `inputs.action`, or `inputs` as a whole.
    #[must_use]
    pub fn reads_action(&self) -> bool {
        self.reads_action
    }

    /// Whether an edge or an `on_error` may lead to END.
    pub(crate) fn leads_to_end(&self) -> bool {
        let is_end = |to: &Destination| *to == Destination::End;
        let edges = self.edges.iter().any(|edge| match &edge.target {
            PlanTarget::To(to) => is_end(to),
            PlanTarget::Cases { cases, otherwise } => {
                otherwise.as_ref().is_some_and(is_end) || cases.iter().any(|(_, to)| is_end(to))
            }
        });
        edges || self.nodes.iter().any(|node| matches!(&node.common.on_error, OnError::To(to) if to == END))
    }

    /// The graph's `inputs` schema as written.
    pub(crate) fn written_inputs(&self) -> Option<&Value> {
        self.written_inputs.as_ref()
    }

    /// Checks inputs against the graph's `inputs` schema; empty if they match.
    #[must_use]
    pub fn check_inputs(&self, inputs: &Value) -> Problems {
        self.inputs.as_ref().map(|schema| schema.problems(inputs, "")).unwrap_or_default()
    }

    /// Checks a caller's state change, with pointers below `base`. Reports channels that the graph does not have, at
    /// most one more than an answer lists, so that the answer says that there are more.
    #[must_use]
    pub fn check_patch(&self, patch: &Map<String, Value>, base: &str) -> Problems {
        let known: BTreeSet<&str> = self.channels.iter().map(|channel| channel.name.as_str()).collect();
        let unknown = patch.keys().filter(|name| !known.contains(name.as_str())).take(MOST_PROBLEMS + 1);
        let problem = |name: &String| {
            let message = format!("the graph has no channel 'state.{name}'");
            let problem = FieldError::new(format!("{base}/{}", escape(name)), "unknown_channel", message);
            problem.suggest(match nearest(name, known.iter().copied()) {
                Some(near) => format!("did you mean '{near}'?"),
                None => listed("channels", known.iter().copied()),
            })
        };
        unknown.map(problem).collect()
    }
}

pub(crate) struct PlanNode {
    pub(crate) name: String,
    /// Its type; `model`, `tool` or `mcp` for an agent's steps.
    pub(crate) node_type: &'static str,
    /// Its effect on the outside world.
    pub(crate) effect: Effect,
    pub(crate) common: Common,
    pub(crate) node: Box<dyn Node>,
    /// Digest that is equal for nodes that give the same result for the same input.
    pub(crate) identity: [u8; 32],
    /// Whether its templates may call `uuid()`.
    pub(crate) makes_ids: bool,
}

pub(crate) struct PlanEdge {
    /// Empty: START.
    pub(crate) from: Vec<usize>,
    pub(crate) target: PlanTarget,
}

pub(crate) enum PlanTarget {
    To(Destination),
    Cases { cases: Vec<(String, Destination)>, otherwise: Option<Destination> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    Node(usize),
    End,
}
