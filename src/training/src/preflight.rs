//! All checks and decisions before a run's first call. Pure.

use std::collections::BTreeSet;

use engine::{Plan, references};
use serde_json::{Map, Value, json};
use wire::FieldError;

use crate::calls::PricedModel;
use crate::case::Case;
use crate::evaluators::Evaluator;
use crate::pins::Resolution;
use crate::policy::reach;
use crate::prices::{check_prices, models_of_evaluators, models_of_graph, priced_model};
use crate::prompts::{TrainablePrompt, readers, trainable_prompts};
use crate::request::{Objective, Optimizer, OptimizerName, RunSettings, Workload};
use crate::warning::Warning;

/// The inputs for starting a run.
pub struct Start<'a> {
    /// The graph.
    pub graph: &'a Value,
    /// The JSON pointer to the graph in the request.
    pub graph_at: &'a str,
    /// The compiled graph.
    pub plan: &'a Plan,
    /// The config, merged with the request's config.
    pub config: &'a Map<String, Value>,
    /// The workload: execution and evaluators.
    pub workload: &'a Workload,
    /// The JSON pointer to the workload in the request.
    pub workload_at: &'a str,
    /// The cases.
    pub cases: &'a [Case],
    /// The pinned versions of other workflows.
    pub resolution: &'a Resolution,
}

/// Default models, as node fields, where the request names none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DefaultModels {
    /// The model that writes proposals.
    pub optimizer: Map<String, Value>,
    /// The model that judges.
    pub judge: Map<String, Value>,
}

impl Start<'_> {
    /// Reports nodes that would send data or read from outside, in the graph and in workflows that judge.
    pub fn check_effects(&self, problems: &mut Vec<FieldError>, warnings: &mut Vec<Warning>) {
        if self.workload.may_send {
            return;
        }
        let pinned = |reference: &engine::Reference| self.resolution.graph(reference);
        let mocked = self.mocked();
        let of_graph = reach(self.graph, self.graph_at, &pinned, &|node| mocked.contains(node));
        problems.extend(of_graph.problems);
        let mut reads = of_graph.reads;
        for reference in self.workload.evaluators.iter().flat_map(Evaluator::workflows) {
            let Some(graph) = self.resolution.graph(&reference) else { continue };
            // Mocks name only nodes in the evaluated graph.
            let of_judge = reach(graph, "", &pinned, &|_| false);
            let at = |problem: FieldError| FieldError { pointer: reference.pointer.clone(), ..problem };
            problems.extend(of_judge.problems.into_iter().map(at));
            reads.extend(of_judge.reads.into_iter().map(|node| format!("{}/{node}", reference.workflow)));
        }
        if !reads.is_empty() {
            let message = format!(
                "these nodes read data that may change between cases, so scores may differ: {}",
                reads.join(", ")
            );
            warnings.push(Warning::new("reads_outside", message));
        }
    }

    /// The nodes that have a mock in the request or in every case.
    fn mocked(&self) -> BTreeSet<&str> {
        let mut cases = self.cases.iter();
        let mut in_all = names(cases.next().and_then(Case::mocks));
        for case in cases {
            in_all.retain(|node| case.mocks().is_some_and(|mocks| mocks.contains_key(*node)));
        }
        in_all.extend(names(self.workload.mocks.as_ref()));
        in_all
    }

    /// The prompts that may be rewritten. An empty result is a problem.
    pub fn trainable(
        &self,
        problems: &mut Vec<FieldError>,
        warnings: &mut Vec<Warning>,
    ) -> Vec<TrainablePrompt> {
        let found = trainable_prompts(self.plan, self.config, "/runnable_config/prompts", problems, warnings);
        for workflow in &self.resolution.with_trainable {
            let message = format!("the prompts of the workflow '{workflow}' are trained in that workflow");
            warnings.push(Warning::new("prompts_in_subworkflow", message));
        }
        found
    }

    /// The model of the first node that reads a trainable prompt, else of the first node with a model. Practice
    /// models map to the practice models for reflecting and judging.
    #[must_use]
    pub fn default_models(&self, trainable: &[TrainablePrompt]) -> DefaultModels {
        let nodes = self.graph.get("nodes").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let readers = readers(self.plan, trainable);
        let is_reader = |node: &&Value| {
            node.get("name").and_then(Value::as_str).is_some_and(|name| readers.contains(&name))
        };
        let model_of = |node: &Value| model_of(node, self.config);
        let found = nodes.iter().filter(is_reader).find_map(model_of);
        let Some(model) = found.or_else(|| nodes.iter().find_map(model_of)) else {
            return DefaultModels::default();
        };
        let is_practice =
            model.get("model").and_then(Value::as_str).is_some_and(|name| name.starts_with("practice/"));
        if !is_practice {
            return DefaultModels { optimizer: model.clone(), judge: model };
        }
        let practice =
            |skill: &str| Map::from_iter([("model".to_owned(), json!(format!("practice/{skill}")))]);
        DefaultModels { optimizer: practice("reflect"), judge: practice("judge") }
    }

    /// Reports evaluators whose model cannot be used; `judge`: the run's judge model.
    pub fn check_judges(&self, judge: &Map<String, Value>, problems: &mut Vec<FieldError>) {
        for (place, evaluator) in self.workload.evaluators.iter().enumerate() {
            if let Some(problem) = evaluator.model_problem(judge) {
                let at = format!("{}/evaluators/{place}/config/model", self.workload_at);
                problems.push(FieldError::new(at, "model", problem));
            }
        }
    }

    /// Whether any evaluator may call a model.
    #[must_use]
    pub fn asks_judges(&self) -> bool {
        let calls = |evaluator: &Evaluator| evaluator.calls(self.resolution).max != Some(0);
        self.workload.evaluators.iter().any(calls)
    }

    /// The models that cases call.
    pub(crate) fn models_of_tasks(&self) -> BTreeSet<PricedModel> {
        let mut found = models_of_graph(self.graph, self.config);
        found.extend(self.resolution.models_of(references(self.graph)));
        found
    }

    /// Reports settings below `settings_at` that need prices, if a model's price is unknown: `budget.max_cost`, and
    /// `objective.cost_penalty`, which counts only cases. `evaluators`: as in the request; `models`: the proposing
    /// and judging models, as node fields.
    pub fn check_prices(
        &self,
        settings: &RunSettings,
        objective: Option<&Objective>,
        evaluators: &Value,
        models: &[&Map<String, Value>],
        settings_at: &str,
        problems: &mut Vec<FieldError>,
    ) {
        let prices = settings.models.prices();
        let mut all = self.models_of_tasks();
        if objective.is_some_and(|objective| objective.cost_penalty > 0.0) {
            let at = format!("{settings_at}/objective/cost_penalty");
            check_prices(&all, &prices, &at, "cost_penalty", problems);
        }
        let judges = self.workload.evaluators.iter().flat_map(Evaluator::workflows).collect();
        all.append(&mut self.resolution.models_of(judges));
        all.append(&mut models_of_evaluators(evaluators));
        all.extend(models.iter().filter_map(|model| priced_model(model, &Map::new())));
        if settings.limits.max_cost.is_some() {
            let at = format!("{settings_at}/budget/max_cost");
            check_prices(&all, &prices, &at, "max_cost", problems);
        }
    }

    /// Reports, at the prompts' `pointer`, that `fewshot` has no prompt with trainable demos.
    pub fn check_demos(
        optimizer: &Optimizer,
        trainable: &[TrainablePrompt],
        pointer: &str,
        problems: &mut Vec<FieldError>,
    ) {
        let is_missing = !trainable.is_empty() && trainable.iter().all(|prompt| !prompt.demos_trainable);
        if optimizer.name == OptimizerName::FewShot && is_missing {
            let message = "no model node reads a prompt with `requires_grad: true` and `demos_trainable: true` in its instructions";
            let problem = FieldError::new(pointer, "no_trainable_demos", message);
            problems.push(problem.suggest(
                r#""prompts": {"style": {"text": "Be brief.", "requires_grad": true, "demos_trainable": true}}, and in a node "system": "{{ config.prompts.style.text }}""#,
            ));
        }
    }
}

