//! Builds request bodies.

use serde_json::{Map, Value, json};

use crate::encoded::{base64, object};
use crate::{Message, ModelRequest, Part, Role, Tool};

/// The protocol requires an answer limit.
const MAX_TOKENS: u32 = 8_192;
/// Models with a lower answer limit.
const SHORT: [&str; 3] = ["claude-3-haiku", "claude-3-opus", "claude-3-sonnet"];
const SHORT_MAX_TOKENS: u32 = 4_096;
/// Models released before the endpoint could enforce a schema.
const BEFORE_FORMATS: [&str; 7] = [
    "claude-2",
    "claude-instant",
    "claude-3-",
    "claude-opus-4-0",
    "claude-opus-4-2",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2",
];
/// The tool whose arguments are the answer if the endpoint cannot enforce the schema.
const ANSWER: &str = "answer";
/// Schema keywords that the endpoint cannot enforce.
const NOT_HELD: [&str; 9] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "oneOf",
];

/// Builds the request body and names the tool whose arguments will be the answer.
pub(super) fn write(request: &ModelRequest) -> (Value, Option<String>) {
    let mut body = Map::new();
    let mut set = |name: &str, value: Value| {
        body.insert(name.to_owned(), value);
    };
    let starts = |names: &[&str]| names.iter().any(|start| request.model.starts_with(start));
    let most = if starts(&SHORT) { SHORT_MAX_TOKENS } else { MAX_TOKENS };
    set("model", json!(request.model));
    set("max_tokens", json!(request.max_tokens.unwrap_or(most)));
    set("stream", Value::Bool(true));
    if let Some(temperature) = request.temperature {
        set("temperature", json!(temperature));
    }
    let (system, messages) = conversation(&request.messages);
    if let Some(system) = system {
        set("system", Value::String(system));
    }
    set("messages", messages);
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    // The endpoint refuses calls to undeclared tools, such as tools that a chat page has run.
    let called = if tools.is_empty() { called_tools(&request.messages) } else { Vec::new() };
    let mut answers_by = None;
    if let Some(schema) = &request.response_schema {
        if is_held(schema) && !starts(&BEFORE_FORMATS) {
            set("output_config", json!({"format": {"type": "json_schema", "schema": schema}}));
        } else {
            let mut name = ANSWER.to_owned();
            while tools.iter().chain(&called).any(|tool| tool.get("name") == Some(&json!(name))) {
                name.push('_');
            }
            let alone = tools.is_empty();
            tools.push(
                json!({"name": name, "description": "Takes the answer.", "input_schema": as_object(schema)}),
            );
            let choice = if alone { json!({"type": "tool", "name": name}) } else { json!({"type": "any"}) };
            set("tool_choice", choice);
            answers_by = Some(name);
        }
    }
    if tools.is_empty() && !called.is_empty() {
        set("tool_choice", json!({"type": "none"}));
    }
    tools.extend(called);
    if !tools.is_empty() {
        set("tools", Value::Array(tools));
    }
    (Value::Object(body), answers_by)
}

/// A declaration for each tool that an earlier message calls.
fn called_tools(messages: &[Message]) -> Vec<Value> {
    let mut names: Vec<&str> =
        messages.iter().flat_map(|message| &message.tool_calls).map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let schema = json!({"type": "object"});
    names
        .into_iter()
        .map(|name| json!({"name": name, "description": "Was called before.", "input_schema": schema}))
        .collect()
}

/// Returns the system prompt and the turns, which alternate between user and assistant: adjacent messages from one side
/// are merged.
fn conversation(messages: &[Message]) -> (Option<String>, Value) {
    let system: Vec<&str> =
        messages.iter().filter(|said| said.role == Role::System).map(|said| said.content.as_str()).collect();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages.iter().filter(|said| said.role != Role::System) {
        let side = if message.role == Role::Assistant { "assistant" } else { "user" };
        let blocks = blocks(message);
        match turns.last_mut() {
            Some((last, said)) if *last == side => said.extend(blocks),
            _ => turns.push((side, blocks)),
        }
    }
    turns.retain(|(_, blocks)| !blocks.is_empty());
    let mut system = Some(system.join("\n\n")).filter(|system| !system.trim().is_empty());
    // A conversation needs a turn; instructions without messages become one.
    if turns.is_empty()
        && let Some(alone) = system.take()
    {
        turns.push(("user", vec![text(&alone)]));
    }
    let turns = turns
        .into_iter()
        .map(|(role, content)| object([("role", role.into()), ("content", Value::Array(content))]));
    (system, turns.collect())
}

fn blocks(message: &Message) -> Vec<Value> {
    if message.role == Role::Assistant
        && let Some(Value::Array(whole)) = &message.carry
    {
        return whole.clone();
    }
    if message.role == Role::Tool {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        return vec![json!({"type": "tool_result", "tool_use_id": id, "content": message.content})];
    }
    // The endpoint refuses blank texts.
    let said = (!message.content.trim().is_empty()).then(|| text(&message.content));
    let calls = message.tool_calls.iter().filter(|_| message.role == Role::Assistant);
    let calls = calls
        .map(|call| json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
    said.into_iter().chain(message.sent_parts().map(part)).chain(calls).collect()
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(said) => text(said),
        Part::Image(image) => {
            let source = object([
                ("type", "base64".into()),
                ("media_type", image.mime_type.as_str().into()),
                ("data", base64(&image.data)),
            ]);
            object([("type", "image".into()), ("source", source)])
        }
    }
}

