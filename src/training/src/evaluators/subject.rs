//! What an evaluator judges.

use std::time::Duration;

use engine::fenced;
use serde_json::{Map, Value, json};

use crate::case::Case;
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
    /// What was executed, with what was expected.
    pub case: &'a Case,
    /// The split that it is in, if the run has splits.
    pub split: Option<&'a str>,
    /// The epoch of the run, if it has epochs.
    pub epoch: Option<u32>,
    /// The attempts of nodes, by super-step and name.
    pub trace: &'a [CaseStep],
    /// Time and money.
    pub measured: Measured,
}

impl Subject<'_> {
    /// What was expected; null if that is not known.
    pub(super) fn expected(&self) -> &Value {
        &self.case.expected_output
    }

    /// Everything, as an evaluator outside of this package receives it; `config`: that of the evaluator.
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
