//! Checks that the providers of a graph's models exist.

use serde_json::{Map, Value};
use wire::FieldError;

use crate::Problems;
use crate::graph::Graph;
use crate::graph::fields::nearest;
use crate::template::has_holes;
use models::PROVIDERS;

/// Reports each `model` with an unknown provider, including bodies and tools. Templates are skipped.
pub(super) fn check(graph: &Graph) -> Problems {
    let mut problems = Problems::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        look(&node.fields, &format!("/nodes/{index}"), &mut problems);
    }
    problems
}

fn look(fields: &Map<String, Value>, pointer: &str, problems: &mut Problems) {
    if let Some(Value::String(name)) = fields.get("model") {
        problems.extend(unknown(name, format!("{pointer}/model")));
    }
    if let Some(Value::Object(body)) = fields.get("body") {
        look(body, &format!("{pointer}/body"), problems);
    }
    let tools = fields.get("tools").and_then(Value::as_array);
    for (index, tool) in tools.into_iter().flatten().enumerate() {
        if let Some(Value::Object(node)) = tool.get("node") {
            look(node, &format!("{pointer}/tools/{index}/node"), problems);
        }
    }
}

fn unknown(name: &str, pointer: String) -> Option<FieldError> {
    let (provider, model) = name.split_once('/').filter(|_| !has_holes(name))?;
    if PROVIDERS.contains(&provider) {
        return None;
    }
    let problem =
        FieldError::new(pointer, "unknown_provider", format!("unknown model provider '{provider}'"));
    Some(match nearest(provider, PROVIDERS) {
        Some(near) => problem.suggest(format!("did you mean '{near}/{model}'?")),
        None => problem.suggest(format!(
            "providers: {}; for another endpoint with OpenAI's protocol use openai/<model> and 'base_url'",
            PROVIDERS.join(", ")
        )),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::graph::parse::read_graph;

    #[test]
    fn unknown_providers_are_found_in_nested_nodes_too() {
        let ask = |model: &str| json!({"type": "llm", "model": model, "user": "x"});
        let mut first = ask("opnai/gpt");
        first["name"] = json!("a");
        let tool = json!({"type": "node", "name": "t", "description": "x", "parameters": {}, "node": ask("other/x")});
        let graph = json!({"format": "graph/1", "nodes": [
            first,
            {"name": "b", "type": "for_each", "items": [], "body": ask("mistral/large")},
            {"name": "c", "type": "agent", "model": "practice/assistant", "user": "x", "tools": [tool]},
            {"name": "d", "type": "llm", "model": "{{ inputs.m }}/x", "user": "x"}], "edges": []});
        let graph = read_graph(&graph, &mut Vec::new()).unwrap();
        let found: Vec<(String, String)> = super::check(&graph)
            .into_iter()
            .map(|problem| (problem.pointer, problem.suggestion.unwrap()))
            .collect();
        let pointers: Vec<&str> = found.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(pointers, ["/nodes/0/model", "/nodes/1/body/model", "/nodes/2/tools/0/node/model"]);
        assert_eq!(found[0].1, "did you mean 'openai/gpt'?");
        assert!(found[1].1.contains("openai/<model> and 'base_url'"), "{found:?}");
    }
}
