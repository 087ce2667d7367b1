//! Checks every response against `/openapi.json`: its status, its media type, its body, and a refusal's code.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use client::Exchange;
use jsonschema::Validator;
use serde_json::{Map, Value, json};

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let mut document = serde_json::from_str(include_str!("../../docs/openapi.json")).expect("JSON");
    close(&mut document);
    document
});
static VALIDATORS: LazyLock<Mutex<BTreeMap<String, Arc<Validator>>>> = LazyLock::new(Mutex::default);

/// # Panics
/// When the response does not match the description.
pub(crate) fn check(seen: &Exchange<'_>) {
    let media = seen.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let problems = misfits(seen.method, seen.path, seen.status, media, seen.body);
    let Exchange { method, path, status, .. } = seen;
    assert!(
        problems.is_empty(),
        "{method} {path} answered {status}, unlike /openapi.json:\n{}",
        problems.join("\n")
    );
}

/// The parts of a response that the description lacks. `body`: `None` for a streamed response. Empty too for a path
/// that the interface does not have, or not with this method.
///
/// # Panics
/// When the description is damaged.
#[must_use]
pub fn misfits(method: &str, path: &str, status: u16, media: &str, body: Option<&[u8]>) -> Vec<String> {
    let named = if method == "HEAD" { "GET" } else { method };
    let operation = operations(path)
        .and_then(|(template, methods)| Some((template, methods.get(&named.to_lowercase())?)));
    let Some((template, operation)) = operation else { return Vec::new() };
    let responses = &operation["responses"];
    let Some(response) = responses.get(status.to_string()) else {
        let known: Vec<&String> = responses.as_object().map(|all| all.keys().collect()).unwrap_or_default();
        return vec![format!("the status is not one of {known:?}: {}", excerpt(body.unwrap_or_default()))];
    };
    let response = match response["$ref"].as_str().and_then(|place| place.strip_prefix('#')) {
        Some(place) => DOCUMENT.pointer(place).expect("a response"),
        None => response,
    };
    let content = response["content"].as_object();
    if method == "HEAD" || (content.is_none() && body.is_none_or(<[u8]>::is_empty)) {
        return Vec::new();
    }
    let sent = media.split(';').next().unwrap_or_default().trim();
    let media = content.and_then(|content| content.get(sent).or_else(|| content.get("*/*")));
    let Some(media) = media else {
        return vec![format!(
            "the media type '{sent}' is not described: {}",
            excerpt(body.unwrap_or_default())
        )];
    };
    let Some(body) = body else { return Vec::new() };
    let name = format!("{named} {template} {status} {sent}");
    match sent {
        "application/json" => match serde_json::from_slice(body) {
            Ok(value) => against(&name, &media["schema"], &value),
            Err(error) => vec![format!("the body is not JSON: {error}")],
        },
        "text/event-stream" if media.get("x-event-schema").is_some() => {
            let text = String::from_utf8_lossy(body);
            let frames = text.lines().filter_map(|line| line.strip_prefix("data: "));
            let events = frames.filter_map(|frame| serde_json::from_str(frame).ok());
            events.flat_map(|event: Value| against(&name, &media["x-event-schema"], &event)).collect()
        }
        "application/x-ndjson" => {
            let text = String::from_utf8_lossy(body);
            let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_default());
            lines.flat_map(|line: Value| against(&name, &media["schema"], &line)).collect()
        }
        _ => Vec::new(),
    }
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(300).collect()
}

/// The operations for a path, from the matching template with the fewest parameters.
fn operations(path: &str) -> Option<(&'static str, &'static Map<String, Value>)> {
    let fits = |template: &str| {
        let (given, known): (Vec<&str>, Vec<&str>) =
            (path.split('/').collect(), template.split('/').collect());
        let rest = template.ends_with("{path}") && given.len() > known.len();
        (given.len() == known.len() || rest)
            && given
                .iter()
                .zip(&known)
                .all(|(given, known)| (known.starts_with('{') && !given.is_empty()) || given == known)
    };
    let paths = DOCUMENT["paths"].as_object().expect("paths");
    let fitting = paths.iter().filter(|(template, _)| fits(template));
    let (template, methods) = fitting.min_by_key(|(template, _)| template.matches('{').count())?;
    Some((template, methods.as_object().expect("methods")))
}

fn against(name: &str, schema: &Value, value: &Value) -> Vec<String> {
    let mut known = VALIDATORS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let validator = Arc::clone(known.entry(name.to_owned()).or_insert_with(|| {
        let mut reached = Map::new();
        reach(schema, &mut reached);
        let mut root = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "components": {"schemas": reached},
        });
        root["allOf"] = json!([schema]);
        Arc::new(jsonschema::validator_for(&root).expect("a schema"))
    }));
    drop(known);
    let errors = validator.iter_errors(value);
    errors.map(|error| format!("{error} at '{}'", error.instance_path())).take(5).collect()
}

/// Collects the named schemas that a schema refers to, directly or through others: compiling all of them would take most of a test.
fn reach(schema: &Value, reached: &mut Map<String, Value>) {
    match schema {
        Value::Array(entries) => entries.iter().for_each(|entry| reach(entry, reached)),
        Value::Object(members) => {
            let reference = members.get("$ref").and_then(Value::as_str);
            if let Some(name) =
                reference.and_then(|reference| reference.strip_prefix("#/components/schemas/"))
                && !reached.contains_key(name)
            {
                let named = &DOCUMENT["components"]["schemas"][name];
                reached.insert(name.to_owned(), named.clone());
                reach(named, reached);
            }
            members.values().for_each(|member| reach(member, reached));
        }
        _ => {}
    }
}

/// Makes the schemas reject undescribed members. Clients ignore such members; the service sends none.
fn close(document: &mut Value) {
    let schemas =
        document.pointer_mut("/components/schemas").and_then(Value::as_object_mut).expect("schemas");
    for schema in schemas.values_mut() {
        close_inside(schema);
    }
    let paths = document["paths"].as_object_mut().expect("paths");
    let operations = paths.values_mut().filter_map(Value::as_object_mut).flat_map(Map::values_mut);
    let responses = operations.filter_map(|operation| operation["responses"].as_object_mut());
    for response in responses.flat_map(Map::values_mut) {
        for media in
            response.get_mut("content").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
        {
            for member in ["schema", "x-event-schema"] {
                if let Some(schema) = media.get_mut(member) {
                    close_value(schema);
                }
            }
        }
    }
}

/// Closes a schema that a whole value must fit.
fn close_value(schema: &mut Value) {
    close_inside(schema);
    let Some(members) = schema.as_object_mut() else { return };
    let describes = ["$ref", "properties", "allOf", "anyOf", "oneOf"];
    if describes.iter().any(|member| members.contains_key(*member))
        && !members.contains_key("additionalProperties")
    {
        members.insert("unevaluatedProperties".into(), false.into());
    }
}

fn close_inside(schema: &mut Value) {
    let Some(members) = schema.as_object_mut() else { return };
    for (name, member) in members {
        match (name.as_str(), member) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(close_value),
            ("items" | "additionalProperties", schema) => close_value(schema),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                branches.iter_mut().for_each(close_inside)
            }
            _ => {}
        }
    }
}
