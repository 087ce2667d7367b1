//! What an evaluator judges.

use std::time::Duration;

use engine::fenced;
use serde_json::Value;

use crate::runner::CaseStep;

/// What a case has used and how long it took.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Without the time in which its calls waited.
    pub duration: Duration,
    /// US dollars of its calls; `None` if the price of a model is unknown.
    pub cost: Option<f64>,
}

/// The result of a case, with what was expected.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The output of the graph.
    pub output: &'a Value,
    /// Its text.
    pub text: &'a str,
    /// What was expected; null if that is not known.
    pub expected: &'a Value,
    /// The nodes in the order of their ends.
    pub trace: &'a [CaseStep],
    /// Time and money.
    pub measured: Measured,
}

impl Subject<'_> {
    /// The output as JSON: a text that is JSON counts as what it says.
    pub(super) fn json(&self) -> Result<Value, String> {
        match self.output {
            Value::String(text) => parsed(text),
            Value::Null => parsed(self.text),
            output => Ok(output.clone()),
        }
    }

    /// What was expected, as text.
    pub(super) fn expected_text(&self) -> Option<String> {
        match self.expected {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            expected => Some(expected.to_string()),
        }
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    fenced::json(text).map_err(|error| format!("the output is not JSON: {error}"))
}

/// At most so many characters of a text, for a reason that people and models read.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let text = text.trim();
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST).collect();
    format!("{kept} …")
}
