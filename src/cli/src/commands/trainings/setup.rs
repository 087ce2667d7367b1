//! The options that `train` and `evaluate` share.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::dataset::GivenDataset;
use super::evaluators::evaluators;
use crate::output::CommandError;

/// Evaluators, graph, inputs and budget of a training or an evaluation.
#[derive(Debug, Default, Args)]
pub(super) struct TrainingSetup {
    /// Evaluator: an entrypoint, ID=ENTRYPOINT or a JSON object; may be repeated (default: builtin:exact_match)
    #[arg(long = "evaluator", value_name = "ENTRYPOINT")]
    pub(super) evaluators: Vec<String>,
    /// Execute the graph of this file, which is kept as a draft (default: the live version)
    #[arg(long, value_name = "FILE")]
    pub(super) graph: Option<PathBuf>,
    /// File with a runnable config, laid over the version's prompt by prompt
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// JSON object of inputs; those of a case take precedence
    #[arg(long, value_name = "JSON")]
    pub(super) inputs: Option<String>,
    /// Maximum number of model calls
    #[arg(long, value_name = "N")]
    pub(super) budget_calls: Option<u64>,
    /// Maximum cost in US dollars
    #[arg(long, value_name = "X", value_parser = amount)]
    pub(super) budget_usd: Option<f64>,
    /// Seed of every random choice (default: 0)
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    /// Print the plan and its estimate; start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl TrainingSetup {
    /// Sets dataset and evaluators of an object `training` or `evaluation`; keeps members that the command line does
    /// not set.
    pub(super) fn set_workload(
        &self,
        object: &mut Map<String, Value>,
        dataset: Option<GivenDataset>,
    ) -> Result<(), CommandError> {
        if let Some(dataset) = dataset {
            // `json!` would copy up to 64 MiB.
            let dataset = match dataset {
                GivenDataset::Cases(cases) => Map::from_iter([("cases".to_owned(), Value::Array(cases))]),
                GivenDataset::Stored(name) => Map::from_iter([("id".to_owned(), Value::String(name))]),
            };
            object.insert("dataset".to_owned(), Value::Object(dataset));
        }
        if !self.evaluators.is_empty() || !object.contains_key("evaluators") {
            object.insert("evaluators".to_owned(), evaluators(&self.evaluators)?);
        }
        Ok(())
    }

    /// Sets seed and budget of an object `optimizer` or `evaluation`.
    pub(super) fn set_limits(&self, object: &mut Map<String, Value>) {
        if let Some(seed) = self.seed {
            object.insert("seed".to_owned(), json!(seed));
        }
        let limits = [
            ("max_llm_calls", self.budget_calls.map(Value::from)),
            ("max_cost", self.budget_usd.map(Value::from)),
        ];
        for (name, limit) in limits {
            if let Some(limit) = limit {
                set_inside(object, "budget", name, limit);
            }
        }
    }

    /// Parses `--inputs`.
    pub(super) fn inputs(&self) -> Result<Option<Value>, CommandError> {
        let Some(text) = &self.inputs else { return Ok(None) };
        match kernel::json::read(text, kernel::json::Numbers::Values) {
            Ok(Value::Object(inputs)) => Ok(Some(Value::Object(inputs))),
            Ok(_) => {
                Err(CommandError::usage("--inputs must be a JSON object, such as '{\"language\": \"en\"}'"))
            }
            Err(error) => Err(CommandError::usage(format!("--inputs cannot be read: {error}"))),
        }
    }
}

/// Sets `member.name`; replaces a member that is not an object.
fn set_inside(object: &mut Map<String, Value>, member: &str, name: &str, value: Value) {
    let mut inside = object_in(object, member);
    inside.insert(name.to_owned(), value);
    object.insert(member.to_owned(), Value::Object(inside));
}

/// Takes an object member; empty if the member is not an object.
pub(super) fn object_in(object: &mut Map<String, Value>, member: &str) -> Map<String, Value> {
    match object.shift_remove(member) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn amount(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(amount) if amount.is_finite() && amount > 0.0 => Ok(amount),
        _ => Err("use a number above 0, such as 0.50".to_owned()),
    }
}

/// Parses a number from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("use a number from 0 to 1, such as 0.8".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn the_command_line_overrides_the_file_and_keeps_other_members() {
        let setup = TrainingSetup {
            evaluators: vec!["builtin:contains".into()],
            budget_calls: Some(500),
            seed: Some(7),
            ..TrainingSetup::default()
        };
        let mut read = object(json!({
            "dataset": {"id": "d"}, "evaluators": [], "max_cases": 3,
            "budget": {"max_llm_calls": 1, "max_tokens": 9}, "seed": 1
        }));
        setup.set_workload(&mut read, Some(GivenDataset::Cases(vec![json!({"inputs": {}})]))).unwrap();
        setup.set_limits(&mut read);
        let expected = json!({
            "dataset": {"cases": [{"inputs": {}}]},
            "evaluators": [{"id": "contains", "entrypoint": "builtin:contains"}],
            "max_cases": 3, "budget": {"max_llm_calls": 500, "max_tokens": 9}, "seed": 7
        });
        assert_eq!(Value::Object(read), expected);
    }

    #[test]
    fn a_file_without_options_stays_unchanged() {
        let file = json!({"dataset": {"id": "d"}, "evaluators": [{"id": "x", "entrypoint": "a:b"}]});
        let mut read = object(file.clone());
        TrainingSetup::default().set_workload(&mut read, None).unwrap();
        TrainingSetup::default().set_limits(&mut read);
        assert_eq!(Value::Object(read), file);
        let mut empty = Map::new();
        TrainingSetup::default().set_workload(&mut empty, None).unwrap();
        assert_eq!(empty.keys().collect::<Vec<_>>(), ["evaluators"]);
    }

    #[test]
    fn inputs_are_an_object() {
        let inputs =
            |text: &str| TrainingSetup { inputs: Some(text.into()), ..TrainingSetup::default() }.inputs();
        assert_eq!(inputs(r#"{"a": 1}"#).unwrap(), Some(json!({"a": 1})));
        assert!(["[]", "a=1", ""].into_iter().all(|text| inputs(text).is_err()));
        assert_eq!(TrainingSetup::default().inputs().unwrap(), None);
    }

    #[test]
    fn amounts_and_shares_have_limits() {
        assert_eq!((amount("0.5"), share("1")), (Ok(0.5), Ok(1.0)));
        assert!(["0", "-1", "nan", "inf", "x"].into_iter().all(|text| amount(text).is_err()));
        assert!(["-0.1", "1.1", "nan", ""].into_iter().all(|text| share(text).is_err()));
    }
}
