//! MCP servers over streamable HTTP only: no process is ever started.
//!
//! rmcp implements the protocol. Its requests go through our client, so the address guard and the limits apply.
//! Source: `docs/adr/0012-mcp.md`.

mod transport;

use std::sync::Arc;

use kernel::json::{self, JsonError, Numbers};
use net::Client;
use net::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;
use rmcp::model::{CallToolRequestParams, ErrorData};
use rmcp::service::{ClientInitializeError, RoleClient, RunningService, ServiceError, ServiceExt as _};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use serde_json::{Map, Value, json};

use self::transport::{Guarded, Rounded};
use crate::NodeError;
use models::Tool;

const CLOSED: &str = "the MCP server closed the connection before it answered";
/// Maximum tools read per server.
const MOST_TOOLS: usize = 500;

/// Calls MCP servers. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Mcp {
    client: Client,
}

/// A server, and the headers for every request, secrets included.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Server {
    /// Reads a server from a node's filled fields.
    pub(crate) fn read(url: &str, headers: Option<&Value>) -> Self {
        let url = url.to_owned();
        let headers = headers.and_then(Value::as_object).into_iter().flatten();
        let headers = headers.map(|(name, value)| (name.clone(), crate::template::as_text(value))).collect();
        Self { url, headers }
    }
}

impl Mcp {
    /// Creates a caller that uses this client, which decides what addresses may be called.
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Lists a server's tools.
    pub(crate) async fn tools(&self, server: &Server) -> Result<Vec<Tool>, NodeError> {
        let session = self.connect(server, None).await?;
        let tools = session.service.list_all_tools().await;
        let tools = tools.map_err(|error| session.failed(error));
        session.end().await;
        let tool = |tool: rmcp::model::Tool| Tool {
            name: tool.name.into_owned(),
            description: tool.description.unwrap_or_default().into_owned(),
            parameters: Value::Object((*tool.input_schema).clone()),
        };
        Ok(tools?.into_iter().take(MOST_TOOLS).map(tool).collect())
    }

    /// Calls a tool and returns `{text, json, content}`; `content` holds the parts that are not text.
    pub(crate) async fn call(
        &self,
        server: &Server,
        tool: &str,
        arguments: Map<String, Value>,
        key: String,
    ) -> Result<Value, NodeError> {
        let session = self.connect(server, Some(key)).await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answered = session.service.call_tool(params).await;
        let answered = answered.map_err(|error| session.failed(error));
        let rounded = session.rounded.take();
        session.end().await;
        let answered = answered?;
        let parts = serde_json::to_value(&answered.content).unwrap_or_default();
        let parts = parts.as_array().cloned().unwrap_or_default();
        let text_of = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
        let texts: Vec<String> = parts.iter().filter_map(text_of).collect();
        let text = texts.join("\n");
        if answered.is_error == Some(true) {
            return Err(NodeError::failed(format!("the tool '{tool}' failed: {text}")));
        }
        let content: Vec<Value> = parts.into_iter().filter(|part| text_of(part).is_none()).collect();
        let read = match (answered.structured_content, rounded) {
            (Some(_), Some(number)) => Err(JsonError::Rounded(number)),
            (Some(structured), None) => Ok(structured),
            (None, _) => json::read(&text, Numbers::Values),
        };
        let json = match read {
            Err(JsonError::Rounded(number)) => {
                return Err(NodeError::failed(format!("in the result of the tool '{tool}', {number}")));
            }
            read => read.ok(),
        };
        Ok(json!({"text": text, "json": json, "content": content}))
    }

    async fn connect(&self, server: &Server, key: Option<String>) -> Result<McpSession, NodeError> {
        let fault = Arc::new(Mutex::new(None));
        let rounded = Rounded::default();
        let client =
            Guarded { client: self.client.clone(), fault: Arc::clone(&fault), rounded: rounded.clone(), key };
        let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
        for (name, value) in &server.headers {
            let bad = |what: &str| NodeError::failed(format!("'{name}' is not a valid header {what}"));
            // Non-ASCII characters would be dropped on the way.
            let value = Some(value).filter(|value| value.is_ascii()).ok_or_else(|| bad("value"))?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad("value"))?;
            value.set_sensitive(true);
            config
                .custom_headers
                .insert(HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?, value);
        }
        // Without this, rmcp would resend a call that the engine does not know about.
        config.reinit_on_expired_session = false;
        let transport = StreamableHttpClientTransport::with_client(client, config);
        match ().serve(transport).await {
            Ok(service) => Ok(McpSession { service, fault, rounded }),
            Err(error) => Err(fault.lock().take().unwrap_or_else(|| not_opened(error))),
        }
    }
}

/// A connection. Dropping it closes it.
struct McpSession {
    service: RunningService<RoleClient, ()>,
    fault: Arc<Mutex<Option<NodeError>>>,
    rounded: Rounded,
}

impl McpSession {
    fn failed(&self, error: ServiceError) -> NodeError {
        let fault = self.fault.lock().take();
        fault.unwrap_or_else(|| match error {
            ServiceError::McpError(error) => refused(&error),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => NodeError::failed(CLOSED),
            other => NodeError::failed(format!("the MCP server violated the protocol: {}", short(&other))),
        })
    }

    /// Ends the server's session.
    async fn end(self) {
        // The answer is complete; a failure here changes nothing.
        let _ = self.service.cancel().await;
    }
}

fn not_opened(error: ClientInitializeError) -> NodeError {
    match error {
        ClientInitializeError::JsonRpcError(error) => refused(&error),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            NodeError::failed("the MCP server supports no protocol version of this service")
        }
        ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. } => {
            NodeError::failed(CLOSED)
        }
        other => NodeError::failed(format!("the MCP server did not open a session: {}", short(&other))),
    }
}

/// Converts a JSON-RPC error.
fn refused(error: &ErrorData) -> NodeError {
    NodeError::failed(format!(
        "the MCP server rejected the request: {} ({})",
        short(&error.message),
        error.code.0
    ))
}

fn short(text: &impl std::fmt::Display) -> String {
    const LETTERS: usize = 500;
    text.to_string().chars().filter(|c| !c.is_control()).take(LETTERS).collect()
}
