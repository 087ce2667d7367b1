//! JSON bodies for the service: graph, config, evaluators and requests.

use serde_json::{Map, Value, json};

use super::definition::World;
use super::family::{Family, Scoring, Sizes};
use super::phrases::NOTHING;
use super::task::{DRAFT, INPUT, STEP};

/// Request options in addition to the world's own settings.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    /// The simulated server's URL, which ends in `/v1`; without it the operator's endpoint is called.
    pub base_url: Option<String>,
    /// Members of `training.optimizer` or of `evaluation`, such as
    /// `{"name": "gepa", "budget": {"max_llm_calls": 500}}`.
    pub settings: Value,
    /// Case counts; default the family's.
    pub sizes: Option<Sizes>,
    /// Whether prompts can get demos, also in families whose rules texts can teach.
    pub demos: bool,
    /// Whether the simulated judge scores instead of the built-in evaluator.
    pub judged: bool,
}

impl World {
    /// The graph, format `graph/1`: a chain with one `llm` node per prompt. Its output is the last node's text.
    #[must_use]
    pub fn graph(&self, base_url: Option<&str>) -> Value {
        let names = self.prompt_names();
        let node = |(place, name): (usize, &&str)| {
            let mut node = self.model("task", base_url);
            let draft = match place.checked_sub(1).and_then(|before| names.get(before)) {
                Some(before) => format!("{{{{ results.{before}.text }}}}"),
                None => NOTHING.to_owned(),
            };
            let user = match names.len() {
                1 => "{{ inputs.message }}".to_owned(),
                _ => format!("{STEP}{name}\n{INPUT}{{{{ inputs.message }}}}\n{DRAFT}{draft}"),
            };
            let system = format!("{{{{ config.prompts.{name}.text }}}}");
            let fields = [
                ("name", json!(name)),
                ("type", json!("llm")),
                ("system", json!(system)),
                ("user", json!(user)),
            ];
            node.extend(fields.map(|(name, value)| (name.to_owned(), value)));
            Value::Object(node)
        };
        let nodes: Vec<Value> = names.iter().enumerate().map(node).collect();
        let ends = ["START"].iter().chain(names).zip(names.iter().chain(&["END"]));
        let edges: Vec<Value> = ends.map(|(from, to)| json!({"from": from, "to": to})).collect();
        let output = format!("{{{{ results.{}.text }}}}", names.last().unwrap_or(&""));
        json!({"format": "graph/1", "nodes": nodes, "edges": edges, "output": output})
    }

    /// `runnable_config` with the seed prompts:
    /// `{prompts: {<name>: {text, requires_grad, type, metadata, model_kwargs}}}`.
    #[must_use]
    pub fn runnable_config(&self) -> Value {
        self.runnable_config_with(self.family == Family::Demo)
    }

    fn runnable_config_with(&self, has_demos: bool) -> Value {
        let prompt = |(name, text): (String, String)| {
            let mut prompt = json!({
                "text": text, "requires_grad": true, "type": "TextTensor", "metadata": {}, "model_kwargs": {},
            });
            if let Some(members) = prompt.as_object_mut().filter(|_| has_demos) {
                members.insert("demos_trainable".to_owned(), Value::Bool(true));
            }
            (name, prompt)
        };
        let prompts: Map<String, Value> = self.seed_prompts().into_iter().map(prompt).collect();
        json!({"prompts": prompts})
    }

    /// `evaluators` of a request: the family's built-in evaluator, with the id `met`.
    #[must_use]
    pub fn evaluators(&self) -> Value {
        let entrypoint = match self.family.scoring() {
            Scoring::Share => "builtin:contains_all",
            Scoring::F1 => "builtin:set_f1",
            Scoring::Exact => "builtin:exact_match",
            Scoring::Json => "builtin:json_equal",
        };
        json!([{"id": "met", "entrypoint": entrypoint}])
    }

    /// `evaluators` with `builtin:llm_judge`, which the simulated judge answers.
    #[must_use]
    pub fn judge_evaluators(&self) -> Value {
        json!([{"id": "judged", "entrypoint": "builtin:llm_judge", "config": {"rubric": "The answer has every required word."}}])
    }

    /// `dataset` of a request, inline.
    #[must_use]
    pub fn dataset(&self, sizes: Option<Sizes>) -> Value {
        let cases = self.cases_of(sizes.unwrap_or(self.family.sizes()));
        json!({"cases": cases.iter().map(|case| case.json(self.family)).collect::<Vec<_>>()})
    }

    /// The message `train_workflow`: `{type, graph_config, runnable_config, training}`. HTTP requests omit `type`.
    #[must_use]
    pub fn train_workflow(&self, options: &RequestOptions) -> Value {
        let training = self.workload("optimizer", options);
        self.message("train_workflow", "training", training, options)
    }

