//! What the models of a run have taken, from its journal.

use serde_json::Value;
use wire::{RunUsage, TraceStep};

/// The sum over the nodes that asked a model themselves: an agent's row holds what its steps hold already.
pub(super) fn of(steps: &[TraceStep]) -> RunUsage {
    let mut sum = RunUsage { cost_usd: Some(0.0), ..RunUsage::default() };
    for step in steps {
        let Some(usage) = usage(&step.result) else { continue };
        if steps.iter().any(|other| is_inside(&other.node, &step.node)) {
            continue;
        }
        let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or_default();
        sum.calls = sum.calls.saturating_add(count("calls"));
        sum.input_tokens = sum.input_tokens.saturating_add(count("input_tokens"));
        sum.output_tokens = sum.output_tokens.saturating_add(count("output_tokens"));
        let cost = usage.get("cost_usd").and_then(Value::as_f64);
        sum.cost_usd = sum.cost_usd.zip(cost).map(|(sum, more)| ((sum + more) * 1e9).round() / 1e9);
    }
    sum
}

/// The usage of a result that is a model's.
fn usage(result: &Value) -> Option<&Value> {
    result.get("model")?;
    result.get("usage").filter(|usage| usage.get("calls").is_some() && usage.get("cost_usd").is_some())
}

/// Whether a row is of something that ran inside `node`.
fn is_inside(row: &str, node: &str) -> bool {
    row.strip_prefix(node).is_some_and(|rest| rest.starts_with(['/', '[', '#', '~']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(node: &str, result: Value) -> TraceStep {
        TraceStep {
            step: 1,
            node: node.into(),
            visit: 1,
            attempt: 1,
            status: "succeeded".into(),
            started_at: "2026-01-01T00:00:00Z".into(),
            finished_at: None,
            input_digest: String::new(),
            result,
            error: None,
        }
    }

    fn used(calls: u64, input: u64, cost: Value) -> Value {
        json!({"model": "m", "usage": {"calls": calls, "input_tokens": input, "output_tokens": 1, "cost_usd": cost}})
    }

    #[test]
    fn what_is_counted_is_counted_once() {
        assert_eq!(of(&[]), RunUsage { cost_usd: Some(0.0), ..RunUsage::default() });
        let mut steps = vec![
            step("ask", used(1, 10, json!(0.1))),
            step("ask2", used(2, 5, json!(0.2))),
            step("help[0]", used(1, 7, json!(0.4))),
            step("help[0].flow[0]/inner", used(1, 100, json!(1))),
            step("help[1]", used(1, 8, json!(0.5))),
            step("help", used(3, 115, json!(1.9))),
            step("other", json!({"usage": {"calls": 9}, "model": "m"})),
            step("text", json!("usage")),
            step("failed", Value::Null),
        ];
        let sum = RunUsage { calls: 6, input_tokens: 130, output_tokens: 5, cost_usd: Some(2.2) };
        // A call of a model that called a workflow holds its own tokens alone.
        assert_eq!(of(&steps), sum);
        steps.push(step("unpriced", used(1, 1, Value::Null)));
        assert_eq!(of(&steps).cost_usd, None);
    }
}
