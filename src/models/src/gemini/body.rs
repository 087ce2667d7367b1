//! Builds request bodies.

use serde_json::{Map, Value, json};

use crate::encoded::{base64, object};
use crate::{Message, ModelRequest, Part, Role, Tool};

/// Models that support a schema and tools in one request.
const BOTH: &str = "gemini-3";
/// The largest seed: the protocol uses signed 32-bit integers.
const MOST_SEED: u64 = 0x7FFF_FFFF;

/// Builds a request body.
pub(super) fn write(request: &ModelRequest) -> Value {
    let mut body = Map::new();
    let mut settings = Map::new();
    let mut set = |name: &str, value: Value| {
        settings.insert(name.to_owned(), value);
    };
    if let Some(temperature) = request.temperature {
        set("temperature", json!(temperature));
    }
    if let Some(most) = request.max_tokens {
        set("maxOutputTokens", json!(most));
    }
    if let Some(seed) = request.seed {
        set("seed", json!(seed & MOST_SEED));
    }
    let mut system: Vec<String> = said_by(&request.messages, Role::System);
    if let Some(schema) = &request.response_schema {
        if request.tools.is_empty() || request.model.starts_with(BOTH) {
            set("responseMimeType", json!("application/json"));
            set("responseJsonSchema", schema.clone());
        } else {
            // The endpoint refuses a schema together with tools. The prompt states the schema instead, and the service
            // checks the answer.
            system.push(format!(
                "Your final answer must be JSON that fits this schema, and nothing else: {schema}"
            ));
        }
    }
    if !settings.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(settings));
    }
    let mut contents = contents(&request.messages);
    // A conversation needs a turn; instructions without messages become one.
    if contents.is_empty() {
        contents.push(json!({"role": "user", "parts": [{"text": std::mem::take(&mut system).join("\n\n")}]}));
    }
    if !system.is_empty() {
        body.insert("systemInstruction".to_owned(), json!({"parts": [{"text": system.join("\n\n")}]}));
    }
    body.insert("contents".to_owned(), Value::Array(contents));
    if !request.tools.is_empty() {
        let declared: Vec<Value> = request.tools.iter().map(tool).collect();
        body.insert("tools".to_owned(), json!([{"functionDeclarations": declared}]));
    }
    Value::Object(body)
}

fn said_by(messages: &[Message], role: Role) -> Vec<String> {
    messages
        .iter()
        .filter(|said| said.role == role && !said.content.trim().is_empty())
        .map(|said| said.content.clone())
        .collect()
}

/// The turns, which alternate between user and model; adjacent messages from one side are merged.
fn contents(messages: &[Message]) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let (side, parts) = match message.role {
            Role::System => continue,
            Role::User => ("user", user(message)),
            Role::Assistant => ("model", model(message)),
            Role::Tool => ("user", vec![result(message, messages.get(..at).unwrap_or_default())]),
        };
        match turns.last_mut() {
            Some((last, said)) if *last == side => said.extend(parts),
            _ => turns.push((side, parts)),
        }
    }
    turns.retain(|(_, parts)| !parts.is_empty());
    let turn = |(role, parts): (&str, _)| object([("role", role.into()), ("parts", Value::Array(parts))]);
    turns.into_iter().map(turn).collect()
}

fn text(message: &Message) -> Vec<Value> {
    if message.content.is_empty() { Vec::new() } else { vec![json!({"text": message.content})] }
}

fn user(message: &Message) -> Vec<Value> {
    text(message).into_iter().chain(message.sent_parts().map(part)).collect()
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => object([("text", text.as_str().into())]),
        Part::Image(image) => {
            let data = [("mimeType", image.mime_type.as_str().into()), ("data", base64(&image.data))];
            object([("inlineData", object(data))])
        }
    }
}

fn model(message: &Message) -> Vec<Value> {
    if let Some(Value::Array(whole)) = &message.carry {
        return whole.clone();
    }
    let calls = message.tool_calls.iter();
    let calls = calls.map(|call| json!({"functionCall": {"name": call.name, "args": call.arguments}}));
    text(message).into_iter().chain(calls).collect()
}

