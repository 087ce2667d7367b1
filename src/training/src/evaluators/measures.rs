//! Evaluators of numbers: in the output, and of the execution.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use super::builtin::Judge;
use super::config::{Config, POSITIVE};
use super::subject::{Subject, shown};
use super::verdict::Verdict;
use crate::numbers::float;

/// A number in a text, also with separators of thousands. `3,4` is two numbers, and `3-5` is 3 and 5.
const NUMBER: &str = r"(?:\B-)?(?:[0-9]{1,3}(?:,[0-9]{3})+\b|[0-9]+)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?";

/// `numeric`.
pub(super) struct Numeric {
    expected: Option<f64>,
    tolerance: f64,
    relative: f64,
    first: bool,
    number: Regex,
}

impl Numeric {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let expected = config.value("expected");
        let expected_number = expected.and_then(Value::as_f64);
        if expected.is_some() && expected_number.is_none() {
            config.note("expected", "type", "must be a number");
        }
        let tolerance = config.number("tolerance", POSITIVE).unwrap_or(1e-9);
        let relative = config.number("relative", POSITIVE).unwrap_or(0.0);
        let first = config.word("which", &["first", "last"]) == Some("first");
        let number = Regex::new(NUMBER).ok()?;
        Some(Box::new(Self { expected: expected_number, tolerance, relative, first, number }))
    }

    fn in_text(&self, text: &str) -> Option<f64> {
        let mut found = self.number.find_iter(text);
        let found = if self.first { found.next() } else { found.last() };
        found?.as_str().replace(',', "").parse().ok()
    }
}

impl Judge for Numeric {
    fn judge(&self, subject: &Subject<'_>, _threshold: Option<f64>) -> Result<Verdict, String> {
        let expected = self.expected.or_else(|| match subject.expected {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => self.in_text(text),
            _ => None,
        });
        let expected = expected.ok_or("the case has no number as expected_output")?;
        let got = subject.output.as_f64().or_else(|| self.in_text(subject.text));
        let Some(got) = got else {
            return Ok(Verdict::passed(false)
                .because(format!("Expected {expected}. “{}” has no number.", shown(subject.text))));
        };
        let allowed = self.tolerance.max(self.relative * expected.abs());
        if (got - expected).abs() <= allowed {
            return Ok(Verdict::passed(true));
        }
        Ok(Verdict::passed(false).because(format!("Expected {expected}, got {got}.")))
    }
}

/// `latency` and `cost`: all up to a limit, then in proportion.
pub(super) struct Limit {
    limit: f64,
    measured: Measured,
}

/// What a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    /// Milliseconds.
    Time,
    /// US dollars.
    Money,
}

impl Limit {
    pub(super) fn read(config: &mut Config<'_, '_>, measured: Measured) -> Option<Box<dyn Judge>> {
        let name = match measured {
            Measured::Time => "max_ms",
            Measured::Money => "max_usd",
        };
        config.required(name)?;
        let limit = config.number(name, POSITIVE)?;
        Some(Box::new(Self { limit, measured }))
    }
}

impl Judge for Limit {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let (got, unit) = match self.measured {
            Measured::Time => (subject.measured.duration.as_secs_f64() * 1_000.0, "ms"),
            Measured::Money => (
                subject.measured.cost.ok_or("the price of a model that the case has called is unknown")?,
                "USD",
            ),
        };
        if got <= self.limit {
            return Ok(Verdict::passed(true));
        }
        let verdict = Verdict::of(self.limit / got, threshold.unwrap_or(1.0));
        Ok(verdict.because(format!("{got:.6} {unit}, more than {}.", self.limit)))
    }
}

/// `tool_calls`.
pub(super) struct ToolCalls {
    tools: Option<Vec<String>>,
    order: bool,
}

impl ToolCalls {
    pub(super) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Judge>> {
        let tools = config.texts("tools");
        Some(Box::new(Self { tools, order: config.flag("in_order").unwrap_or(false) }))
    }
}

impl Judge for ToolCalls {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let expected = match (&self.tools, subject.expected) {
            (Some(tools), _) => tools.clone(),
            (None, Value::Array(tools)) => {
                tools.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (None, _) => {
                return Err("neither config.tools nor a list as expected_output names tools".to_owned());
            }
        };
        let calls =
            subject.trace.iter().filter_map(|step| step.output.as_ref()?.get("tool_calls")?.as_array());
        let called: Vec<String> = calls
            .flatten()
            .filter_map(|call| call.get("tool").and_then(Value::as_str).map(str::to_owned))
            .collect();
        let common = if self.order { in_order(&expected, &called) } else { in_any_order(&expected, &called) };
        let all = expected.len() + called.len();
        let score = if all == 0 { 1.0 } else { 2.0 * float(common) / float(all) };
        let verdict = Verdict::of(score, threshold.unwrap_or(1.0));
        if score >= 1.0 {
            return Ok(verdict);
        }
        let listed = |tools: &[String]| if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
        Ok(verdict.because(format!(
            "Expected calls of {}; the calls were {}.",
            listed(&expected),
            listed(&called)
        )))
    }
}

/// Entries of both, each as often as both have it.
fn in_any_order(expected: &[String], called: &[String]) -> usize {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for tool in called {
        *left.entry(tool).or_insert(0) += 1;
    }
    let mut common = 0;
    for tool in expected {
        if let Some(count) = left.get_mut(tool.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    common
}

/// Entries of the longest common subsequence; lists of calls are short.
fn in_order(expected: &[String], called: &[String]) -> usize {
    let mut row = vec![0_usize; called.len() + 1];
    for tool in expected {
        let before = row.clone();
        for (place, other) in called.iter().enumerate() {
            let at = |row: &[usize], place: usize| row.get(place).copied().unwrap_or(0);
            let best = if tool == other {
                at(&before, place) + 1
            } else {
                at(&before, place + 1).max(at(&row, place))
            };
            if let Some(cell) = row.get_mut(place + 1) {
                *cell = best;
            }
        }
    }
    row.last().copied().unwrap_or(0)
}
