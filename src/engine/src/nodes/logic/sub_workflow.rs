//! `sub_workflow`: runs another workflow inside this run, on the same journal.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::Resolved;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::template::fill;

pub(crate) const TYPE: NodeType = NodeType {
    name: "sub_workflow",
    group: "logic",
    summary: "Runs another workflow of the workspace as a part of this run.",
    effect: Effect::Nested,
    secrets: &[],
    schema,
    result: "Its output.",
    members: &[],
    example: || {
        json!({"name": "refund", "type": "sub_workflow", "workflow": "refund", "version": 4,
               "inputs": {"order": "{{ inputs.order }}"}})
    },
    build,
};

struct SubWorkflow {
    workflow: String,
    version: Option<u32>,
    inputs: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["workflow"], "properties": {
        "workflow": {"type": "string", "description": "Handle or id of the workflow."},
        "version": {"type": "integer", "minimum": 1, "description": "Version of the workflow (default: the live version)."},
        "inputs": {"description": "Inputs of the workflow; strings inside are templates.", "default": {}}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let workflow = fields.text("workflow", &mut check.problems).map(str::to_owned);
    let version = fields.whole("version", 1..=u32::MAX, &mut check.problems);
    let inputs = fields.value("inputs").cloned().unwrap_or_else(|| json!({}));
    let good = check.templates(&inputs, &fields.at("inputs"));
    Some(Box::new(SubWorkflow { workflow: workflow.filter(|_| good)?, version, inputs }))
}

#[async_trait]
impl Node for SubWorkflow {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.inputs, scope)
    }

    fn records_start(&self) -> bool {
        true
    }

    /// Records the version: a resumed run continues with the same one, whatever was saved since.
    async fn begin(&self, _input: &Value, call: &Call<'_>) -> Result<Option<Value>, Failure> {
        let found = call.workflows().find(&self.workflow, self.version).await?;
        Ok(Some(json!({"version_id": found.version})))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        call.run_workflow(&resolved(call).await?, input).await
    }

    fn streams(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }
}

async fn resolved(call: &Call<'_>) -> Result<Resolved, NodeError> {
    let noted = call.note.as_ref().and_then(|note| note.get("version_id")).and_then(Value::as_str);
    match noted {
        Some(version) => call.workflows().version(version).await,
        None => Err(NodeError::failed("the version was not recorded")),
    }
}
