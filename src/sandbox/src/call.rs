//! Sandbox calls, their results and errors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A graph's modules by name.
pub type Modules = BTreeMap<String, Arc<str>>;

/// A programming language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python, as implemented by Monty.
    Python,
    /// JavaScript, as implemented by QuickJS.
    Javascript,
}

impl Language {
    /// The names that graphs use.
    pub const NAMES: [&str; 2] = ["python", "javascript"];

    /// Finds a language by its name in graphs.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "python" => Some(Self::Python),
            "javascript" => Some(Self::Javascript),
            _ => None,
        }
    }

    /// The name in graphs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
        }
    }

    /// Finds a module's language by its file extension.
    #[must_use]
    pub fn of_module(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "js" => Some(Self::Javascript),
            _ => None,
        }
    }
}

/// The code to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A module's function.
    Function {
        /// The module's name with its extension.
        module: String,
        /// The function's name.
        function: String,
    },
    /// Standalone code: its function `main` is called with the arguments; without `main`, the value is its last
    /// expression.
    Source(String),
}

/// A call.
#[derive(Debug, Clone)]
pub struct Call {
    /// The language.
    pub language: Language,
    /// Modules that the code may import, by name; modules in another language are ignored.
    pub modules: Arc<Modules>,
    /// The code to run.
    pub entry: Entry,
    /// The only argument.
    pub args: Value,
    /// The call's limits.
    pub limits: Limits,
}

/// Limits for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum run time, from the moment a worker starts the call. The call waits for a worker as long, or for
    /// [`crate::Options::wait`] if that is longer.
    pub time: Duration,
    /// Maximum bytes of the result as JSON.
    pub output: usize,
    /// Maximum bytes of printed output; the rest is discarded.
    pub logs: usize,
}

impl Limits {
    /// The maximum run time of any call.
    pub const LONGEST: Duration = Duration::from_secs(300);
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), output: 1 << 20, logs: 64 << 10 }
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The returned value.
    pub value: Value,
    /// The printed output.
    pub logs: String,
}

/// Call errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The code raised an error or returned a value that is not JSON.
    #[error("{message}{}", at(module.as_deref(), *line, *column))]
    Failed {
        /// The error message.
        message: String,
        /// The failing module, if known.
        module: Option<String>,
        /// Line, from 1.
        line: Option<u32>,
        /// Column, from 1.
        column: Option<u32>,
    },
    /// The code exceeded its time limit.
    #[error("the code ran longer than {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// The code exceeded its memory limit.
    #[error("the code used more memory than {} MiB", .0 >> 20)]
    Memory(usize),
    /// The result exceeds its size limit.
    #[error("the result is larger than {0} bytes")]
    OutputTooLarge(usize),
    /// The worker died.
    #[error("the process that ran the code died")]
    Crashed,
    /// No worker became free before the wait timeout.
    #[error("no worker was free within {} s{}", waited.as_secs_f64(), share(*held))]
    Busy {
        /// Time spent in the queue.
        waited: Duration,
        /// Workers running other calls of the same workspace.
        held: usize,
    },
    /// The queue is full.
    #[error("too many calls are waiting for a worker (queue time 0 s{})", share(*held))]
    QueueFull {
        /// Workers running other calls of the same workspace.
        held: usize,
    },
    /// No worker can be started.
    #[error("a worker for code cannot be started: {0}")]
    Unavailable(String),
}

fn share(held: usize) -> String {
    match held {
        0 => String::new(),
        1 => "; one other call of this workspace was running".to_owned(),
        held => format!("; {held} other calls of this workspace were running"),
    }
}

fn at(module: Option<&str>, line: Option<u32>, column: Option<u32>) -> String {
    let place = match (line, column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}"),
        (Some(line), None) => format!("line {line}"),
        (None, _) => return String::new(),
    };
    match module {
        Some(module) => format!(" ({module}, {place})"),
        None => format!(" ({place})"),
    }
}

/// Code to check before it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The module of this name.
    Module(String),
    /// Standalone code.
    Alone(String),
}

/// A syntax error in code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyntaxProblem {
    /// The message.
    pub message: String,
    /// Line from 1, if known.
    pub line: Option<u32>,
    /// Column from 1, if known.
    pub column: Option<u32>,
}

/// The result of checking valid code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// Names that other code may call; empty for standalone code.
    pub names: Vec<String>,
}
