//! `embed`: computes vectors for texts.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::value_field;
use crate::nodes::models::asking::{self, Spent};
use crate::nodes::models::target::{self, Chosen, ModelTarget};
use crate::template::{as_text, fill, has_holes};
use models::EmbedRequest;

/// Maximum texts per node, and per request: the usual batch limit of endpoints.
const MOST_TEXTS: usize = 2_000;
const AT_ONCE: usize = 100;
const MOST_DIMENSIONS: u32 = 8_192;

pub(crate) const TYPE: NodeType = NodeType {
    name: "embed",
    group: "models",
    summary: "Computes embeddings of texts: related texts have vectors that are close.",
    effect: Effect::Model,
    secrets: target::SECRETS,
    schema,
    result: "`{vector, usage: {calls, input_tokens, output_tokens, cost_usd}, model}`; for a list of texts a list `vectors`, \
             in the same order, instead of `vector`.",
    members: &["vector", "vectors", "usage", "model"],
    example: || {
        json!({"name": "vectors", "type": "embed", "model": "openai/text-embedding-3-small",
               "input": "{{ inputs.texts }}", "dimensions": 256})
    },
    build,
};

struct Embed {
    target: ModelTarget,
    input: Value,
    dimensions: Option<u32>,
}

fn schema() -> Value {
    let mut properties = target::properties();
    let own = json!({
        "input": {"type": ["string", "array"], "items": {"type": "string"},
                  "description": "A text, a list of at most 2,000, or a template of either."},
        "dimensions": {"type": "integer", "minimum": 1, "maximum": MOST_DIMENSIONS,
                       "description": "Number of dimensions, if the model supports it."}});
    properties.extend(own.as_object().cloned().unwrap_or_default());
    json!({"type": "object", "required": ["model", "input"], "properties": properties})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let target = ModelTarget::read(fields, check);
    let input = value_field(fields, "input", check).filter(|input| {
        let texts = match input {
            Value::String(_) => true,
            Value::Array(texts) => texts.iter().all(Value::is_string),
            _ => false,
        };
        if !texts {
            let problem = FieldError::new(fields.at("input"), "type", "must be a text or a list of texts");
            check.note(problem.suggest("\"input\": \"{{ inputs.text }}\""));
        }
        texts
    });
    let dimensions = fields.whole("dimensions", 1..=MOST_DIMENSIONS, &mut check.problems);
    Some(Box::new(Embed { target: target?, input: input?, dimensions }))
}

impl Embed {
    /// Fills the input: a text or a list of texts. A text template may yield either.
    fn texts(&self, scope: &View) -> Result<Value, NodeError> {
        let filled = fill(&self.input, scope)?;
        match filled {
            Value::String(_) => Ok(filled),
            Value::Array(texts) if texts.len() > MOST_TEXTS => {
                Err(NodeError::failed(format!("{} texts; at most {MOST_TEXTS}", texts.len())))
            }
            Value::Array(texts) => match texts.iter().find(|text| !text.is_string()) {
                Some(other) => {
                    Err(NodeError::failed(format!("a text must be a string, not {}", kind(other))))
                }
                None => Ok(Value::Array(texts)),
            },
            other => {
                let written = self.input.as_str().is_some_and(has_holes);
                let hint = if written { "; `| string` converts it to a string" } else { "" };
                Err(NodeError::failed(format!(
                    "the input must be a text or a list of texts, not {}{hint}",
                    kind(&other)
                )))
            }
        }
    }
}

#[async_trait]
impl Node for Embed {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = self.target.input(scope)?;
        input.insert("input".to_owned(), self.texts(scope)?);
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let chosen = Chosen::from_input(&input);
        let (provider, model) = chosen.find(call).await?;
        let given = input.get("input").unwrap_or(&Value::Null);
        let (texts, single) = match given {
            Value::Array(texts) => (texts.iter().map(as_text).collect::<Vec<_>>(), false),
            text => (vec![as_text(text)], true),
        };
        let mut spent = Spent::new();
        let (mut vectors, mut answered_by) = (Vec::with_capacity(texts.len()), None);
        for (number, texts) in texts.chunks(AT_ONCE).enumerate() {
            let request = EmbedRequest {
                model: model.to_owned(),
                texts: texts.to_vec(),
                dimensions: self.dimensions,
                idempotency_key: Some(format!("{}-{number}", call.idempotency_key())),
            };
            let made = call.embed_texts(chosen.asked(&*provider), &request).await?;
            spent.add(&chosen.name, made.usage);
            call.note_usage(spent.written());
            vectors.extend(made.vectors);
            answered_by = made.model;
        }
        let mut result = json!({"usage": spent.written(), "model": answered_by});
        if let Some(members) = result.as_object_mut() {
            if single {
                members.insert("vector".to_owned(), json!(vectors.pop().unwrap_or_default()));
            } else {
                members.insert("vectors".to_owned(), json!(vectors));
            }
        }
        Ok(result)
    }

    fn retry(&self) -> Retry {
        Retry::times(asking::ATTEMPTS)
    }

    fn timeout(&self) -> Option<Duration> {
        Some(asking::TIMEOUT)
    }
}
