//! Prints the result of a finished training or evaluation.

use client::{CasesFilter, Part};
use wire::{EvaluationResult, TrainingKind, TrainingRecord, TrainingResult, TrainingState};

use super::results::{evaluation_line, evaluator_rows, failing_case, headline, training_text};
use super::watch::WatchedTraining;
use crate::complaint::Complaint;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, complain, say};
use crate::table;
use crate::terminal::{Paint, harmless};

/// Maximum failing cases to print.
const FAILING_CASES: u32 = 5;

/// Prints the result; an unsuccessful end is a failure. Programs already have everything from the events.
pub(super) async fn conclude(session: &ServiceSession, ended: &WatchedTraining) -> Result<(), CommandError> {
    let human = session.output == Output::Human;
    if human && ended.record.status != TrainingState::Failed {
        match (&ended.findings.training, &ended.findings.evaluation) {
            (Some(result), _) => show_training(ended, result)?,
            (None, Some(result)) => show_evaluation(session, ended, result).await?,
            (None, None) => show_record(&ended.record)?,
        }
    }
    if human && ended.record.status == TrainingState::Succeeded {
        complain(Paint::stderr().dim(format_args!("Report: callboard report {}", ended.at.run)));
    }
    match ended.record.status {
        TrainingState::Succeeded => Ok(()),
        TrainingState::Cancelled if ended.is_cancelled => {
            if human {
                complain("Cancelled; the result so far is kept.");
            }
            Err(CommandError::Interrupted)
        }
        _ if !human => Err(CommandError::Said),
        _ => Err(unsuccessful(ended).into()),
    }
}

/// An evaluation's score.
pub(super) fn score(ended: &WatchedTraining) -> Option<f64> {
    ended.findings.evaluation.as_ref().map(|result| result.score).or(ended.record.best_score)
}

fn show_training(ended: &WatchedTraining, result: &TrainingResult) -> Result<(), CommandError> {
    let (paint, line) = (Paint::stdout(), headline(result));
    let line = harmless(&line);
    let line = if result.outcome == "improved" { paint.good(line) } else { paint.bold(line) };
    say(line)?;
    let text = training_text(&ended.findings, result, &ended.at.workflow);
    say(harmless(text.trim_end()))
}

async fn show_evaluation(
    session: &ServiceSession,
    ended: &WatchedTraining,
    result: &EvaluationResult,
) -> Result<(), CommandError> {
    table::print(["EVALUATOR", "MEAN", "PASSED"], evaluator_rows(&ended.findings, result))?;
    say(harmless(&evaluation_line(result)))?;
    if result.pass_rate >= 1.0 {
        return Ok(());
    }
    let filter = CasesFilter { failed: true, ..CasesFilter::default() };
    let part = Part { limit: Some(FAILING_CASES), cursor: None };
    let (workflow, run) = (&ended.at.workflow, &ended.at.run);
    let failing = session.received(session.client.cases(workflow, run, &filter, &part).await)?;
    if !failing.data.is_empty() {
        say("")?;
        say(Paint::stdout().bold("Failing cases:"))?;
    }
    for case in &failing.data {
        say(harmless(&failing_case(case)))?;
    }
    if failing.next_cursor.is_some() {
        let base = session.base();
        complain(Paint::stderr().dim(format_args!(
            "All failing cases: {base}/api/workflows/{workflow}/trainer/runs/{run}/cases?failed=true"
        )));
    }
    Ok(())
}

/// Prints the record's data, if the events have been deleted.
fn show_record(record: &TrainingRecord) -> Result<(), CommandError> {
    let score = record.best_score.map(|score| format!(", score {score:.3}")).unwrap_or_default();
    let outcome = record.outcome.as_ref().map(|outcome| format!(", outcome {outcome}")).unwrap_or_default();
    let text = format!("{}: {}{outcome}{score}", named(record.kind), record.status.as_str());
    say(harmless(&text))
}

fn unsuccessful(ended: &WatchedTraining) -> Complaint {
    let (record, what) = (&ended.record, named(ended.record.kind));
    match &record.error {
        Some(problem) if record.status == TrainingState::Failed => {
            let node = problem.node.as_deref().map(|node| format!(" in {node}")).unwrap_or_default();
            let message = format!("{what} failed{node}: {}", problem.message);
            Complaint::told(message, Some(problem.code.clone())).about(&ended.at.workflow)
        }
        _ => {
            let complaint = Complaint::failed(format!("{what} is {}.", record.status.as_str()));
            let attach = || format!("To attach again: {}", ended.at.attach_command());
            if record.status.is_terminal() { complaint } else { complaint.hint(attach()) }
        }
    }
}

const fn named(kind: TrainingKind) -> &'static str {
    match kind {
        TrainingKind::Training => "The training",
        TrainingKind::Evaluation => "The evaluation",
    }
}
