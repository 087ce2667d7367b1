//! `collection_get`: reads a record from a collection in the app that started the run.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use super::collection;
use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::text_field;
use crate::template::fill;

pub(crate) const TYPE: NodeType = NodeType {
    name: "collection_get",
    group: "data",
    summary: "Reads a record of a collection; only in runs that a page of an app has started.",
    effect: Effect::Reads,
    secrets: &[],
    schema,
    result: "`{record: {id, version, created_at, updated_at, data}}`; the record is null if no record has this id.",
    members: &["record"],
    example: || json!({"name": "read", "type": "collection_get", "collection": "favourites", "id": "{{ inputs.id }}"}),
    build,
};

struct CollectionGet {
    collection: String,
    id: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["collection", "id"], "properties": {
        "collection": collection::schema(),
        "id": {"type": "string", "description": "Id of the record; a template."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let collection = collection::field(fields, check);
    let id = text_field(fields, "id", check);
    Some(Box::new(CollectionGet { collection: collection?, id: id? }))
}

#[async_trait]
impl Node for CollectionGet {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        Ok(json!({"collection": self.collection, "id": fill(&self.id, scope)?}))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let record = call.collections().get(&self.collection, &collection::text(&input, "id")).await?;
        Ok(json!({"record": record}))
    }

    fn retry(&self) -> Retry {
        Retry::times(3)
    }
}
