//! `telegram_message`: posts to a Telegram chat, as a bot.
//!
//! Source: <https://core.telegram.org/bots/api#sendmessage>.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{id_field, optional_id_field, text_field};
use crate::nodes::network::messaging::{self, answered, post};
use crate::outbound;
use crate::redact::Redactor;
use net::retry_after;

/// Base URL for bots.
const API: &str = "https://api.telegram.org";
const MARKUPS: [&str; 2] = ["HTML", "MarkdownV2"];
/// Longest wait that Telegram may request.
const LONGEST: Duration = Duration::from_secs(300);

pub(crate) const TYPE: NodeType = NodeType {
    name: "telegram_message",
    group: "network",
    summary: "Posts a message to a Telegram chat, as a bot.",
    effect: Effect::Outbound,
    secrets: &["token"],
    schema,
    result: "`{ok, message_id, chat}`; `chat` is the id of the chat.",
    members: &["ok", "message_id", "chat"],
    example: || {
        json!({"name": "tell", "type": "telegram_message", "token": "[[telegram bot]]", "chat": "{{ inputs.chat }}",
               "text": "Done: {{ inputs.order }}"})
    },
    build,
};

struct TelegramMessage {
    token: Value,
    chat: Value,
    text: Value,
    parse_mode: Option<&'static str>,
    silent: bool,
    reply_to: Option<Value>,
    base_url: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["token", "chat", "text"], "properties": {
        "token": {"type": "string", "description": "Token of the bot, such as `[[telegram bot]]`."},
        "chat": {"type": ["string", "integer"], "description": "Id of the chat, or `@name` of a channel; a template."},
        "text": {"type": "string", "description": "The message, at most 4,096 characters; a template."},
        "parse_mode": {"enum": MARKUPS, "description": "Markup of the text (default: plain)."},
        "silent": {"type": "boolean", "default": false, "description": "Whether to send it without a sound."},
        "reply_to": {"type": ["string", "integer"], "description": "Id of the message to reply to; a template."},
        "base_url": {"type": "string", "default": API, "description": "Base URL of the API for bots."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let token = outbound::secret(fields, "token", "telegram bot", check);
    let chat = id_field(fields, "chat", check);
    let text = text_field(fields, "text", check);
    let parse_mode = fields.word("parse_mode", &MARKUPS, &mut check.problems);
    let silent = fields.boolean("silent", &mut check.problems).unwrap_or(false);
    let reply_to = optional_id_field(fields, "reply_to", check);
    let base_url = messaging::base_url(fields, API, true, check);
    Some(Box::new(TelegramMessage {
        token: token?,
        chat: chat?,
        text: text?,
        parse_mode,
        silent,
        reply_to,
        base_url,
    }))
}

#[async_trait]
impl Node for TelegramMessage {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let plain = [
            ("chat", Some(&self.chat)),
            ("text", Some(&self.text)),
            ("reply_to", self.reply_to.as_ref()),
            ("base_url", Some(&self.base_url)),
        ];
        messaging::input([("token", Some(&self.token))], plain, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let fields = outbound::reveal(input, call).await?;
        let mut body = messaging::body(&fields, &[("chat", "chat_id"), ("text", "text")]);
        body.extend(self.parse_mode.map(|mode| ("parse_mode".to_owned(), json!(mode))));
        if self.silent {
            body.insert("disable_notification".to_owned(), json!(true));
        }
        if let Some(id) = fields.get("reply_to").map(number) {
            body.insert("reply_parameters".to_owned(), json!({"message_id": id}));
        }
        let token = fields.text("token").unwrap_or_default();
        if !token.chars().all(|letter| letter.is_ascii_alphanumeric() || ":-_".contains(letter)) {
            return Err(NodeError::failed("'token' is not a Telegram bot token").into());
        }
        let url =
            outbound::under(fields.text("base_url").unwrap_or(API), &format!("bot{token}/sendMessage"))?;
        let answer = post(&url, outbound::USER_AGENT, None, body, call).await?;
        let retryable = outbound::is_retryable(answer.status().as_u16());
        let wait = retry_after(answer.headers(), call.clock().now());
        let posted = answered(answer, "Telegram").await.and_then(|said| posted(&said, call.redactor()));
        Ok(posted.map_err(|error| NodeError {
            retryable,
            retry_after: error.retry_after.or(wait).filter(|_| retryable),
            ..error
        })?)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(messaging::TIMEOUT)
    }
}

/// Converts an id from a template to the number that Telegram expects.
fn number(id: &Value) -> Value {
    id.as_str().and_then(|text| text.trim().parse::<i64>().ok()).map_or_else(|| id.clone(), Value::from)
}

/// The body contains Telegram's reason for an error, and its requested wait.
fn posted(said: &Value, redactor: &Redactor) -> Result<Value, NodeError> {
    if said.get("ok").and_then(Value::as_bool) == Some(true) {
        let member = |pointer: &str| said.pointer(pointer).cloned().unwrap_or_default();
        return Ok(
            json!({"ok": true, "message_id": member("/result/message_id"), "chat": member("/result/chat/id")}),
        );
    }
    let why = said.get("description").and_then(Value::as_str).unwrap_or("no reason");
    let why = outbound::in_short(&redactor.text(why.to_owned()));
    let wait = said.pointer("/parameters/retry_after").and_then(Value::as_u64).map(Duration::from_secs);
    let error = NodeError::failed(format!("Telegram rejected the message: {why}"));
    Err(NodeError { retry_after: wait.map(|wait| wait.min(LONGEST)), ..error })
}
