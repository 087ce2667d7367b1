//! Assembles an answer from stream chunks.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::transport::{Assembly, Call, DocumentError, MOST_CALLS};
use crate::{ModelAnswer, Usage};

/// A partially received answer.
#[derive(Default)]
pub(super) struct OpenAiAnswer {
    text: String,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    model: Option<String>,
    documents: u32,
    has_choice: bool,
}

/// A stream chunk or a complete answer. Endpoints omit members or send `null`; only the members used here are read.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    model: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    delta: Option<ChoiceMessage>,
    #[serde(default)]
    message: Option<ChoiceMessage>,
    #[serde(default)]
    finish_reason: Value,
}

#[derive(Deserialize)]
struct ChoiceMessage {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ChoiceToolCall>>,
}

#[derive(Deserialize)]
struct ChoiceToolCall {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<ChoiceFunction>,
}

#[derive(Deserialize)]
struct ChoiceFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
}

impl Assembly for OpenAiAnswer {
    fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    fn is_empty(&self) -> bool {
        self.documents == 0
    }

    fn take(&mut self, data: &str) -> Result<String, DocumentError> {
        let document: Document = serde_json::from_str(data).map_err(DocumentError::unreadable)?;
        if !document.error.is_null() {
            return Err(DocumentError::reported(&document.error));
        }
        self.documents = self.documents.saturating_add(1);
        if let Some(usage) = usage(&document.usage) {
            self.usage = Some(usage);
        }
        if let Some(model) = document.model.as_str().filter(|model| !model.is_empty()) {
            self.model = Some(model.to_owned());
        }
        let mut added = String::new();
        let choices = document.choices.unwrap_or_default();
        if let Some(choice) = choices.into_iter().find(|choice| choice.index.unwrap_or(0) == 0) {
            self.has_choice = true;
            if let Some(said) = choice.delta.or(choice.message) {
                added = text(said.content);
                if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty()) {
                    added.push_str(&refusal);
                    self.finish_reason = Some("content_filter".to_owned());
                }
                for call in said.tool_calls.unwrap_or_default() {
                    self.call(call)?;
                }
            }
            if let (Some(reason), None) = (choice.finish_reason.as_str(), &self.finish_reason) {
                self.finish_reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
            }
        }
        self.text.push_str(&added);
        Ok(added)
    }

    fn finish(self) -> Result<ModelAnswer, String> {
        if !self.has_choice {
            return Err("the answer is empty".to_owned());
        }
        let calls = (0_usize..).zip(self.calls).map(|(index, call)| call.finish(index));
        Ok(ModelAnswer {
            tool_calls: calls.collect::<Result<_, _>>()?,
            text: self.text,
            usage: self.usage,
            finish_reason: self.finish_reason,
            model: self.model,
            carry: None,
        })
    }
}

impl OpenAiAnswer {
    fn call(&mut self, part: ChoiceToolCall) -> Result<(), DocumentError> {
        let id = part.id.filter(|id| !id.is_empty());
        // Endpoints that omit the index send each call complete, or repeat its id.
        let known = match (part.index, &id) {
            (Some(index), _) => self.calls.iter().position(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().position(|call| call.id == *id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { index: part.index, ..Call::default() });
            self.calls.len().saturating_sub(1)
        });
        if self.calls.len() > MOST_CALLS {
            return Err(DocumentError::Garbage(format!("the answer calls more than {MOST_CALLS} tools")));
        }
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        let Some(function) = part.function else { return Ok(()) };
        if let Some(name) = function.name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        if let Some(arguments) = function.arguments {
            // Usually a text, in pieces; some endpoints send the JSON value.
            match serde_json::from_str::<String>(arguments.get()) {
                Ok(piece) => call.arguments.push_str(&piece),
                Err(_) => arguments.get().clone_into(&mut call.arguments),
            }
        }
        Ok(())
    }
}

/// Content is a text or a list of parts, some of them text.
fn text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

pub(super) fn usage(usage: &Value) -> Option<Usage> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64());
    let (input, output) =
        (number(["prompt_tokens", "input_tokens"]), number(["completion_tokens", "output_tokens"]));
    if input.is_none() && output.is_none() {
        return None;
    }
    let details = ["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens"];
    let cached = details.iter().find_map(|place| usage.pointer(place)?.as_u64());
    Some(Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        cached_tokens: cached.unwrap_or(0),
    })
}
