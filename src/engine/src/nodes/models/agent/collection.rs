//! Agent tools for a collection in the app that started the run: one tool per operation.

use serde_json::{Value, json};
use wire::FieldError;

use super::tools::Offered;
use crate::check::Check;
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::graph::parse::read_inner;
use crate::nodes::data::collection;
use crate::nodes::plan_body;
use crate::schema;

const VERBS: [&str; 3] = ["read", "create", "update"];
/// Maximum bytes in a tool name.
const MAX_TOOL_NAME: usize = 64;
const GET: &str = "get";
const QUERY: &str = "query";
const CREATE: &str = "create";
/// Name prefix of tools that replace records.
pub(crate) const UPDATE: &str = "update";

/// Returns a verb's tools: their name prefixes and node types.
pub(crate) fn tools_of_verb(verb: &str) -> Vec<(&'static str, &'static str)> {
    match verb {
        "read" => vec![(GET, "collection_get"), (QUERY, "collection_query")],
        "create" => vec![(CREATE, "collection_put")],
        "update" => vec![(UPDATE, "collection_put")],
        _ => Vec::new(),
    }
}

pub(super) fn schema() -> Value {
    json!({"type": "object", "required": ["type", "collection", "verbs"], "additionalProperties": false, "properties": {
        "type": {"const": "collection"}, "collection": collection::schema(),
        "verbs": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"enum": VERBS},
                  "description": "Operations that the model may use on its records."}}})
}

/// Reads a tool of type `collection`.
pub(super) fn read(fields: &mut Fields<'_>, spec: &NodeSpec, check: &mut Check) -> Vec<Offered> {
    fields.required("type", &mut check.problems);
    let collection = collection::field(fields, check);
    let verbs = read_verbs(fields, check);
    let pointer = fields.at("collection");
    fields.refuse_others(&mut check.problems);
    let Some(collection) = collection else { return Vec::new() };
    let tools = verbs.into_iter().flat_map(tools_of_verb);
    tools.filter_map(|(prefix, kind)| tool(prefix, kind, &collection, &pointer, spec, check)).collect()
}

fn read_verbs<'a>(fields: &mut Fields<'a>, check: &mut Check) -> Vec<&'a str> {
    let Some(given) = fields.required("verbs", &mut check.problems) else { return Vec::new() };
    let entries = given.as_array().map(Vec::as_slice).unwrap_or_default();
    let verbs: Vec<&str> =
        entries.iter().filter_map(Value::as_str).filter(|verb| VERBS.contains(verb)).collect();
    let repeated =
        verbs.iter().enumerate().any(|(index, verb)| verbs.iter().skip(index + 1).any(|one| one == verb));
    if verbs.is_empty() || verbs.len() < entries.len() || repeated {
        let message = format!("must be a list of {}, each at most once", VERBS.join(", "));
        check.note(FieldError::new(fields.at("verbs"), "choice", message).suggest(r#""verbs": ["read"]"#));
    }
    verbs
}

fn tool(
    prefix: &str,
    kind: &str,
    collection: &str,
    pointer: &str,
    spec: &NodeSpec,
    check: &mut Check,
) -> Option<Offered> {
    let name = format!("{prefix}_{collection}");
    if name.len() > MAX_TOOL_NAME {
        let message =
            format!("'{name}' is too long for the name of a tool: at most {MAX_TOOL_NAME} characters");
        check.note(FieldError::new(pointer, "name", message).suggest("a shorter name of the collection"));
        return None;
    }
    let (description, parameters, own) = match prefix {
        GET => (
            format!("Reads a record of the collection '{collection}' by its id."),
            json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}}),
            json!({"id": "{{ args.id }}"}),
        ),
        QUERY => (
            format!("Reads records of the collection '{collection}', the newest first."),
            json!({"type": "object", "properties": {"cursor": {"type": "string", "description": "next_cursor of the page before"}}}),
            json!({"limit": 50, "order": "-created_at", "cursor": "{{ args.cursor | default('') }}"}),
        ),
        CREATE => (
            format!("Creates a record in the collection '{collection}'."),
            json!({"type": "object", "required": ["data"], "properties": {"data": {"type": "object"}}}),
            json!({"data": "{{ args.data }}"}),
        ),
        _ => (
            format!(
                "Replaces the data of a record of the collection '{collection}', which must have this version."
            ),
            json!({"type": "object", "required": ["id", "version", "data"], "properties": {
                "id": {"type": "string"}, "version": {"type": "integer"}, "data": {"type": "object"}}}),
            json!({"id": "{{ args.id }}", "version": "{{ args.version }}", "data": "{{ args.data }}"}),
        ),
    };
    let mut node = own;
    if let Some(members) = node.as_object_mut() {
        members.insert("type".to_owned(), json!(kind));
        members.insert("collection".to_owned(), json!(collection));
    }
    let compiled = schema::compile(&parameters, pointer, check)?;
    let body = read_inner(pointer.to_owned(), &node, &spec.name, "the node of a tool", &mut check.problems)?;
    let node = check.with_args(|check| plan_body(&body, check))?;
    Some(Offered::from_node(name, description, parameters, compiled, node))
}
