//! The models that a run may call according to its graphs, and their prices. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use wire::FieldError;

use crate::calls::{PricedModel, RunPrices};
use crate::preflight::configured;

/// A graph's models with their endpoints. References to the config are resolved; other templates stay unchanged.
pub(crate) fn models_of_graph(graph: &Value, config: &Map<String, Value>) -> BTreeSet<PricedModel> {
    let mut found = BTreeSet::new();
    graph.get("nodes").into_iter().for_each(|nodes| collect(nodes, config, &mut found));
    found
}

/// The models that evaluator configs name.
pub(crate) fn models_of_evaluators(evaluators: &Value) -> BTreeSet<PricedModel> {
    let mut found = BTreeSet::new();
    collect(evaluators, &Map::new(), &mut found);
    found
}

/// The model that node fields name.
pub(crate) fn priced_model(fields: &Map<String, Value>, config: &Map<String, Value>) -> Option<PricedModel> {
    let text = |name: &str| {
        let field = fields.get(name).filter(|field| field.is_string())?;
        configured(field, config).as_str().map(str::to_owned)
    };
    Some((text("model")?, text("base_url")))
}

fn collect(value: &Value, config: &Map<String, Value>, found: &mut BTreeSet<PricedModel>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, config, found)),
        // Foreign evaluator configs are not read.
        Value::Object(fields) if is_foreign(fields) => {}
        Value::Object(fields) => {
            found.extend(priced_model(fields, config));
            // Nested nodes and nested evaluators.
            for name in ["body", "tools", "node", "config", "evaluators", "evaluator"] {
                fields.get(name).into_iter().for_each(|inside| collect(inside, config, found));
            }
        }
        _ => {}
    }
}

/// Whether an entry is an evaluator that is not built in.
fn is_foreign(fields: &Map<String, Value>) -> bool {
    fields.get("entrypoint").and_then(Value::as_str).is_some_and(|name| !name.starts_with("builtin:"))
}

/// Reports models without a known price, because `field` of the request would not count them. `at`: the pointer to
/// that field.
pub(crate) fn check_prices(
    models: &BTreeSet<PricedModel>,
    prices: &RunPrices,
    at: &str,
    field: &str,
    problems: &mut Vec<FieldError>,
) {
    let is_unknown = |(model, base_url): &&PricedModel| prices.find(model, base_url.as_deref()).is_none();
    for (model, _) in models.iter().filter(is_unknown) {
        let message = format!("the price of '{model}' is not known, so that '{field}' would not count it");
        let problem = FieldError::new(at, "price_unknown", message);
        problems.push(problem.suggest(
            "limit 'max_llm_calls' or 'max_tokens' instead; or, where 'models.optimizer' or 'models.judge' is this model, add its \
             prices there, in dollars for a million tokens: \"prices\": {\"input\": 0.4, \"output\": 1.6}",
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn models_inside_nodes_and_evaluators_are_found() {
        let graph = json!({"nodes": [
            {"type": "llm", "model": "{{ config.model }}"},
            {"type": "for_each", "body": {"type": "llm", "model": "openai/b", "base_url": "https://models.example"}},
            {"type": "agent", "model": "openai/c", "tools": [{"type": "node", "node": {"type": "llm", "model": "openai/d"}}]},
            {"type": "template", "template": "model"},
        ]});
        let config = json!({"model": "openai/a"});
        let found = models_of_graph(&graph, config.as_object().unwrap());
        let there = Some("https://models.example".to_owned());
        let expected = [("openai/a", None), ("openai/b", there), ("openai/c", None), ("openai/d", None)];
        let expected = expected.map(|(model, place)| (model.to_owned(), place));
        assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        let evaluators = json!([{"id": "a", "config": {"evaluators": [{"config": {"model": "openai/e"}}]}}]);
        assert!(models_of_evaluators(&evaluators).contains(&("openai/e".to_owned(), None)));
        let own = json!([{"id": "a", "entrypoint": "metrics:score", "config": {"model": "a lamp"}}]);
        assert!(models_of_evaluators(&own).is_empty());
    }

    #[test]
    fn a_cost_limit_requires_all_prices() {
        let known = models::Prices::known().models.keys().next().unwrap().clone();
        let models = [known.as_str(), "practice/classify", "own/model", "{{ inputs.model }}"];
        let models: BTreeSet<PricedModel> = models.map(|model| (model.to_owned(), None)).into();
        let codes = |prices: &RunPrices| {
            let mut problems = Vec::new();
            check_prices(&models, prices, "/budget/max_cost", "max_cost", &mut problems);
            problems.into_iter().map(|it| (it.pointer, it.code)).collect::<Vec<_>>()
        };
        let unknown = ("/budget/max_cost".to_owned(), "price_unknown".to_owned());
        assert_eq!(codes(&RunPrices::default()), vec![unknown.clone(); 2]);
        let mut own = RunPrices::default();
        own.add("own/model", Some("https://models.example"), models::Price::FREE);
        assert_eq!(codes(&own), vec![unknown.clone(); 2], "that is another endpoint");
        own.add("own/model", None, models::Price::FREE);
        assert_eq!(codes(&own), [unknown]);
    }
}
