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
    let verdict: Box<dyn Fn(&Evaluator) -> Verdict> = match &run.error {
        Some(CaseError::Exhausted) => return None,
        Some(error) => Box::new(move |_| without_output(error)),
        None => Box::new(move |evaluator| {
            evaluator.judge(&Subject {
                output: &run.output,
                text: &run.text,
                expected: &case.expected_output,
                trace: &run.trace,
                measured: Measured { duration: run.duration, cost },
            })
        }),
    };
    Some(evaluators.iter().map(verdict).collect())
}

fn without_output(error: &CaseError) -> Verdict {
    let reason = format!("{}: {}", error.code(), error.message());
    let verdict = Verdict::without_output(&reason);
    // No prompt can mend what is not the workflow's fault.
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
            ),
        }
    }
}
