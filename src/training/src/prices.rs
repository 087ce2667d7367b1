//! Which models a run may call, by its graphs, and whether their prices are known. Pure.

use std::collections::BTreeSet;

use models::{Usage, cost};
use serde_json::{Map, Value};
use wire::FieldError;

use crate::preflight::configured;

/// The names of the models of a graph. What the config has is taken from it; another template stays as it is.
pub(crate) fn models_of_graph(graph: &Value, config: &Map<String, Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    graph.get("nodes").into_iter().for_each(|nodes| collect(nodes, config, &mut found));
    found
}

/// The models that the configs of evaluators name.
pub(crate) fn models_of_evaluators(evaluators: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect(evaluators, &Map::new(), &mut found);
    found
}

fn collect(value: &Value, config: &Map<String, Value>, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, config, found)),
        // Such a config is not for us.
        Value::Object(fields) if is_foreign(fields) => {}
        Value::Object(fields) => {
            let model = fields.get("model").filter(|model| model.is_string());
            let model = model.map(|model| configured(model, config));
            found.extend(model.and_then(|model| model.as_str().map(str::to_owned)));
            // Nodes inside of nodes, and evaluators inside of evaluators.
            for name in ["body", "tools", "node", "config", "evaluators", "evaluator"] {
                fields.get(name).into_iter().for_each(|inside| collect(inside, config, found));
            }
        }
        _ => {}
    }
}

/// Whether an entry is an evaluator that is not a built-in one.
fn is_foreign(fields: &Map<String, Value>) -> bool {
    fields.get("entrypoint").and_then(Value::as_str).is_some_and(|name| !name.starts_with("builtin:"))
}

/// Notes models without a known price: a limit of the cost would not hold. `at`: of `max_cost`.
pub(crate) fn check_prices(models: &BTreeSet<String>, at: &str, problems: &mut Vec<FieldError>) {
    let is_unknown = |model: &&String| cost(model, Usage::default()).is_none();
    for model in models.iter().filter(is_unknown) {
        let message = format!("the price of '{model}' is not known, so that 'max_cost' would not limit it");
        let problem = FieldError::new(at, "price_unknown", message);
        problems.push(problem.suggest("limit 'max_llm_calls' or 'max_tokens' instead"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_inside_of_nodes_and_evaluators_are_found() {
        let graph = json!({"nodes": [
            {"type": "llm", "model": "{{ config.model }}"},
            {"type": "for_each", "body": {"type": "llm", "model": "openai/b"}},
            {"type": "agent", "model": "openai/c", "tools": [{"type": "node", "node": {"type": "llm", "model": "openai/d"}}]},
            {"type": "template", "template": "model"},
        ]});
        let config = json!({"model": "openai/a"});
        let found = models_of_graph(&graph, config.as_object().unwrap());
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["openai/a", "openai/b", "openai/c", "openai/d"]);
        let evaluators = json!([{"id": "a", "config": {"evaluators": [{"config": {"model": "openai/e"}}]}}]);
        assert!(models_of_evaluators(&evaluators).contains("openai/e"));
        let own = json!([{"id": "a", "entrypoint": "metrics:score", "config": {"model": "a lamp"}}]);
        assert!(models_of_evaluators(&own).is_empty());
    }

    #[test]
    fn a_limit_of_the_cost_needs_all_prices() {
        let known = models::Prices::known().models.keys().next().unwrap().clone();
        let models: BTreeSet<String> =
            [known, "practice/classify".to_owned(), "own/model".to_owned(), "{{ inputs.model }}".to_owned()]
                .into();
        let mut problems = Vec::new();
        check_prices(&models, "/budget/max_cost", &mut problems);
        let codes: Vec<_> = problems.iter().map(|it| (it.pointer.as_str(), it.code.as_str())).collect();
        assert_eq!(codes, [("/budget/max_cost", "price_unknown"); 2]);
    }
}
