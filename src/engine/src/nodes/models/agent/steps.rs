//! An agent's steps: the model is called, the tools that it requests run, and it is called again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream;
use futures_util::{FutureExt as _, StreamExt as _};
use minijinja::Value as View;
use minijinja::value::Serde;
use serde_json::{Value, json};
use wire::ErrorCode;

use super::Settings;
use super::tools::{Ready, ToolTarget};
use crate::NodeError;
use crate::execute::ports::Resolved;
use crate::execute::{Call, Effect, Failure, Nested, Node, PlanNode, StepOutput};
use crate::graph::{Common, Retry};
use crate::nodes::models::asking::{self, ModelResult, Spent};
use crate::nodes::models::files;
use crate::nodes::models::target::Chosen;
use crate::template::as_text;
use models::{Message, ModelRequest, Role, ToolCall};

/// Maximum tools running at once.
const AT_ONCE: usize = 8;
/// Consecutive steps with only failed tools after which the model is not called again.
const FAILED_STEPS: u32 = 3;
/// Maximum bytes of a tool's answer that the model receives.
const TOLD: usize = 64 << 10;
/// Maximum argument problems per call that the model receives.
const PROBLEMS_TOLD: usize = 10;
/// The output slot without a reader.
pub(super) const SILENT: usize = usize::MAX;

/// A call by an agent, as a separate node.
pub(super) fn inner(
    effect: Effect,
    node_type: &'static str,
    name: &str,
    node: Box<dyn Node>,
) -> Arc<PlanNode> {
    let (name, common) = (name.to_owned(), Common::default());
    Arc::new(PlanNode { name, node_type, effect, common, node, identity: [0; 32], makes_ids: false })
}

/// A working agent.
pub(super) struct Steps {
    settings: Arc<Settings>,
    model: Chosen,
    tools: Vec<Ready>,
}

/// Sums over the steps so far.
struct StepTotals {
    spent: Spent,
    /// The result's list of tool calls.
    called: Vec<Value>,
    unseen: Vec<Value>,
}

/// A tool's answer.
struct Answered {
    content: String,
    error: Option<NodeError>,
}

impl Steps {
    pub(super) fn new(settings: Arc<Settings>, model: Chosen, tools: Vec<Ready>) -> Self {
        Self { settings, model, tools }
    }

    pub(super) async fn run(
        &self,
        mut request: ModelRequest,
        call: &Call<'_>,
        nested: &Nested<'_>,
        output: &StepOutput<'_>,
    ) -> Result<Value, Failure> {
        request.tools = self.tools.iter().map(|tool| tool.told.clone()).collect();
        let mut totals = StepTotals { spent: Spent::new(), called: Vec::new(), unseen: Vec::new() };
        let mut failed_steps = 0;
        for step in 0..self.settings.max_steps {
            let slot = usize::try_from(step).unwrap_or(SILENT);
            let asking = ModelCall {
                settings: Arc::clone(&self.settings),
                model: self.model.clone(),
                request: request.clone(),
            };
            let node = inner(Effect::Model, "model", "model", Box::new(asking));
            let answer = nested.inner(&node, &format!("[{step}]"), View::from(()), output, slot).await?;
            totals.spent.add_written(answer.get("usage").unwrap_or(&Value::Null));
            let calls: Vec<ToolCall> =
                serde_json::from_value(member(&answer, "tool_calls")).unwrap_or_default();
            files::join(&mut totals.unseen, member(&answer, "unseen"));
            let text = as_text(&member(&answer, "text"));
            if calls.is_empty() {
                output.finish(slot).await;
                return Ok(self.result(&answer, &text, step + 1, totals));
            }
            if calls.iter().any(|call| self.waits(call)) {
                // The turn may end here.
                output.new_message(slot).await;
            } else if self.settings.stream && !text.is_empty() {
                output.text(slot, call.path(), "\n\n").await;
            }
            output.finish(slot).await;
            let answers = self.call_tools(step, &calls, nested, output).await?;
            let failure = answers.iter().find_map(|answer| answer.error.clone());
            let all_failed = answers.iter().all(|answer| answer.error.is_some());
            failed_steps = if all_failed { failed_steps + 1 } else { 0 };
            if let (true, Some(error)) = (failed_steps >= FAILED_STEPS, failure) {
                let message = format!(
                    "its tools failed in {FAILED_STEPS} consecutive steps; the last error: {}",
                    error.message
                );
                return Err(NodeError::new(error.code, message).into());
            }
            let carry = answer.get("carry").filter(|carry| !carry.is_null()).cloned();
            let said = Message { tool_calls: calls.clone(), carry, ..Message::text(Role::Assistant, text) };
            request.messages.push(said);
            for (tool_call, answered) in calls.into_iter().zip(answers) {
                totals.called.push(answered.record(&tool_call));
                request.messages.push(answered.message(tool_call.id));
            }
        }
        let steps = self.settings.max_steps;
        Err(NodeError::failed(format!("no answer after {steps} steps; raise 'max_steps' to allow more"))
            .into())
    }

