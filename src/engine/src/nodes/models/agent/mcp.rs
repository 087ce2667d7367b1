//! Tools of MCP servers.

use std::sync::Arc;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};

use super::steps::{SILENT, inner};
use crate::NodeError;
use crate::execute::{Call, Effect, Failure, Nested, Node, PlanNode, StepOutput};
use crate::graph::Retry;
use crate::nodes::models::asking;
use crate::nodes::network::mcp_call::{mcp, server};
use models::Tool;

/// Lists the tools of the server at `place`, as recorded when it was first asked.
pub(super) async fn list(
    index: usize,
    place: &Map<String, Value>,
    nested: &Nested<'_>,
    output: &StepOutput<'_>,
) -> Result<Vec<Tool>, Failure> {
    let node = inner(Effect::Model, "mcp", "mcp", Box::new(List(place.clone())));
    let listed = nested.inner(&node, &format!(".mcp[{index}]"), View::from(()), output, SILENT).await?;
    let tools = listed.get("tools").cloned().unwrap_or_default();
    serde_json::from_value(tools)
        .map_err(|error| NodeError::failed(format!("the list of tools cannot be read: {error}")).into())
}

/// Builds a node that calls the tool.
pub(super) fn calling(place: &Map<String, Value>, tool: &str, arguments: &Value) -> Arc<PlanNode> {
    let mut input = place.clone();
    input.insert("tool".to_owned(), Value::String(tool.to_owned()));
    input.insert("arguments".to_owned(), arguments.clone());
    // A tool may have side effects.
    inner(Effect::Outbound, "tool", tool, Box::new(CallTool(Value::Object(input))))
}

struct List(Map<String, Value>);

#[async_trait]
impl Node for List {
    fn input(&self, _scope: &View) -> Result<Value, NodeError> {
        Ok(Value::Object(self.0.clone()))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let tools = mcp(call).tools(&server(&input, call).await?).await?;
        Ok(json!({"tools": tools}))
    }

    fn retry(&self) -> Retry {
        Retry::times(asking::ATTEMPTS)
    }
}

struct CallTool(Value);

#[async_trait]
impl Node for CallTool {
    fn input(&self, _scope: &View) -> Result<Value, NodeError> {
        Ok(self.0.clone())
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let tool = input.get("tool").and_then(Value::as_str).unwrap_or_default();
        let arguments = input.get("arguments").and_then(Value::as_object).cloned().unwrap_or_default();
        let server = server(&input, call).await?;
        Ok(mcp(call).call(&server, tool, arguments, call.idempotency_key()).await?)
    }
}
