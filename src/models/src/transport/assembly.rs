//! Assembles answers, independent of the dialect.

use kernel::json::{Numbers, check_numbers, read};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::refusal::{kind_of_error, said_in};
use crate::{ModelAnswer, ModelErrorKind, ToolCall};

/// Maximum tool calls per answer.
pub(crate) const MOST_CALLS: usize = 128;

/// The reason that a document is not part of an answer.
#[derive(Debug)]
pub(crate) enum DocumentError {
    /// The document is not valid.
    Garbage(String),
    /// The document is the endpoint's error.
    Error(ModelErrorKind, String),
}

impl DocumentError {
    /// A document that does not match the protocol.
    pub(crate) fn unreadable(why: impl std::fmt::Display) -> Self {
        Self::Garbage(format!("the answer cannot be read: {why}"))
    }

    /// The endpoint's error in a document.
    pub(crate) fn reported(error: &Value) -> Self {
        let said = said_in(&json!({"error": error})).unwrap_or_else(|| "an error".to_owned());
        Self::Error(kind_of_error(error), said)
    }
}

/// A partially received answer.
pub(crate) trait Assembly: Send {
    /// Consumes the next document and returns the text that it adds.
    fn take(&mut self, data: &str) -> Result<String, DocumentError>;

    /// Whether the finish reason has arrived: the answer is complete even if the body ends now.
    fn is_complete(&self) -> bool;

    /// Whether the endpoint has marked the end of the stream.
    fn is_over(&self) -> bool {
        false
    }

    /// Whether nothing has arrived.
    fn is_empty(&self) -> bool;

    /// Returns the answer.
    fn finish(self) -> Result<ModelAnswer, String>;
}

/// A tool call whose arguments arrive in pieces.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) index: Option<u64>,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Call {
    /// Builds the complete call; `index` is its position in the answer.
    pub(crate) fn finish(self, index: usize) -> Result<ToolCall, String> {
        let Self { id, name, arguments, .. } = self;
        if name.is_empty() {
            return Err("the answer calls a tool without a name".to_owned());
        }
        let arguments = if arguments.trim().is_empty() { "{}" } else { &arguments };
        let arguments = read(arguments, Numbers::Values).map_err(|why| unreadable_arguments(&name, why))?;
        let id = if id.is_empty() { format!("call_{index}") } else { id };
        Ok(ToolCall { id, name, arguments })
    }
}

/// Parses a part of an answer. If the part is a tool call, which `called` names, its numbers must keep their value.
pub(crate) fn read_part(
    part: &RawValue,
    called: impl FnOnce(&Value) -> Option<&str>,
) -> Result<Value, DocumentError> {
    let read: Value = serde_json::from_str(part.get()).map_err(DocumentError::unreadable)?;
    if let Some(name) = called(&read) {
        // A parsed number is already rounded.
        check_numbers(part.get().as_bytes(), Numbers::Values)
            .map_err(|why| DocumentError::Garbage(unreadable_arguments(name, why)))?;
    }
    Ok(read)
}

fn unreadable_arguments(tool: &str, why: impl std::fmt::Display) -> String {
    format!("the arguments of the tool '{tool}' in the answer cannot be read: {why}")
}
