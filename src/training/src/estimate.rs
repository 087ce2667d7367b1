//! Estimates a run's model calls from its graphs, before the first call. Pure.

use std::collections::{BTreeSet, HashMap};
use std::ops::Add;

use engine::Reference;
use serde::Serialize;
use serde_json::Value;

use crate::pins::Resolution;

/// Assumed maximum steps for an agent that sets none.
const AGENT_STEPS: u64 = 10;
/// Assumed further calls for a node that wants JSON and sets no repair limit.
const REPAIRS: u64 = 1;
/// Items of a `for_each` whose list is known only at run time: expected, and maximum.
const ITEMS: u64 = 4;
const MOST_ITEMS: u64 = 10_000;

/// Model calls in one execution or in a whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CallRange {
    /// The minimum.
    pub min: u64,
    /// The expected number.
    pub expected: u64,
    /// The maximum without failed attempts; `None` if the graph sets no limit.
    pub max: Option<u64>,
}

impl CallRange {
    /// An exact call count.
    #[must_use]
    pub const fn exactly(calls: u64) -> Self {
        Self { min: calls, expected: calls, max: Some(calls) }
    }

    /// Multiplies by an execution count.
    #[must_use]
    pub fn times(self, count: Self) -> Self {
        Self {
            min: self.min.saturating_mul(count.min),
            expected: self.expected.saturating_mul(count.expected),
            max: match (self.max, count.max) {
                (Some(0), _) | (_, Some(0)) => Some(0),
                (Some(calls), Some(count)) => Some(calls.saturating_mul(count)),
                _ => None,
            },
        }
    }
}

impl Add for CallRange {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            expected: self.expected.saturating_add(other.expected),
            max: self.max.zip(other.max).map(|(one, other)| one.saturating_add(other)),
        }
    }
}

/// The calls in one graph execution, including other workflows at their pinned versions.
#[must_use]
pub fn calls_of_graph(graph: &Value, resolution: &Resolution) -> CallRange {
    Walk { resolution, known: HashMap::new() }.of_graph(graph)
}

fn none() -> CallRange {
    CallRange::exactly(0)
}

/// Counts each workflow version's calls once, however often it is named.
struct Walk<'a> {
    resolution: &'a Resolution,
    /// Calls by version id; `None` while being counted.
    known: HashMap<&'a str, Option<CallRange>>,
}

impl Walk<'_> {
    fn of_graph(&mut self, graph: &Value) -> CallRange {
        let list = |name: &str| graph.get(name).and_then(Value::as_array).into_iter().flatten();
        let all = list("nodes").map(|node| self.of_node(node)).fold(none(), Add::add);
        let is_conditional = list("edges").any(|edge| edge.get("cases").is_some());
        CallRange {
            min: if is_conditional { 0 } else { all.min },
            // With conditions, a graph may return to an earlier node.
            max: if is_conditional && has_cycle(graph) { None } else { all.max },
            ..all
        }
    }

    fn of_node(&mut self, node: &Value) -> CallRange {
        let number = |name: &str| node.get(name).and_then(Value::as_u64);
        let once = |repairs: u64| CallRange { min: 1, expected: 1, max: Some(repairs.saturating_add(1)) };
        match node.get("type").and_then(Value::as_str) {
            Some("llm") if node.get("response_schema").is_none() => once(0),
            Some("llm" | "extract" | "classify" | "judge") => once(number("repair").unwrap_or(REPAIRS)),
            Some("embed") => once(0),
            Some("agent") => self.of_agent(node, number("max_steps").unwrap_or(AGENT_STEPS)),
            Some("for_each") => {
                let body = node.get("body").map_or_else(none, |body| self.of_node(body));
                let items = node.get("items").and_then(Value::as_array);
                body.times(match items.and_then(|items| u64::try_from(items.len()).ok()) {
                    Some(items) => CallRange::exactly(items),
                    None => CallRange { min: 0, expected: ITEMS, max: Some(MOST_ITEMS) },
                })
            }
            Some("sub_workflow") => self.of_workflow(node),
            _ => none(),
        }
    }

    /// Each step is one call, and may use each tool.
    fn of_agent(&mut self, node: &Value, steps: u64) -> CallRange {
        let tools = node.get("tools").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let mut inside = none();
        for tool in tools {
            inside = inside
                + match tool.get("type").and_then(Value::as_str) {
                    Some("node") => tool.get("node").map_or_else(none, |node| self.of_node(node)),
                    Some("workflow") => self.of_workflow(tool),
                    _ => none(),
                };
        }
        let (expected, most) = if tools.is_empty() { (1, 1) } else { (2, steps) };
        let own = CallRange { min: 1, expected, max: Some(most) };
        own + inside.times(CallRange { min: 0, expected: 1, max: Some(steps) })
    }

    fn of_workflow(&mut self, node: &Value) -> CallRange {
        let Some(workflow) = node.get("workflow").and_then(Value::as_str) else { return none() };
        let version = node.get("version").and_then(Value::as_u64);
        let reference = Reference { pointer: String::new(), workflow: workflow.to_owned(), version };
        let Some((id, graph)) = self.resolution.version(&reference) else { return none() };
        match self.known.get(id) {
            Some(Some(known)) => *known,
            // A workflow inside itself.
            Some(None) => CallRange { max: None, ..none() },
            None => {
                self.known.insert(id, None);
                let calls = self.of_graph(graph);
                self.known.insert(id, Some(calls));
                calls
            }
        }
    }
}

