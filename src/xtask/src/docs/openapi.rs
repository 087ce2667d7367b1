//! `docs/openapi.json`, which the service serves: OpenAPI 3.1, from the declared operations and the types on the wire.

mod schemas;

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};
use wire::operation::{Access, Answer, Operation, Parameter, Values};
use wire::{ErrorBody, ErrorCode};

use schemas::Schemas;

const ABOUT: &str = "Stores and runs workflows, publishes them as chats that stream over SSE, and starts them by schedules and \
                     webhooks. `docs/PROTOCOL.md` describes streams, dialects and the websocket in words.";

/// What each part of the interface is about.
fn about(part: &str) -> &'static str {
    match part {
        "chat" => "Turns and threads of published workflows.",
        "workflows" => "Workflows, their versions and their publication.",
        "nodes" => "The catalogue of node types.",
        "indexes" => "Search indexes.",
        "runs" => "Executions of workflows.",
        "triggers" => "Schedules and webhooks.",
        "socket" => "The websocket.",
        "tokens" => "Service tokens and the audit trail.",
        "workspaces" => "Workspaces and their members.",
        "vault" => "Credentials of graphs.",
        "sign_in" => "Signing in by email or with a provider.",
        "health" => "Liveness and readiness.",
        "pages" => "Pages for people.",
        _ => "",
    }
}

pub(super) fn document() -> Result<String> {
    let (mut schemas, mut refusals) = (Schemas::new(), Refusals::default());
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for (part, operations) in wire::operations::PARTS {
        for operation in *operations {
            let path = operation.path.replace(":.*}", "}");
            let method = operation.method.as_str().to_lowercase();
            paths
                .entry(path)
                .or_default()
                .insert(method, described(part, operation, &mut schemas, &mut refusals));
        }
    }
    let tags: Vec<Value> = wire::operations::PARTS
        .iter()
        .map(|(part, _)| json!({"name": part, "description": about(part)}))
        .collect();
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Callboard",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "responses": refusals.responses,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A service token or a JWT. A service without configured credentials requires none.",
                },
            },
        },
    });
    Ok(serde_json::to_string_pretty(&schemas.place(&document)?)? + "\n")
}

fn described(part: &str, operation: &Operation, schemas: &mut Schemas, refusals: &mut Refusals) -> Value {
    let scope = match operation.access {
        Access::Scope(scope) | Access::Anywhere(scope) => Some(scope),
        Access::Own => None,
    };
    let mut text = plain(operation.about);
    if let Some(scope) = scope {
        text.push_str(&format!("\n\nScope: `{scope}`."));
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [part],
        "summary": summary(operation.id),
        "description": text,
        "security": if scope.is_some() { json!([{"bearer": []}]) } else { json!([]) },
        "parameters": parameters(operation),
        "responses": responses(operation, schemas, refusals),
    });
    if let (Some(body), Some(members)) = (operation.body, described.as_object_mut()) {
        let mut media = json!({"schema": schemas.of_request(body.shape)});
        example(&mut media, body.shape.example);
        let content = json!({"required": !body.optional, "content": {body.shape.media: media}});
        members.insert("requestBody".into(), content);
    }
    described
}

/// The name of an operation as words.
fn summary(id: &str) -> String {
    let words = id.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = |name: &str| {
        let about = path_parameter(operation.path, name);
        json!({"name": name, "in": "path", "required": true, "description": about, "schema": {"type": "string"}})
    };
    let header = |name: &str, about: &str| json!({"name": name, "in": "header", "description": about, "schema": {"type": "string"}});
    let mut all: Vec<Value> = operation.parameters().map(in_path).collect();
    all.extend(operation.query.iter().map(in_query));
    if operation.repeatable {
        all.push(header(
            "Idempotency-Key",
            "Makes the request safe to send again; 1 to 255 visible ASCII characters.",
        ));
    }
    if matches!(operation.access, Access::Scope(_)) && operation.parameters().next().is_none() {
        all.push(header("X-Workspace", "The workspace's slug, for callers of several."));
    }
    if operation.query.iter().any(|parameter| parameter.name == "after") {
        all.push(header("Last-Event-ID", "The id of the event to resume after."));
    }
    all
}

