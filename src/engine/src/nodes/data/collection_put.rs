//! `collection_put`: stores a record in a collection of the app that started the run.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;

use super::collection;
use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::ports::CollectionPut;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::fields::Fields;
use crate::graph::{NodeSpec, Retry};
use crate::nodes::fields::{optional_id_field, optional_text_field, value_field};
use crate::template::{fill, has_holes};

pub(crate) const TYPE: NodeType = NodeType {
    name: "collection_put",
    group: "data",
    summary: "Creates a record in a collection, or replaces a version of one; only in runs that a page of \
              an app has started.",
    effect: Effect::Outbound,
    secrets: &[],
    schema,
    result: "`{record: {id, version, created_at, updated_at, data}}`.",
    members: &["record"],
    example: || {
        json!({"name": "store", "type": "collection_put", "collection": "favourites",
               "data": {"title": "{{ inputs.title }}", "stars": 5}})
    },
    build,
};

struct CollectionStore {
    collection: String,
    data: Value,
    id: Option<Value>,
    version: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["collection", "data"], "dependentRequired": {"id": ["version"], "version": ["id"]},
           "properties": {
        "collection": collection::schema(),
        "data": {"type": ["object", "string"],
                 "description": "An object in which strings are templates, or a template of an object; at most 64 KiB and 32 levels."},
        "id": {"type": "string", "description": "Id of the record to replace; a template. Absent: the record is new."},
        "version": {"type": ["integer", "string"], "description": "The version that it has, or a template of it; required with `id`."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let collection = collection::field(fields, check);
    let good = match fields.value("data") {
        Some(Value::Object(_)) | None => true,
        Some(Value::String(text)) => has_holes(text),
        Some(_) => false,
    };
    if !good {
        let problem = FieldError::new(fields.at("data"), "type", "must be an object, or a template of one");
        check.note(problem.suggest("\"data\": {\"title\": \"{{ inputs.title }}\"}"));
    }
    let data = value_field(fields, "data", check);
    let id = optional_text_field(fields, "id", check);
    let version = optional_id_field(fields, "version", check);
    for (name, other) in [("version", "id"), ("id", "version")] {
        if fields.value(name).is_none() && fields.value(other).is_some() {
            let problem =
                FieldError::new(fields.at(name), "required", format!("needs '{name}' with '{other}'"));
            check.note(problem.suggest(format!("\"{name}\": \"{{{{ results.read.record.{name} }}}}\"")));
        }
    }
    Some(Box::new(CollectionStore { collection: collection?, data: data?, id, version }))
}

#[async_trait]
impl Node for CollectionStore {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = Map::new();
        input.insert("collection".to_owned(), json!(self.collection));
        input.insert("data".to_owned(), fill(&self.data, scope)?);
        for (name, field) in [("id", self.id.as_ref()), ("version", self.version.as_ref())] {
            if let Some(field) = field {
                input.insert(name.to_owned(), fill(field, scope)?);
            }
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, mut input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let data = match input.get_mut("data").map(Value::take) {
            Some(Value::Object(data)) => data,
            other => {
                let given = other.unwrap_or_default();
                return Err(
                    NodeError::failed(format!("'data' must be an object, not {}", kind(&given))).into()
                );
            }
        };
        let replaces = match self.id {
            // A missing id must not turn an update into a create.
            Some(_) => Some((collection::text(&input, "id"), collection::whole(&input, "version")?)),
            None => None,
        };
        let attempt = crate::canonical::sha256(&[call.idempotency_key().as_bytes()]);
        let record =
            call.collections().put(&self.collection, CollectionPut { data, replaces, attempt }).await?;
        Ok(json!({"record": record}))
    }

    fn is_idempotent(&self) -> bool {
        true
    }

    fn retry(&self) -> Retry {
        Retry::times(3)
    }
}
