//! Putting an answer together from what a stream says bit by bit.

use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal;
use crate::models::{ModelAnswer, ModelErrorKind, ToolCall, Usage};

/// Most tools that one answer may call.
const MOST_CALLS: usize = 128;

/// Why a document is none of an answer.
pub(super) enum Wrong {
    /// It cannot be understood.
    Garbage(String),
    /// It is the endpoint's error.
    Error(ModelErrorKind, String),
}

/// An answer as far as it has come.
#[derive(Default)]
pub(super) struct Assembly {
    text: String,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish_reason: Option<String>,
    model: Option<String>,
    documents: u32,
    has_choice: bool,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// A document: a chunk of a stream, or a whole answer. Endpoints leave members out or send `null`; only what is used
/// here is read.
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
    delta: Option<Said>,
    #[serde(default)]
    message: Option<Said>,
    #[serde(default)]
    finish_reason: Value,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<SaidCall>>,
}

#[derive(Deserialize)]
struct SaidCall {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<SaidFunction>,
}

#[derive(Deserialize)]
struct SaidFunction {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Value,
}

impl Assembly {
    /// Whether the endpoint has said why the answer ends.
    pub(super) fn is_complete(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.documents == 0
    }

    /// Takes the next document and yields the text that it adds.
    pub(super) fn take(&mut self, data: &str) -> Result<String, Wrong> {
        let garbage =
            |why: &dyn std::fmt::Display| Wrong::Garbage(format!("the answer cannot be read: {why}"));
        let document: Document = serde_json::from_str(data).map_err(|why| garbage(&why))?;
        if !document.error.is_null() {
            let said =
                refusal::said_in(&json!({"error": document.error})).unwrap_or_else(|| "an error".to_owned());
            return Err(Wrong::Error(refusal::kind_of_error(&document.error), said));
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

    fn call(&mut self, said: SaidCall) -> Result<(), Wrong> {
        let id = said.id.filter(|id| !id.is_empty());
        // Endpoints that leave the index out send each call whole, or repeat its id.
        let known = match (said.index, &id) {
            (Some(index), _) => self.calls.iter().position(|call| call.index == Some(index)),
            (None, Some(id)) => self.calls.iter().position(|call| call.id == *id),
            (None, None) => self.calls.len().checked_sub(1),
        };
        let at = known.unwrap_or_else(|| {
            self.calls.push(Call { index: said.index, ..Call::default() });
            self.calls.len().saturating_sub(1)
        });
        if self.calls.len() > MOST_CALLS {
            return Err(Wrong::Garbage(format!("the answer calls more than {MOST_CALLS} tools")));
        }
        let Some(call) = self.calls.get_mut(at) else { return Ok(()) };
        if let Some(id) = id.filter(|_| call.id.is_empty()) {
            call.id = id;
        }
        let Some(function) = said.function else { return Ok(()) };
        if let Some(name) = function.name.filter(|_| call.name.is_empty()) {
            call.name = name;
        }
        match function.arguments {
            Value::String(part) => call.arguments.push_str(&part),
            Value::Null => {}
            whole => call.arguments = whole.to_string(),
        }
        Ok(())
    }

    /// The answer.
    pub(super) fn finish(self) -> Result<ModelAnswer, String> {
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
        })
    }
}

impl Call {
    fn finish(self, index: usize) -> Result<ToolCall, String> {
        let Self { id, name, arguments, .. } = self;
        if name.is_empty() {
            return Err("the answer calls a tool without a name".to_owned());
        }
        let arguments = if arguments.trim().is_empty() { "{}" } else { &arguments };
        let arguments = serde_json::from_str(arguments)
            .map_err(|why| format!("the answer's arguments of the tool '{name}' are no JSON: {why}"))?;
        let id = if id.is_empty() { format!("call_{index}") } else { id };
        Ok(ToolCall { id, name, arguments })
    }
}

/// Content is a text, or a list of parts of which some are text.
fn text(content: Value) -> String {
    match content {
        Value::String(text) => text,
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
        _ => String::new(),
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let number = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64());
    let (input, output) =
        (number(["prompt_tokens", "input_tokens"]), number(["completion_tokens", "output_tokens"]));
    if input.is_none() && output.is_none() {
        return None;
    }
    Some(Usage { input_tokens: input.unwrap_or(0), output_tokens: output.unwrap_or(0) })
}