    /// The node's result after the model's last answer.
    fn result(&self, answer: &Value, text: &str, steps: u32, totals: StepTotals) -> Value {
        let StepTotals { spent, called, unseen } = totals;
        let mut result = json!({"text": text, "steps": steps, "tool_calls": called, "usage": spent.written(),
                                "model": member(answer, "model"),
                                "finish_reason": member(answer, "finish_reason")});
        if let (true, Some(members)) = (self.settings.response_schema.is_some(), result.as_object_mut()) {
            members.insert("json".to_owned(), member(answer, "json"));
        }
        if let (false, Some(members)) = (unseen.is_empty(), result.as_object_mut()) {
            members.insert("unseen".to_owned(), Value::Array(unseen));
        }
        result
    }

    /// Whether a call's tool waits for a person.
    fn waits(&self, call: &ToolCall) -> bool {
        self.settings.tools.iter().any(|tool| tool.name == call.name && tool.waits())
    }

    /// Runs the tools that one answer requests, several at a time. Results are in request order.
    async fn call_tools(
        &self,
        step: u32,
        calls: &[ToolCall],
        nested: &Nested<'_>,
        output: &StepOutput<'_>,
    ) -> Result<Vec<Answered>, Failure> {
        let mut running = Vec::with_capacity(calls.len());
        for (index, call) in calls.iter().enumerate() {
            let path = format!("[{step}].{}[{index}]", call.name);
            running.push(self.call_tool(path, call, nested, output).boxed());
        }
        let ended: Vec<_> = stream::iter(running).buffered(AT_ONCE).collect().await;
        ended.into_iter().collect()
    }

    async fn call_tool(
        &self,
        path: String,
        call: &ToolCall,
        nested: &Nested<'_>,
        output: &StepOutput<'_>,
    ) -> Result<Answered, Failure> {
        let Some(tool) = self.tools.iter().find(|tool| tool.told.name == call.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.told.name.as_str()).collect();
            return Ok(Answered::bad(format!("unknown tool; available: {}", names.join(", "))));
        };
        let args = View::from_pairs([("args", View::from(Serde(&call.arguments)))]);
        let ended = match &tool.target {
            ToolTarget::Node(index) => {
                let offered = self.settings.tools.get(*index).and_then(super::tools::Offered::node);
                let Some((node, schema)) = offered else {
                    return Ok(Answered::bad("the tool does not exist".to_owned()));
                };
                let problems = schema.problems(&call.arguments, "");
                if !problems.is_empty() {
                    let told = problems.iter().take(PROBLEMS_TOLD);
                    let told: Vec<String> = told.map(|p| format!("{} {}", p.pointer, p.message)).collect();
                    return Ok(Answered::bad(format!(
                        "the arguments do not match the schema: {}",
                        told.join("; ")
                    )));
                }
                let ended = nested.tool(node, &path, args, output).await;
                ended.map(|result| node.node.for_model(result))
            }
            ToolTarget::Workflow(workflow) => {
                let calling = WorkflowCall { workflow: workflow.clone(), inputs: call.arguments.clone() };
                let node = inner(Effect::Nested, "tool", &call.name, Box::new(calling));
                nested.tool(&node, &path, args, output).await
            }
            ToolTarget::Mcp(place) => {
                let node = super::mcp::calling(place, &call.name, &call.arguments);
                let ended = nested.tool(&node, &path, args, output).await;
                // The text is for the model; other members would repeat it.
                ended.map(|result| match result.get("text") {
                    Some(Value::String(text)) if !text.is_empty() => Value::String(text.clone()),
                    _ => result,
                })
            }
        };
        match ended {
            Ok(result) => Ok(Answered { content: cut(as_text(&result)), error: None }),
            // An unknown outcome stays a failure: the model must not decide whether the call was completed.
            Err(Failure::Failed(error)) if error.code != ErrorCode::NodeOutcomeUnknown => {
                // Journal names are not for the model.
                Ok(Answered::failed(NodeError { node: None, ..error }))
            }
            Err(failure) => Err(failure),
        }
    }
}

