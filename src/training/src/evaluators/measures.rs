//! Numeric evaluators: numbers in the output, and measurements of the execution.

use std::collections::BTreeMap;

use models::ToolCall;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::config::{Config, POSITIVE};
use super::judge::Judge;
use super::subject::{Subject, shown};
use super::verdict::Verdict;
use crate::numbers::float;
use crate::runner::CaseStep;

/// A number in a text, also with thousands separators. `3,4` is two numbers, and `3-5` is 3 and 5.
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
        let expected = self.expected.or_else(|| match subject.expected() {
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

/// `latency` and `cost`: full score up to a limit, then in proportion.
pub(super) struct Limit {
    limit: f64,
    quantity: LimitedQuantity,
}

/// The limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LimitedQuantity {
    /// Milliseconds.
    Time,
    /// US dollars.
    Money,
}

impl Limit {
    pub(super) fn read(config: &mut Config<'_, '_>, quantity: LimitedQuantity) -> Option<Box<dyn Judge>> {
        let name = match quantity {
            LimitedQuantity::Time => "max_ms",
            LimitedQuantity::Money => "max_usd",
        };
        config.required(name)?;
        let limit = config.number(name, POSITIVE)?;
        Some(Box::new(Self { limit, quantity }))
    }
}

impl Judge for Limit {
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String> {
        let (got, unit) = match self.quantity {
            LimitedQuantity::Time => (subject.measured.duration.as_secs_f64() * 1_000.0, "ms"),
            LimitedQuantity::Money => (
                subject.measured.cost.ok_or("the price of a model that the case has called is unknown")?,
                "USD",
            ),
        };
        if got <= self.limit {
            return Ok(Verdict::passed(true));
        }
        let verdict = Verdict::from_score(self.limit / got, threshold.unwrap_or(1.0));
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
        let expected = match (&self.tools, subject.expected()) {
            (Some(tools), _) => tools.clone(),
            (None, Value::Array(tools)) => {
                tools.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (None, _) => {
                return Err("neither config.tools nor a list as expected_output names tools".to_owned());
            }
        };
        let called = called_tools(subject.trace);
        let common = if self.order { in_order(&expected, &called) } else { in_any_order(&expected, &called) };
        let all = expected.len() + called.len();
        let score = if all == 0 { 1.0 } else { 2.0 * float(common) / float(all) };
        let verdict = Verdict::from_score(score, threshold.unwrap_or(1.0));
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

/// The tools that agents called, in call order.
///
/// A call counts only where the model requested it: in its answer, the step `<agent>[n]`. The agent's result lists
/// the call again, and so may every node and workflow that returns this result; a failed agent has no result.
fn called_tools(trace: &[CaseStep]) -> Vec<String> {
    let answers = trace.iter().filter(|step| step.node.ends_with(']'));
    let calls = answers.filter_map(|step| {
        let calls = step.output.as_ref()?.get("tool_calls")?;
        Vec::<ToolCall>::deserialize(calls).ok()
    });
    calls.flatten().map(|call| call.name).collect()
}

/// The size of the multiset intersection.
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

/// The length of the longest common subsequence; call lists are short.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(node: &str, output: Option<Value>) -> CaseStep {
        CaseStep { node: node.into(), visit: 1, attempt: 1, output, ..CaseStep::default() }
    }

    /// The answer of an agent's model.
    fn asks(node: &str, tools: &[&str]) -> CaseStep {
        let call = |tool: &&str| json!({"id": format!("call_{tool}"), "name": tool, "arguments": {}});
        let calls: Vec<Value> = tools.iter().map(call).collect();
        step(node, Some(json!({"text": "", "tool_calls": calls, "finish_reason": "stop"})))
    }

    /// The result of an agent, or of a node that returns it.
    fn lists(node: &str, tools: &[&str]) -> CaseStep {
        let call = |tool: &&str| json!({"tool": tool, "arguments": {}, "error": null});
        let calls: Vec<Value> = tools.iter().map(call).collect();
        step(node, Some(json!({"text": "Done.", "steps": 2, "tool_calls": calls})))
    }

    fn done(node: &str) -> CaseStep {
        step(node, Some(json!({"text": "x"})))
    }

    fn failed(node: &str) -> CaseStep {
        step(node, None)
    }

    #[test]
    fn calls_reported_several_times_count_once() {
        let trace = [
            asks("outer/help[0]", &["find", "pay"]),
            done("outer/help[0].pay[1]"),
            done("outer/help[0].find[0]"),
            asks("outer/help[1]", &["find"]),
            done("outer/help[1].find[0]"),
            asks("outer/help[2]", &[]),
            lists("outer/help", &["find", "pay", "find"]),
            lists("outer", &["find", "pay", "find"]),
            lists("copy", &["find", "pay", "find"]),
        ];
        assert_eq!(called_tools(&trace), ["find", "pay", "find"]);
    }

    #[test]
    fn nodes_inside_a_tool_are_not_tool_calls() {
        let trace = [
            asks("help[0]", &["refund"]),
            done("help[0].refund[0]/check"),
            asks("help[0].refund[0]/clerk[0]", &["pay"]),
            done("help[0].refund[0]/clerk[0].pay[0]/send"),
            done("help[0].refund[0]/clerk[0].pay[0]"),
            asks("help[0].refund[0]/clerk[1]", &[]),
            lists("help[0].refund[0]/clerk", &["pay"]),
            lists("help[0].refund[0]", &["pay"]),
            asks("help[1]", &[]),
            lists("help", &["refund"]),
        ];
        assert_eq!(called_tools(&trace), ["refund", "pay"]);
    }

    #[test]
    fn agents_in_loops_and_agents_as_tools_have_separate_calls() {
        let trace = [
            asks("each[0][0]", &["find"]),
            done("each[0][0].find[0]"),
            asks("each[0][1]", &[]),
            lists("each[0]", &["find"]),
            asks("each[1][0]", &["ask"]),
            asks("each[1][0].ask[0][0]", &["pay"]),
            done("each[1][0].ask[0][0].pay[0]"),
            asks("each[1][0].ask[0][1]", &[]),
            lists("each[1][0].ask[0]", &["pay"]),
            asks("each[1][1]", &[]),
            lists("each[1]", &["ask"]),
            step("each", Some(json!({"items": [], "errors": []}))),
        ];
        assert_eq!(called_tools(&trace), ["find", "ask", "pay"]);
    }

    #[test]
    fn calls_of_a_failed_agent_count() {
        // The second call names a tool that does not exist; the third is from another attempt, which begins with the
        // first answer.
        let trace = [
            failed("help[0]"),
            asks("help[0]", &["find", "guess"]),
            failed("help[0].find[0]"),
            failed("help"),
            asks("help~2[1]", &["find"]),
            failed("help"),
        ];
        assert_eq!(called_tools(&trace), ["find", "guess", "find"]);
    }
}
