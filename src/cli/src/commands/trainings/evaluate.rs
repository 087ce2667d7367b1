//! `callboard evaluate`: runs and scores a dataset's cases once.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use wire::StartTraining;

use super::conclude::{conclude, score};
use super::dataset::{self, GivenDataset};
use super::request::RequestFiles;
use super::setup::{TrainingSetup, share};
use super::start::start;
use super::watch::{WatchedTraining, watch};
use super::{TrainingRef, plan};
use crate::commands::signals::Interrupts;
use crate::complaint::Complaint;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  callboard evaluate support --dataset cases.csv --threshold 0.8\n  \
                  callboard evaluate support --dataset cases.jsonl --graph graph.json --evaluator builtin:contains\n\n\
                  Exits with status 1 if the score is below --threshold.\n\
                  Ctrl-C detaches, and the evaluation continues; a second Ctrl-C within 3 seconds cancels it.")]
pub(crate) struct Evaluate {
    /// Handle or id of the workflow
    workflow: String,
    /// File with the cases (.json, .jsonl, .ndjson or .csv), or the name or id of a stored dataset
    #[arg(long, value_name = "FILE|NAME")]
    dataset: PathBuf,
    /// Lowest score that is a success, from 0 to 1
    #[arg(long, value_name = "SCORE", value_parser = share)]
    threshold: Option<f64>,
    /// Number of executions of each case (default: 1)
    #[arg(long, value_name = "N")]
    repeats: Option<u32>,
    #[command(flatten)]
    setup: TrainingSetup,
    #[command(flatten)]
    pub(crate) options: WorkspaceOptions,
}

impl Evaluate {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let mut files = RequestFiles::read(&self.setup, Some(&self.dataset), None)?;
        let dataset = dataset::completed(files.take_dataset(), session, &self.workflow).await?;
        let evaluation = self.evaluation(dataset)?;
        let wanted = StartTraining { evaluation: Some(evaluation), ..files.start(&self.setup)? };
        if self.setup.dry_run {
            return plan::print(session, &self.workflow, &wanted, &files).await;
        }
        let mut interrupts = Interrupts::listen()?;
        let record = start(session, &self.workflow, wanted, &files, &mut interrupts).await?;
        let at = TrainingRef { workflow: self.workflow.clone(), run: record.id.clone() };
        let ended = watch(session, at, &record, &mut interrupts).await?;
        conclude(session, &ended).await?;
        self.judge(&ended)
    }

    /// Builds the object `evaluation`.
    fn evaluation(&self, dataset: Option<GivenDataset>) -> Result<Map<String, Value>, CommandError> {
        let mut evaluation = Map::new();
        self.setup.set_workload(&mut evaluation, dataset)?;
        self.setup.set_limits(&mut evaluation);
        if let Some(repeats) = self.repeats {
            evaluation.insert("repeats".to_owned(), json!(repeats));
        }
        Ok(evaluation)
    }

    /// Compares the score with the threshold.
    fn judge(&self, ended: &WatchedTraining) -> Result<(), CommandError> {
        match self.threshold.and_then(|threshold| below_threshold(threshold, score(ended))) {
            Some(complaint) => Err(complaint.into()),
            None => Ok(()),
        }
    }
}

/// Returns an error if the score is below the threshold. An unknown score is below every threshold.
fn below_threshold(threshold: f64, score: Option<f64>) -> Option<Complaint> {
    let message = match score {
        Some(score) if score >= threshold => return None,
        Some(score) => format!("The score {score} is below the threshold {threshold}."),
        None => format!("The evaluation has no score to compare with the threshold {threshold}."),
    };
    Some(Complaint::failed(message).coded("client.below_threshold"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_below_the_threshold_has_status_1() {
        assert!(below_threshold(0.8, Some(0.8)).is_none() && below_threshold(0.0, Some(0.0)).is_none());
        for score in [Some(0.799_999), None] {
            let complaint = below_threshold(0.8, score).unwrap();
            assert_eq!((complaint.status(), complaint.code()), (1, Some("client.below_threshold")));
        }
    }

    #[test]
    fn an_evaluation_contains_limits_and_cases() {
        let setup = TrainingSetup { budget_calls: Some(50), ..TrainingSetup::default() };
        let evaluate = Evaluate {
            workflow: "w".into(),
            dataset: "cases.csv".into(),
            threshold: None,
            repeats: Some(2),
            setup,
            options: WorkspaceOptions::default(),
        };
        let expected = json!({
            "dataset": {"cases": [{"inputs": {}}]},
            "evaluators": [{"id": "exact_match", "entrypoint": "builtin:exact_match"}],
            "budget": {"max_llm_calls": 50}, "repeats": 2
        });
        let evaluation = evaluate.evaluation(Some(GivenDataset::Cases(vec![json!({"inputs": {}})]))).unwrap();
        assert_eq!(Value::Object(evaluation), expected);
    }
}
