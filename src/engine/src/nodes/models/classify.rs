//! `classify`: chooses one or several of a few labels.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::{optional_text_field, text_field};
use crate::nodes::models::asking::{self, Asks, ModelResult};
use crate::nodes::models::{demos, target};
use crate::schema::{self, Schema};
use crate::template::{as_text, fill};

/// Maximum labels, and maximum characters per label.
const MOST_LABELS: usize = 200;
const LONGEST: usize = 100;

pub(crate) const TYPE: NodeType = NodeType {
    name: "classify",
    group: "models",
    summary: "Chooses one or several labels for a text with a language model.",
    effect: Effect::Model,
    secrets: target::SECRETS,
    schema,
    result: "`{label, reason, usage: {calls, input_tokens, output_tokens, cost_usd}, model}`; with `multiple`, \
             a list `labels` instead of `label`.",
    members: &["label", "labels", "reason", "usage", "model"],
    example: || {
        json!({"name": "kind", "type": "classify", "model": "openai/gpt-4.1-mini", "input": "{{ inputs.message }}",
               "labels": [{"name": "refund", "description": "wants money back"}, {"name": "other"}]})
    },
    build,
};

struct Classify {
    asks: Asks,
    input: Value,
    instructions: Option<Value>,
    labels: Vec<Label>,
    multiple: bool,
    response: (Value, Schema),
}

struct Label {
    name: String,
    description: Option<String>,
}

fn schema() -> Value {
    let label = json!({"oneOf": [
        {"type": "string", "minLength": 1, "maxLength": LONGEST},
        {"type": "object", "required": ["name"], "additionalProperties": false,
         "properties": {"name": {"type": "string", "minLength": 1, "maxLength": LONGEST}, "description": {"type": "string"}}}]});
    let own = json!({
        "input": {"type": "string", "description": "The text to classify; a template."},
        "labels": {"type": "array", "minItems": 2, "maxItems": MOST_LABELS, "items": label,
                   "description": "Names, or objects `{name, description}`; names must be unique."},
        "multiple": {"type": "boolean", "default": false, "description": "Return every label that fits, possibly none."},
        "instructions": {"type": "string", "description":
            "Additional instructions for the model; a template. [Demos](#demos) of the prompts that it reads follow it."}});
    asking::schema(&["model", "input", "labels"], own)
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let asks = Asks::read(fields, check);
    let input = text_field(fields, "input", check);
    let instructions = optional_text_field(fields, "instructions", check);
    let multiple = fields.boolean("multiple", &mut check.problems).unwrap_or(false);
    let labels = read_labels(fields, check);
    let names: Vec<&str> = labels.iter().map(|label| label.name.as_str()).collect();
    let written = response(&names, multiple);
    let compiled = schema::compile(&written, &fields.at("labels"), check);
    Some(Box::new(Classify {
        asks: asks?,
        input: input?,
        instructions,
        response: (written, compiled?),
        labels,
        multiple,
    }))
}

fn response(names: &[&str], multiple: bool) -> Value {
    let one = json!({"type": "string", "enum": names});
    let (name, chosen) =
        if multiple { ("labels", json!({"type": "array", "items": one})) } else { ("label", one) };
    json!({"type": "object", "additionalProperties": false, "required": [name, "reason"],
           "properties": {name: chosen, "reason": {"type": "string"}}})
}

fn read_labels(fields: &mut Fields<'_>, check: &mut Check) -> Vec<Label> {
    const SUGGESTION: &str = r#""labels": ["refund", {"name": "other", "description": "anything else"}]"#;
    let pointer = fields.at("labels");
    let Some(value) = fields.required("labels", &mut check.problems) else { return Vec::new() };
    let entries = value.as_array().map(Vec::as_slice).unwrap_or_default();
    if !(2..=MOST_LABELS).contains(&entries.len()) {
        let problem =
            FieldError::new(pointer, "labels", format!("must be a list of 2 to {MOST_LABELS} labels"));
        check.note(problem.suggest(SUGGESTION));
        return Vec::new();
    }
    let mut labels: Vec<Label> = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let at = format!("{pointer}/{index}");
        let label = match entry {
            Value::String(name) => Some(Label { name: name.clone(), description: None }),
            Value::Object(_) => {
                Fields::from_value(at.clone(), entry, &mut check.problems).and_then(|mut fields| {
                    let name = fields.text("name", &mut check.problems).map(str::to_owned);
                    let description =
                        fields.optional_text("description", &mut check.problems).map(str::to_owned);
                    fields.refuse_others(&mut check.problems);
                    Some(Label { name: name?, description })
                })
            }
            _ => {
                let problem = FieldError::new(at, "type", "must be a string or {name, description}");
                check.note(problem.suggest(SUGGESTION));
                continue;
            }
        };
        let Some(label) = label else { continue };
        if label.name.trim().is_empty() || label.name.chars().count() > LONGEST {
            let problem =
                FieldError::new(at, "label", format!("a label must have 1 to {LONGEST} characters"));
            check.note(problem.suggest(SUGGESTION));
        } else if labels.iter().any(|known| known.name == label.name) {
            let problem = FieldError::new(at, "duplicate", format!("duplicate '{}'", label.name));
            check.note(problem.suggest("name it once"));
        } else {
            labels.push(label);
        }
    }
    labels
}

#[async_trait]
impl Node for Classify {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let names: Vec<&str> = self.labels.iter().map(|label| label.name.as_str()).collect();
        let mut system = if self.multiple {
            "Choose every label that fits the message; it may be none.".to_owned()
        } else {
            "Choose the one label that fits the message best.".to_owned()
        };
        system.push_str(&format!("\nLabels: {}.\n", names.join(", ")));
        for Label { name, description } in &self.labels {
            if let Some(description) = description {
                system.push_str(&format!("- {name}: {description}\n"));
            }
        }
        if let Some(instructions) = &self.instructions {
            system.push_str(&demos::with_lines(instructions, scope)?);
        }
        self.asks.input(asking::messages(system, as_text(&fill(&self.input, scope)?)), scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let (written, schema) = &self.response;
        let ModelResult { answer, mut json, spent, .. } =
            self.asks.json(input, written, schema, call).await?;
        if let Some(members) = json.as_object_mut() {
            members.insert("usage".to_owned(), spent.written());
            members.insert("model".to_owned(), json!(answer.model));
        }
        Ok(json)
    }

    fn retry(&self) -> Retry {
        Retry::times(asking::ATTEMPTS)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(asking::TIMEOUT)
    }
}
