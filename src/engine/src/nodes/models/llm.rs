//! `llm`: asks a language model.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::{list, optional_text_field};
use crate::nodes::models::asking::{self, Asks, ModelResult};
use crate::nodes::models::files::list_unseen;
use crate::nodes::models::{demos, target};
use crate::schema::{self, Schema};
use crate::template::{as_text, fill};
use models::{FileRef, Message, Role};

pub(crate) const TYPE: NodeType = NodeType {
    name: "llm",
    group: "models",
    summary: "Calls a language model; with `stream` its answer is streamed as the assistant's message.",
    effect: Effect::Model,
    secrets: target::SECRETS,
    schema,
    result: "`{text, json, usage: {calls, input_tokens, output_tokens, cost_usd}, model, finish_reason, unseen}`; `json` only \
             with a `response_schema`; `cost_usd` is null if the model's price is unknown; `unseen` \
             only if the model could not see all attachments: a list of `{attachment, name, reason}`, with `type`, \
             `model`, `budget` or `damaged` as the reason.",
    members: &["text", "json", "usage", "model", "finish_reason", "unseen"],
    example: || {
        json!({"name": "answer", "type": "llm", "model": "openai/gpt-4.1-mini", "system": "Answer in one sentence.",
               "messages": "{{ messages }}", "stream": true})
    },
    build,
};

struct Llm {
    asks: Asks,
    talk: Talk,
    response_schema: Option<(Value, Schema)>,
    stream: bool,
}

/// The fields that make up a conversation.
pub(crate) struct Talk {
    system: Option<Value>,
    user: Option<Value>,
    messages: Option<Value>,
    /// Whether message attachments are sent.
    attachments: bool,
}

/// JSON Schema of a conversation's fields and the node's own.
pub(crate) fn talk_schema(own: Value) -> Value {
    let mut properties = json!({
        "system": {"type": "string", "description":
            "The instructions; a template. [Demos](#demos) of the prompts that it reads follow it."},
        "messages": {"type": ["string", "array"],
                     "description": "A list of `{role, content}`, or a template of it: `{{ messages }}` is the thread."},
        "user": {"type": "string", "description": "The user message, appended to `messages`; a template."},
        "attachments": {"enum": ["auto", "none"], "default": "auto",
                        "description": "Whether the files of `messages` are sent: images, and the text of documents."},
        "response_schema": {"type": "object", "description": "JSON Schema of the answer."},
        "stream": {"type": "boolean", "default": false, "description": "Write the answer to the assistant's message."}});
    if let (Some(all), Value::Object(mut own)) = (properties.as_object_mut(), own) {
        all.append(&mut own);
    }
    let mut schema = asking::schema(&["model"], properties);
    if let Some(members) = schema.as_object_mut() {
        members.insert("anyOf".to_owned(), json!([{"required": ["user"]}, {"required": ["messages"]}]));
    }
    schema
}

fn schema() -> Value {
    talk_schema(json!({}))
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let asks = Asks::read(fields, check);
    let talk = Talk::read(fields, check);
    let response_schema = schema_field(fields, "response_schema", check);
    let stream = fields.boolean("stream", &mut check.problems).unwrap_or(false);
    if fields.value("tools").is_some() {
        let problem = FieldError::new(fields.at("tools"), "unknown_field", "an llm node cannot call tools");
        check
            .note(problem.suggest("\"type\": \"agent\", which calls tools and continues with their results"));
    }
    Some(Box::new(Llm { asks: asks?, talk, response_schema, stream }))
}

/// Reads an optional JSON Schema. Returns it as written and compiled.
pub(crate) fn schema_field(
    fields: &mut Fields<'_>,
    name: &'static str,
    check: &mut Check,
) -> Option<(Value, Schema)> {
    let schema = fields.value(name)?;
    let compiled = schema::compile(schema, &fields.at(name), check)?;
    Some((schema.clone(), compiled))
}

