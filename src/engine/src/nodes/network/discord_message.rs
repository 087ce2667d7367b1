//! `discord_message`: posts to Discord, by a webhook or as a bot.
//!
//! Source: <https://discord.com/developers/docs/resources/webhook#execute-webhook> and
//! <https://discord.com/developers/docs/resources/message#create-message>.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::canonical::sha256;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{optional_field, optional_id_field, text_field};
use crate::nodes::network::messaging::{self, answered, check_way, post};
use crate::outbound;
use crate::redact::percent_encoded;
use crate::template::as_text;

/// The format that Discord requires.
const USER_AGENT: &str = concat!("DiscordBot (Callboard, ", env!("CARGO_PKG_VERSION"), ")");
/// Base URL for bots.
const API: &str = "https://discord.com/api/v10";

pub(crate) const TYPE: NodeType = NodeType {
    name: "discord_message",
    group: "network",
    summary: "Posts a message to Discord with a webhook, or as a bot with a token.",
    effect: Effect::Outbound,
    secrets: &["webhook_url", "token"],
    schema,
    result: "`{ok, message_id, channel}`; `channel` is the id of the channel.",
    members: &["ok", "message_id", "channel"],
    example: || {
        json!({"name": "tell", "type": "discord_message", "webhook_url": "[[discord webhook]]",
               "text": "A new order: {{ inputs.order }}"})
    },
    build,
};

struct DiscordMessage {
    webhook_url: Option<Value>,
    token: Option<Value>,
    channel: Option<Value>,
    text: Value,
    embeds: Option<Value>,
    reply_to: Option<Value>,
    allowed_mentions: Option<Value>,
    base_url: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["text"], "properties": {
        "webhook_url": {"type": "string", "description": "URL of a channel's webhook, such as `[[discord webhook]]`."},
        "token": {"type": "string", "description": "Token of a bot, such as `[[discord bot]]`; requires `channel`."},
        "channel": {"type": ["string", "integer"], "description": "Id of the channel, only for a bot; a template."},
        "text": {"type": "string", "description": "The message, at most 2,000 characters; a template."},
        "embeds": {"type": ["array", "string"], "description": "Discord's embeds, or a template of them."},
        "reply_to": {"type": ["string", "integer"],
                     "description": "Id of the message to reply to, only for a bot; a template."},
        "allowed_mentions": {"type": ["object", "string"], "default": {"parse": []},
                             "description": "Mentions that the text may contain (default: none); an object, or a template of one."},
        "base_url": {"type": "string", "default": API, "description": "Base URL of the API for bots."}},
        "oneOf": [{"required": ["webhook_url"]}, {"required": ["token", "channel"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let webhook_url = outbound::optional_secret(fields, "webhook_url", "discord webhook", check);
    let token = outbound::optional_secret(fields, "token", "discord bot", check);
    let channel = optional_id_field(fields, "channel", check);
    let text = text_field(fields, "text", check);
    let embeds = optional_field(fields, "embeds", check);
    let reply_to = optional_id_field(fields, "reply_to", check);
    let allowed_mentions = optional_field(fields, "allowed_mentions", check);
    if allowed_mentions.as_ref().is_some_and(|given| !given.is_object() && !given.is_string()) {
        let problem = FieldError::new(fields.at("allowed_mentions"), "type", "must be an object");
        check.note(problem.suggest("\"allowed_mentions\": {\"parse\": [\"users\"]}"));
    }
    let base_url = messaging::base_url(fields, API, webhook_url.is_none(), check);
    check_way(fields, "discord webhook", "discord bot", "1234567890", check);
    if webhook_url.is_some() && reply_to.is_some() {
        let problem =
            FieldError::new(fields.at("reply_to"), "reply_to", "a webhook cannot reply to a message");
        check.note(problem.suggest("\"token\": \"[[discord bot]]\", \"channel\": \"1234567890\""));
    }
    let text = text?;
    Some(Box::new(DiscordMessage {
        webhook_url,
        token,
        channel,
        text,
        embeds,
        reply_to,
        allowed_mentions,
        base_url,
    }))
}

#[async_trait]
impl Node for DiscordMessage {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let secret = [("webhook_url", self.webhook_url.as_ref()), ("token", self.token.as_ref())];
        let plain = [
            ("channel", self.channel.as_ref()),
            ("text", Some(&self.text)),
            ("embeds", self.embeds.as_ref()),
            ("reply_to", self.reply_to.as_ref()),
            ("allowed_mentions", self.allowed_mentions.as_ref()),
            ("base_url", Some(&self.base_url)),
        ];
        messaging::input(secret, plain, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let fields = outbound::reveal(input, call).await?;
        let mut body = messaging::body(&fields, &[("text", "content"), ("embeds", "embeds")]);
        body.insert("allowed_mentions".to_owned(), mentions(fields.get("allowed_mentions"))?);
        if let Some(id) = fields.get("reply_to") {
            body.insert("message_reference".to_owned(), json!({"message_id": id}));
        }
        let url = match fields.text("webhook_url") {
            Some(url) => {
                // Discord returns the message only with this parameter.
                let mut url = outbound::address(url)?;
                url.query_pairs_mut().append_pair("wait", "true");
                url
            }
            None => {
                // Discord rejects a repeated nonce within a few minutes.
                body.insert("nonce".to_owned(), json!(nonce(&call.idempotency_key())));
                body.insert("enforce_nonce".to_owned(), json!(true));
                let channel = fields.get("channel").map(as_text).unwrap_or_default();
                let path = format!("channels/{}/messages", percent_encoded(&channel));
                outbound::under(fields.text("base_url").unwrap_or(API), &path)?
            }
        };
        let bot = fields.text("token").map(|token| format!("Bot {token}"));
        let answer = post(&url, USER_AGENT, bot, body, call).await?;
        if !answer.status().is_success() {
            return Err(outbound::refusal(answer, call).await.into());
        }
        let said = answered(answer, "Discord").await?;
        let member = |name: &str| said.get(name).cloned().unwrap_or_default();
        Ok(json!({"ok": true, "message_id": member("id"), "channel": member("channel_id")}))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(messaging::TIMEOUT)
    }
}

/// Without this member, Discord would let the text mention everyone.
fn mentions(given: Option<&Value>) -> Result<Value, NodeError> {
    match given {
        None => Ok(json!({"parse": []})),
        Some(given @ Value::Object(_)) => Ok(given.clone()),
        Some(other) => {
            let made = kind(other);
            Err(NodeError::failed(format!(
                "'allowed_mentions' must be an object; its template returned {made}"
            )))
        }
    }
}

/// At most 25 characters.
fn nonce(key: &str) -> String {
    let mut nonce = hex::encode(sha256(&[key.as_bytes()]));
    nonce.truncate(24);
    nonce
}
