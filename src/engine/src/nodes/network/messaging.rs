//! Shared parts of the messenger nodes: their fields and the call.

use std::time::Duration;

use minijinja::Value as View;
use net::{Limits, Method, Request, Response, Url};
use serde_json::{Map, Value};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::execute::Call;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::outbound::{self, Revealed};
use crate::template::{as_text, fill};

/// Default time limit per attempt.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum response bytes.
const MOST_BODY: u64 = 256 * 1024;

/// Fields that a message requires.
const NEEDED: [&str; 3] = ["chat", "channel", "base_url"];
/// Message content; one field is enough.
const CONTENT: [&str; 3] = ["text", "blocks", "embeds"];

/// Fields by name.
pub(crate) type NamedFields<'a, const N: usize> = [(&'static str, Option<&'a Value>); N];

/// Builds a node's input. Only fields that may hold secrets are split at them. Omits fields whose template yields
/// nothing, unless they are required.
pub(crate) fn input<const S: usize, const P: usize>(
    secret: NamedFields<'_, S>,
    plain: NamedFields<'_, P>,
    scope: &View,
) -> Result<Value, NodeError> {
    let mut input = outbound::texts(fill_fields(secret, scope)?)?;
    let mut no_text = None;
    if let Some(fields) = input.get_mut("fields").and_then(Value::as_object_mut) {
        for (name, value) in plain {
            match value.map(|value| fill(value, scope)).transpose()? {
                None => {}
                Some(value @ (Value::Array(_) | Value::Object(_)))
                    if name == "text" || NEEDED.contains(&name) =>
                {
                    return Err(outbound::no_text(name, &value));
                }
                Some(value) if outbound::is_nothing(&value) => {
                    if NEEDED.contains(&name) {
                        return Err(outbound::no_text(name, &value));
                    }
                    if name == "text" {
                        no_text = Some(outbound::no_text(name, &value));
                    }
                }
                Some(value @ (Value::Array(_) | Value::Object(_))) => {
                    fields.insert(name.to_owned(), value);
                }
                Some(value) => {
                    fields.insert(name.to_owned(), Value::String(as_text(&value)));
                }
            }
        }
        let says_something = CONTENT.iter().any(|name| fields.contains_key(*name));
        if let Some(error) = no_text.filter(|_| !says_something) {
            return Err(error);
        }
    }
    Ok(input)
}

/// Reads the base URL for bots, with a default.
pub(crate) fn base_url(fields: &mut Fields<'_>, own: &str, is_bot: bool, check: &mut Check) -> Value {
    let given = optional_text_field(fields, "base_url", check);
    if let Some(given) = given.as_ref().filter(|_| is_bot) {
        outbound::check_url(given, fields.at("base_url"), check);
    }
    given.unwrap_or_else(|| own.into())
}

/// Checks that a message is sent either by a webhook, or by a bot to a channel. `webhook`, `token` and `channel` are
/// examples for suggestions.
pub(crate) fn check_way(
    fields: &mut Fields<'_>,
    webhook: &str,
    token: &str,
    channel: &str,
    check: &mut Check,
) {
    let mut has = |name| fields.value(name).is_some();
    let (by_webhook, as_bot, has_channel) = (has("webhook_url"), has("token"), has("channel"));
    if by_webhook == as_bot {
        let message = "needs either 'webhook_url', or 'token' and 'channel'";
        let problem = FieldError::new(fields.at("webhook_url"), "required", message);
        check.note(problem.suggest(format!("\"webhook_url\": \"[[{webhook}]]\"")));
    } else if as_bot != has_channel {
        let message = if as_bot { "a bot needs a channel" } else { "a webhook already has a channel" };
        let problem = FieldError::new(fields.at("channel"), "required", message);
        check.note(problem.suggest(format!("\"token\": \"[[{token}]]\", \"channel\": \"{channel}\"")));
    }
}

/// Copies existing fields under other names.
pub(crate) fn body(fields: &Revealed, names: &[(&str, &str)]) -> Map<String, Value> {
    let there = names.iter().filter_map(|(name, sent)| Some(((*sent).to_owned(), fields.get(name)?.clone())));
    there.collect()
}

/// Posts a message. Returns the response, whatever its status.
pub(crate) async fn post(
    url: &Url,
    user_agent: &str,
    authorization: Option<String>,
    body: Map<String, Value>,
    call: &Call<'_>,
) -> Result<Response, NodeError> {
    let mut request = Request::new(Method::POST, url.as_str());
    for (name, value) in [
        ("Content-Type", "application/json; charset=utf-8"),
        ("User-Agent", user_agent),
        ("Idempotency-Key", &call.idempotency_key()),
    ] {
        request = outbound::header(request, name, value)?;
    }
    if let Some(authorization) = authorization {
        request = outbound::header(request, "Authorization", &authorization)?;
    }
    let request = request.body(Value::Object(body).to_string());
    let limits = Limits { body_bytes: MOST_BODY, total: None, redirects: 0, ..Limits::default() };
    call.outbound().send(request, &limits).await.map_err(|error| outbound::fault(&error))
}

/// Reads a messenger's response. If only the rest of a success response is lost, the message exists and is not posted
/// again.
pub(crate) async fn answered(answer: Response, messenger: &str) -> Result<Value, NodeError> {
    let place = answer.place().to_owned();
    let taken = answer.status().is_success();
    let body = answer.bytes().await.map_err(|error| {
        let fault = outbound::fault(&error);
        NodeError { retryable: fault.retryable && !taken, ..fault }
    })?;
    serde_json::from_slice(&body)
        .map_err(|_| NodeError::failed(format!("{place} did not respond like {messenger}")))
}