    /// The message `evaluate_workflow`: `{type, graph_config, runnable_config, evaluation}`.
    #[must_use]
    pub fn evaluate_workflow(&self, options: &RequestOptions) -> Value {
        let evaluation = self.workload("", options);
        self.message("evaluate_workflow", "evaluation", evaluation, options)
    }

    fn message(&self, kind: &str, member: &str, work: Value, options: &RequestOptions) -> Value {
        let graph = self.graph(options.base_url.as_deref());
        let config = self.runnable_config_with(options.demos || self.family == Family::Demo);
        let mut message = json!({"type": kind, "graph_config": graph, "runnable_config": config});
        if let Some(members) = message.as_object_mut() {
            members.insert(member.to_owned(), work);
        }
        message
    }

    /// Dataset, evaluators and settings; the settings are inside `member`, or next to the others if it is empty.
    fn workload(&self, member: &str, options: &RequestOptions) -> Value {
        let evaluators = if options.judged { self.judge_evaluators() } else { self.evaluators() };
        let mut settings = options.settings.as_object().cloned().unwrap_or_default();
        let base_url = options.base_url.as_deref();
        let judge = Value::Object(self.model("judge", base_url));
        let models = match member {
            "" => json!({"judge": judge}),
            _ => json!({"judge": judge, "optimizer": self.model("reflect", base_url)}),
        };
        settings.entry("models").or_insert(models);
        let mut work = Map::new();
        work.insert("dataset".to_owned(), self.dataset(options.sizes));
        work.insert("evaluators".to_owned(), evaluators);
        match member {
            "" => work.extend(settings),
            _ => drop(work.insert(member.to_owned(), Value::Object(settings))),
        }
        Value::Object(work)
    }

    /// The model fields for a role: `task`, `reflect` or `judge`.
    fn model(&self, role: &str, base_url: Option<&str>) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("model".to_owned(), json!(format!("openai/{}/{role}", self.name())));
        fields.extend(base_url.map(|url| ("base_url".to_owned(), json!(url))));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_has_a_node_for_each_prompt() {
        let graph = World::draw(Family::Quad, 3).graph(Some("http://127.0.0.1:9/v1"));
        let nodes = graph["nodes"].as_array().unwrap();
        assert_eq!((nodes.len(), graph["edges"].as_array().unwrap().len()), (4, 5));
        assert_eq!(nodes[1]["model"], "openai/quad-3/task");
        assert_eq!(nodes[1]["base_url"], "http://127.0.0.1:9/v1");
        assert_eq!(nodes[1]["system"], "{{ config.prompts.second.text }}");
        assert_eq!(
            nodes[1]["user"],
            "Step: second\nInput: {{ inputs.message }}\nDraft: {{ results.first.text }}"
        );
        assert_eq!(graph["output"], "{{ results.fourth.text }}");
        let one = World::draw(Family::One, 3).graph(None);
        assert_eq!(one["nodes"][0]["user"], "{{ inputs.message }}");
        assert!(one["nodes"][0].get("base_url").is_none());
    }

    #[test]
    fn a_request_contains_every_training_field() {
        let world = World::draw(Family::Demo, 3);
        let options =
            RequestOptions { settings: json!({"name": "gepa", "epochs": 2}), ..RequestOptions::default() };
        let request = world.train_workflow(&options);
        let training = &request["training"];
        assert_eq!(training["optimizer"]["name"], "gepa");
        assert_eq!(training["optimizer"]["models"]["optimizer"]["model"], "openai/demo-3/reflect");
        assert_eq!(training["dataset"]["cases"].as_array().unwrap().len(), 48 + 32 + 24);
        assert_eq!(training["evaluators"][0]["entrypoint"], "builtin:contains_all");
        let prompt = &request["runnable_config"]["prompts"]["answer"];
        assert_eq!((&prompt["requires_grad"], &prompt["demos_trainable"]), (&json!(true), &json!(true)));
        let has_demos = |demos: bool| {
            let options = RequestOptions { demos, ..RequestOptions::default() };
            let request = World::draw(Family::NullOpt, 3).train_workflow(&options);
            request["runnable_config"]["prompts"]["answer"].get("demos_trainable").is_some()
        };
        assert_eq!([true, false].map(has_demos), [true, false]);
        let judged = RequestOptions { judged: true, ..RequestOptions::default() };
        let evaluation = &world.evaluate_workflow(&judged)["evaluation"];
        assert_eq!(evaluation["models"]["judge"]["model"], "openai/demo-3/judge");
        assert_eq!(evaluation["evaluators"][0]["entrypoint"], "builtin:llm_judge");
    }

    #[test]
    fn the_least_limit_of_a_prompt_is_enough() {
        for family in Family::ALL {
            for seed in 0..30 {
                let world = World::draw(family, seed);
                let longest = world.oracle_prompts().values().map(|text| text.chars().count()).max();
                assert!(longest < Some(2_000), "{family:?} {seed}: {longest:?}");
            }
        }
    }
}
