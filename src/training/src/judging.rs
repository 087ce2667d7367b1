//! The verdicts of a case that was executed. They need its result alone, so that other evaluators can judge it later.

use wire::ErrorCode;

use crate::case::Case;
use crate::evaluators::{Evaluator, Measured, Subject, Verdict};
use crate::runner::{CaseError, CaseRun};

/// The verdicts of these evaluators, in their order; `None` if the case has no score because the budget is spent. `cost`: US dollars of
/// its calls, if all prices are known.
#[must_use]
pub fn judge(
    evaluators: &[Evaluator],
    case: &Case,
    run: &CaseRun,
    cost: Option<f64>,
) -> Option<Vec<Verdict>> {
    match &run.error {
        Some(CaseError::Exhausted) => None,
        Some(error) => Some(evaluators.iter().map(|_| without_output(error)).collect()),
        None => {
            let subject = Subject {
                output: &run.output,
                text: &run.text,
                expected: &case.expected_output,
                trace: &run.trace,
                measured: Measured { duration: run.duration, cost },
            };
            Some(evaluators.iter().map(|evaluator| evaluator.judge(&subject)).collect())
        }
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
