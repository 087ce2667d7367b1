//! `slack_message`: posts to Slack, by an incoming webhook or as a bot.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use net::{Limits, Method, Request};
use serde_json::{Map, Value, json};
use wire::FieldError;

use super::outbound::{self, Revealed};
use super::{Call, Effect, Failure, Node, NodeType};
use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;

/// Limit of one attempt unless the graph says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Where bots post.
const API: &str = "https://slack.com/api";
/// Bytes of an answer.
const MOST_BODY: u64 = 256 * 1024;

pub(super) const TYPE: NodeType = NodeType {
    name: "slack_message",
    group: "network",
    summary: "Posts a message to Slack: by an incoming webhook, or as a bot with a token.",
    effect: Effect::Outbound,
    schema,
    result: "`{ok, channel, ts}`; by a webhook `{ok}` alone.",
    example: || {
        json!({"name": "tell", "type": "slack_message", "webhook_url": "https://hooks.slack.com/services/T0/B0/x",
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
        "webhook_url": {"type": "string", "description": "Of an incoming webhook, such as `[[slack webhook]]`."},
        "token": {"type": "string", "description": "Of a bot, such as `[[slack bot]]`; with `channel`."},
        "channel": {"type": "string", "description": "Name or id, for a bot; a template."},
        "text": {"type": "string", "description": "The message; a template."},
        "blocks": {"type": ["array", "string"], "description": "Slack's blocks, or a template of them."},
        "thread_ts": {"type": "string", "description": "The message that it answers; a template."},
        "base_url": {"type": "string", "default": API, "description": "Where bots post."}},
        "oneOf": [{"required": ["webhook_url"]}, {"required": ["token", "channel"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let webhook_url = outbound::optional_text(fields, "webhook_url", check);
    let token = outbound::optional_text(fields, "token", check);
    let channel = super::optional_text_field(fields, "channel", check);
    let text = super::text_field(fields, "text", check);
    let blocks = fields.value("blocks").cloned();
    let blocks = blocks.filter(|blocks| check.templates(blocks, &fields.at("blocks")));
    let thread_ts = super::optional_text_field(fields, "thread_ts", check);
    let base_url = super::optional_text_field(fields, "base_url", check);
    let has = |fields: &mut Fields<'_>, name| fields.value(name).is_some();
    let (by_webhook, as_bot) = (has(fields, "webhook_url"), has(fields, "token"));
    if by_webhook == as_bot {
        let message = "needs 'webhook_url', or 'token' and 'channel'; one of the two";
        let problem = FieldError::new(fields.at("webhook_url"), "required", message);
        check.note(problem.suggest("\"webhook_url\": \"[[slack webhook]]\""));
    } else if as_bot != has(fields, "channel") {
        let message = if as_bot { "a bot needs a channel" } else { "a webhook has its own channel" };
        let problem = FieldError::new(fields.at("channel"), "required", message);
        check.note(problem.suggest("\"token\": \"[[slack bot]]\", \"channel\": \"#general\""));
    }
    let base_url = base_url.unwrap_or_else(|| json!(API));
    Some(Box::new(SlackMessage { webhook_url, token, channel, text: text?, blocks, thread_ts, base_url }))
}

#[async_trait]
impl Node for SlackMessage {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let open = [&self.channel, &self.blocks, &self.thread_ts];
        let [channel, blocks, thread_ts] = open.map(Option::as_ref);
        let plain = [
            ("channel", channel),
            ("text", Some(&self.text)),
            ("blocks", blocks),
            ("thread_ts", thread_ts),
            ("base_url", Some(&self.base_url)),
        ];
        // Only what may hold secrets is cut at them.
        let mut input =
            fill_fields([("webhook_url", self.webhook_url.as_ref()), ("token", self.token.as_ref())], scope)?;
        if let Some(fields) = input.get_mut("fields").and_then(Value::as_object_mut) {
            for (name, value) in plain {
                if let Some(value) = value {
                    fields.insert(name.to_owned(), crate::template::fill(value, scope)?);
                }
            }
        }
        Ok(input)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let fields = outbound::reveal(input, call).await?;
        let request = request(&fields, call)?;
        let limits = Limits { body_bytes: MOST_BODY, total: None, redirects: 0, ..Limits::default() };
        let answer = call.outbound().send(request, &limits).await.map_err(|error| outbound::fault(&error))?;
        if !answer.status().is_success() {
            return Err(outbound::refusal(answer, call).await.into());
        }
        let place = answer.place().to_owned();
        let body = answer.bytes().await.map_err(|error| outbound::fault(&error))?;
        if fields.get("webhook_url").is_some() {
            return Ok(json!({"ok": true}));
        }
        Ok(posted(&place, &body)?)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}

fn request(fields: &Revealed, call: &Call<'_>) -> Result<Request, NodeError> {
    let mut body = Map::new();
    for name in ["channel", "text", "blocks", "thread_ts"] {
        if let Some(value) = fields.get(name) {
            body.insert(name.to_owned(), value.clone());
        }
    }
    let url = match fields.text("webhook_url") {
        Some(url) => outbound::address(url)?,
        None => {
            let base = fields.text("base_url").unwrap_or(API).trim_end_matches('/');
            outbound::address(&format!("{base}/chat.postMessage"))?
        }
    };
    let mut request = Request::new(Method::POST, url.as_str());
    for (name, value) in [
        ("Content-Type", "application/json; charset=utf-8"),
        ("User-Agent", outbound::USER_AGENT),
        ("Idempotency-Key", &call.idempotency_key()),
    ] {
        request = outbound::header(request, name, value)?;
    }
    if let Some(token) = fields.text("token") {
        request = outbound::header(request, "Authorization", &format!("Bearer {token}"))?;
    }
    Ok(request.body(Value::Object(body).to_string()))
}

/// Slack says no with a 200.
fn posted(place: &str, body: &[u8]) -> Result<Value, NodeError> {
    let said: Value = serde_json::from_slice(body)
        .map_err(|_| NodeError::failed(format!("{place} did not answer as Slack does")))?;
    if said.get("ok").and_then(Value::as_bool) == Some(true) {
        let member = |name: &str| said.get(name).cloned().unwrap_or_default();
        return Ok(json!({"ok": true, "channel": member("channel"), "ts": member("ts")}));
    }
    let why = said.get("error").and_then(Value::as_str).unwrap_or("no reason");
    let error = NodeError::failed(format!("Slack refused the message: {why}"));
    let retryable = ["ratelimited", "service_unavailable", "internal_error", "fatal_error"].contains(&why);
    Err(NodeError { retryable, ..error })
}
