//! `docs/openapi.json`, which the service serves: OpenAPI 3.1, from the declared operations and the wire types.

mod schemas;

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::{Map, Value, json};
use wire::operation::{Access, Answer, Operation, Parameter, Values};
use wire::{ErrorBody, ErrorCode};

use schemas::Schemas;

const ABOUT: &str = "Stores and runs workflows, publishes them as chats that stream over SSE, and starts them by schedules and \
                     webhooks. `docs/PROTOCOL.md` describes streams, dialects and the websocket in words.";

pub(super) fn document() -> Result<String> {
    let (mut schemas, mut refusals) = (Schemas::new(), Refusals::default());
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for part in wire::operations::PARTS {
        for operation in part.operations {
            let path = operation.path.replace(":.*}", "}");
            let method = operation.method.as_str().to_lowercase();
            paths
                .entry(path)
                .or_default()
                .insert(method, described(part.name, operation, &mut schemas, &mut refusals));
        }
    }
    let tags: Vec<Value> = wire::operations::PARTS
        .iter()
        .map(|part| json!({"name": part.name, "description": part.about}))
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
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "__Host-svc_session",
                    "description": "The sign-in of a browser.",
                },
            },
        },
    });
    let mut document = schemas.place(&document)?;
    document.sort_all_objects();
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn described(part: &str, operation: &Operation, schemas: &mut Schemas, refusals: &mut Refusals) -> Value {
    let mut text = plain(operation.about);
    if let Some(scope) = operation.scope() {
        text.push_str(&format!("\n\nScope: `{scope}`."));
    }
    let mut described = json!({
        "operationId": operation.id,
        "tags": [part],
        "summary": summary(operation.id),
        "description": text,
        "security": match operation.access {
            Access::Scope(_) | Access::Anywhere(_) => json!([{"bearer": []}]),
            Access::User => json!([{"bearer": []}, {"session": []}]),
            Access::Own => json!([]),
        },
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

/// An operation's name as words.
fn summary(id: &str) -> String {
    let words = id.replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn parameters(operation: &Operation) -> Vec<Value> {
    let in_path = |name: &str| {
        let about = wire::operations::in_path(operation.path, name);
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
        Values::Boolean => json!({"type": "boolean"}),
        Values::Integer(from, to) => json!({"type": "integer", "minimum": from, "maximum": to}),
        Values::Number(from, to) => json!({"type": "number", "minimum": from, "maximum": to}),
        Values::Time => json!({"type": "string", "format": "date-time"}),
        Values::OneOf(choices) => json!({"type": "string", "enum": choices}),
        Values::AnyOf(choices) => json!({"type": "array", "items": {"type": "string", "enum": choices}}),
    };
    let mut described =
        json!({"name": parameter.name, "in": "query", "description": parameter.about, "schema": schema});
    if let (Values::AnyOf(_), Some(members)) = (parameter.values, described.as_object_mut()) {
        members.insert("style".into(), "form".into());
        members.insert("explode".into(), false.into());
    }
    described
}

/// A response before it is written: several answers and refusals may share a status.
#[derive(Default)]
struct Response {
    texts: Vec<String>,
    content: Map<String, Value>,
}

impl Response {
    fn add(&mut self, answer: &Answer, schemas: &mut Schemas) {
        self.texts.push(match (answer.when, answer.shape) {
            ("", None) => "Done.".to_owned(),
            ("", Some(_)) => "The answer.".to_owned(),
            (when, _) => format!("If {when}."),
        });
        let Some(shape) = answer.shape else { return };
        let schema = schemas.of_answer(shape);
        // OpenAPI 3.1 cannot describe stream events.
        let mut media = match shape.media {
            "text/event-stream" => json!({"schema": {"type": "string"}, "x-event-schema": schema}),
            _ => json!({"schema": schema}),
        };
        example(&mut media, shape.example);
        self.content.insert(shape.media.into(), media);
    }

    /// Adds a refusal to an answer with the same status.
    fn add_refusal(&mut self, refusal: Value) {
        let success = self.content.remove("application/json");
        let schema = match success.as_ref().and_then(|media| media.get("schema")) {
            Some(success) => json!({"anyOf": [success, refusal]}),
            None => refusal,
        };
        let mut media = json!({"schema": schema});
        if let (Some(example), Some(members)) =
            (success.and_then(|media| media.get("example").cloned()), media.as_object_mut())
        {
            members.insert("example".into(), example);
        }
        self.content.insert("application/json".into(), media);
    }

    fn written(self) -> Value {
        let mut response = json!({"description": self.texts.join("\n")});
        if let (false, Some(members)) = (self.content.is_empty(), response.as_object_mut()) {
            members.insert("content".into(), Value::Object(self.content));
        }
        response
    }
}

fn responses(operation: &Operation, schemas: &mut Schemas, refusals: &mut Refusals) -> Map<String, Value> {
    let mut answers: BTreeMap<u16, Response> = BTreeMap::new();
    for answer in operation.answers {
        answers.entry(answer.status).or_default().add(answer, schemas);
    }
    let mut codes: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    for code in operation.codes() {
        codes.entry(operation.status_of(code)).or_default().push(code);
    }
    if let Some((code, status)) = operation.also {
        codes.entry(status).or_default().push(code);
    }
    let for_browsers = operation
        .answers
        .iter()
        .any(|answer| answer.status == 303 || answer.shape.is_some_and(|shape| shape.media == "text/html"));
    let mut responses = Map::new();
    for (status, codes) in codes {
        match answers.get_mut(&status) {
            Some(answer) => answer.add_refusal(refusals.body(&codes, schemas)),
            None => {
                let refusal = refusals.reference(status, &codes, for_browsers, schemas);
                responses.insert(status.to_string(), refusal);
            }
        }
    }
    responses.extend(answers.into_iter().map(|(status, answer)| (status.to_string(), answer.written())));
    responses
}

/// Responses that reject a request, each described once.
#[derive(Default)]
struct Refusals {
    responses: Map<String, Value>,
    known: BTreeMap<(u16, Vec<&'static str>, bool), String>,
}

impl Refusals {
    /// A reference to the response with this status and one of these codes.
    fn reference(
        &mut self,
        status: u16,
        codes: &[ErrorCode],
        for_browsers: bool,
        schemas: &mut Schemas,
    ) -> Value {
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

/// Adds an example. Tests check that it is JSON and fits its schema.
fn example(media: &mut Value, example: Option<&str>) {
    let example = example.and_then(|example| serde_json::from_str(example).ok());
    if let (Some(example), Some(members)) = (example, media.as_object_mut()) {
        members.insert("example".into(), example);
    }
}

/// A text with its links relative to the documents' root.
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
                let described = response["description"].as_str().is_some_and(|text| !text.is_empty());
                assert!(described || response.get("$ref").is_some(), "{}", operation.id);
            }
        }
    }

    #[test]
    fn every_reference_resolves() {
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
