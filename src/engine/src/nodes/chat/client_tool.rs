//! `client_tool`: a tool that the chat's page runs. The call ends the turn, and the tool's output continues it.

use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;
use wire::chat::{ItemBody, ToolCallStatus};

use super::item_question::{self, ItemQuestion};
use crate::check::Check;
use crate::execute::ports::Answer;
use crate::execute::{Effect, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{optional_field, text_field};
use crate::nodes::questions::{AnswerKey, Expiry};
use crate::template::{as_text, fill, has_holes};
use crate::{NodeError, limits};

/// Maximum characters in a name.
const LONGEST_NAME: usize = 64;
const LENGTH: &str = "must have 1 to 64 characters";

pub(crate) const TYPE: NodeType = NodeType {
    name: "client_tool",
    group: "chat",
    summary: "Has the page of the chat run a tool; the turn ends with the call, and the tool's output continues it.",
    effect: Effect::Wait,
    secrets: &[],
    schema,
    result: "`{output}`, any JSON. It comes from a browser unchecked. Without an output in time it fails with \
             `node.input_expired`. `timeout_seconds` and `retry` do not apply.",
    members: &["output"],
    example: || json!({"name": "where", "type": "client_tool", "tool": "get_location", "arguments": {"precise": false}}),
    build,
};

struct ClientTool {
    tool: Value,
    arguments: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["tool"], "properties": {
        "tool": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME, "description": "Name of the tool; a template. The page runs it."},
        "arguments": {"description": "An object with templates inside, or a template of one, at most 64 KiB.", "default": {}},
        "key": AnswerKey::schema(),
        "expires_seconds": Expiry::schema()}})
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    item_question::build(fields, spec, check, read)
}

fn read(fields: &mut Fields<'_>, check: &mut Check) -> Option<ClientTool> {
    let tool = text_field(fields, "tool", check);
    if let Some(Value::String(text)) = &tool
        && !has_holes(text)
        && !is_name(text)
    {
        let problem = FieldError::new(fields.at("tool"), "length", LENGTH);
        check.note(problem.suggest("\"tool\": \"get_location\""));
    }
    let arguments = optional_field(fields, "arguments", check);
    match &arguments {
        None | Some(Value::Object(_)) => {}
        Some(Value::String(text)) if has_holes(text) => {}
        Some(_) => {
            let problem =
                FieldError::new(fields.at("arguments"), "type", "must be an object, or a template of one");
            check.note(problem.suggest("\"arguments\": {…}"));
        }
    }
    Some(ClientTool { tool: tool?, arguments })
}

fn is_name(tool: &str) -> bool {
    (1..=LONGEST_NAME).contains(&tool.chars().count())
}

impl ItemQuestion for ClientTool {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let tool = as_text(&fill(&self.tool, scope)?);
        if !is_name(&tool) {
            return Err(NodeError::failed(format!("/tool: {LENGTH}")));
        }
        let arguments = self.arguments.as_ref().map(|arguments| fill(arguments, scope)).transpose()?;
        let arguments = arguments.unwrap_or_else(|| json!({}));
        if !arguments.is_object() {
            return Err(NodeError::failed("/arguments: must be an object"));
        }
        limits::check_data("arguments", &arguments)?;
        Ok(json!({"tool": tool, "arguments": arguments}))
    }

    /// Its call id is the item's id, which is created at the end of the turn.
    fn item(input: &Value) -> Result<ItemBody, NodeError> {
        let arguments = input.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        Ok(ItemBody::ClientToolCall {
            status: ToolCallStatus::Pending,
            call_id: String::new(),
            name: name(input).to_owned(),
            arguments,
            output: None,
        })
    }

    fn message(input: &Value) -> Result<Option<String>, NodeError> {
        Ok(Some(format!("The tool `{}` of the page", name(input))))
    }

    fn answer_schema(_input: &Value) -> Result<Option<Value>, NodeError> {
        Ok(None)
    }

    fn result(answer: Answer) -> Value {
        json!({"output": answer.value})
    }

    fn for_model(result: Value) -> Value {
        result.get("output").cloned().unwrap_or_default()
    }
}

fn name(input: &Value) -> &str {
    input.get("tool").and_then(Value::as_str).unwrap_or_default()
}
