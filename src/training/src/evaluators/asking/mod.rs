//! Evaluators that ask a model, another workflow, a function or another service. Their model graphs are ordinary
//! workflow graphs, so every call has its seed, its budget and its place in the journal.

mod checklist;
mod cosine;
mod function;
mod judge_graph;
mod pairwise;
mod post;
mod rubric;
mod workflow;

use std::sync::OnceLock;

use engine::Plan;
use serde_json::{Map, Value, json};
use wire::is_credential_name;

pub(super) use checklist::Checklist;
pub(super) use cosine::Cosine;
pub(super) use function::FunctionJudge;
pub use function::{FunctionName, check_functions};
pub(super) use pairwise::Pairwise;
pub(super) use post::PostJudge;
pub use post::PostTarget;
pub(super) use rubric::Rubric;
pub(super) use workflow::WorkflowJudge;
pub use workflow::check_workflows;

use super::bench::BenchError;
use super::config::Config;
use super::subject::Subject;

/// The only node in an evaluator's graph.
const NODE: &str = "evaluator";

/// An evaluator's model as node fields; empty if its config names none.
fn model_fields(config: &mut Config<'_, '_>) -> Map<String, Value> {
    let mut fields = Map::new();
    for name in ["model", "base_url"] {
        let text = config.optional_text(name);
        fields.extend(text.map(|text| (name.to_owned(), json!(text))));
    }
    let credential = config.optional_text("credential");
    fields.extend(credential.map(|name| ("api_key".to_owned(), json!(format!("[[{name}]]")))));
    let temperature = config.number("temperature", 0.0..=2.0);
    fields.extend(temperature.map(|temperature| ("temperature".to_owned(), json!(temperature))));
    // As node fields, these would be templates or name other secrets.
    for (name, value) in &fields {
        if value.as_str().is_some_and(|text| ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))) {
            config.note(field_name(name), "template", "must not be a template");
        }
    }
    if credential.is_some_and(|name| !is_credential_name(name)) {
        config.note(
            "credential",
            "format",
            "must be the name of a credential in the vault, without [[ and ]]",
        );
    }
    if !fields.is_empty() && !fields.contains_key("model") {
        config.note("model", "required", "is required with these fields");
    }
    fields
}

/// Maps a node field to the config field.
fn field_name(name: &str) -> &'static str {
    match name {
        "base_url" => "base_url",
        "api_key" => "credential",
        _ => "model",
    }
}

/// A single-node graph that asks a model. It is compiled once, because all cases of a run share the model.
struct AskingGraph {
    /// The node without its model.
    node: Map<String, Value>,
    /// The config's model.
    model: Map<String, Value>,
    plan: OnceLock<Result<Plan, String>>,
}

impl AskingGraph {
    fn new(node: Map<String, Value>, model: Map<String, Value>) -> Self {
        Self { node, model, plan: OnceLock::new() }
    }

    /// `default`: the run's model.
    fn plan(&self, default: &Map<String, Value>) -> Result<&Plan, BenchError> {
        let compile = || {
            let mut node = self.node.clone();
            node.insert("name".to_owned(), json!(NODE));
            node.extend(if self.model.is_empty() { default.clone() } else { self.model.clone() });
            let edges = json!([{"from": "START", "to": NODE}, {"from": NODE, "to": "END"}]);
            let output = format!("{{{{ results.{NODE} }}}}");
            let graph = json!({"format": "graph/1", "nodes": [node], "edges": edges, "output": output});
            engine::check(&graph).map_err(|problems| {
                let messages = problems.iter().map(|problem| problem.message.as_str());
                format!("the model that judges cannot be used: {}", messages.collect::<Vec<_>>().join("; "))
            })
        };
        self.plan.get_or_init(compile).as_ref().map_err(|error| BenchError::Failed(error.clone()))
    }

    fn problem(&self, default: &Map<String, Value>) -> Option<String> {
        match self.plan(default) {
            Err(BenchError::Failed(error)) => Some(error),
            _ => None,
        }
    }
}

/// The case's question: the message, else the inputs.
fn asked(subject: &Subject<'_>) -> Value {
    let inputs = &subject.case.inputs;
    inputs.get("message").filter(|message| message.is_string()).cloned().unwrap_or_else(|| json!(inputs))
}