impl Talk {
    pub(crate) fn read(fields: &mut Fields<'_>, check: &mut Check) -> Self {
        let system = optional_text_field(fields, "system", check);
        let user = optional_text_field(fields, "user", check);
        let messages = fields.value("messages").cloned();
        let messages = messages.filter(|messages| check.templates(messages, &fields.at("messages")));
        if fields.value("user").is_none() && fields.value("messages").is_none() {
            let problem = FieldError::new(fields.at("user"), "required", "needs 'user' or 'messages'");
            check.note(problem.suggest(r#""user": "{{ inputs.message }}" or "messages": "{{ messages }}""#));
        }
        let attachments = fields.word("attachments", &["auto", "none"], &mut check.problems) != Some("none");
        Self { system, user, messages, attachments }
    }

    pub(crate) fn filled(&self, scope: &View) -> Result<Vec<Message>, NodeError> {
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            let (text, mut pairs) = demos::with_pairs(system, scope)?;
            messages.push(Message::text(Role::System, text));
            messages.append(&mut pairs);
        }
        if let Some(history) = &self.messages {
            for message in list(fill(history, scope)?)? {
                let mut message = read_message(&message)?;
                if !self.attachments {
                    message.files.clear();
                }
                messages.push(message);
            }
        }
        if let Some(user) = &self.user {
            messages.push(Message::text(Role::User, as_text(&fill(user, scope)?)));
        }
        Ok(messages)
    }
}

#[async_trait]
impl Node for Llm {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        self.asks.input(self.talk.filled(scope)?, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let (chosen, mut request) = self.asks.request(input, call.idempotency_key())?;
        request.response_schema = self.response_schema.as_ref().map(|(written, _)| written.clone());
        let schema = self.response_schema.as_ref().map(|(_, schema)| schema);
        let ModelResult { answer, json, spent, unseen } =
            self.asks.asking(&chosen, schema).ask(request, call, self.stream).await?;
        let mut result = json!({"text": answer.text, "usage": spent.written(),
                                "finish_reason": answer.finish_reason, "model": answer.model});
        list_unseen(&unseen, &mut result);
        if let (true, Some(members)) = (schema.is_some(), result.as_object_mut()) {
            members.insert("json".to_owned(), json);
        }
        Ok(result)
    }

    fn streams(&self) -> bool {
        self.stream
    }

    fn retry(&self) -> Retry {
        Retry::times(asking::ATTEMPTS)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(asking::TIMEOUT)
    }
}

fn read_message(message: &Value) -> Result<Message, NodeError> {
    let bad =
        |what: String| NodeError::failed(format!("messages must be a list of {{role, content}}: {what}"));
    let role = message
        .get("role")
        .and_then(Value::as_str)
        .ok_or_else(|| bad(format!("one is {}", kind(message))))?;
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let known = roles.into_iter().find(|known| known.as_str() == role);
    let role = known.ok_or_else(|| bad(format!("'{role}' is not a role")))?;
    let text = as_text(message.get("content").unwrap_or(&Value::Null));
    let files = if role == Role::User { read_files(message).map_err(bad)? } else { Vec::new() };
    let tool_calls = match message.get("tool_calls") {
        Some(calls) if role == Role::Assistant && !calls.is_null() => {
            serde_json::from_value(calls.clone())
                .map_err(|error| bad(format!("the calls of tools cannot be read: {error}")))?
        }
        _ => Vec::new(),
    };
    let call = message.get("tool_call_id").and_then(Value::as_str).filter(|_| role == Role::Tool);
    Ok(Message { files, tool_calls, tool_call_id: call.map(str::to_owned), ..Message::text(role, text) })
}

/// Returns a message's attachments; its texts are in `content`.
fn read_files(message: &Value) -> Result<Vec<FileRef>, String> {
    let parts = message.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let files = parts.iter().filter(|part| part.get("type").is_none_or(|kind| kind != "text"));
    let read =
        |part: &Value| serde_json::from_value(part.clone()).map_err(|error| format!("a part: {error}"));
    files.map(read).collect()
}
