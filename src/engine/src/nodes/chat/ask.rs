//! `ask`: questions with a form in the chat. The turn ends with them, and the answers continue it.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;
use wire::chat::{InputStatus, ItemBody, StructuredInput};

use super::content;
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::Question;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::limits;
use crate::nodes::questions::{AnswerKey, Expiry, expired};
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
    key: AnswerKey,
    expiry: Expiry,
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
    let (key, expiry) = (AnswerKey::read(fields, spec, check), Expiry::read(fields, check));
    let inputs = fields.required("inputs", &mut check.problems)?;
    let inputs = content::read(inputs, &fields.at("inputs"), problems, HELP, check)?;
    Some(Box::new(Ask { inputs, key, expiry }))
}

#[async_trait]
impl Node for Ask {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let inputs = fill(&self.inputs, scope)?;
        content::refuse(problems(&inputs, "/inputs"))?;
        limits::check_data("inputs", &inputs)?;
        Ok(json!({"key": self.key.filled(scope)?, "inputs": inputs}))
    }

    async fn begin(&self, input: &Value, call: &Call<'_>) -> Result<Option<Value>, Failure> {
        call.count_item(&body(input)?)?;
        Ok(None)
    }

    fn question(&self, input: &Value, started_at: DateTime<Utc>) -> Result<Option<Question>, NodeError> {
        let questions = questions(input)?;
        Ok(Some(Question {
            key: input.get("key").and_then(Value::as_str).unwrap_or_default().to_owned(),
            message: questions.first().map(|first| first.question.clone()),
            schema: Some(answer_schema(&questions)),
            audience: Vec::new(),
            expires_at: self.expiry.of(started_at),
            item: Some(body(input)?),
            continues_without: false,
        }))
    }

    async fn run(&self, _input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let Some(answer) = call.answer_to_item(self.expiry.of(call.started_at)).await? else {
            return Err(expired().into());
        };
        let at: wire::Timestamp = kernel::timestamp(answer.at);
        let mut result = answer.value.as_object().cloned().unwrap_or_default();
        result.insert("answered_by".to_owned(), json!(answer.by));
        result.insert("answered_at".to_owned(), json!(at));
        Ok(Value::Object(result))
    }

    fn records_start(&self) -> bool {
        true
    }

    fn keeps_time(&self) -> bool {
        true
    }

    /// Later text is another message.
    fn streams(&self) -> bool {
        true
    }

    async fn say_again(
        &self,
        _result: &Value,
        call: &Call<'_>,
        _input: &Result<Value, NodeError>,
    ) -> Result<(), Failure> {
        call.new_message().await;
        Ok(())
    }
}

fn questions(input: &Value) -> Result<Vec<StructuredInput>, NodeError> {
    let inputs = input.get("inputs").cloned().unwrap_or_default();
    serde_json::from_value(inputs)
        .map_err(|error| NodeError::failed(format!("/inputs: the questions cannot be read: {error}")))
}

fn body(input: &Value) -> Result<ItemBody, NodeError> {
    Ok(ItemBody::StructuredInput { status: InputStatus::Pending, inputs: questions(input)? })
}

/// JSON Schema of the body that answers the questions.
fn answer_schema(questions: &[StructuredInput]) -> Value {
    let answer = json!({"type": "object", "properties": {
        "values": {"type": "array", "items": {"type": "string"}}, "skipped": {"type": "boolean"}}});
    let answers: Map<String, Value> =
        questions.iter().map(|question| (question.id.clone(), answer.clone())).collect();
    json!({"type": "object", "properties": {
        "status": {"enum": ["answered", "skipped"]}, "answers": {"type": "object", "properties": answers}}})
}
