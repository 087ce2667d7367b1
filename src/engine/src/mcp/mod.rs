//! MCP servers, over streamable HTTP alone: no process is ever started.
//!
//! The protocol is rmcp's; what it sends goes through our client, so the guard of addresses and the limits hold. Source:
//! `docs/adr/0012-mcp.md`.

mod transport;

use std::sync::Arc;

use net::header::{HeaderName, HeaderValue};
use net::{Client, NetError, NetErrorKind};
use parking_lot::Mutex;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{RoleClient, RunningService, ServiceExt as _};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use serde_json::{Map, Value, json};
use wire::ErrorCode;

use self::transport::Guarded;
use crate::NodeError;
use crate::models::Tool;

/// Most tools of one server that are looked at.
const MOST_TOOLS: usize = 500;

/// Calls MCP servers. Cheap to clone.
#[derive(Clone)]
pub struct Mcp {
    client: Client,
}

/// A server, and what goes along with every request, secrets included.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Server {
    /// Of a node's filled fields.
    pub(crate) fn read(url: &str, headers: Option<&Value>) -> Self {
        let url = url.to_owned();
        let headers = headers.and_then(Value::as_object).into_iter().flatten();
        let headers = headers.map(|(name, value)| (name.clone(), crate::template::as_text(value))).collect();
        Self { url, headers }
    }
}

impl Mcp {
    /// Calls through this client, which says what addresses may be called.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    /// The tools that a server has.
    pub(crate) async fn tools(&self, server: &Server) -> Result<Vec<Tool>, NodeError> {
        let session = self.connect(server, None).await?;
        let tools = session.service.list_all_tools().await;
        let tools = tools.map_err(|error| session.failed(&error));
        session.end().await;
        let tool = |tool: rmcp::model::Tool| Tool {
            name: tool.name.into_owned(),
            description: tool.description.unwrap_or_default().into_owned(),
            parameters: Value::Object((*tool.input_schema).clone()),
        };
        Ok(tools?.into_iter().take(MOST_TOOLS).map(tool).collect())
    }

    /// Calls a tool, and yields `{text, json, content}`.
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
        let answered = answered.map_err(|error| session.failed(&error));
        session.end().await;
        let answered = answered?;
        let content = serde_json::to_value(&answered.content).unwrap_or_default();
        let texts = content.as_array().into_iter().flatten();
        let texts: Vec<&str> = texts.filter_map(|part| part.get("text")?.as_str()).collect();
        let text = texts.join("\n");
        if answered.is_error == Some(true) {
            return Err(NodeError::failed(format!("the tool '{tool}' failed: {text}")));
        }
        let json = answered.structured_content.or_else(|| serde_json::from_str(&text).ok());
        Ok(json!({"text": text, "json": json, "content": content}))
    }

    async fn connect(&self, server: &Server, key: Option<String>) -> Result<Session, NodeError> {
        let fault = Arc::new(Mutex::new(None));
        let client = Guarded { client: self.client.clone(), fault: Arc::clone(&fault), key };
        let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
        for (name, value) in &server.headers {
            let bad = |what: &str| NodeError::failed(format!("'{name}' is no {what} of a header"));
            // Other letters than those of ASCII would be left out on the way.
            let value = Some(value).filter(|value| value.is_ascii()).ok_or_else(|| bad("value"))?;
            let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad("value"))?;
            value.set_sensitive(true);
            config
                .custom_headers
                .insert(HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?, value);
        }
        // A call that was sent once is not sent again behind the engine's back.
        config.reinit_on_expired_session = false;
        let transport = StreamableHttpClientTransport::with_client(client, config);
        match ().serve(transport).await {
            Ok(service) => Ok(Session { service, fault }),
            Err(error) => Err(failed(&error, fault.lock().take())),
        }
    }
}

/// A connection; dropped, it ends by itself.
struct Session {
    service: RunningService<RoleClient, ()>,
    fault: Arc<Mutex<Option<NetError>>>,
}

impl Session {
    fn failed(&self, error: &dyn std::fmt::Display) -> NodeError {
        failed(error, self.fault.lock().take())
    }

    /// Gives the server's session back.
    async fn end(self) {
        // It has said what it had to say: that it does not end well changes nothing.
        let _ = self.service.cancel().await;
    }
}

fn failed(error: &dyn std::fmt::Display, fault: Option<NetError>) -> NodeError {
    const LETTERS: usize = 500;
    let Some(NetError { kind, message }) = fault else {
        let said: String = error.to_string().chars().filter(|c| !c.is_control()).take(LETTERS).collect();
        return NodeError::failed(format!("the MCP server: {said}"));
    };
    let code = kind.code();
    let passes = matches!(kind, NetErrorKind::Unreachable | NetErrorKind::TimedOut | NetErrorKind::Broken);
    if passes && code != ErrorCode::EgressRefused {
        NodeError::retryable(code, message)
    } else {
        NodeError::new(code, message)
    }
}
