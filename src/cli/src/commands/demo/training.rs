//! The demo's training: a prompt that is often wrong, cases that teach the missing rules, and the built-in model.

use client::{Client, ClientError};
use serde_json::{Map, Value, json};
use wire::{CreateVersion, CreateWorkflow, StartTraining, TrainingEvent, TrainingResult};

use super::{Steps, save};
use crate::options::ServiceSession;
use crate::output::{CommandError, say};
use crate::terminal::Paint;

const HANDLE: &str = "callboard-demo-sorting";
const WORKFLOW: &str = include_str!("../../../../../examples/message-sorting/workflow.json");
const CASES: &str = include_str!("../../../../../examples/message-sorting/cases.csv");
const EPOCHS: u32 = 3;

/// Trains the prompt and prints the rising score. Returns the path of the training's page.
pub(super) async fn train(session: &ServiceSession, steps: &mut Steps) -> Result<String, CommandError> {
    let (client, paint) = (&session.client, Paint::stdout());
    let failed = |error| session.failed(error);
    ready(client).await.map_err(failed)?;
    say(format_args!("\nA training of the prompt of \"Message sorting\" ({HANDLE}).\n"))?;
    let run = client.start_training(HANDLE, &request()).await.map_err(failed)?;
    let mut events = client.follow_training(HANDLE, &run.id, None);
    let mut result = None;
    while let Some(event) = events.next().await.map_err(failed)? {
        match event.event.happened {
            TrainingEvent::TrainingCheckpoint(checkpoint) => {
                let score = checkpoint.metadata.get("score").and_then(Value::as_f64).unwrap_or_default();
                let best = if checkpoint.is_best { ", the best so far" } else { "" };
                let number = checkpoint.config_version;
                say(format_args!("  {} checkpoint {number}: score {score:.2}{best}", bar(score)))?;
            }
            TrainingEvent::TrainingResult(found) => result = Some(found),
            _ => {}
        }
    }
    say("")?;
    let Some(result) = result else {
        return Err("the training has ended without a result".to_owned().into());
    };
    steps.done(&outcome(&result))?;
    if let Some(number) = best(&result).filter(|_| result.outcome == "improved") {
        let command = format!("callboard checkpoint use {HANDLE} {number}");
        say(format_args!("  {}", paint.dim(format_args!("To use the new prompt: {command}"))))?;
    }
    Ok(format!("workflows/{}/training?run={}", run.workflow_id, run.id))
}

/// A bar with ten characters for a score from 0 to 1.
fn bar(score: f64) -> String {
    let is_full = |step: &i32| f64::from(*step) <= score * 10.0 + 1e-9;
    (1..=10).map(|step| if is_full(&step) { '█' } else { '░' }).collect()
}

/// The first checkpoint with the highest score.
fn best(result: &TrainingResult) -> Option<i64> {
    // `max_by` returns the last of equal elements.
    let checkpoints = result.checkpoints.iter().rev();
    checkpoints.max_by(|one, other| one.score.total_cmp(&other.score)).map(|best| best.config_version)
}

fn outcome(result: &TrainingResult) -> String {
    match &result.seed_vs_best {
        Some(scores) if result.outcome == "improved" => format!(
            "The new prompt scores {:.2} instead of {:.2} on {} messages, with {} calls of a model",
            scores.val.best, scores.val.seed, scores.n, result.usage.llm_calls
        ),
        _ => "Nothing was better by more than chance, so the first prompt stays".to_owned(),
    }
}

/// Saves the workflow.
async fn ready(client: &Client) -> Result<(), ClientError> {
    let wanted = CreateWorkflow {
        name: "Message sorting".to_owned(),
        handle: Some(HANDLE.to_owned()),
        description: Some("Sorts a message; a training improves its prompt.".to_owned()),
        tags: vec!["example".to_owned()],
    };
    let file: Value =
        serde_json::from_str(WORKFLOW).map_err(|error| ClientError::Usage(error.to_string()))?;
    let version = CreateVersion {
        graph: file.get("graph").cloned().unwrap_or_default(),
        runnable_config: file.get("runnable_config").and_then(Value::as_object).cloned(),
        metadata: None,
        notes: None,
    };
    save(client, &wanted, &version).await.map(drop)
}

fn request() -> StartTraining {
    let cases: Vec<Value> = training::read_csv(CASES, &mut Vec::new())
        .into_iter()
        .map(|case| json!({"inputs": case.inputs, "expected_output": case.expected_output}))
        .collect();
    let training = Map::from_iter([
        ("dataset".to_owned(), json!({"cases": cases})),
        ("evaluators".to_owned(), json!([{"id": "desk", "entrypoint": "builtin:exact_match"}])),
        ("optimizer".to_owned(), json!({"epochs": EPOCHS})),
    ]);
    StartTraining { training: Some(training), ..StartTraining::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_has_ten_characters() {
        assert_eq!((bar(0.0), bar(1.0)), ("░".repeat(10), "█".repeat(10)));
        assert_eq!(bar(0.42), format!("{}{}", "█".repeat(4), "░".repeat(6)));
    }

    #[test]
    fn the_example_has_cases() {
        let request = request().training.unwrap();
        assert_eq!(request["dataset"]["cases"].as_array().map(Vec::len), Some(24));
    }
}
