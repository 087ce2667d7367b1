//! `agent`: lets a model call tools until it has an answer.
//!
//! Every model call and tool call is a journal row below the node: `ask[0]` is its first model call,
//! `ask[0].weather[1]` the second tool that this call requested. So finished calls are not repeated after a crash.

mod collection;
mod mcp;
mod steps;
mod tools;

use std::sync::Arc;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};

pub(crate) use self::collection::{UPDATE, tools_of_verb};
use self::steps::Steps;
use self::tools::Offered;
use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::models::asking::Asks;
use crate::nodes::models::llm::{Talk, schema_field, talk_schema};
use crate::nodes::models::target;
use crate::schema::Schema;

/// Default and maximum number of model calls.
const STEPS: u32 = 10;
const STEPS_MAX: u32 = 50;

pub(crate) const TYPE: NodeType = NodeType {
    name: "agent",
    group: "models",
    summary: "Lets a language model call tools, with their results as its next input, until it answers.",
    effect: Effect::Nested,
    secrets: target::SECRETS,
    schema,
    result: "`{text, json, steps, tool_calls: [{tool, arguments, error}], usage: {calls, input_tokens, output_tokens, \
             cost_usd}, model, finish_reason, unseen}`; `json` only with a `response_schema`, `error` is null if the tool \
             succeeded; `unseen` as in an `llm`.",
    members: &["text", "json", "steps", "tool_calls", "usage", "model", "finish_reason", "unseen"],
    example: || {
        json!({"name": "help", "type": "agent", "model": "openai/gpt-4.1-mini", "system": "Help with orders.",
               "messages": "{{ messages }}", "stream": true, "tools": [
                   {"type": "workflow", "name": "refund", "description": "Pays an order back.", "workflow": "refund"},
                   {"type": "node", "name": "shipping", "description": "What sending a parcel costs.",
                    "parameters": {"type": "object", "required": ["kg"], "properties": {"kg": {"type": "number"}}},
                    "node": {"type": "transform", "expression": "5 + 2 * args.kg"}}]})
    },
    build,
};

/// Settings that stay fixed while the node works; shared with the nodes that it creates.
struct Settings {
    asks: Asks,
    talk: Talk,
    response_schema: Option<(Value, Schema)>,
    stream: bool,
    max_steps: u32,
    tools: Vec<Offered>,
}

struct Agent(Arc<Settings>);

fn schema() -> Value {
    talk_schema(json!({
        "tools": {"type": "array", "maxItems": tools::MOST_TOOLS, "items": tools::schema(),
                  "description": "Tools that the model may call; see [tools of an agent](#tools-of-an-agent)."},
        "max_steps": {"type": "integer", "minimum": 1, "maximum": STEPS_MAX, "default": STEPS,
                      "description": "Maximum number of model calls until the answer."}}))
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let asks = Asks::read(fields, check);
    let talk = Talk::read(fields, check);
    let response_schema = schema_field(fields, "response_schema", check);
    let stream = fields.boolean("stream", &mut check.problems).unwrap_or(false);
    let max_steps = fields.whole("max_steps", 1..=STEPS_MAX, &mut check.problems).unwrap_or(STEPS);
    let tools = tools::read(fields, spec, check);
    Some(Box::new(Agent(Arc::new(Settings { asks: asks?, talk, response_schema, stream, max_steps, tools }))))
}

#[async_trait]
impl Node for Agent {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = self.0.asks.input(self.0.talk.filled(scope)?, scope)?;
        let places = self.0.tools.iter().filter_map(Offered::mcp);
        let places =
            places.map(|place| place.filled(scope).map(Value::Object)).collect::<Result<Vec<_>, _>>()?;
        if let (false, Some(members)) = (places.is_empty(), input.as_object_mut()) {
            members.insert("mcp".to_owned(), Value::Array(places));
        }
        Ok(input)
    }

    /// Records its workflows' versions: a resumed run continues with the same ones.
    fn records_start(&self) -> bool {
        self.0.tools.iter().any(|tool| tool.workflow().is_some())
    }

    async fn begin(&self, _input: &Value, call: &Call<'_>) -> Result<Option<Value>, Failure> {
        let mut versions = Map::new();
        for tool in &self.0.tools {
            if let Some((workflow, version)) = tool.workflow() {
                let found = call.workflows().find(workflow, version).await?;
                versions.insert(tool.name.clone(), Value::String(found.version));
            }
        }
        Ok(Some(json!({"versions": versions})))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let places = input.get("mcp").cloned().unwrap_or_default();
        let (chosen, request) = self.0.asks.request(input, call.idempotency_key())?;
        let nested = call.nested(usize::try_from(self.0.max_steps).unwrap_or(1));
        nested
            .with_output(async |output| {
                let busy = call.at_work();
                let tools = tools::ready(&self.0.tools, &places, call, &nested, output).await?;
                drop(busy);
                Steps::new(Arc::clone(&self.0), chosen, tools).run(request, call, &nested, output).await
            })
            .await
    }

    fn streams(&self) -> bool {
        self.0.stream
    }

    fn repeats(&self) -> bool {
        true
    }
}
