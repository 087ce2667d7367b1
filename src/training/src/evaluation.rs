//! An evaluation: executes and judges every case, without a search.

use std::sync::Arc;

use crate::calibration::calibrate;
use crate::case::Case;
use crate::evaluators::Evaluator;
use crate::optimize::{Candidate, Lab, Phase, Round, Stop, StopReason};
use crate::score::{Aggregate, Summary, Sums};

/// Cases executed before their results are summed.
const PART: usize = 64;

/// The evaluation result.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluated {
    /// Summary over the executed cases.
    pub summary: Summary,
    /// The reason why not every case was executed.
    pub stop_reason: Option<StopReason>,
}

/// Executes and judges these cases. Cases beyond the budget or the deadline have no result.
///
/// # Errors
/// [`Stop::Lost`] if this process may not continue.
pub async fn evaluate(cases: &[Case], evaluators: &[Evaluator], lab: &dyn Lab) -> Result<Evaluated, Stop> {
    let subject =
        Candidate { number: 0, parents: Vec::new(), prompts: Arc::default(), demos: Arc::default() };
    let round = Round { phase: Phase::Val, epoch: 0, first_sample: 0 };
    let places: Vec<usize> = (0..cases.len()).collect();
    let mut sums = Sums::new(evaluators, Aggregate::default());
    let mut executed = 0;
    let mut stop_reason = match calibrate(cases, evaluators, lab).await {
        Ok(_) => None,
        Err(Stop::Lost) => return Err(Stop::Lost),
        Err(stop) => stop.reason(),
    };
    let places = if stop_reason.is_some() { Vec::new() } else { places };
    for part in places.chunks(PART) {
        let results = match lab.evaluate(&subject, part, round).await {
            Ok(results) => results,
            Err(Stop::Lost) => return Err(Stop::Lost),
            Err(stop) => {
                stop_reason = stop.reason();
                lab.recall(&subject, part, round).await?
            }
        };
        for (place, samples) in part.iter().zip(results) {
            let weight = cases.get(*place).map_or(1.0, Case::weight);
            executed += usize::from(!samples.is_empty());
            samples.iter().for_each(|sample| sums.add(weight, &sample.verdicts));
        }
        if stop_reason.is_some() {
            break;
        }
    }
    let summary = Summary { n_cases: executed, ..sums.summary() };
    Ok(Evaluated { summary, stop_reason })
}