/// A tool's result. The protocol identifies the tool by name, and by id only if the model sent one.
fn result(message: &Message, before: &[Message]) -> Value {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let asked = before.iter().rev().find_map(|said| {
        let call = said.tool_calls.iter().find(|call| call.id == id)?;
        let own = said.carry.as_ref().and_then(Value::as_array).is_some_and(|parts| {
            parts.iter().any(|part| part.pointer("/functionCall/id").is_some_and(|found| found == id))
        });
        Some((call.name.as_str(), own))
    });
    let (name, own) = asked.unwrap_or_default();
    let response = match serde_json::from_str(&message.content) {
        Ok(object @ Value::Object(_)) => object,
        _ => json!({"result": message.content}),
    };
    let mut answered = json!({"name": name, "response": response});
    if let (true, Some(members)) = (own, answered.as_object_mut()) {
        members.insert("id".to_owned(), json!(id));
    }
    json!({"functionResponse": answered})
}

fn tool(tool: &Tool) -> Value {
    let mut declared = json!({"name": tool.name, "description": tool.description});
    let takes = tool.parameters.as_object().is_some_and(|schema| !schema.is_empty());
    if let (true, Some(members)) = (takes, declared.as_object_mut()) {
        members.insert("parametersJsonSchema".to_owned(), tool.parameters.clone());
    }
    declared
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ToolCall;

    #[test]
    fn every_request_field_is_mapped() {
        let call = |id: &str| ToolCall { id: id.into(), name: "add".into(), arguments: json!({"a": 1}) };
        let answered = |id: &str, text: &str| Message {
            tool_call_id: Some(id.into()),
            ..Message::text(Role::Tool, text)
        };
        let carried =
            json!([{"functionCall": {"name": "add", "args": {}, "id": "f1"}, "thoughtSignature": "s"}]);
        let request = ModelRequest {
            model: "gemini-2.5-flash".into(),
            messages: vec![
                Message::text(Role::System, "Be short."),
                Message::text(Role::User, "hi"),
                Message { tool_calls: vec![call("call_0")], ..Message::text(Role::Assistant, "") },
                answered("call_0", "{\"sum\": 2}"),
                Message {
                    tool_calls: vec![call("f1")],
                    carry: Some(carried.clone()),
                    ..Message::text(Role::Assistant, "")
                },
                answered("f1", "two"),
            ],
            temperature: Some(0.5),
            max_tokens: Some(9),
            seed: Some(u64::MAX),
            response_schema: Some(json!({"type": "object"})),
            tools: vec![Tool { name: "add".into(), description: "Adds.".into(), parameters: json!({}) }],
            idempotency_key: None,
        };
        let body = write(&request);
        assert_eq!(
            body["contents"],
            json!([{"role": "user", "parts": [{"text": "hi"}]},
                   {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"a": 1}}}]},
                   {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"sum": 2}}}]},
                   {"role": "model", "parts": carried},
                   {"role": "user", "parts": [{"functionResponse": {"name": "add", "id": "f1", "response": {"result": "two"}}}]}])
        );
        assert_eq!(
            body["generationConfig"],
            json!({"temperature": 0.5, "maxOutputTokens": 9, "seed": MOST_SEED})
        );
        assert!(body["systemInstruction"]["parts"][0]["text"].as_str().unwrap().contains("fits this schema"));
        assert_eq!(
            body["tools"][0]["functionDeclarations"],
            json!([{"name": "add", "description": "Adds."}])
        );
        let held = write(&ModelRequest { model: "gemini-3-pro".into(), ..request });
        assert_eq!(held["generationConfig"]["responseJsonSchema"], json!({"type": "object"}));
        assert_eq!(held["systemInstruction"]["parts"], json!([{"text": "Be short."}]));
    }

    #[test]
    fn system_instructions_alone_become_a_turn() {
        let messages = vec![Message::text(Role::System, "Say hi.")];
        let body = write(&ModelRequest { messages, ..ModelRequest::default() });
        assert_eq!(body, json!({"contents": [{"role": "user", "parts": [{"text": "Say hi."}]}]}));
    }
}
