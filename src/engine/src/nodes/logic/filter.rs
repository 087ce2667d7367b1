//! `filter`: keeps the list entries for which a condition holds.

use async_trait::async_trait;
use minijinja::Value as View;
use minijinja::value::Serde;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{expression_field, list, list_field};
use crate::template::{Expression, fill, overlay};

pub(crate) const TYPE: NodeType = NodeType {
    name: "filter",
    group: "logic",
    summary: "Keeps the entries of a list for which a condition holds.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "The list of the kept entries.",
    members: &[],
    example: || json!({"name": "open", "type": "filter", "items": "{{ inputs.tickets }}", "when": "item.status == 'open'"}),
    build,
};

struct Filter {
    items: Value,
    when: String,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["items", "when"], "properties": {
        "items": {"type": ["string", "array"], "description": "The list, or a template of it."},
        "when": {"type": "string", "description": "The condition; `item` and `index` are the entry and its index."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let items = list_field(fields, "items", check);
    let when = expression_field(fields, "when", &["item", "index"], check);
    Some(Box::new(Filter { items: items?, when: when? }))
}

#[async_trait]
impl Node for Filter {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let items = list(fill(&self.items, scope)?)?;
        let when = Expression::compile(&self.when)?;
        let mut kept = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let names = View::from_pairs([("item", View::from(Serde(&item))), ("index", View::from(index))]);
            if when.holds(&overlay(scope, names))? {
                kept.push(item);
            }
        }
        Ok(Value::Array(kept))
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        Ok(input)
    }
}
