//! The verdicts of a case that was executed. Evaluators that only compare need its result alone, so that they can judge it later.

use wire::ErrorCode;

use crate::calls::dollars;
use crate::case::Case;
use crate::evaluators::{Bench, Evaluator, Measured, Subject, Verdict};
use crate::runner::{CaseError, CaseRun};

/// What evaluators know of a case beside its result.
#[derive(Debug, Clone, Copy, Default)]
pub struct CaseContext<'a> {
    /// Its split, if the run has splits.
    pub split: Option<&'a str>,
    /// The epoch, if the run has epochs.
    pub epoch: Option<u32>,
}

/// The verdicts of these evaluators, in their order; `None` if the case has no score because the budget is spent. `bench`: for evaluators
/// that do more than compare.
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

/// The verdicts about a recorded output of those evaluators that ask a model; the others skip it. `None` as in [`judge`].
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
    // A prompt cannot mend what is not the workflow's fault.
    if error.is_infrastructure() { Verdict { feedback: None, ..verdict } } else { verdict }
}

impl CaseError {
    /// Whether it is a failure of the service or of an endpoint, and says nothing of the prompts.
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
