//! The subject that evaluators judge.

use std::time::Duration;

use engine::fenced;
use serde_json::{Map, Value, json};

use crate::case::Case;
use crate::runner::CaseStep;

/// Cost and duration of a case.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Duration without the time in which calls waited.
    pub duration: Duration,
    /// Cost in US dollars; `None` if a model's price is unknown.
    pub cost: Option<f64>,
}

/// A case result with its expected output.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The graph output.
    pub output: &'a Value,
    /// The output as text.
    pub text: &'a str,
    /// The executed case, with its expected output.
    pub case: &'a Case,
    /// The case's split, if the run has splits.
    pub split: Option<&'a str>,
    /// The epoch, if the run has epochs.
    pub epoch: Option<u32>,
    /// The node attempts by super-step and name.
    pub trace: &'a [CaseStep],
    /// Duration and cost.
    pub measured: Measured,
}

impl Subject<'_> {
    /// The expected output; null if unknown.
    pub(super) fn expected(&self) -> &Value {
        &self.case.expected_output
    }

    /// The whole context that an evaluator outside this package receives; `config`: the evaluator's config.
    pub(super) fn context(&self, config: &Value) -> Map<String, Value> {
        let Self { case, output, text, split, epoch, measured, trace } = self;
        let context = json!({
            "inputs": case.inputs,
            "output": output,
            "output_text": text,
            "expected_output": case.expected_output,
            "metadata": case.metadata,
            "duration_ms": u64::try_from(measured.duration.as_millis()).unwrap_or(u64::MAX),
            "case": {"id": case.id, "index": case.index, "split": split, "epoch": epoch},
            "trace": trace,
            "usage": {"cost_usd": measured.cost},
            "config": config,
        });
        if let Value::Object(context) = context { context } else { Map::new() }
    }

    /// The output as JSON; a text is parsed.
    pub(super) fn json(&self) -> Result<Value, String> {
        match self.output {
            Value::String(text) => parsed(text),
            Value::Null => parsed(self.text),
            output => Ok(output.clone()),
        }
    }

    /// The output as JSON, or the reason of a failed verdict.
    pub(super) fn json_or_reason(&self) -> Result<Value, String> {
        self.json().map_err(|why| format!("{why}. Got “{}”.", shown(self.text)))
    }

    /// The expected output as text.
    pub(super) fn expected_text(&self) -> Option<String> {
        match &self.case.expected_output {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            expected => Some(expected.to_string()),
        }
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    fenced::json(text).map_err(|error| format!("the output is not JSON: {error}"))
}

/// Truncates a text for a reason that people and models read.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 300;
    let text = text.trim();
    if text.chars().count() <= MOST {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST).collect();
    format!("{kept} …")
}
