//! Verdicts about an executed case. Evaluators that only compare need nothing but its result, so they can judge it
//! later.

use wire::ErrorCode;

use crate::calls::dollars;
use crate::case::Case;
use crate::evaluators::{Bench, Evaluator, Measured, Subject, Verdict};
use crate::runner::{CaseError, CaseRun};

/// Facts about a case that evaluators receive in addition to its result.
#[derive(Debug, Clone, Copy, Default)]
pub struct CaseContext<'a> {
    /// The split, if the run has splits.
    pub split: Option<&'a str>,
    /// The epoch, if the run has epochs.
    pub epoch: Option<u32>,
}

/// Judges a case and returns the verdicts in evaluator order; `None` if the budget is spent and the case has no
/// score. `bench`: for evaluators that do more than compare.
pub async fn judge(
    evaluators: &[Evaluator],
    case: &Case,
    run: &CaseRun,
    place: CaseContext<'_>,
    bench: &dyn Bench,
) -> Option<Vec<Verdict>> {
    match &run.error {
        Some(CaseError::Exhausted) => return None,
        Some(error) => return Some(evaluators.iter().map(|_| without_output(error)).collect()),
        None => {}
    }
    let subject = subject(case, run, place);
    let mut verdicts = Vec::with_capacity(evaluators.len());
    for evaluator in evaluators {
        verdicts.push(evaluator.judge(&subject, bench).await?);
    }
    Some(verdicts)
}

/// Judges a recorded output with the evaluators that ask a model; the others skip it. `None` as in [`judge`].
pub async fn judge_recorded(
    evaluators: &[Evaluator],
    case: &Case,
    run: &CaseRun,
    place: CaseContext<'_>,
    bench: &dyn Bench,
) -> Option<Vec<Verdict>> {
    let subject = subject(case, run, place);
    let mut verdicts = Vec::with_capacity(evaluators.len());
    for evaluator in evaluators {
        verdicts.push(match evaluator.asks_model() {
            true => evaluator.judge(&subject, bench).await?,
            false => Verdict { skip: true, ..Verdict::passed(false) },
        });
    }
    Some(verdicts)
}

fn subject<'a>(case: &'a Case, run: &'a CaseRun, place: CaseContext<'a>) -> Subject<'a> {
    Subject {
        output: &run.output,
        text: &run.text,
        case,
        split: place.split,
        epoch: place.epoch,
        trace: &run.trace,
        measured: Measured { duration: run.duration, cost: run.cost.map(dollars) },
    }
}

fn without_output(error: &CaseError) -> Verdict {
    let reason = format!("{}: {}", error.code(), error.message());
    let verdict = Verdict::without_output(&reason);
    // A better prompt cannot fix an infrastructure failure.
    if error.is_infrastructure() { Verdict { feedback: None, ..verdict } } else { verdict }
}

impl CaseError {
    /// Whether the service or an endpoint failed, so that the error says nothing about the prompts.
    #[must_use]
    pub fn is_infrastructure(&self) -> bool {
        match self {
            Self::Timeout | Self::AnswerMissing { .. } | Self::Inputs { .. } => false,
            Self::Exhausted => true,
            Self::Failed(error) => matches!(
                error.code,
                ErrorCode::Internal
                    | ErrorCode::ModelNotConfigured
                    | ErrorCode::ModelRateLimited
                    | ErrorCode::ModelUnavailable
                    | ErrorCode::EgressRefused
                    | ErrorCode::CredentialMissing
                    | ErrorCode::CodeBusy
                    | ErrorCode::CodeUnavailable
                    | ErrorCode::CodeCrashed
                    | ErrorCode::PostgresUnreachable
                    | ErrorCode::StorageFull
            ),
        }
    }
}
