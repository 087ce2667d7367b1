//! Graph files: a graph, or an object with a graph and related members.

use std::io::Read;
use std::path::Path;

use kernel::json::JsonError;
use serde_json::{Map, Value};

use crate::complaint::{Places, SourceLocation};
use crate::output::CommandError;
use wire::line_of;

/// A text and its name in messages.
pub(in crate::commands) struct TextFile {
    name: String,
    text: String,
}

impl TextFile {
    /// Reads a file; `-` means standard input.
    pub(in crate::commands) fn read(path: &Path) -> Result<Self, CommandError> {
        let (name, bytes) = if path.as_os_str() == "-" {
            let mut bytes = Vec::new();
            ("standard input".to_owned(), std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes))
        } else {
            (path.display().to_string(), std::fs::read(path))
        };
        let bytes = bytes.map_err(|error| CommandError::usage(format!("{name} cannot be read: {error}")))?;
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| CommandError::usage(format!("{name} is not UTF-8 text")))?;
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Ok(Self { name, text })
    }

    /// Creates a named text.
    #[cfg(test)]
    pub(in crate::commands) fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.to_owned() }
    }

    /// The name in messages.
    pub(in crate::commands) fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub(in crate::commands) fn text(&self) -> &str {
        &self.text
    }

    /// Parses the text as JSON.
    pub(in crate::commands) fn json(&self) -> Result<Value, CommandError> {
        let json = kernel::json::read(&self.text, kernel::json::Numbers::Values);
        json.map_err(|error| {
            let error = match error {
                JsonError::Syntax(error) => error,
                JsonError::Rounded(number) => return format!("{}: {number}", self.name).into(),
            };
            let wrong = error.to_string();
            // The location comes first, where editors and people expect it.
            let wrong = wrong.split(" at line ").next().unwrap_or_default();
            let (line, column) = (error.line(), error.column());
            format!("{}:{line}:{column}: this is not JSON: {wrong}", self.name).into()
        })
    }

    /// Parses the text as a JSON object.
    pub(in crate::commands) fn object(&self) -> Result<Map<String, Value>, CommandError> {
        object(&self.name, "", self.json()?)
    }

    /// Locates a JSON pointer in the text.
    pub(in crate::commands) fn place(&self, pointer: &str) -> SourceLocation {
        SourceLocation { file: self.name.clone(), line: line_of(&self.text, pointer) }
    }
}

/// The content to save.
pub(in crate::commands) struct GraphFile {
    pub(in crate::commands) graph: Value,
    pub(in crate::commands) runnable_config: Option<Map<String, Value>>,
    pub(super) metadata: Option<Map<String, Value>>,
    pub(super) notes: Option<String>,
    text: TextFile,
    /// Whether the graph is a member of the file's object.
    wrapped: bool,
    /// A separate file with the runnable config.
    config: Option<TextFile>,
}

impl GraphFile {
    /// Reads a graph, or an object with `graph` and optionally `runnable_config`, `metadata` and `notes`. A separate
    /// config file replaces the config in the object.
    pub(in crate::commands) fn read(path: &Path, config: Option<&Path>) -> Result<Self, CommandError> {
        let text = TextFile::read(path)?;
        let config = config.map(TextFile::read).transpose()?;
        let mut file = match text.json()? {
            Value::Object(members) if members.contains_key("graph") && !members.contains_key("nodes") => {
                Self::unwrap(text, members)?
            }
            graph => Self::bare(text, graph),
        };
        file.graph = engine::without_schema(file.graph);
        if let Some(config) = config {
            file.runnable_config = Some(config.object()?);
            file.config = Some(config);
        }
        Ok(file)
    }

    fn bare(text: TextFile, graph: Value) -> Self {
        let (runnable_config, metadata, notes) = (None, None, None);
        Self { graph, runnable_config, metadata, notes, text, wrapped: false, config: None }
    }

    fn unwrap(text: TextFile, members: Map<String, Value>) -> Result<Self, CommandError> {
        let name = text.name.clone();
        let mut file = Self { wrapped: true, ..Self::bare(text, Value::Null) };
        for (member, value) in members {
            match (member.as_str(), value) {
                ("graph", graph) => file.graph = graph,
                (_, Value::Null) => {}
                ("runnable_config", value) => {
                    file.runnable_config = Some(object(&name, "`runnable_config`", value)?)
                }
                ("metadata", value) => file.metadata = Some(object(&name, "`metadata`", value)?),
                ("notes", Value::String(notes)) => file.notes = Some(notes),
                ("notes", _) => return Err(format!("{name}: `notes` must be a string").into()),
                (other, _) => {
                    let wrong = format!(
                        "{name}: unknown member `{other}`; besides `graph`, `runnable_config`, `metadata` and `notes` are allowed"
                    );
                    return Err(wrong.into());
                }
            }
        }
        Ok(file)
    }

    /// The file's name in messages.
    pub(super) fn name(&self) -> &str {
        &self.text.name
    }
}

fn object(name: &str, what: &str, value: Value) -> Result<Map<String, Value>, CommandError> {
    match value {
        Value::Object(members) => Ok(members),
        _ => {
            Err(format!("{name}: {what}{}must be a JSON object", if what.is_empty() { "" } else { " " })
                .into())
        }
    }
}

impl Places for GraphFile {
    fn place(&self, pointer: &str) -> Option<SourceLocation> {
        let in_config =
            pointer.strip_prefix("/runnable_config").filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (in_config, &self.config) {
            (Some(rest), Some(config)) => Some(config.place(rest)),
            (Some(_), None) if self.wrapped => Some(self.text.place(pointer)),
            _ if pointer == "/notes" || pointer.starts_with("/metadata") => None,
            _ if self.wrapped => Some(self.text.place(&format!("/graph{pointer}"))),
            _ => Some(self.text.place(pointer)),
        }
    }
}
