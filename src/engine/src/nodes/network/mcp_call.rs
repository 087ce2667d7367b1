//! `mcp_call`: calls a tool on an MCP server.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::credentials::fill_fields;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::mcp::Mcp;
use crate::mcp::Server;
use crate::nodes::fields::text_field;
use crate::outbound;
use crate::template::{as_text, fill};

/// Default time limit per attempt.
const TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) const TYPE: NodeType = NodeType {
    name: "mcp_call",
    group: "network",
    summary: "Calls a tool of an MCP server, over streamable HTTP. `[[name]]` in headers is a secret of the vault.",
    effect: Effect::Outbound,
    secrets: &["headers"],
    schema,
    result: "`{text, json, content}`: the text of the tool's result; its structured result, or the text parsed as JSON, \
             else null; and the parts that are not text, unchanged. A tool that returns an error fails the node.",
    members: &["text", "json", "content"],
    example: || {
        json!({"name": "weather", "type": "mcp_call", "url": "https://mcp.example.com/mcp", "tool": "get_weather",
               "arguments": {"city": "{{ inputs.city }}"}})
    },
    build,
};

/// An MCP server's location, with templates.
pub(crate) struct McpEndpoint {
    url: Value,
    headers: Value,
}

struct McpCall {
    place: McpEndpoint,
    tool: Value,
    arguments: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["url", "tool"], "properties": {
        "url": {"type": "string", "description": "The server's address, http or https; a template."},
        "tool": {"type": "string", "description": "The tool's name; a template."},
        "arguments": {"type": ["object", "string"], "default": {}, "description": "The tool's arguments, or a template of them; strings inside are templates."},
        "headers": {"type": "object", "default": {}, "additionalProperties": {"type": "string"},
                    "description": "Headers of every request; their values are templates, and `[[name]]` in them is a secret."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let place = McpEndpoint::read(fields, check);
    let tool = text_field(fields, "tool", check);
    let arguments = fields.value("arguments").cloned().unwrap_or_else(|| json!({}));
    let good = match &arguments {
        Value::Object(_) => true,
        Value::String(text) => crate::template::has_holes(text),
        _ => false,
    };
    if !good {
        let problem =
            FieldError::new(fields.at("arguments"), "type", "must be an object, or a template of one");
        check.note(problem.suggest(r#""arguments": {"city": "{{ inputs.city }}"}"#));
    }
    let good = good && check.templates(&arguments, &fields.at("arguments"));
    Some(Box::new(McpCall { place: place?, tool: tool?, arguments: Some(arguments).filter(|_| good)? }))
}

impl McpEndpoint {
    pub(crate) fn read(fields: &mut Fields<'_>, check: &mut Check) -> Option<Self> {
        let url = text_field(fields, "url", check);
        if let Some(url) = &url {
            outbound::check_url(url, fields.at("url"), check);
        }
        let headers = fields.value("headers").cloned().unwrap_or_else(|| json!({}));
        let texts = headers.as_object().is_some_and(|all| all.values().all(Value::is_string));
        if !texts {
            let problem = FieldError::new(fields.at("headers"), "type", "must be an object of strings");
            check.note(problem.suggest(r#""headers": {"X-Team": "support"}"#));
            return None;
        }
        let good = check.templates_with_secrets(&headers, &fields.at("headers"));
        Some(Self { url: url?, headers: Some(headers).filter(|_| good)? })
    }

    /// Fills address and headers. Adds the positions of secrets, if there are any.
    pub(crate) fn filled(&self, scope: &View) -> Result<Map<String, Value>, NodeError> {
        let url = Value::String(as_text(&fill(&self.url, scope)?));
        let mut input = fill_fields([("headers", Some(&self.headers))], scope)?;
        let mut place = Map::from_iter([("url".to_owned(), url)]);
        if let Some(Value::Object(fields)) = input.get_mut("fields").map(Value::take) {
            place.extend(fields);
        }
        if let Some(secrets) = input.get_mut("secrets").map(Value::take)
            && secrets != json!([])
        {
            place.insert("secrets".to_owned(), secrets);
        }
        Ok(place)
    }
}

/// Returns the server for an input with a filled [`McpEndpoint`], with the secrets in its headers.
pub(crate) async fn server(input: &Value, call: &Call<'_>) -> Result<Server, NodeError> {
    let member = |name: &str| input.get(name).cloned();
    let secrets = member("secrets").unwrap_or_else(|| json!([]));
    let fields = json!({"url": member("url"), "headers": member("headers")});
    let fields = outbound::reveal(json!({"fields": fields, "secrets": secrets}), call).await?;
    Ok(Server::read(fields.text("url").unwrap_or_default(), fields.get("headers")))
}

/// Returns an MCP client.
pub(crate) fn mcp(call: &Call<'_>) -> Mcp {
    Mcp::new(call.outbound().clone())
}

#[async_trait]
impl Node for McpCall {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = self.place.filled(scope)?;
        let arguments = fill(&self.arguments, scope)?;
        if !arguments.is_object() {
            return Err(NodeError::failed(format!(
                "the arguments must be an object, not {}",
                kind(&arguments)
            )));
        }
        input.insert("tool".to_owned(), Value::String(as_text(&fill(&self.tool, scope)?)));
        input.insert("arguments".to_owned(), arguments);
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let tool = input.get("tool").and_then(Value::as_str).unwrap_or_default();
        let arguments = input.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        let answered =
            mcp(call).call(&server(&input, call).await?, tool, arguments, call.idempotency_key()).await?;
        Ok(answered)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }
}