fn in_query(parameter: &Parameter) -> Value {
    let schema = match parameter.values {
        Values::Text => json!({"type": "string"}),
        Values::Flag => json!({"type": "boolean"}),
        Values::Whole(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Values::Number(from, to) => json!({"type": "number", "minimum": from, "maximum": to}),
        Values::Time => json!({"type": "string", "format": "date-time"}),
        Values::One(choices) => json!({"type": "string", "enum": choices}),
        Values::Some(choices) => json!({"type": "array", "items": {"type": "string", "enum": choices}}),
    };
    let mut described =
        json!({"name": parameter.name, "in": "query", "description": parameter.about, "schema": schema});
    if let (Values::Some(_), Some(members)) = (parameter.values, described.as_object_mut()) {
        members.insert("style".into(), "form".into());
        members.insert("explode".into(), false.into());
    }
    described
}

fn path_parameter(path: &str, name: &str) -> &'static str {
    match name {
        "ref" => "A workflow's UUID or handle.",
        "number" | "base" | "target" => "A version's number, or the id of a version or a draft.",
        "user_id" => "The id of the member's account.",
        "key" => "The key of the input that the run waits for.",
        "name" => "The index's name.",
        "type" => "The node type's name.",
        "token" => "The secret of the link.",
        "path" => "The file's path.",
        _ if path.starts_with("/api/workspaces/") => "A workspace's id or slug.",
        _ if path.starts_with("/chat/") => "A workflow's UUID.",
        _ => "Its id.",
    }
}

fn responses(operation: &Operation, schemas: &mut Schemas, refusals: &mut Refusals) -> Map<String, Value> {
    let mut responses: BTreeMap<u16, Value> = BTreeMap::new();
    for answer in operation.answers {
        let response = responses.entry(answer.status).or_insert_with(|| json!({"description": ""}));
        succeed(response, answer, schemas);
    }
    let mut codes: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in operation.codes() {
        codes.entry(code.status()).or_default().push(code);
    }
    // The interface has it so.
    if operation.id == "create_chat_session" {
        codes.entry(401).or_default().push(ErrorCode::MissingScope);
    }
    let has = |media: &str| {
        operation.answers.iter().any(|answer| answer.shape.is_some_and(|shape| shape.media == media))
    };
    let for_browsers = has("text/html") || operation.answers.iter().any(|answer| answer.status == 303);
    for (status, codes) in codes {
        let refusal = refusals.of(status, &codes, for_browsers, schemas);
        // A status that a success has too keeps its description.
        let response = match responses.remove(&status) {
            Some(mut success) => {
                beside(&mut success, refusals.body(&codes, schemas));
                success
            }
            None => refusal,
        };
        responses.insert(status, response);
    }
    responses.into_iter().map(|(status, response)| (status.to_string(), response)).collect()
}

fn succeed(response: &mut Value, answer: &Answer, schemas: &mut Schemas) {
    let Some(members) = response.as_object_mut() else { return };
    let text = match (answer.when, answer.shape) {
        ("", None) => "It is done.".to_owned(),
        ("", Some(_)) => "The answer.".to_owned(),
        (when, _) => format!("If {when}."),
    };
    describe(members, &text);
    let Some(shape) = answer.shape else { return };
    let schema = schemas.of_answer(shape);
    // OpenAPI 3.1 has no word for the events of a stream.
    let mut media = match shape.media {
        "text/event-stream" => json!({"schema": {"type": "string"}, "x-event-schema": schema}),
        _ => json!({"schema": schema}),
    };
    example(&mut media, shape.example);
    content(members).insert(shape.media.into(), media);
}

/// Lets a response have another body.
fn beside(response: &mut Value, schema: Value) {
    let Some(members) = response.as_object_mut() else { return };
    if let Some(media) =
        content(members).entry("application/json").or_insert_with(|| json!({})).as_object_mut()
    {
        let schema = match media.remove("schema") {
            Some(success) => json!({"anyOf": [success, schema]}),
            None => schema,
        };
        media.insert("schema".into(), schema);
    }
}

