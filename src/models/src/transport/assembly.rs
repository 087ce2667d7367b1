//! Putting an answer together, whatever the dialect.

use crate::{ModelAnswer, ModelErrorKind, ToolCall};

/// Most tools that one answer may call.
pub(crate) const MOST_CALLS: usize = 128;

/// Why a document is none of an answer.
#[derive(Debug)]
pub(crate) enum Wrong {
    /// It cannot be understood.
    Garbage(String),
    /// It is the endpoint's error.
    Error(ModelErrorKind, String),
}

impl Wrong {
    /// A document that is not what the protocol has there.
    pub(crate) fn unreadable(why: impl std::fmt::Display) -> Self {
        Self::Garbage(format!("the answer cannot be read: {why}"))
    }
}

/// An answer as far as it has come.
pub(crate) trait Assembly: Send {
    /// Takes the next document and yields the text that it adds.
    fn take(&mut self, data: &str) -> Result<String, Wrong>;

    /// Whether the endpoint has said why the answer ends: a body that ends now is whole.
    fn is_complete(&self) -> bool;

    /// Whether the endpoint has said that nothing follows.
    fn is_over(&self) -> bool {
        false
    }

    /// Whether nothing has come.
    fn is_empty(&self) -> bool;

    /// The answer.
    fn finish(self) -> Result<ModelAnswer, String>;
}

/// A tool's call whose arguments come in pieces.
#[derive(Default)]
pub(crate) struct Call {
    pub(crate) index: Option<u64>,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Call {
    /// The whole call; `index` is its place in the answer.
    pub(crate) fn finish(self, index: usize) -> Result<ToolCall, String> {
        let Self { id, name, arguments, .. } = self;
        if name.is_empty() {
            return Err("the answer calls a tool without a name".to_owned());
        }
        let arguments = if arguments.trim().is_empty() { "{}" } else { &arguments };
        let arguments = kernel::json::read(arguments, kernel::json::Numbers::Values).map_err(|why| {
            format!("the arguments of the tool '{name}' in the answer cannot be read: {why}")
        })?;
        let id = if id.is_empty() { format!("call_{index}") } else { id };
        Ok(ToolCall { id, name, arguments })
    }
}