/// Whether an edge leads back to an earlier node. Removes nodes and edges without incoming edges until the graph is
/// empty or only cycles are left.
fn has_cycle(graph: &Value) -> bool {
    let names = |value: Option<&'_ Value>| -> Vec<String> {
        match value {
            Some(Value::String(name)) => vec![name.clone()],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => Vec::new(),
        }
    };
    let mut edges: Vec<(usize, BTreeSet<String>)> = Vec::new();
    let mut outgoing: HashMap<String, Vec<usize>> = HashMap::new();
    let mut incoming: HashMap<String, usize> = HashMap::new();
    for edge in graph.get("edges").and_then(Value::as_array).into_iter().flatten() {
        let cases = edge.get("cases").and_then(Value::as_array).into_iter().flatten();
        let targets = cases.map(|case| case.get("to")).chain([edge.get("to"), edge.get("else")]);
        let targets: BTreeSet<String> = targets.flat_map(names).collect();
        let sources: BTreeSet<String> = names(edge.get("from")).into_iter().collect();
        targets.iter().for_each(|name| *incoming.entry(name.clone()).or_default() += 1);
        for source in &sources {
            incoming.entry(source.clone()).or_default();
            outgoing.entry(source.clone()).or_default().push(edges.len());
        }
        edges.push((sources.len(), targets));
    }
    let mut free: Vec<String> =
        incoming.iter().filter(|(_, count)| **count == 0).map(|(name, _)| name.clone()).collect();
    let mut left = incoming.len();
    while let Some(name) = free.pop() {
        left -= 1;
        for edge in outgoing.remove(&name).into_iter().flatten() {
            let Some((waits, targets)) = edges.get_mut(edge) else { continue };
            *waits -= 1;
            if *waits > 0 {
                continue;
            }
            for target in std::mem::take(targets) {
                let Some(count) = incoming.get_mut(&target) else { continue };
                *count -= 1;
                if *count == 0 {
                    free.push(target);
                }
            }
        }
    }
    left > 0
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calls(nodes: Value, edges: Value) -> (u64, u64, Option<u64>) {
        let range = calls_of_graph(&json!({"nodes": nodes, "edges": edges}), &Resolution::default());
        (range.min, range.expected, range.max)
    }

    #[test]
    fn each_node_has_its_calls() {
        for (node, expected) in [
            (json!({"type": "template"}), (0, 0, Some(0))),
            (json!({"type": "llm"}), (1, 1, Some(1))),
            (json!({"type": "llm", "response_schema": {}, "repair": 3}), (1, 1, Some(4))),
            (json!({"type": "judge"}), (1, 1, Some(2))),
            (json!({"type": "embed"}), (1, 1, Some(1))),
            (json!({"type": "agent"}), (1, 1, Some(1))),
            (json!({"type": "agent", "max_steps": 3, "tools": [{"type": "code"}]}), (1, 2, Some(3))),
            (
                json!({"type": "agent", "max_steps": 3, "tools": [{"type": "node", "node": {"type": "llm"}}]}),
                (1, 3, Some(6)),
            ),
            (json!({"type": "for_each", "items": [1, 2], "body": {"type": "llm"}}), (2, 2, Some(2))),
            (json!({"type": "for_each", "items": "{{ x }}", "body": {"type": "llm"}}), (0, 4, Some(10_000))),
            (json!({"type": "for_each", "items": "{{ x }}", "body": {"type": "code"}}), (0, 0, Some(0))),
            (json!({"type": "sub_workflow", "workflow": "unknown"}), (0, 0, Some(0))),
        ] {
            assert_eq!(calls(json!([node]), json!([])), expected, "{node}");
        }
    }

    #[test]
    fn mutually_recursive_workflows_are_counted_once() {
        let node = |n: usize| json!({"name": format!("n{n}"), "type": "sub_workflow", "workflow": "loop"});
        let mut nodes: Vec<Value> = (0..10).map(node).collect();
        nodes.push(json!({"name": "ask", "type": "llm"}));
        let graph = json!({"nodes": nodes});
        let resolution = crate::pins::tests::resolution("loop", graph.clone());
        let calls = calls_of_graph(&graph, &resolution);
        assert_eq!(calls, CallRange { min: 11, expected: 11, max: None });
    }

    #[test]
    fn long_graphs_with_wide_edges_are_read_quickly() {
        let name = |n: usize| format!("n{n}");
        let all: Vec<String> = (0..3_000).map(name).collect();
        let mut edges: Vec<Value> = (1..3_000).map(|n| json!({"from": name(n - 1), "to": name(n)})).collect();
        edges.push(json!({"from": "start", "to": all, "cases": []}));
        assert!(!has_cycle(&json!({"edges": edges})));
        edges.push(json!({"from": "n2999", "to": "n5"}));
        assert!(has_cycle(&json!({"edges": edges})));
    }

    #[test]
    fn branches_need_not_be_taken_and_loops_have_no_limit() {
        let nodes = json!([{"name": "a", "type": "llm"}, {"name": "b", "type": "llm"}]);
        let straight =
            json!([{"from": "START", "to": "a"}, {"from": "a", "to": "b"}, {"from": "b", "to": "END"}]);
        assert_eq!(calls(nodes.clone(), straight), (2, 2, Some(2)));
        let branch = json!([{"from": "START", "to": "a"}, {"from": "a", "cases": [{"when": "x", "to": "b"}], "else": "END"}]);
        assert_eq!(calls(nodes.clone(), branch), (0, 2, Some(2)));
        let back = json!([{"from": "START", "to": "a"}, {"from": "a", "to": "b"},
            {"from": "b", "cases": [{"when": "x", "to": "a"}], "else": "END"}]);
        assert_eq!(calls(nodes, back), (0, 2, None));
    }
}
