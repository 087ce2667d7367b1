//! What the models of a run have used.

use std::collections::BTreeSet;

use serde_json::Value;
use wire::RunUsage;

/// The sum over the nodes that asked a model themselves: the row of an agent holds the sum of its calls. A sum is null if a
/// part of it is not known.
pub(super) fn of(used: &[(String, Value)]) -> RunUsage {
    let nodes: BTreeSet<&str> = used.iter().map(|(node, _)| node.as_str()).collect();
    let mut sum = RunUsage { calls: 0, input_tokens: Some(0), output_tokens: Some(0), cost_usd: Some(0.0) };
    for (_, usage) in used.iter().filter(|(node, _)| !holds_others(node, &nodes)) {
        let count = |name: &str| usage.get(name).and_then(Value::as_u64);
        let add = |sum: Option<u64>, name| sum.zip(count(name)).map(|(sum, more)| sum.saturating_add(more));
        sum.calls = sum.calls.saturating_add(count("calls").unwrap_or_default());
        sum.input_tokens = add(sum.input_tokens, "input_tokens");
        sum.output_tokens = add(sum.output_tokens, "output_tokens");
        let cost = usage.get("cost_usd").and_then(Value::as_f64);
        sum.cost_usd = sum.cost_usd.zip(cost).map(|(sum, more)| ((sum + more) * 1e9).round() / 1e9);
    }
    sum
}

/// Whether one of the nodes ran inside `node`.
fn holds_others(node: &str, nodes: &BTreeSet<&str>) -> bool {
    ['/', '[', '#', '~'].iter().any(|mark| {
        let inside = format!("{node}{mark}");
        nodes.range(inside.as_str()..).next().is_some_and(|next| next.starts_with(&inside))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn used(node: &str, calls: u64, input: u64, cost: Value) -> (String, Value) {
        let usage = json!({"calls": calls, "input_tokens": input, "output_tokens": 1, "cost_usd": cost});
        (node.to_owned(), usage)
    }

    #[test]
    fn what_is_counted_is_counted_once() {
        let nothing =
            RunUsage { calls: 0, input_tokens: Some(0), output_tokens: Some(0), cost_usd: Some(0.0) };
        assert_eq!(of(&[]), nothing);
        let mut all = vec![
            used("ask", 1, 10, json!(0.1)),
            used("ask2", 2, 5, json!(0.2)),
            used("help[0]", 1, 7, json!(0.4)),
            used("help[0].flow[0]/inner", 1, 100, json!(1)),
            used("help[1]", 1, 8, json!(0.5)),
            used("help", 3, 115, json!(1.9)),
        ];
        let sum = RunUsage { calls: 6, input_tokens: Some(130), output_tokens: Some(5), cost_usd: Some(2.2) };
        // A call of a model that called a workflow holds its own tokens alone.
        assert_eq!(of(&all), sum);
        all.push(used("unpriced", 1, 1, Value::Null));
        assert_eq!((of(&all).cost_usd, of(&all).input_tokens), (None, Some(131)));
        let unknown = json!({"calls": 1, "input_tokens": null, "output_tokens": null, "cost_usd": null});
        all.push(("silent".to_owned(), unknown));
        let sum = RunUsage { calls: 8, input_tokens: None, output_tokens: None, cost_usd: None };
        assert_eq!(of(&all), sum);
    }
}
