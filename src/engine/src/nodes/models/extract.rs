//! `extract`: finds data in a text.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::{optional_text_field, text_field};
use crate::nodes::models::asking::{self, Asks, ModelResult};
use crate::nodes::models::llm::schema_field;
use crate::nodes::models::{demos, target};
use crate::schema::Schema;
use crate::template::{as_text, fill};

const SYSTEM: &str = "Take the data out of the text, as JSON that fits the schema. What the text does not say is left \
                      out, or null where it must be there.\n";

pub(crate) const TYPE: NodeType = NodeType {
    name: "extract",
    group: "models",
    summary: "Extracts data from a text with a language model according to a schema.",
    effect: Effect::Model,
    secrets: target::SECRETS,
    schema,
    result: "`{data, usage: {calls, input_tokens, output_tokens, cost_usd}, model}`; `data` matches the schema.",
    members: &["data", "usage", "model"],
    example: || {
        json!({"name": "order", "type": "extract", "model": "openai/gpt-4.1-mini", "input": "{{ inputs.letter }}",
               "schema": {"type": "object", "required": ["order_number"],
                          "properties": {"order_number": {"type": "string"}, "amount": {"type": ["number", "null"]}}}})
    },
    build,
};

struct Extract {
    asks: Asks,
    input: Value,
    instructions: Option<Value>,
    response: (Value, Schema),
}

fn schema() -> Value {
    let own = json!({
        "input": {"type": "string", "description": "The text; a template."},
        "schema": {"type": "object", "description": "JSON Schema of the data."},
        "instructions": {"type": "string", "description":
            "Additional instructions for the model; a template. [Demos](#demos) of the prompts that it reads follow it."}});
    asking::schema(&["model", "input", "schema"], own)
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let asks = Asks::read(fields, check);
    let input = text_field(fields, "input", check);
    let instructions = optional_text_field(fields, "instructions", check);
    fields.required("schema", &mut check.problems);
    let response = schema_field(fields, "schema", check);
    Some(Box::new(Extract { asks: asks?, input: input?, instructions, response: response? }))
}

#[async_trait]
impl Node for Extract {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut system = SYSTEM.to_owned();
        if let Some(instructions) = &self.instructions {
            system.push_str(&demos::with_lines(instructions, scope)?);
        }
        self.asks.input(asking::messages(system, as_text(&fill(&self.input, scope)?)), scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let (written, schema) = &self.response;
        let ModelResult { answer, json, spent, .. } = self.asks.json(input, written, schema, call).await?;
        Ok(json!({"data": json, "usage": spent.written(), "model": answer.model}))
    }

    fn retry(&self) -> Retry {
        Retry::times(asking::ATTEMPTS)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(asking::TIMEOUT)
    }
}
