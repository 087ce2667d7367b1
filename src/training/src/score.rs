//! Scores of single cases and their summary.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::evaluators::{Evaluator, EvaluatorRole, Verdict};
use crate::numbers::{Mean, mean};

/// Combines the evaluator scores of a case.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Aggregate {
    /// The weighted mean.
    #[default]
    WeightedMean,
    /// The lowest score.
    Min,
    /// The product.
    Product,
}

/// A case's score and pass result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaseScore {
    /// From 0 to 1; `None` if every evaluator skipped the case.
    pub score: Option<f64>,
    /// Whether each scoring evaluator and each guard passed.
    pub passed: bool,
}

/// Scores a case by its verdicts, which are in evaluator order.
#[must_use]
pub fn case_score(evaluators: &[Evaluator], verdicts: &[Verdict], aggregate: Aggregate) -> CaseScore {
    let judged = || evaluators.iter().zip(verdicts).filter(|(_, verdict)| !verdict.skip);
    let scored = || judged().filter(|(evaluator, _)| evaluator.role == EvaluatorRole::Score);
    let scores = || scored().map(|(_, verdict)| verdict.score);
    let score = match (scored().next(), aggregate) {
        (None, _) => None,
        (Some(_), Aggregate::Min) => Some(scores().fold(1.0, f64::min)),
        (Some(_), Aggregate::Product) => Some(scores().product()),
        (Some(_), Aggregate::WeightedMean) => {
            mean(scored().map(|(evaluator, verdict)| (evaluator.weight, verdict.score)))
        }
    };
    let counts = |evaluator: &Evaluator| evaluator.role != EvaluatorRole::MetricOnly;
    let passed = judged().all(|(evaluator, verdict)| verdict.passed || !counts(evaluator));
    CaseScore { score, passed }
}

/// A judged case.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    /// The weight in means.
    pub weight: f64,
    /// The verdicts in evaluator order.
    pub verdicts: &'a [Verdict],
}

/// The summary over many cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The mean score per evaluator id.
    pub summary: BTreeMap<String, f64>,
    /// The mean case score.
    pub score: f64,
    /// The share of passed cases.
    pub pass_rate: f64,
    /// The number of cases.
    pub n_cases: usize,
}

/// Sums cases incrementally, in dataset order. Its memory does not grow with the case count.
#[derive(Debug)]
pub(crate) struct Sums<'e> {
    evaluators: &'e [Evaluator],
    aggregate: Aggregate,
    each: Vec<Mean>,
    score: Mean,
    passed: Mean,
    n_cases: usize,
}

impl<'e> Sums<'e> {
    pub(crate) fn new(evaluators: &'e [Evaluator], aggregate: Aggregate) -> Self {
        let each = vec![Mean::default(); evaluators.len()];
        Self { evaluators, aggregate, each, score: Mean::default(), passed: Mean::default(), n_cases: 0 }
    }

    pub(crate) fn add(&mut self, weight: f64, verdicts: &[Verdict]) {
        self.n_cases += 1;
        for (mean, verdict) in self.each.iter_mut().zip(verdicts).filter(|(_, verdict)| !verdict.skip) {
            mean.add(weight, verdict.score);
        }
        let case = case_score(self.evaluators, verdicts, self.aggregate);
        if let Some(score) = case.score {
            self.score.add(weight, score);
            self.passed.add(weight, if case.passed { 1.0 } else { 0.0 });
        }
    }

    pub(crate) fn summary(self) -> Summary {
        let means = self.evaluators.iter().zip(self.each);
        Summary {
            summary: means
                .map(|(evaluator, mean)| (evaluator.id.clone(), mean.value().unwrap_or_default()))
                .collect(),
            score: self.score.value().unwrap_or_default(),
            pass_rate: self.passed.value().unwrap_or_default(),
            n_cases: self.n_cases,
        }
    }
}

/// Summarizes cases in dataset order.
#[must_use]
pub fn summary(evaluators: &[Evaluator], cases: &[Judged<'_>], aggregate: Aggregate) -> Summary {
    let mut sums = Sums::new(evaluators, aggregate);
    cases.iter().for_each(|case| sums.add(case.weight, case.verdicts));
    sums.summary()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::evaluators::read_evaluators;

    fn evaluators() -> Vec<Evaluator> {
        let valid = "builtin:json_valid";
        let request = json!([{"id": "a", "entrypoint": valid, "weight": 3}, {"id": "b", "entrypoint": valid},
            {"id": "g", "entrypoint": valid, "role": "guard"}, {"id": "m", "entrypoint": valid, "role": "metric_only"}]);
        read_evaluators(&request, "", &mut Vec::new())
    }

    fn verdicts(scores: [f64; 4]) -> Vec<Verdict> {
        scores.into_iter().map(|score| Verdict::from_score(score, 0.5)).collect()
    }

    #[test]
    fn only_scoring_evaluators_count_for_the_score_of_a_case() {
        let evaluators = evaluators();
        for (aggregate, score) in
            [(Aggregate::WeightedMean, 0.875), (Aggregate::Min, 0.5), (Aggregate::Product, 0.5)]
        {
            let scored = case_score(&evaluators, &verdicts([1.0, 0.5, 0.9, 0.0]), aggregate);
            assert_eq!(scored, CaseScore { score: Some(score), passed: true }, "{aggregate:?}");
        }
        assert!(!case_score(&evaluators, &verdicts([1.0, 1.0, 0.0, 1.0]), Aggregate::Min).passed, "a guard");
    }

    #[test]
    fn skipped_evaluators_do_not_count() {
        let evaluators = evaluators();
        let mut some = verdicts([0.0, 1.0, 1.0, 1.0]);
        some[0].skip = true;
        assert_eq!(
            case_score(&evaluators, &some, Aggregate::default()),
            CaseScore { score: Some(1.0), passed: true }
        );
        some[1].skip = true;
        assert_eq!(case_score(&evaluators, &some, Aggregate::default()).score, None);
    }

    #[test]
    fn means_are_weighted_by_case() {
        let evaluators = evaluators();
        let (one, other) = (verdicts([1.0, 1.0, 1.0, 0.2]), verdicts([0.0, 0.0, 1.0, 0.2]));
        let case = |weight, verdicts| Judged { weight, verdicts };
        let cases = [case(1.0, &*one), case(3.0, &*other)];
        let summed = summary(&evaluators, &cases, Aggregate::default());
        assert_eq!((summed.score, summed.pass_rate, summed.n_cases), (0.25, 0.25, 2));
        let means: Vec<(&str, f64)> = summed.summary.iter().map(|(id, mean)| (id.as_str(), *mean)).collect();
        assert_eq!(means, [("a", 0.25), ("b", 0.25), ("g", 1.0), ("m", 0.2)]);
        assert_eq!(summary(&evaluators, &[], Aggregate::default()).score, 0.0);
        let mut skipped = verdicts([1.0; 4]);
        skipped.iter_mut().for_each(|verdict| verdict.skip = true);
        let bad = verdicts([0.0; 4]);
        let summed = summary(&evaluators, &[case(1.0, &skipped), case(1.0, &bad)], Aggregate::default());
        assert_eq!((summed.score, summed.pass_rate), (0.0, 0.0), "a case without a score has not passed");
    }
}
