//! Node effects in a case: nodes send nothing unless the request allows it.

use engine::{Effect, NodeEffect, Reference, effects};
use serde_json::Value;
use wire::FieldError;

/// Maximum nesting depth of workflows, and maximum nodes checked in total.
const DEPTH: usize = 16;
const MOST_NODES: usize = 10_000;

/// The outside effects that a graph and its workflows have.
#[derive(Debug, Default)]
pub struct Reach {
    /// A problem `outbound_node` for each node that would send data.
    pub problems: Vec<FieldError>,
    /// Nodes that read data that may change between cases, by their names in traces.
    pub reads: Vec<String>,
    /// Nodes that would send data, by their names in traces.
    sends: Vec<String>,
    nodes: usize,
}

/// Finds graph nodes that send or read outside.
///
/// `base`: the JSON pointer to the graph in the request. `pinned`: looks up a workflow's pinned graph. `mocked`:
/// whether a node has a mock in every case.
pub fn reach<'a>(
    graph: &Value,
    base: &str,
    pinned: &dyn Fn(&Reference) -> Option<&'a Value>,
    mocked: &dyn Fn(&str) -> bool,
) -> Reach {
    let mut reach = Reach::default();
    for found in effects(graph) {
        let pointer = format!("{base}{}", found.pointer);
        reach.add(found, "", &pointer, Lookups { pinned, mocked }, &mut Vec::new());
    }
    if reach.nodes > MOST_NODES {
        let message = format!("with its workflows the graph has more than {MOST_NODES} nodes");
        reach.problems.push(FieldError::new(base, "too_large", message));
    }
    reach
}

/// Graph nodes that send or read outside, by their names in traces.
#[must_use]
pub fn outside<'a>(graph: &Value, pinned: &dyn Fn(&Reference) -> Option<&'a Value>) -> Vec<String> {
    let Reach { reads, mut sends, .. } = reach(graph, "", pinned, &|_| false);
    sends.extend(reads);
    sends
}

/// The pinned graph of a workflow, and whether a node has a mock.
#[derive(Clone, Copy)]
struct Lookups<'k, 'a> {
    pinned: &'k dyn Fn(&Reference) -> Option<&'a Value>,
    mocked: &'k dyn Fn(&str) -> bool,
}

impl Reach {
    /// `pointer`: the enclosing node in the request's graph. `around`: the enclosing workflows.
    fn add(
        &mut self,
        found: NodeEffect,
        prefix: &str,
        pointer: &str,
        lookups: Lookups<'_, '_>,
        around: &mut Vec<(String, Option<u64>)>,
    ) {
        let Lookups { pinned, mocked } = lookups;
        self.nodes += 1;
        let name = format!("{prefix}{}", found.node);
        if self.nodes > MOST_NODES || is_mocked(&name, mocked) {
            return;
        }
        match (found.effect, &found.workflow) {
            (Effect::Outbound, _) => {
                self.problems.push(refused(&name, &found.kind, pointer));
                self.sends.push(name);
            }
            (Effect::Reads, _) => self.reads.push(name),
            (_, Some(workflow)) => {
                let itself = (workflow.workflow.clone(), workflow.version);
                // A workflow inside itself is already checked.
                if around.len() >= DEPTH || around.contains(&itself) {
                    return;
                }
                let Some(graph) = pinned(workflow) else { return };
                around.push(itself);
                for inside in effects(graph) {
                    self.add(inside, &format!("{name}/"), pointer, lookups, around);
                }
                around.pop();
            }
            _ => {}
        }
    }
}

/// A mock also covers nested nodes.
fn is_mocked(name: &str, mocked: &dyn Fn(&str) -> bool) -> bool {
    let ends = name.match_indices(['/', '.']).map(|(end, _)| end).chain([name.len()]);
    ends.filter_map(|end| name.get(..end)).any(mocked)
}

