//! `slack_message`: posts to Slack, by an incoming webhook or as a bot.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{optional_field, optional_text_field, text_field};
use crate::nodes::network::messaging::{self, answered, check_way, post};
use crate::outbound;

/// Base URL for bots.
const API: &str = "https://slack.com/api";

pub(crate) const TYPE: NodeType = NodeType {
    name: "slack_message",
    group: "network",
    summary: "Posts a message to Slack with an incoming webhook, or as a bot with a token.",
    effect: Effect::Outbound,
    secrets: &["webhook_url", "token"],
    schema,
    result: "`{ok, channel, ts}`; with a webhook only `{ok}`.",
    members: &["ok", "channel", "ts"],
    example: || {
        json!({"name": "tell", "type": "slack_message", "webhook_url": "[[slack webhook]]",
               "text": "A new order: {{ inputs.order }}"})
    },
    build,
};

struct SlackMessage {
    webhook_url: Option<Value>,
    token: Option<Value>,
    channel: Option<Value>,
    text: Value,
    blocks: Option<Value>,
    thread_ts: Option<Value>,
    base_url: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["text"], "properties": {
        "webhook_url": {"type": "string", "description": "URL of an incoming webhook, such as `[[slack webhook]]`."},
        "token": {"type": "string", "description": "Token of a bot, such as `[[slack bot]]`; requires `channel`."},
        "channel": {"type": "string", "description": "Name or id of the channel, only for a bot; a template."},
        "text": {"type": "string", "description": "The message; a template."},
        "blocks": {"type": ["array", "string"], "description": "Slack's blocks, or a template of them."},
        "thread_ts": {"type": "string", "description": "The message to reply to; a template."},
        "base_url": {"type": "string", "default": API, "description": "Base URL of the API for bots."}},
        "oneOf": [{"required": ["webhook_url"]}, {"required": ["token", "channel"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let webhook_url = outbound::optional_url(fields, "webhook_url", check);
    let token = outbound::optional_text(fields, "token", check);
    let channel = optional_text_field(fields, "channel", check);
    let text = text_field(fields, "text", check);
    let blocks = optional_field(fields, "blocks", check);
    let thread_ts = optional_text_field(fields, "thread_ts", check);
    let base_url = messaging::base_url(fields, API, webhook_url.is_none(), check);
    check_way(fields, "slack webhook", "slack bot", "#general", check);
    Some(Box::new(SlackMessage { webhook_url, token, channel, text: text?, blocks, thread_ts, base_url }))
}

#[async_trait]
impl Node for SlackMessage {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let secret = [("webhook_url", self.webhook_url.as_ref()), ("token", self.token.as_ref())];
        let plain = [
            ("channel", self.channel.as_ref()),
            ("text", Some(&self.text)),
            ("blocks", self.blocks.as_ref()),
            ("thread_ts", self.thread_ts.as_ref()),
            ("base_url", Some(&self.base_url)),
        ];
        messaging::input(secret, plain, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let fields = outbound::reveal(input, call).await?;
        let names = ["channel", "text", "blocks", "thread_ts"].map(|name| (name, name));
        let webhook = fields.text("webhook_url");
        let url = match webhook {
            Some(url) => outbound::address(url)?,
            None => outbound::under(fields.text("base_url").unwrap_or(API), "chat.postMessage")?,
        };
        let bearer = fields.text("token").map(|token| format!("Bearer {token}"));
        let answer = post(&url, outbound::USER_AGENT, bearer, messaging::body(&fields, &names), call).await?;
        if !answer.status().is_success() {
            return Err(outbound::refusal(answer, call).await.into());
        }
        // A webhook responds with plain text.
        if webhook.is_some() {
            return Ok(json!({"ok": true}));
        }
        Ok(posted(&answered(answer, "Slack").await?)?)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(messaging::TIMEOUT)
    }
}

/// Slack reports errors with status 200.
fn posted(said: &Value) -> Result<Value, NodeError> {
    if said.get("ok").and_then(Value::as_bool) == Some(true) {
        let member = |name: &str| said.get(name).cloned().unwrap_or_default();
        return Ok(json!({"ok": true, "channel": member("channel"), "ts": member("ts")}));
    }
    let why = said.get("error").and_then(Value::as_str).unwrap_or("no reason");
    let error = NodeError::failed(format!("Slack rejected the message: {why}"));
    let retryable = ["ratelimited", "service_unavailable", "internal_error", "fatal_error"].contains(&why);
    Err(NodeError { retryable, ..error })
}
