//! Assembles an answer from content parts.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::transport::{Assembly, Call, DocumentError, MOST_CALLS, read_part};
use crate::{ModelAnswer, ModelErrorKind, ToolCall, Usage};

/// Maximum parts per answer.
const MOST_PARTS: usize = 65_536;

/// A partially received answer.
#[derive(Default)]
pub(super) struct GeminiAnswer {
    text: String,
    calls: Vec<ToolCall>,
    /// All parts as received; adjacent texts are joined.
    parts: Vec<Value>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    model: Option<String>,
    documents: u32,
    has_candidate: bool,
}

/// A stream chunk, or a complete answer.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    candidates: Option<Vec<Candidate>>,
    #[serde(default)]
    prompt_feedback: Option<Feedback>,
    #[serde(default)]
    usage_metadata: Value,
    #[serde(default)]
    model_version: Option<String>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    #[serde(default)]
    block_reason: Option<String>,
}

impl GeminiAnswer {
    fn part(&mut self, part: &RawValue) -> Result<String, DocumentError> {
        if self.parts.len() >= MOST_PARTS {
            return Err(DocumentError::Garbage(format!("the answer has more than {MOST_PARTS} parts")));
        }
        let part = read_part(part, |part| part.get("functionCall")?.get("name")?.as_str())?;
        let thought = part.get("thought").is_some_and(|thought| thought == true);
        if let Some(call) = part.get("functionCall") {
            if self.calls.len() >= MOST_CALLS {
                return Err(DocumentError::Garbage(format!("the answer calls more than {MOST_CALLS} tools")));
            }
            let said = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let arguments = call.get("args").filter(|args| !args.is_null()).map(Value::to_string);
            let call = Call {
                index: None,
                id: said("id"),
                name: said("name"),
                arguments: arguments.unwrap_or_default(),
            };
            let call = call.finish(self.calls.len()).map_err(DocumentError::Garbage)?;
            self.calls.push(call);
            self.parts.push(part);
            return Ok(String::new());
        }
        let Some(text) = part.get("text").and_then(Value::as_str).map(str::to_owned) else {
            self.parts.push(part);
            return Ok(String::new());
        };
        let plain = part.as_object().is_some_and(|members| members.len() == 1);
        match self.parts.last_mut().and_then(Value::as_object_mut) {
            Some(last) if plain && last.len() == 1 && last.contains_key("text") => {
                if let Some(Value::String(before)) = last.get_mut("text") {
                    before.push_str(&text);
                }
            }
            _ => self.parts.push(part),
        }
        if thought {
            return Ok(String::new());
        }
        self.text.push_str(&text);
        Ok(text)
    }
}

impl Assembly for GeminiAnswer {
    fn take(&mut self, data: &str) -> Result<String, DocumentError> {
        let document: Document = serde_json::from_str(data).map_err(DocumentError::unreadable)?;
        if !document.error.is_null() {
            return Err(DocumentError::reported(&document.error));
        }
        self.documents = self.documents.saturating_add(1);
        if let Some(usage) = usage(&document.usage_metadata) {
            self.usage = Some(usage);
        }
        if let Some(model) = document.model_version.filter(|model| !model.is_empty()) {
            self.model = Some(model);
        }
        if let Some(reason) = document.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            return Err(DocumentError::Error(
                ModelErrorKind::Rejected,
                format!("the prompt was blocked: {reason}"),
            ));
        }
        let mut added = String::new();
        let candidates = document.candidates.unwrap_or_default();
        if let Some(candidate) = candidates.into_iter().find(|one| one.index.unwrap_or(0) == 0) {
            self.has_candidate = true;
            for part in candidate.content.map(|content| content.parts).unwrap_or_default() {
                added.push_str(&self.part(&part)?);
            }
            if let Some(reason) = candidate.finish_reason {
                if reason.contains("FUNCTION_CALL") || reason.contains("TOOL_CALL") {
                    // Sampling is random, so a retry may succeed.
                    let said = format!("the model wrote a tool call that cannot be parsed ({reason})");
                    return Err(DocumentError::Error(ModelErrorKind::Unavailable, said));
                }
                self.finish_reason = Some(reason);
            }
        }
        Ok(added)
    }

    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn is_empty(&self) -> bool {
        self.documents == 0
    }

    fn finish(self) -> Result<ModelAnswer, String> {
        if !self.has_candidate {
            return Err("the answer is empty".to_owned());
        }
        let finish_reason = self.finish_reason.map(|reason| match reason.as_str() {
            "STOP" if !self.calls.is_empty() => "tool_calls".to_owned(),
            "STOP" => "stop".to_owned(),
            "MAX_TOKENS" => "length".to_owned(),
            "SAFETY" | "RECITATION" | "LANGUAGE" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" => {
                "content_filter".to_owned()
            }
            _ => reason.to_lowercase(),
        });
        let own = |part: &Value| {
            part.get("thoughtSignature").is_some() || part.pointer("/functionCall/id").is_some()
        };
        let carry = self.parts.iter().any(own).then(|| {
            let thought = |part: &Value| part.get("thought").is_some_and(|thought| thought == true);
            Value::Array(self.parts.iter().filter(|part| !thought(part)).cloned().collect())
        });
        let (text, tool_calls, usage, model) = (self.text, self.calls, self.usage, self.model);
        Ok(ModelAnswer { text, tool_calls, usage, finish_reason, model, carry })
    }
}

/// Thoughts are billed as output.
pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let number = |name: &str| usage.get(name).and_then(Value::as_u64);
    let input = number("promptTokenCount")?;
    let written = number("candidatesTokenCount").unwrap_or(0);
    Some(Usage {
        input_tokens: input.saturating_add(number("toolUsePromptTokenCount").unwrap_or(0)),
        output_tokens: written.saturating_add(number("thoughtsTokenCount").unwrap_or(0)),
        cached_tokens: number("cachedContentTokenCount").unwrap_or(0),
    })
}