fn text(text: &str) -> Value {
    object([("type", "text".into()), ("text", text.into())])
}

fn tool(tool: &Tool) -> Value {
    let Tool { name, description, parameters } = tool;
    json!({"name": name, "description": description, "input_schema": as_object(parameters)})
}

/// A tool takes an object, and its schema must say so.
fn as_object(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(members) = schema.as_object_mut() {
        members.entry("type").or_insert_with(|| json!("object"));
    }
    schema
}

/// Whether the endpoint can enforce the schema: it requires closed objects and supports few keywords.
fn is_held(schema: &Value) -> bool {
    fn every(schema: &Value) -> bool {
        match schema {
            Value::Object(members) => {
                let object = members.get("type").is_some_and(|kind| kind == "object");
                let closed = members.get("additionalProperties") == Some(&Value::Bool(false));
                (!object || closed)
                    && !NOT_HELD.iter().any(|keyword| members.contains_key(*keyword))
                    && members.values().all(every)
            }
            Value::Array(items) => items.iter().all(every),
            _ => true,
        }
    }
    schema.get("type").is_some_and(|kind| kind == "object") && every(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolCall;

    fn request_with(messages: Vec<Message>) -> ModelRequest {
        ModelRequest { model: "claude-sonnet-4-5".into(), messages, ..ModelRequest::default() }
    }

    #[test]
    fn turns_alternate_and_the_system_prompt_is_separate() {
        let call = ToolCall { id: "t1".into(), name: "add".into(), arguments: json!({"a": 1}) };
        let tool = |id: &str, text: &str| Message {
            tool_call_id: Some(id.into()),
            ..Message::text(Role::Tool, text)
        };
        let (body, _) = write(&request_with(vec![
            Message::text(Role::System, "Be short."),
            Message::text(Role::User, "hi"),
            Message::text(Role::User, " "),
            Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") },
            tool("t1", "2"),
            tool("t2", "3"),
            Message::text(Role::User, "and?"),
            Message::text(Role::System, "Be kind."),
        ]));
        assert_eq!(body["system"], "Be short.\n\nBe kind.");
        assert_eq!(body["max_tokens"], MAX_TOKENS);
        assert_eq!(
            body["messages"],
            json!([{"role": "user", "content": [{"type": "text", "text": "hi"}]},
                   {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}}]},
                   {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "2"},
                                                {"type": "tool_result", "tool_use_id": "t2", "content": "3"},
                                                {"type": "text", "text": "and?"}]}])
        );
        // A request without tools declares the tools called earlier, and allows no calls.
        assert_eq!(
            (&body["tools"][0]["name"], &body["tool_choice"]),
            (&json!("add"), &json!({"type": "none"}))
        );
        let (alone, _) = write(&request_with(vec![Message::text(Role::System, "Say hi.")]));
        assert_eq!((&alone["tools"], &alone["tool_choice"]), (&Value::Null, &Value::Null));
        assert_eq!((&alone["system"], &alone["messages"][0]["role"]), (&Value::Null, &json!("user")));
    }

    #[test]
    fn carried_content_is_returned_unchanged() {
        let carried =
            json!([{"type": "thinking", "thinking": "…", "signature": "s"}, {"type": "text", "text": "hi"}]);
        let message = Message { carry: Some(carried.clone()), ..Message::text(Role::Assistant, "hi") };
        let (body, _) = write(&request_with(vec![Message::text(Role::User, "hi"), message]));
        assert_eq!(body["messages"][1]["content"], carried);
    }

    #[test]
    fn a_schema_is_enforced_by_the_endpoint_or_by_a_tool() {
        let closed =
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false});
        let open = json!({"properties": {"a": {"type": "number", "minimum": 1}}});
        let with = |schema: &Value, model: &str, tools: Vec<Tool>| {
            let request = request_with(vec![Message::text(Role::User, "hi")]);
            write(&ModelRequest {
                model: model.into(),
                response_schema: Some(schema.clone()),
                tools,
                ..request
            })
        };
        let (body, by) = with(&closed, "claude-opus-4-5", Vec::new());
        assert_eq!((&body["output_config"]["format"]["schema"], by), (&closed, None));
        for (schema, model) in [(&open, "claude-opus-4-5"), (&closed, "claude-sonnet-4-20250514")] {
            let (body, by) = with(schema, model, Vec::new());
            assert_eq!(by.as_deref(), Some("answer"));
            assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "answer"}));
            assert_eq!(body["tools"][0]["input_schema"]["type"], "object");
        }
        let own = Tool { name: "answer".into(), description: String::new(), parameters: json!({}) };
        let (body, by) = with(&open, "claude-opus-4-5", vec![own]);
        assert_eq!((body["tool_choice"]["type"].as_str(), by.as_deref()), (Some("any"), Some("answer_")));
    }
}
