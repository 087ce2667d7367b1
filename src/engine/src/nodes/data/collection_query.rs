//! `collection_query`: reads records from a collection in the app that started the run.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};

use super::collection;
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::CollectionQuery;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::optional_text_field;
use crate::template::fill;

const LIMIT: u32 = 100;
const MAX_LIMIT: u32 = 1_000;
const ORDERS: [&str; 2] = ["created_at", "-created_at"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "collection_query",
    group: "data",
    summary: "Reads records of a collection, in order of creation; only in runs that a page of an app has started.",
    effect: Effect::Reads,
    secrets: &[],
    schema,
    result: "`{items: [{id, version, created_at, updated_at, data}], next_cursor}`; the cursor is null after the last record.",
    members: &["items", "next_cursor"],
    example: || {
        json!({"name": "latest", "type": "collection_query", "collection": "favourites", "limit": 20,
               "order": "-created_at"})
    },
    build,
};

struct CollectionRead {
    collection: String,
    limit: u32,
    descending: bool,
    cursor: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["collection"], "properties": {
        "collection": collection::schema(),
        "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": LIMIT, "description": "Maximum number of records."},
        "order": {"enum": ORDERS, "default": "created_at", "description": "Oldest first, or with `-` newest first."},
        "cursor": {"type": "string", "description": "`next_cursor` of the page before; a template. Empty: from the beginning."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let collection = collection::field(fields, check);
    let limit = fields.whole("limit", 1..=MAX_LIMIT, &mut check.problems).unwrap_or(LIMIT);
    let order = fields.word("order", &ORDERS, &mut check.problems);
    let cursor = optional_text_field(fields, "cursor", check);
    let descending = order.is_some_and(|order| order.starts_with('-'));
    Some(Box::new(CollectionRead { collection: collection?, limit, descending, cursor }))
}

#[async_trait]
impl Node for CollectionRead {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = Map::new();
        input.insert("collection".to_owned(), json!(self.collection));
        input.insert("limit".to_owned(), json!(self.limit));
        input.insert("descending".to_owned(), json!(self.descending));
        if let Some(cursor) = &self.cursor {
            input.insert("cursor".to_owned(), fill(cursor, scope)?);
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let cursor = Some(collection::text(&input, "cursor")).filter(|cursor| !cursor.is_empty());
        let query = CollectionQuery { limit: self.limit, descending: self.descending, cursor };
        let (items, next_cursor) = call.collections().query(&self.collection, query).await?;
        Ok(json!({"items": items, "next_cursor": next_cursor}))
    }

    fn retry(&self) -> Retry {
        Retry::times(3)
    }
}
