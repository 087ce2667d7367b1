//! Builds request bodies.

use serde_json::{Map, Value, json};

use crate::encoded::{data_url, object};
use crate::{Message, ModelRequest, Part, Role, Tool, ToolCall};

/// Models that refuse `max_tokens` and require its new name.
const RENAMED_LIMIT: [&str; 5] = ["gpt-5", "gpt-6", "o1", "o3", "o4"];

/// The largest seed that every JSON reader represents exactly.
const MOST_SEED: u64 = (1 << 53) - 1;

/// Builds a request body.
pub(super) fn write(request: &ModelRequest) -> Value {
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    set("model", json!(request.model));
    set("messages", Value::Array(messages));
    set("stream", Value::Bool(true));
    set("stream_options", json!({"include_usage": true}));
    if let Some(temperature) = request.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(most) = request.max_tokens {
        let renamed = RENAMED_LIMIT.iter().any(|start| request.model.starts_with(start));
        set(if renamed { "max_completion_tokens" } else { "max_tokens" }, json!(most));
    }
    if let Some(seed) = request.seed {
        set("seed", json!(seed & MOST_SEED));
    }
    if let Some(schema) = &request.response_schema {
        let format = json!({"name": "answer", "schema": schema, "strict": is_strict(schema)});
        set("response_format", json!({"type": "json_schema", "json_schema": format}));
    }
    if !request.tools.is_empty() {
        set("tools", request.tools.iter().map(tool).collect());
    }
    Value::Object(body)
}

fn message(message: &Message) -> Value {
    let mut written = Map::new();
    written.insert("role".to_owned(), json!(message.role.as_str()));
    written.insert("content".to_owned(), content(message));
    if !message.tool_calls.is_empty() && message.role == Role::Assistant {
        if message.content.is_empty() {
            written.insert("content".to_owned(), Value::Null);
        }
        written.insert("tool_calls".to_owned(), message.tool_calls.iter().map(call).collect());
    }
    if let Some(id) = message.tool_call_id.as_ref().filter(|_| message.role == Role::Tool) {
        written.insert("tool_call_id".to_owned(), json!(id));
    }
    Value::Object(written)
}

/// The text; with parts, a list that begins with the text.
fn content(message: &Message) -> Value {
    let mut parts: Vec<Value> = message.sent_parts().map(part).collect();
    if parts.is_empty() {
        return json!(message.content);
    }
    if !message.content.trim().is_empty() {
        parts.insert(0, text(&message.content));
    }
    Value::Array(parts)
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(said) => text(said),
        Part::Image(image) => {
            let url = object([("url", data_url(&image.mime_type, &image.data))]);
            object([("type", "image_url".into()), ("image_url", url)])
        }
    }
}

fn text(text: &str) -> Value {
    object([("type", "text".into()), ("text", text.into())])
}

fn call(call: &ToolCall) -> Value {
    let arguments = call.arguments.to_string();
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool(tool: &Tool) -> Value {
    let Tool { name, description, parameters } = tool;
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
}

/// Whether the endpoint can enforce the schema: it refuses schemas with an open object or an optional member.
fn is_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            let object = members.get("type").is_some_and(|kind| kind == "object");
            (!object || is_closed(members)) && members.values().all(is_strict)
        }
        Value::Array(items) => items.iter().all(is_strict),
        _ => true,
    }
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let all = properties.is_some_and(|properties| {
        properties.keys().all(|name| required.is_some_and(|required| required.iter().any(|r| r == name)))
    });
    all && schema.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let request = ModelRequest {
            model: "gpt-4.1-mini".into(),
            messages: vec![Message::text(Role::User, "hi")],
            ..ModelRequest::default()
        };
        assert_eq!(
            write(&request),
            json!({"model": "gpt-4.1-mini", "messages": [{"role": "user", "content": "hi"}],
                   "stream": true, "stream_options": {"include_usage": true}})
        );
    }

    #[test]
    fn every_request_field_is_mapped() {
        let calls = vec![ToolCall { id: "c1".into(), name: "add".into(), arguments: json!({"a": 1}) }];
        let request = ModelRequest {
            model: "o3-mini".into(),
            messages: vec![
                Message { tool_calls: calls, ..Message::text(Role::Assistant, "") },
                Message { tool_call_id: Some("c1".into()), ..Message::text(Role::Tool, "2") },
            ],
            temperature: Some(0.5),
            max_tokens: Some(9),
            seed: Some(7),
            response_schema: Some(json!({"type": "object"})),
            tools: vec![Tool { name: "add".into(), description: "Adds.".into(), parameters: json!({}) }],
            idempotency_key: Some("k".into()),
        };
        let body = write(&request);
        assert_eq!(
            body["messages"],
            json!([{"role": "assistant", "content": null, "tool_calls": [
                        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}}]},
                   {"role": "tool", "content": "2", "tool_call_id": "c1"}])
        );
        assert_eq!((&body["temperature"], &body["seed"]), (&json!(0.5), &json!(7)));
        assert_eq!((&body["max_completion_tokens"], &body["max_tokens"]), (&json!(9), &Value::Null));
        assert_eq!(body["response_format"]["json_schema"]["strict"], false);
        assert_eq!(body["tools"][0]["function"]["name"], "add");
    }

    #[test]
    fn a_seed_stays_within_the_portable_integer_range() {
        for (seed, sent) in [(0, 0_u64), (MOST_SEED, MOST_SEED), (u64::MAX, MOST_SEED), (MOST_SEED + 3, 2)] {
            assert_eq!(write(&ModelRequest { seed: Some(seed), ..ModelRequest::default() })["seed"], sent);
        }
    }

    #[test]
    fn a_schema_is_strict_if_possible() {
        let closed = json!({"type": "object", "additionalProperties": false, "required": ["a"],
                            "properties": {"a": {"type": "string"}}});
        assert!(is_strict(&closed));
        let mut optional = closed.clone();
        optional["properties"]["b"] = json!({"type": "string"});
        let mut nested = closed.clone();
        nested["properties"]["a"] = json!({"type": "array", "items": {"type": "object"}});
        for open in [optional, nested, json!({"type": "object"})] {
            assert!(!is_strict(&open), "{open}");
        }
    }
}
