//! Results of trainings and evaluations.

use serde_json::{Map, Value, json};
use store::{StoreError, StoredCheckpoint};
use training::Evaluated;
use training::optimize::{Finding, SeedAndBest};
use wire::{EvaluationResult, ScorePair, SeedVsBest, TrainingResult};

use super::publish::{demos_of, means, prompts_of};
use super::records::checkpoint_summary;
use super::session::TrainingSession;
use crate::text::stored_json;

/// The result of a training.
pub(super) async fn of_training(
    session: &TrainingSession,
    finding: &Finding,
) -> Result<TrainingResult, StoreError> {
    let store = &session.ports.store;
    let checkpoints = store.checkpoints_of_run(session.run).await?;
    let (fingerprint, judges) = (&session.training.fingerprint, &session.training.judges);
    let best = store.best_checkpoint(session.workflow, fingerprint, judges).await?;
    let Finding { stop_reason, outcome, best: returned, val, test, comparison, ci95 } = finding;
    Ok(TrainingResult {
        summary: metrics(&checkpoints, returned.number),
        checkpoints: checkpoints.iter().map(checkpoint_summary).collect(),
        best_checkpoint: best.as_ref().map(checkpoint_summary),
        prompts: prompts_of(returned),
        demos: demos_of(returned),
        stop_reason: stop_reason.as_str().to_owned(),
        outcome: outcome.as_str().to_owned(),
        seed_vs_best: (comparison.n > 0).then(|| SeedVsBest {
            val: pair(*val),
            test: test.map(pair),
            diff: comparison.mean_diff,
            ci95: [ci95.0, ci95.1],
            z: comparison.z,
            n: u64::try_from(comparison.n).unwrap_or(u64::MAX),
        }),
        usage: session.usage(),
    })
}

fn pair(scores: SeedAndBest) -> ScorePair {
    ScorePair { seed: scores.seed, best: scores.best }
}

/// The returned prompts' metrics.
fn metrics(checkpoints: &[StoredCheckpoint], candidate: u32) -> Map<String, Value> {
    let of = |checkpoint: &&StoredCheckpoint| u32::try_from(checkpoint.candidate) == Ok(candidate);
    let found = checkpoints.iter().rev().find(of);
    match found.and_then(|found| stored_json(&found.metrics).ok()) {
        Some(Value::Object(metrics)) => metrics,
        _ => Map::new(),
    }
}

/// The result of an evaluation.
pub(super) fn of_evaluation(session: &TrainingSession, evaluated: &Evaluated) -> EvaluationResult {
    let Evaluated { summary, stop_reason } = evaluated;
    EvaluationResult {
        summary: means(summary),
        score: summary.score,
        pass_rate: summary.pass_rate,
        usage: session.usage(),
        n_cases: u64::try_from(summary.n_cases).unwrap_or(u64::MAX),
        stop_reason: stop_reason.map(|reason| reason.as_str().to_owned()),
    }
}

/// A result as its run's output.
pub(super) fn output(result: &impl serde::Serialize) -> Value {
    json!(result)
}
