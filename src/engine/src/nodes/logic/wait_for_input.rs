//! `wait_for_input`: waits for a person's answer, however long it takes.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::{FieldError, Timestamp};

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::Question;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::nodes::questions::{AnswerKey, Expiry, expired};
use crate::schema;
use crate::template::{as_text, fill};

/// Maximum audience entries.
const AUDIENCE: usize = 50;
const ROLES: [&str; 4] = ["viewer", "editor", "admin", "owner"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "wait_for_input",
    group: "logic",
    summary: "Waits for a person's answer, across restarts of the service.",
    effect: Effect::Wait,
    secrets: &[],
    schema,
    result: "`{value, answered_by, answered_at}`; without an answer in time it fails with `node.input_expired`.",
    members: &["value", "answered_by", "answered_at"],
    example: || {
        json!({"name": "approval", "type": "wait_for_input", "message": "Refund {{ inputs.amount }}?",
               "schema": {"type": "object", "required": ["approved"], "properties": {"approved": {"type": "boolean"}}},
               "audience": ["role:admin"], "expires_seconds": 86_400})
    },
    build,
};

struct WaitForInput {
    key: AnswerKey,
    message: Option<Value>,
    schema: Option<Value>,
    audience: Vec<String>,
    expiry: Expiry,
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "key": AnswerKey::schema(),
        "message": {"type": "string", "description": "The question for the person who answers; a template."},
        "schema": {"type": "object", "description": "JSON Schema of the answer (default: any value)."},
        "audience": {"type": "array", "items": {"type": "string"},
                     "description": "Who may answer: `role:<role>` for members with at least that role, or email addresses of members (default: everyone who may execute the workflow)."},
        "expires_seconds": Expiry::schema()}})
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let key = AnswerKey::read(fields, spec, check);
    let message = optional_text_field(fields, "message", check);
    let schema = fields.value("schema").and_then(|schema| {
        schema::compile(schema, &fields.at("schema"), check)?;
        Some(schema.clone())
    });
    let audience = read_audience(fields, check);
    let expiry = Expiry::read(fields, check);
    Some(Box::new(WaitForInput { key, message, schema, audience, expiry }))
}

fn read_audience(fields: &mut Fields<'_>, check: &mut Check) -> Vec<String> {
    const SUGGESTION: &str = r#"["role:admin"] or ["ada@example.com"]"#;
    let pointer = fields.at("audience");
    let Some(value) = fields.value("audience") else { return Vec::new() };
    let entries = value.as_array().filter(|entries| (1..=AUDIENCE).contains(&entries.len()));
    let Some(entries) = entries else {
        let problem = FieldError::new(pointer, "type", format!("must be a list of 1 to {AUDIENCE} strings"));
        check.note(problem.suggest(SUGGESTION));
        return Vec::new();
    };
    let mut audience = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let text = entry.as_str().map(str::trim).unwrap_or_default();
        let good = match text.strip_prefix("role:") {
            Some(role) => ROLES.contains(&role),
            None => {
                text.split_once('@').is_some_and(|(local, domain)| !local.is_empty() && !domain.is_empty())
            }
        };
        if good {
            audience.push(text.to_owned());
            continue;
        }
        let message = format!("is neither an email address nor one of role:{}", ROLES.join(", role:"));
        check.note(FieldError::new(format!("{pointer}/{index}"), "choice", message).suggest(SUGGESTION));
    }
    audience
}

#[async_trait]
impl Node for WaitForInput {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let message = self.message.as_ref().map(|message| fill(message, scope)).transpose()?;
        Ok(json!({"key": self.key.filled(scope)?, "message": message.as_ref().map(as_text)}))
    }

    fn question(&self, input: &Value, started_at: DateTime<Utc>) -> Result<Option<Question>, NodeError> {
        let text = |name| input.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Some(Question {
            key: text("key").unwrap_or_default(),
            message: text("message"),
            schema: self.schema.clone(),
            audience: self.audience.clone(),
            expires_at: self.expiry.deadline(started_at),
            item: None,
            continues_without: false,
        }))
    }

    async fn run(&self, _input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        match call.answer(self.expiry.deadline(call.started_at)).await? {
            Some(answer) => {
                let at: Timestamp = kernel::timestamp(answer.at);
                Ok(json!({"value": answer.value, "answered_by": answer.by, "answered_at": at}))
            }
            None => Err(expired().into()),
        }
    }

    fn records_start(&self) -> bool {
        true
    }
}