fn refused(name: &str, kind: &str, pointer: &str) -> FieldError {
    let message = format!("the node '{name}' ({kind}) would really send, once for each case and candidate");
    FieldError::new(pointer, "outbound_node", message).suggest(format!(
        "give it a result, \"mocks\": {{\"{name}\": {{…}}}}, in the request or in every case; or \"effects\": \"run\" to send it"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problems(graph: &Value, mocks: &[&str]) -> (Vec<String>, Vec<String>) {
        let mail =
            json!({"nodes": [{"name": "send", "type": "email_send"}, {"name": "feed", "type": "rss_read"}]});
        let pinned = |reference: &Reference| (reference.workflow == "mail").then_some(&mail);
        let found = reach(graph, "/graph_config", &pinned, &|name| mocks.contains(&name));
        let problem = |problem: &FieldError| {
            format!("{} {}", problem.pointer, problem.message.split('\'').nth(1).unwrap())
        };
        (found.problems.iter().map(problem).collect(), found.reads)
    }

    #[test]
    fn sending_nodes_are_rejected_at_any_depth() {
        let graph = json!({"nodes": [
            {"name": "post", "type": "http_request", "method": "POST"},
            {"name": "get", "type": "http_request"},
            {"name": "mail", "type": "sub_workflow", "workflow": "mail"},
            {"name": "each", "type": "for_each", "body": {"type": "slack_message"}},
            {"name": "help", "type": "agent", "tools": [{"type": "workflow", "name": "tell", "workflow": "mail"}, {"type": "mcp", "allow": ["pay"]}]},
            {"name": "any", "type": "agent", "tools": [{"type": "mcp"}]}]});
        let (refused, reads) = problems(&graph, &[]);
        assert_eq!(
            refused,
            [
                "/graph_config/nodes/0 post",
                "/graph_config/nodes/2 mail/send",
                "/graph_config/nodes/3/body each",
                "/graph_config/nodes/4/tools/0 help.tell/send",
                "/graph_config/nodes/4/tools/1 help.pay",
                "/graph_config/nodes/5/tools/0 any",
            ]
        );
        assert_eq!(reads, ["get", "mail/feed", "help.tell/feed"]);
        let mocks = ["post", "mail/send", "each", "help.tell", "help.pay", "any"];
        assert_eq!(problems(&graph, &mocks), (vec![], vec!["get".into(), "mail/feed".into()]));
        assert_eq!(problems(&graph, &["post", "mail", "each", "help", "any"]), (vec![], vec!["get".into()]));
    }

    #[test]
    fn a_rejection_explains_how_to_continue() {
        let graph = json!({"nodes": [{"name": "send", "type": "email_send"}]});
        let found = reach(&graph, "", &|_| None, &|_| false);
        let problem = &found.problems[0];
        assert_eq!(problem.code, "outbound_node");
        let suggestion = problem.suggestion.as_deref().unwrap();
        assert!(
            suggestion.contains("\"mocks\": {\"send\"") && suggestion.contains("\"effects\": \"run\""),
            "{suggestion}"
        );
    }

    #[test]
    fn the_search_through_mutually_recursive_workflows_ends() {
        let loops = json!({"nodes": [{"name": "again", "type": "sub_workflow", "workflow": "loop"}, {"name": "send", "type": "email_send"}]});
        let found = reach(&loops, "", &|_| Some(&loops), &|_| false);
        assert_eq!(found.problems.len(), 2, "once in the graph, once in its workflow");
        let ten = |workflow: String| {
            let node =
                |n: usize| json!({"name": format!("n{n}"), "type": "sub_workflow", "workflow": workflow});
            json!({"nodes": (0..10).map(node).collect::<Vec<_>>()})
        };
        let graphs: Vec<Value> = (0..12).map(|n| ten(format!("{}", n + 1))).collect();
        let pinned = |reference: &Reference| graphs.get(reference.workflow.parse::<usize>().unwrap());
        let found = reach(&graphs[0], "", &pinned, &|_| false);
        assert_eq!(
            found.problems.iter().map(|problem| problem.code.as_str()).collect::<Vec<_>>(),
            ["too_large"]
        );
    }
}
