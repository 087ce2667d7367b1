//! `llm`: asks a language model.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::{ErrorCode, FieldError};

use super::{Call, Effect, Failure, Node, NodeType, optional_text_field, text_field};
use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::models::{Message, ModelAnswer, ModelRequest, NoPieces, Pieces, Role};
use crate::schema::Schema;
use crate::template::{as_text, fill};

/// Limit of one attempt unless the graph says otherwise.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Most tokens that may be asked for.
const MAX_TOKENS: u32 = 1_000_000;
/// Fields of the format that this version does not execute.
const LATER: [&str; 3] = ["tools", "credential", "base_url"];

pub(super) const TYPE: NodeType = NodeType {
    name: "llm",
    group: "models",
    summary: "Asks a language model; with `stream` its answer is the assistant's message while it comes.",
    effect: Effect::Model,
    schema,
    result: "`{text, json, usage: {input_tokens, output_tokens}, model, finish_reason}`; `json` only with a \
             `response_schema`.",
    example: || {
        json!({"name": "answer", "type": "llm", "model": "openai/gpt-4.1-mini", "system": "Answer in one sentence.",
               "messages": "{{ messages }}", "stream": true})
    },
    build,
};

struct Llm {
    model: Value,
    system: Option<Value>,
    user: Option<Value>,
    messages: Option<Value>,
    response_schema: Option<(Value, Schema)>,
    stream: bool,
    temperature: Option<f64>,
    max_tokens: Option<u32>,
    seed: Option<u32>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["model"], "properties": {
        "model": {"type": "string", "description": "`<provider>/<model>`; a template."},
        "system": {"type": "string", "description": "The instructions; a template."},
        "messages": {"type": ["string", "array"],
                     "description": "A list of `{role, content}`, or a template of it: `{{ messages }}` is the thread."},
        "user": {"type": "string", "description": "What to ask, behind `messages`; a template."},
        "response_schema": {"type": "object", "description": "JSON Schema that the answer has to fit."},
        "stream": {"type": "boolean", "default": false, "description": "Write the answer to the assistant's message."},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "max_tokens": {"type": "integer", "minimum": 1, "maximum": MAX_TOKENS},
        "seed": {"type": "integer", "minimum": 0}},
        "anyOf": [{"required": ["user"]}, {"required": ["messages"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let model = text_field(fields, "model", check);
    if let Some(Value::String(name)) = &model
        && !crate::template::has_holes(name)
        && !name.split_once('/').is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty())
    {
        let problem = FieldError::new(fields.at("model"), "model", format!("'{name}' is no model"));
        check.note(problem.suggest("<provider>/<model>, for example openai/gpt-4.1-mini or practice/reply"));
    }
    let system = optional_text_field(fields, "system", check);
    let user = optional_text_field(fields, "user", check);
    let messages = fields.value("messages").cloned();
    let messages = messages.filter(|messages| check.templates(messages, &fields.at("messages")));
    if fields.value("user").is_none() && fields.value("messages").is_none() {
        let problem = FieldError::new(fields.at("user"), "required", "needs 'user' or 'messages'");
        check.note(problem.suggest(r#""user": "{{ inputs.message }}" or "messages": "{{ messages }}""#));
    }
    let response_schema = fields.value("response_schema").and_then(|schema| {
        let compiled = Schema::compile(schema, &fields.at("response_schema"), check)?;
        Some((schema.clone(), compiled))
    });
    let problems = &mut check.problems;
    let stream = fields.boolean("stream", problems).unwrap_or(false);
    let temperature = fields.number("temperature", 0.0..=2.0, problems);
    let max_tokens = fields.whole("max_tokens", 1..=MAX_TOKENS, problems);
    let seed = fields.whole("seed", 0..=u32::MAX, problems);
    fields.refuse_later(&LATER, problems);
    let node =
        Llm { model: model?, system, user, messages, response_schema, stream, temperature, max_tokens, seed };
    Some(Box::new(node))
}

#[async_trait]
impl Node for Llm {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut messages = Vec::new();
        let mut say =
            |role: &str, content: &Value| messages.push(json!({"role": role, "content": as_text(content)}));
        if let Some(system) = &self.system {
            say("system", &fill(system, scope)?);
        }
        if let Some(history) = &self.messages {
            for message in super::filter::list(fill(history, scope)?)? {
                let (role, content) = read_message(&message)?;
                say(role, content);
            }
        }
        if let Some(user) = &self.user {
            say("user", &fill(user, scope)?);
        }
        let mut input = Map::new();
        input.insert("model".to_owned(), Value::String(as_text(&fill(&self.model, scope)?)));
        input.insert("messages".to_owned(), Value::Array(messages));
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let name = input.get("model").and_then(Value::as_str).unwrap_or_default();
        let (provider, model) = call.models().find(name).map_err(NodeError::from)?;
        let messages = input.get("messages").cloned().unwrap_or_default();
        let messages: Vec<Message> = serde_json::from_value(messages)
            .map_err(|error| NodeError::failed(format!("the messages cannot be sent: {error}")))?;
        let request = ModelRequest {
            model: model.to_owned(),
            messages,
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            seed: self.seed.map(u64::from),
            response_schema: self.response_schema.as_ref().map(|(schema, _)| schema.clone()),
            tools: Vec::new(),
            idempotency_key: Some(call.idempotency_key()),
        };
        let pieces: &dyn Pieces = if self.stream { call } else { &NoPieces };
        let answer = provider.call(&request, pieces).await.map_err(NodeError::from)?;
        self.result(answer).map_err(Failure::from)
    }

    fn streams(&self) -> bool {
        self.stream
    }

    fn retry(&self) -> Retry {
        Retry::times(3)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

impl Llm {
    fn result(&self, answer: ModelAnswer) -> Result<Value, NodeError> {
        let ModelAnswer { text, usage, finish_reason, model, .. } = answer;
        let mut result =
            json!({"text": text, "usage": usage, "finish_reason": finish_reason, "model": model});
        if let Some((_, schema)) = &self.response_schema {
            let json = read_json(&text)?;
            if let Some(problem) = schema.problems(&json, "").first() {
                let message =
                    format!("the answer does not fit the schema: {} {}", problem.pointer, problem.message);
                return Err(NodeError::retryable(ErrorCode::ModelBadAnswer, message));
            }
            if let Some(members) = result.as_object_mut() {
                members.insert("json".to_owned(), json);
            }
        }
        Ok(result)
    }
}

fn read_message(message: &Value) -> Result<(&'static str, &Value), NodeError> {
    let bad =
        |what: String| NodeError::failed(format!("messages must be a list of {{role, content}}: {what}"));
    let role = message
        .get("role")
        .and_then(Value::as_str)
        .ok_or_else(|| bad(format!("one is {}", kind(message))))?;
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool].map(Role::as_str);
    let known = roles.into_iter().find(|known| *known == role);
    let role = known.ok_or_else(|| bad(format!("'{role}' is no role")))?;
    Ok((role, message.get("content").unwrap_or(&Value::Null)))
}

/// The JSON of an answer, also out of the fence that models like to put around it.
fn read_json(text: &str) -> Result<Value, NodeError> {
    let trimmed = text.trim();
    let fenced = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = fenced.map_or(trimmed, |inner| inner.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
    serde_json::from_str(inner).map_err(|error| {
        NodeError::retryable(ErrorCode::ModelBadAnswer, format!("the answer is no JSON: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_in_its_fence() {
        for text in ["{\"a\": 1}", " ```json\n{\"a\": 1}\n``` ", "```\n{\"a\": 1}```"] {
            assert_eq!(read_json(text).unwrap(), json!({"a": 1}), "{text}");
        }
        assert!(read_json("Here you are: {}").unwrap_err().retryable);
    }
}
