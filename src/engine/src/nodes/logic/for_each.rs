//! `for_each`: runs one node for every list entry.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use minijinja::Value as View;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType, PlanNode};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::graph::parse::read_inner;
use crate::nodes::fields::{list, list_field};
use crate::nodes::plan_body;
use crate::template::fill;

/// Maximum list entries.
const MOST_ITEMS: usize = 10_000;
/// Maximum concurrent entries.
const CONCURRENCY_MAX: u32 = 32;

pub(crate) const TYPE: NodeType = NodeType {
    name: "for_each",
    group: "logic",
    summary: "Runs one node for every entry of a list, several concurrently.",
    effect: Effect::Nested,
    secrets: &[],
    schema,
    result: "`{items, errors}`: results in the order of the list, null if an entry failed; `errors` lists \
             `{index, code, message}`.",
    members: &["items", "errors"],
    example: || {
        json!({"name": "parts", "type": "for_each", "items": "{{ inputs.parts }}", "concurrency": 4,
               "on_item_error": "continue",
               "body": {"type": "template", "template": "{{ index }}: {{ item }}"}})
    },
    build,
};

struct ForEach {
    items: Value,
    body: Arc<PlanNode>,
    concurrency: u32,
    go_on: bool,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["items", "body"], "properties": {
        "items": {"type": ["string", "array"], "description": "The list, or a template of it; at most 10,000 entries."},
        "body": {"type": "object", "description": "A node without a name; `item` and `index` are the entry and its index.",
                 "required": ["type"]},
        "concurrency": {"type": "integer", "minimum": 1, "maximum": CONCURRENCY_MAX, "default": 4,
                        "description": "Maximum number of entries in progress at the same time."},
        "on_item_error": {"enum": ["fail", "continue"], "default": "fail",
                          "description": "Whether a failed entry fails the node, or is listed in `errors`."}}})
}

fn build(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let items = list_field(fields, "items", check);
    let concurrency = fields.whole("concurrency", 1..=CONCURRENCY_MAX, &mut check.problems).unwrap_or(4);
    let on_item_error = fields.word("on_item_error", &["fail", "continue"], &mut check.problems);
    let body = read(fields, spec, check);
    Some(Box::new(ForEach {
        items: items?,
        body: Arc::new(body?),
        concurrency,
        go_on: on_item_error == Some("continue"),
    }))
}

fn read(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Option<PlanNode> {
    let pointer = fields.at("body");
    let body = fields.required("body", &mut check.problems)?;
    let body = read_inner(pointer, body, &spec.name, "the body of a for_each", &mut check.problems)?;
    if body.kind == "for_each" {
        let message = "a for_each inside a for_each is not allowed";
        let problem = FieldError::new(format!("{}/type", body.pointer), "nested", message);
        check.note(problem.suggest("put the inner one into a workflow and call it with sub_workflow"));
        return None;
    }
    check.with_items(|check| plan_body(&body, check))
}

#[async_trait]
impl Node for ForEach {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let items = list(fill(&self.items, scope)?)?;
        if items.len() > MOST_ITEMS {
            return Err(NodeError::failed(format!("{} entries; at most {MOST_ITEMS}", items.len())));
        }
        Ok(Value::Array(items))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let items = list(input)?;
        let nested = call.nested(items.len()).tolerating(self.go_on);
        let places = Semaphore::new(usize::try_from(self.concurrency).unwrap_or(1));
        let results = nested
            .with_output(async |output| {
                let mut running: FuturesUnordered<_> = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| {
                        let (nested, places) = (&nested, &places);
                        async move {
                            let _place = places.acquire().await;
                            if nested.is_halted() {
                                return (index, Err(Failure::Halted));
                            }
                            let result = nested.item(&self.body, index, item, output).await;
                            let fails = match &result {
                                Ok(_) | Err(Failure::Halted) => false,
                                Err(Failure::Failed(_)) => !self.go_on,
                                Err(Failure::Lost(_)) => true,
                            };
                            if fails {
                                nested.halt();
                            }
                            (index, result)
                        }
                    })
                    .collect();
                let mut results: Vec<Option<Result<Value, Failure>>> = vec![None; items.len()];
                while let Some((index, result)) = running.next().await {
                    if let Some(place) = results.get_mut(index) {
                        *place = Some(result);
                    }
                }
                results
            })
            .await;
        self.result(results)
    }

    fn streams(&self) -> bool {
        self.body.node.streams()
    }

    fn names_its_entries(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }
}

impl ForEach {
    fn result(&self, results: Vec<Option<Result<Value, Failure>>>) -> Result<Value, Failure> {
        let mut items = Vec::with_capacity(results.len());
        let mut errors = Vec::new();
        let mut halted = false;
        for (index, result) in results.into_iter().enumerate() {
            match result {
                Some(Ok(result)) => items.push(result),
                Some(Err(Failure::Failed(error))) if self.go_on => {
                    items.push(Value::Null);
                    errors
                        .push(json!({"index": index, "code": error.code.as_str(), "message": error.message}));
                }
                Some(Err(failure @ (Failure::Failed(_) | Failure::Lost(_)))) => return Err(failure),
                Some(Err(Failure::Halted)) | None => halted = true,
            }
        }
        if halted { Err(Failure::Halted) } else { Ok(json!({"items": items, "errors": errors})) }
    }
}