impl Answered {
    fn failed(error: NodeError) -> Self {
        Self { content: cut(error.as_result().to_string()), error: Some(error) }
    }

    /// An error caused by the model itself.
    fn bad(message: String) -> Self {
        Self::failed(NodeError::failed(message))
    }

    /// The call's entry in the node's result.
    fn record(&self, call: &ToolCall) -> Value {
        let error = self.error.as_ref();
        let error = error.map(|error| json!({"code": error.code.as_str(), "message": error.message}));
        json!({"tool": call.name, "arguments": call.arguments, "error": error})
    }

    /// The answer to the model's call with this id.
    fn message(self, call_id: String) -> Message {
        Message { tool_call_id: Some(call_id), ..Message::text(Role::Tool, self.content) }
    }
}

/// A member of the model's answer; null if it is absent.
fn member(answer: &Value, name: &str) -> Value {
    answer.get(name).cloned().unwrap_or_default()
}

/// Truncates an answer to the bytes that the model receives.
fn cut(mut text: String) -> String {
    if text.len() > TOLD {
        let bytes = text.len();
        text.truncate(text.floor_char_boundary(TOLD));
        text.push_str(&format!("… (cut off: {bytes} bytes)"));
    }
    text
}

struct ModelCall {
    settings: Arc<Settings>,
    model: Chosen,
    request: ModelRequest,
}

#[async_trait]
impl Node for ModelCall {
    fn input(&self, _scope: &View) -> Result<Value, NodeError> {
        let mut input = self.model.input();
        input.insert("request".to_owned(), json!(self.request));
        Ok(Value::Object(input))
    }

    async fn run(&self, _input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let mut request = self.request.clone();
        request.idempotency_key = Some(call.idempotency_key());
        let response = self.settings.response_schema.as_ref();
        request.response_schema = response.map(|(written, _)| written.clone());
        let asking = self.settings.asks.asking(&self.model, response.map(|(_, schema)| schema));
        let ModelResult { answer, json, spent, unseen } =
            asking.ask(request, call, self.settings.stream).await?;
        let mut result = json!({"text": answer.text, "tool_calls": answer.tool_calls, "json": json,
                                "carry": answer.carry, "usage": spent.written(), "model": answer.model,
                                "finish_reason": answer.finish_reason});
        files::list_unseen(&unseen, &mut result);
        Ok(result)
    }

    fn streams(&self) -> bool {
        self.settings.stream
    }

    fn retry(&self) -> Retry {
        Retry::times(asking::ATTEMPTS)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(asking::TIMEOUT)
    }
}

struct WorkflowCall {
    workflow: Resolved,
    inputs: Value,
}

#[async_trait]
impl Node for WorkflowCall {
    fn input(&self, _scope: &View) -> Result<Value, NodeError> {
        Ok(self.inputs.clone())
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        call.run_workflow(&self.workflow, input).await
    }
}
