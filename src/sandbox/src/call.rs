//! What is asked of the sandbox, and what it answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The modules of a graph, by name.
pub type Modules = BTreeMap<String, Arc<str>>;

/// A language that code is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python, as Monty knows it.
    Python,
    /// JavaScript, as QuickJS knows it.
    Javascript,
}

impl Language {
    /// The names that graphs use.
    pub const NAMES: [&str; 2] = ["python", "javascript"];

    /// The language of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "python" => Some(Self::Python),
            "javascript" => Some(Self::Javascript),
            _ => None,
        }
    }

    /// Its name in graphs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Javascript => "javascript",
        }
    }

    /// The language of a module, by the ending of its name.
    #[must_use]
    pub fn of_module(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1 {
            "py" => Some(Self::Python),
            "js" => Some(Self::Javascript),
            _ => None,
        }
    }
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// A function of a module.
    Function {
        /// The module's name, with its ending.
        module: String,
        /// The function's name.
        function: String,
    },
    /// Code that stands alone: its function `main`, called with the arguments, or else the value of its last expression.
    Source(String),
}

/// One call.
#[derive(Debug, Clone)]
pub struct Call {
    /// Its language.
    pub language: Language,
    /// The modules that it may import, by name; those of another language do no harm.
    pub modules: Arc<Modules>,
    /// What is run.
    pub entry: Entry,
    /// The one argument.
    pub args: Value,
    /// How far it may go.
    pub limits: Limits,
}

/// How far a call may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run, from the moment when a worker begins it. It waits for a worker at most as long, or for
    /// [`crate::Options::wait`] if that is longer.
    pub time: Duration,
    /// Bytes of its result, as JSON.
    pub output: usize,
    /// Bytes of what it prints; what is printed behind them is left out.
    pub logs: usize,
}

impl Limits {
    /// The longest that any call may run.
    pub const LONGEST: Duration = Duration::from_secs(300);
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), output: 1 << 20, logs: 64 << 10 }
    }
}

/// What a call came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was returned.
    pub value: Value,
    /// What was printed.
    pub logs: String,
}

/// Why a call yields nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The code failed: it raised an error, or returned what is not JSON.
    #[error("{message}{}", at(module.as_deref(), *line, *column))]
    Failed {
        /// What it said.
        message: String,
        /// Where, if that is known.
        module: Option<String>,
        /// From 1.
        line: Option<u32>,
        /// From 1.
        column: Option<u32>,
    },
    /// It took too long.
    #[error("the code ran longer than {} s", .0.as_secs_f64())]
    Timeout(Duration),
    /// It wanted more memory than it may have.
    #[error("the code used more memory than {} MiB", .0 >> 20)]
    Memory(usize),
    /// Its result is too large.
    #[error("the result is larger than {0} bytes")]
    OutputTooLarge(usize),
    /// The worker died.
    #[error("the process that ran the code died")]
    Crashed,
    /// No worker was free within the time that a call waits.
    #[error("no worker was free within {} s{}", waited.as_secs_f64(), share(*held))]
    Busy {
        /// Time in the queue.
        waited: Duration,
        /// Workers that ran other calls of the same workspace.
        held: usize,
    },
    /// Too many calls wait already.
    #[error("too many calls are waiting for a worker (queue time 0 s{})", share(*held))]
    QueueFull {
        /// Workers that ran other calls of the same workspace.
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

/// Code that is looked at before it is taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The module of this name.
    Module(String),
    /// Code that stands alone.
    Alone(String),
}

/// What is wrong with code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyntaxProblem {
    /// What.
    pub message: String,
    /// From 1, if it is known.
    pub line: Option<u32>,
    /// From 1, if it is known.
    pub column: Option<u32>,
}

/// What was found out about code that is sound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Surveyed {
    /// The names that others may call; of code that stands alone there are none.
    pub names: Vec<String>,
}
