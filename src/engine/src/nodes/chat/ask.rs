//! `ask`: form questions in the chat. They end the turn, and the answers continue it.

use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;
use wire::chat::{InputStatus, ItemBody, StructuredInput};

use super::content;
use super::item_question::{self, ItemQuestion};
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::Answer;
use crate::execute::{Effect, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::limits;
use crate::nodes::questions::{AnswerKey, Expiry};
use crate::schema::Schema;
use crate::template::fill;

const HELP: &str = "`callboard node show ask` shows an example";

pub(crate) const TYPE: NodeType = NodeType {
    name: "ask",
    group: "chat",
    summary: "Asks questions in the chat; the turn ends with them, and the answers continue it, however late they come.",
    effect: Effect::Wait,
    secrets: &[],
    schema,
    result: "`{status, answers: {<id>: {values, skipped}}, answered_by, answered_at}`; `status` is `answered` or `skipped`. Without an \
             answer in time it fails with `node.input_expired`. `timeout_seconds` and `retry` do not apply.",
    members: &["status", "answers", "answered_by", "answered_at"],
    example: || {
        json!({"name": "confirm", "type": "ask", "inputs": [
            {"id": "ok", "type": "multiple_choice", "question": "Send order {{ inputs.message }} back?",
             "options": [{"value": "yes"}, {"value": "no"}]}]})
    },
    build,
};

struct Ask {
    inputs: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["inputs"], "properties": {
        "inputs": {"description": "1 to 20 questions, each `{id, question, type: multiple_choice, options: [{value}], multiple?}` with 1 to 50 options, or `{id, question, type: freeform, description?}`; ids are unique. Templates inside, or a template of the list; at most 64 KiB."},
        "key": AnswerKey::schema(),
        "expires_seconds": Expiry::schema()}})
}

fn inputs_schema() -> Value {
    let text = json!({"type": "string", "minLength": 1});
    let of = |kind: &str, required: Value, own: Value| {
        let mut members = json!({"id": text, "question": text, "type": {"const": kind}});
        if let (Some(members), Value::Object(own)) = (members.as_object_mut(), own) {
            members.extend(own);
        }
        json!({"if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
               "then": {"properties": members, "required": required, "additionalProperties": false}})
    };
    let option = json!({"type": "object", "required": ["value"], "additionalProperties": false, "properties": {"value": text}});
    let options = json!({"type": "array", "minItems": 1, "maxItems": 50, "items": option});
    json!({"type": "array", "minItems": 1, "maxItems": 20, "items": {
        "type": "object", "required": ["id", "question", "type"],
        "properties": {"type": {"enum": ["multiple_choice", "freeform"]}},
        "allOf": [
            of("multiple_choice", json!(["options"]), json!({"options": options, "multiple": {"type": "boolean"}})),
            of("freeform", json!([]), json!({"description": {"type": "string"}}))]}})
}

fn problems(inputs: &Value, base: &str) -> Vec<FieldError> {
    let mut problems = Schema::problems_of(&inputs_schema(), inputs, base);
    let ids: Vec<Option<&Value>> =
        inputs.as_array().into_iter().flatten().map(|input| input.get("id")).collect();
    for (index, id) in ids.iter().enumerate() {
        if id.is_some() && ids.iter().take(index).any(|known| known == id) {
            problems.push(FieldError::new(
                format!("{base}/{index}/id"),
                "duplicate",
                "is used by another question",
            ));
        }
    }
    problems
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    item_question::build(fields, spec, check, |fields, check| {
        let inputs = fields.required("inputs", &mut check.problems)?;
        Some(Ask { inputs: content::read(inputs, &fields.at("inputs"), problems, HELP, check)? })
    })
}

impl ItemQuestion for Ask {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let inputs = fill(&self.inputs, scope)?;
        content::refuse(problems(&inputs, "/inputs"))?;
        limits::check_data("inputs", &inputs)?;
        Ok(json!({"inputs": inputs}))
    }

    fn item(input: &Value) -> Result<ItemBody, NodeError> {
        Ok(ItemBody::StructuredInput { status: InputStatus::Pending, inputs: questions(input)? })
    }

    fn message(input: &Value) -> Result<Option<String>, NodeError> {
        Ok(questions(input)?.into_iter().next().map(|first| first.question))
    }

    fn answer_schema(input: &Value) -> Result<Option<Value>, NodeError> {
        let answer = json!({"type": "object", "properties": {
            "values": {"type": "array", "items": {"type": "string"}}, "skipped": {"type": "boolean"}}});
        let answers: Map<String, Value> =
            questions(input)?.into_iter().map(|question| (question.id, answer.clone())).collect();
        Ok(Some(json!({"type": "object", "properties": {
            "status": {"enum": ["answered", "skipped"]}, "answers": {"type": "object", "properties": answers}}})))
    }

    fn result(answer: Answer) -> Value {
        let at: wire::Timestamp = kernel::timestamp(answer.at);
        let mut result = answer.value.as_object().cloned().unwrap_or_default();
        result.insert("answered_by".to_owned(), json!(answer.by));
        result.insert("answered_at".to_owned(), json!(at));
        Value::Object(result)
    }
}

fn questions(input: &Value) -> Result<Vec<StructuredInput>, NodeError> {
    let inputs = input.get("inputs").cloned().unwrap_or_default();
    serde_json::from_value(inputs)
        .map_err(|error| NodeError::failed(format!("/inputs: the questions cannot be read: {error}")))
}