fn names(mocks: Option<&Map<String, Value>>) -> BTreeSet<&str> {
    mocks.map(|mocks| mocks.keys().map(String::as_str).collect()).unwrap_or_default()
}

/// A node's (or `for_each` body's) model fields, with config references resolved.
fn model_of(node: &Value, config: &Map<String, Value>) -> Option<Map<String, Value>> {
    let node = node.get("body").unwrap_or(node);
    node.get("model").filter(|model| model.is_string())?;
    let fields = ["model", "base_url", "api_key"];
    let field = |name: &str| Some((name.to_owned(), configured(node.get(name)?, config)));
    Some(fields.into_iter().filter_map(field).collect())
}

/// Resolves a field that is exactly `{{ config.<name> }}`; returns other fields unchanged.
pub(crate) fn configured(field: &Value, config: &Map<String, Value>) -> Value {
    let inside = field.as_str().and_then(|text| text.trim().strip_prefix("{{")?.strip_suffix("}}"));
    let name = inside.and_then(|inside| inside.trim().strip_prefix("config."));
    name.and_then(|name| config.get(name)).unwrap_or(field).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_reference_used_as_a_model_is_resolved() {
        let config = json!({"model": "practice/classify", "n": 1});
        let config = config.as_object().unwrap();
        let found = |model: &str| configured(&json!(model), config);
        assert_eq!(found("{{ config.model }}"), json!("practice/classify"));
        assert_eq!(found("{{config.model}}"), json!("practice/classify"));
        for other in ["openai/a", "{{ config.other }}", "{{ config.model | upper }}", "x {{ config.model }}"]
        {
            assert_eq!(found(other), json!(other));
        }
    }
}