/// Responses that refuse a request, each described once.
#[derive(Default)]
struct Refusals {
    responses: Map<String, Value>,
    known: BTreeMap<(u16, Vec<&'static str>, bool), String>,
}

impl Refusals {
    /// A reference to the response with this status and one of these codes.
    fn of(&mut self, status: u16, codes: &[ErrorCode], for_browsers: bool, schemas: &mut Schemas) -> Value {
        let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        let count = self.known.keys().filter(|(other, ..)| *other == status).count();
        let name = match self.known.get(&(status, names.clone(), for_browsers)) {
            Some(name) => name.clone(),
            None => {
                let name = format!(
                    "Refused{status}{}",
                    if count == 0 { String::new() } else { format!("_{}", count + 1) }
                );
                let mut content = json!({"application/json": {"schema": self.body(codes, schemas)}});
                if let (true, Some(content)) = (for_browsers, content.as_object_mut()) {
                    content.insert("text/html".into(), json!({"schema": {"type": "string"}}));
                }
                let text = format!("Refused with the code `{}`.", names.join("`, `"));
                self.responses.insert(name.clone(), json!({"description": text, "content": content}));
                self.known.insert((status, names, for_browsers), name.clone());
                name
            }
        };
        json!({"$ref": format!("#/components/responses/{name}")})
    }

    fn body(&self, codes: &[ErrorCode], schemas: &mut Schemas) -> Value {
        let names: Vec<&str> = codes.iter().map(|code| code.as_str()).collect();
        let code = json!({"properties": {"detail": {"properties": {"code": {"enum": names}}}}});
        json!({"allOf": [schemas.of_type::<ErrorBody>(), code]})
    }
}

fn describe(response: &mut Map<String, Value>, text: &str) {
    let before = response.get("description").and_then(Value::as_str).unwrap_or_default();
    let all = if before.is_empty() { text.to_owned() } else { format!("{before}\n{text}") };
    response.insert("description".into(), all.into());
}

fn content(response: &mut Map<String, Value>) -> &mut Map<String, Value> {
    let content = response.entry("content").or_insert_with(|| json!({}));
    if !content.is_object() {
        *content = json!({});
    }
    // It is an object now.
    #[expect(clippy::unwrap_used, reason = "made an object two lines above")]
    content.as_object_mut().unwrap()
}

/// Adds an example; that it is JSON, and fits its schema, is tested.
fn example(media: &mut Value, example: Option<&str>) {
    let example = example.and_then(|example| serde_json::from_str(example).ok());
    if let (Some(example), Some(members)) = (example, media.as_object_mut()) {
        members.insert("example".into(), example);
    }
}

/// A text whose links lead from the root of the documents.
fn plain(text: &str) -> String {
    text.replace("](#", "](PROTOCOL.md#")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Value {
        serde_json::from_str(&super::document().unwrap()).unwrap()
    }

    #[test]
    fn every_operation_is_described() {
        let document = document();
        for operation in wire::operations::all() {
            let path = operation.path.replace(":.*}", "}");
            let method = operation.method.as_str().to_lowercase();
            let described = &document["paths"][&path][&method];
            assert_eq!(described["operationId"], operation.id);
            assert!(!described["summary"].as_str().unwrap().is_empty());
            for response in described["responses"].as_object().unwrap().values() {
                let said = response["description"].as_str().is_some_and(|text| !text.is_empty());
                assert!(said || response.get("$ref").is_some(), "{}", operation.id);
            }
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let text = document.to_string();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let references: Vec<&str> = text.split("\"#/components/schemas/").skip(1).collect();
        assert!(references.len() > 100);
        for rest in references {
            let name = rest.split('"').next().unwrap();
            assert!(schemas.contains_key(name), "{name}");
        }
    }

    #[test]
    fn every_example_fits_its_schema() {
        let document = document();
        let mut count = 0;
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let bodies = operation["responses"].as_object().unwrap().values();
                for body in bodies.chain([&operation["requestBody"]]) {
                    for media in body["content"].as_object().into_iter().flatten().map(|(_, media)| media) {
                        let Some(example) = media.get("example") else { continue };
                        let schema = json!({
                            "$schema": "https://json-schema.org/draft/2020-12/schema",
                            "components": document["components"],
                            "allOf": [media["schema"]],
                        });
                        let validator = jsonschema::validator_for(&schema).unwrap();
                        let errors: Vec<String> = validator
                            .iter_errors(example)
                            .map(|error| format!("{error} at {}", error.instance_path()))
                            .collect();
                        assert!(errors.is_empty(), "{method} {path}: {errors:?}");
                        count += 1;
                    }
                }
            }
        }
        let examples = wire::operations::all().map(|one| {
            let answers =
                one.answers.iter().filter(|answer| answer.shape.is_some_and(|shape| shape.example.is_some()));
            answers.count() + usize::from(one.body.is_some_and(|body| body.shape.example.is_some()))
        });
        assert_eq!(count, examples.sum::<usize>());
    }
}
