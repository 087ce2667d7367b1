//! `webhook_send`: sends a signed event. The event enters the outbox with the node's journal row, so it is sent if
//! and only if the step is done, and retried until it is accepted.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::limits;
use crate::outbound;
use crate::outbox::Delivery;

pub(crate) const TYPE: NodeType = NodeType {
    name: "webhook_send",
    group: "network",
    summary: "Delivers a signed event to a webhook, with retries.",
    effect: Effect::Outbound,
    secrets: &["url", "headers", "json", "body", "secret"],
    schema,
    result: "`{delivery_id, status}`; the status is `queued`: the run does not wait for the receiver.",
    members: &["delivery_id", "status"],
    example: || {
        json!({"name": "tell", "type": "webhook_send", "url": "https://example.com/hooks/orders",
               "json": {"event": "order.shipped", "order": "{{ inputs.order }}"}})
    },
    build,
};

struct WebhookSend {
    url: Value,
    headers: Option<Value>,
    json: Option<Value>,
    body: Option<Value>,
    secret: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["url"], "properties": {
        "url": {"type": "string", "description": "An http or https address of a public host; a template."},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Texts; templates."},
        "json": {"description": "The event as JSON; strings inside are templates."},
        "body": {"type": "string", "description": "The event as text; a template."},
        "secret": {"type": "string",
                   "description": "Signing secret, such as `[[hook secret]]`: `X-Signature` is `sha256=` and the HMAC-SHA256 of \
                                   `<timestamp>.<body>` in hexadecimal, `X-Timestamp` is the time in seconds."}},
        "oneOf": [{"required": ["json"]}, {"required": ["body"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let url = outbound::url(fields, "url", check);
    let headers = outbound::object(fields, "headers", check);
    outbound::check_headers(headers.as_ref(), &fields.at("headers"), check);
    let json = outbound::optional(fields, "json", check);
    let body = outbound::optional_text(fields, "body", check);
    let secret = outbound::optional_text(fields, "secret", check);
    if fields.value("json").is_some() == fields.value("body").is_some() {
        let problem = FieldError::new(fields.at("json"), "body", "only one body is allowed: json or body");
        check.note(problem.suggest("\"json\": {\"event\": \"…\"}"));
    }
    Some(Box::new(WebhookSend { url: url?, headers, json, body, secret }))
}

#[async_trait]
impl Node for WebhookSend {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let fields = [
            ("url", Some(&self.url)),
            ("headers", self.headers.as_ref()),
            ("json", self.json.as_ref()),
            ("body", self.body.as_ref()),
            ("secret", self.secret.as_ref()),
        ];
        fill_fields(fields, scope)
    }

    /// Sends nothing itself; secrets are resolved on delivery.
    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        limits::json(&input)?;
        let url = input.pointer("/fields/url").and_then(Value::as_str).unwrap_or_default();
        if !url.trim_start().starts_with("[[") {
            outbound::address(url)?;
        }
        let delivery = Delivery::new(&call.idempotency_key(), input);
        let id = delivery.id;
        call.deliver(delivery);
        Ok(json!({"delivery_id": id, "status": "queued"}))
    }

    /// It is sent once its row is stored, and a second row would be identical.
    fn is_idempotent(&self) -> bool {
        true
    }
}
