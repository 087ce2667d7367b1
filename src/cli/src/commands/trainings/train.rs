//! `callboard train`: searches for better prompts.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use wire::{StartTraining, TrainingState};

use super::conclude::conclude;
use super::dataset::{self, GivenDataset};
use super::request::RequestFiles;
use super::setup::{TrainingSetup, object_in};
use super::start::start;
use super::watch::watch;
use super::{TrainingRef, plan};
use crate::commands::signals::Interrupts;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain};
use crate::terminal::Paint;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  callboard train support --dataset cases.csv --optimizer gepa --budget-calls 500\n  \
                  callboard train support --dataset cases.jsonl --evaluator polite=builtin:llm_judge --dry-run\n\n\
                  Ctrl-C detaches, and the training continues; a second Ctrl-C within 3 seconds cancels it.\n\
                  The result goes to standard output; everything else goes to standard error."
)]
pub(crate) struct Train {
    /// Handle or id of the workflow
    #[arg(required_unless_present = "attach")]
    workflow: Option<String>,
    /// File with the cases (.json, .jsonl, .ndjson or .csv), or the name or id of a stored dataset
    #[arg(long, value_name = "FILE|NAME", required_unless_present_any = ["request", "attach"])]
    dataset: Option<PathBuf>,
    /// Algorithm: textgrad (default), gepa, auto, fewshot or none
    #[arg(long, value_name = "NAME")]
    optimizer: Option<String>,
    /// Maximum number of epochs (default: 3)
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
    /// File with the whole object `training` of a request; options take precedence
    #[arg(long, value_name = "FILE")]
    request: Option<PathBuf>,
    #[command(flatten)]
    setup: TrainingSetup,
    /// Show a training or an evaluation again, and resume it if it is paused
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = [
            "dataset", "optimizer", "epochs", "request", "evaluators", "graph", "config", "inputs", "budget_calls",
            "budget_usd", "seed", "dry_run",
        ]
    )]
    attach: Option<String>,
    #[command(flatten)]
    pub(crate) options: WorkspaceOptions,
}

impl Train {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        match (&self.attach, &self.workflow) {
            (Some(run), workflow) => attach(session, workflow.as_deref(), run).await,
            (None, Some(workflow)) => self.train(session, workflow).await,
            (None, None) => Err(CommandError::usage("a workflow or --attach is required")),
        }
    }

    async fn train(&self, session: &ServiceSession, workflow: &str) -> Result<(), CommandError> {
        let mut files = RequestFiles::read(&self.setup, self.dataset.as_deref(), self.request.as_deref())?;
        let dataset = dataset::completed(files.take_dataset(), session, workflow).await?;
        let training = self.training(files.base()?, dataset)?;
        let wanted = StartTraining { training: Some(training), ..files.start(&self.setup)? };
        if self.setup.dry_run {
            return plan::print(session, workflow, &wanted, &files).await;
        }
        let mut interrupts = Interrupts::listen()?;
        let record = start(session, workflow, wanted, &files, &mut interrupts).await?;
        let at = TrainingRef { workflow: workflow.to_owned(), run: record.id.clone() };
        conclude(session, &watch(session, at, &record, &mut interrupts).await?).await
    }

    /// Builds the object `training`: the file's members, with those from the command line.
    fn training(
        &self,
        mut training: Map<String, Value>,
        dataset: Option<GivenDataset>,
    ) -> Result<Map<String, Value>, CommandError> {
        self.setup.set_workload(&mut training, dataset)?;
        let mut optimizer = object_in(&mut training, "optimizer");
        if let Some(name) = &self.optimizer {
            optimizer.insert("name".to_owned(), json!(name));
        }
        if let Some(epochs) = self.epochs {
            optimizer.insert("epochs".to_owned(), json!(epochs));
        }
        self.setup.set_limits(&mut optimizer);
        training.insert("optimizer".to_owned(), Value::Object(optimizer));
        Ok(training)
    }
}

/// Follows a training or an evaluation from its first event; resumes it if it is paused.
async fn attach(session: &ServiceSession, workflow: Option<&str>, run: &str) -> Result<(), CommandError> {
    let failed = |error| CommandError::from(session.complaint(error).about(run));
    let workflow = match workflow {
        Some(workflow) => workflow.to_owned(),
        None => session.client.workflow_of_run(run).await.map_err(failed)?,
    };
    let mut record = session.client.training(&workflow, run).await.map_err(failed)?;
    if record.status == TrainingState::Paused {
        record = session.client.resume_training(&workflow, run).await.map_err(failed)?;
        if session.output == Output::Human {
            complain(Paint::stderr().dim("It was paused and resumes."));
        }
    }
    let mut interrupts = Interrupts::listen()?;
    let at = TrainingRef { workflow, run: record.id.clone() };
    conclude(session, &watch(session, at, &record, &mut interrupts).await?).await
}

#[cfg(test)]
mod tests {
    use clap::{Parser, error::ErrorKind};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        train: Train,
    }

    fn parse(arguments: &[&str]) -> Result<Train, ErrorKind> {
        let line = ["train"].iter().chain(arguments);
        Line::try_parse_from(line).map(|line| line.train).map_err(|error| error.kind())
    }

    fn training(arguments: &[&str], file: Value) -> Value {
        let file = file.as_object().unwrap().clone();
        Value::Object(parse(arguments).unwrap().training(file, None).unwrap())
    }

    #[test]
    fn options_are_members_of_the_request() {
        let arguments = ["w", "--dataset", "a.csv", "--optimizer", "gepa", "--epochs", "5"];
        let limits = ["--budget-calls", "500", "--budget-usd", "1.5", "--seed", "7"];
        let expected = json!({
            "evaluators": [{"id": "exact_match", "entrypoint": "builtin:exact_match"}],
            "optimizer": {
                "name": "gepa", "epochs": 5, "seed": 7, "budget": {"max_llm_calls": 500, "max_cost": 1.5}
            }
        });
        assert_eq!(training(&[&arguments[..], &limits].concat(), json!({})), expected);
    }

    #[test]
    fn options_take_precedence_over_the_file() {
        let file = json!({
            "dataset": {"id": "d"}, "evaluators": [], "optimizer": {"name": "none", "epochs": 9, "repeats": 2}
        });
        let expected = json!({
            "dataset": {"id": "d"}, "evaluators": [], "optimizer": {"name": "auto", "epochs": 9, "repeats": 2}
        });
        assert_eq!(training(&["w", "--request", "r.json", "--optimizer", "auto"], file), expected);
    }

    #[test]
    fn a_training_needs_a_workflow_and_cases_unless_it_is_attached() {
        let kind = |arguments: &[&str]| parse(arguments).err();
        assert_eq!(kind(&["--attach", "r"]), None);
        assert_eq!(kind(&["w", "--attach", "r"]), None);
        assert_eq!(kind(&["w", "--request", "r.json"]), None);
        assert_eq!(kind(&["w"]), Some(ErrorKind::MissingRequiredArgument));
        assert_eq!(kind(&["--dataset", "a.csv"]), Some(ErrorKind::MissingRequiredArgument));
        for option in [["--dataset", "a.csv"], ["--epochs", "1"], ["--evaluator", "a:b"], ["--seed", "1"]] {
            let arguments = [&["w", "--attach", "r"][..], &option].concat();
            assert_eq!(kind(&arguments), Some(ErrorKind::ArgumentConflict), "{option:?}");
        }
        assert_eq!(kind(&["w", "--dataset", "a", "--budget-usd", "0"]), Some(ErrorKind::ValueValidation));
    }
}
