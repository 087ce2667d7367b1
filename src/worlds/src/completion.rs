//! Chat completions in the OpenAI protocol: reads requests and writes responses. Pure.

use serde_json::{Value, json};

use super::attention::Demo;
use super::random::Draw;

/// Characters per streamed piece.
const PIECE: usize = 12;

/// A completion request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompletionRequest {
    pub(super) model: String,
    /// `(role, content)`, in order.
    pub(super) messages: Vec<(String, String)>,
    /// 0 without a seed in the request.
    pub(super) seed: u64,
}

impl CompletionRequest {
    /// Reads a request body; `None` if it has no model or no messages.
    pub(super) fn read(body: &Value) -> Option<Self> {
        let model = body.get("model")?.as_str()?.to_owned();
        let message = |message: &Value| {
            let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
            (role.to_owned(), text_of(message.get("content").unwrap_or(&Value::Null)))
        };
        let messages: Vec<(String, String)> = body.get("messages")?.as_array()?.iter().map(message).collect();
        let seed = body.get("seed").and_then(Value::as_u64).unwrap_or_default();
        Some(Self { model, messages, seed }).filter(|request| !request.messages.is_empty())
    }

    pub(super) fn messages(&self) -> Vec<(&str, &str)> {
        self.messages.iter().map(|(role, content)| (role.as_str(), content.as_str())).collect()
    }

    /// The last message with this role, or nothing.
    pub(super) fn last(&self, role: &str) -> &str {
        let found = self.messages.iter().rev().find(|(known, _)| known == role);
        found.map(|(_, content)| content.as_str()).unwrap_or_default()
    }

    /// User and assistant message pairs.
    pub(super) fn demos(&self) -> Vec<Demo> {
        let pair = |pair: &[(String, String)]| match pair {
            [(user, said), (assistant, answered)] if user == "user" && assistant == "assistant" => {
                Some(Demo { user: said.clone(), assistant: answered.clone() })
            }
            _ => None,
        };
        self.messages.windows(2).filter_map(pair).collect()
    }

    /// Total message bytes.
    pub(super) fn bytes(&self) -> usize {
        self.messages.iter().map(|(_, content)| content.len()).sum()
    }
}

/// Content is a text, or a list with text parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

/// Tokens for a text: a quarter of its bytes, at least 1.
pub(super) fn tokens(bytes: usize) -> usize {
    (bytes / 4).max(1)
}

/// The response body: a `chat.completion` with `usage`. Its id is a function of request and text.
pub(super) fn written(request: &CompletionRequest, text: &str) -> Value {
    let (input, output) = (tokens(request.bytes()), tokens(text.len()));
    let draw = Draw::new(request.seed, "completion").for_key(&request.model).for_key(text);
    json!({
        "id": format!("chatcmpl-{}", draw.hex()),
        "object": "chat.completion",
        "created": 0,
        "model": request.model,
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output},
    })
}

/// An error response body.
pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({"error": {"message": message, "type": kind, "param": null, "code": kind}})
}

/// The streamed response's frames, each with its blank line: text pieces, the finish reason, the usage, `[DONE]`.
///
/// `completion`: the body of a [`SimulatedReply`](super::SimulatedReply) with status 200. A cut response ends after
/// the first half of its frames.
#[must_use]
pub fn stream_events(completion: &Value) -> Vec<String> {
    let choice = completion.pointer("/choices/0");
    let text = choice.and_then(|choice| choice.pointer("/message/content")?.as_str()).unwrap_or_default();
    let chunk = |choices: Value, usage: Option<&Value>| {
        let mut chunk = json!({"object": "chat.completion.chunk", "created": 0, "choices": choices});
        for name in ["id", "model"] {
            if let (Some(value), Some(members)) = (completion.get(name), chunk.as_object_mut()) {
                members.insert(name.to_owned(), value.clone());
            }
        }
        if let (Some(usage), Some(members)) = (usage, chunk.as_object_mut()) {
            members.insert("usage".to_owned(), usage.clone());
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let letters: Vec<char> = text.chars().collect();
    let mut events = vec![chunk(delta(json!({"role": "assistant", "content": ""}), Value::Null), None)];
    let pieces = letters.chunks(PIECE).map(|piece| piece.iter().collect::<String>());
    events.extend(pieces.map(|piece| chunk(delta(json!({"content": piece}), Value::Null), None)));
    events.push(chunk(delta(json!({}), json!("stop")), None));
    events.push(chunk(json!([]), completion.get("usage")));
    events.push("data: [DONE]\n\n".to_owned());
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> CompletionRequest {
        let body = json!({"model": "one-1/task", "seed": 7, "stream": true, "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "u1"}, {"role": "assistant", "content": "a1"},
            {"role": "user", "content": [{"type": "text", "text": "u2"}]}]});
        CompletionRequest::read(&body).unwrap()
    }

    #[test]
    fn a_request_is_parsed_with_its_demos() {
        let request = request();
        assert_eq!((request.model.as_str(), request.seed), ("one-1/task", 7));
        assert_eq!((request.last("user"), request.last("system"), request.last("tool")), ("u2", "s", ""));
        assert_eq!(request.demos(), [Demo { user: "u1".into(), assistant: "a1".into() }]);
        assert_eq!(CompletionRequest::read(&json!({"model": "m", "messages": []})), None);
        assert_eq!(CompletionRequest::read(&json!({"messages": [{"role": "user", "content": "x"}]})), None);
    }

    #[test]
    fn a_stream_has_the_same_text_and_usage() {
        let text = "é kezami, tozabi".repeat(9);
        let body = written(&request(), &text);
        let events = stream_events(&body);
        let chunks: Vec<Value> = events
            .iter()
            .filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?.trim()).ok())
            .collect();
        assert_eq!(chunks.len(), events.len() - 1, "all but the last are JSON");
        let pieces = chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/content")?.as_str());
        assert_eq!(pieces.collect::<String>(), text);
        assert_eq!(chunks.last().unwrap()["usage"], body["usage"]);
        assert_eq!(events.last().unwrap(), "data: [DONE]\n\n");
        assert_eq!(body["usage"]["total_tokens"], 1 + text.len() / 4);
    }
}
