//! Compares two candidates on the same cases, pair by pair. Pure.

use kernel::{Counter, Purpose};
use serde::Serialize;

use crate::numbers::{NOISE, mean, squared};

/// Added to the deviation, so that a few equal differences prove nothing.
const DEVIATION_FLOOR: f64 = 0.03;
/// A winner counts as better than the seed above this z.
const SIGNIFICANT: f64 = 1.9;
/// A guard counts as worse below this z: one-sided, p < .05.
const REGRESSED: f64 = -1.645;
/// Bootstrap resamples per interval.
const RESAMPLES: u64 = 2_000;
/// Cases in each of the first two blocks of a race.
const FIRST_BLOCK: usize = 4;
/// Folds for an estimate without a test split.
const FOLDS: usize = 5;

/// A case's score and weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightedScore {
    /// The case weight, the same for each candidate.
    pub weight: f64,
    /// The score from 0 to 1.
    pub score: f64,
}

/// A paired comparison of two candidates' scores.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// Cases with a weight above 0.
    pub n: usize,
    /// The second mean minus the first mean.
    pub mean_diff: f64,
    /// The mean difference divided by its standard error.
    pub z: f64,
}

impl Comparison {
    /// Compares scores in case order.
    ///
    /// Source: effective sample size, Kish 1965, (Σw)² / Σw². With equal weights it equals the number of cases, and
    /// the deviation is the sample deviation.
    #[must_use]
    pub fn from_scores(first: &[WeightedScore], second: &[WeightedScore]) -> Self {
        let differences = differences(first, second);
        let n = differences.len();
        let Some(mean_diff) = mean(differences.iter().copied()) else {
            return Self { n, mean_diff: 0.0, z: 0.0 };
        };
        let sum: f64 = differences.iter().map(|(weight, _)| weight).sum();
        let sum_of_squares: f64 = differences.iter().map(|(weight, _)| squared(*weight)).sum();
        let squares: f64 =
            differences.iter().map(|(weight, difference)| weight * squared(difference - mean_diff)).sum();
        // n - 1 if all weights are 1; 0 for one case.
        let freedom = sum - sum_of_squares / sum;
        let deviation = if freedom > 0.0 { (squares / freedom).sqrt() } else { 0.0 };
        let effective_n = squared(sum) / sum_of_squares;
        let z = mean_diff / ((deviation + DEVIATION_FLOOR) / effective_n.sqrt());
        Self { n, mean_diff, z }
    }

    /// Whether the second candidate is significantly better.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.z > SIGNIFICANT
    }

    /// Whether the second candidate is significantly worse, which rejects it if the scores are a guard's.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.z < REGRESSED
    }
}

/// The 95 % interval of the mean difference, by bootstrap over the weighted cases.
#[must_use]
pub fn interval(first: &[WeightedScore], second: &[WeightedScore], counter: &Counter) -> (f64, f64) {
    let differences = differences(first, second);
    let resample = |resample: u64| {
        let drawn = counter.indices(Purpose::Bootstrap, resample, differences.len(), differences.len());
        mean(drawn.into_iter().filter_map(|place| differences.get(place).copied())).unwrap_or_default()
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(resample).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |place: usize| means.get(place).copied().unwrap_or_default();
    (at(means.len() / 40), at(means.len() - 1 - means.len() / 40))
}

/// `(weight, difference)` per case with a weight. Weights are scaled to a maximum of 1: equal weights become exactly
/// 1, and squares stay in range.
fn differences(first: &[WeightedScore], second: &[WeightedScore]) -> Vec<(f64, f64)> {
    let counted = || first.iter().zip(second).filter(|(first, _)| first.weight > 0.0);
    let largest = counted().map(|(first, _)| first.weight).fold(0.0, f64::max);
    counted().map(|(first, second)| (first.weight / largest, second.score - first.score)).collect()
}

/// The race state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Race {
    /// Cases in the next block.
    Next(usize),
    /// The candidate is not better.
    Rejected,
    /// The candidate is better on all cases.
    Accepted,
}

/// Judges a race after its first cases, at the block ends 4, 8, 16, 32, … up to `total`.
#[must_use]
pub fn race(parent: &[WeightedScore], candidate: &[WeightedScore], total: usize) -> Race {
    let seen = parent.len().min(candidate.len());
    let end = block_end(seen).min(total);
    if seen < end {
        return Race::Next(end - seen);
    }
    let mean_diff = Comparison::from_scores(parent, candidate).mean_diff;
    match (mean_diff, seen >= total) {
        (mean_diff, _) if mean_diff < -NOISE => Race::Rejected,
        (mean_diff, true) if mean_diff > NOISE => Race::Accepted,
        (_, true) => Race::Rejected,
        (_, false) => Race::Next(block_end(seen + 1).min(total) - seen),
    }
}

/// The end of the block that contains case number `seen`.
fn block_end(seen: usize) -> usize {
    let mut end = FIRST_BLOCK;
    while end < seen {
        end = end.saturating_mul(2);
    }
    end
}

/// Cross-validated score: chooses the best candidate on four folds and scores it on the fifth, over all folds.
/// `scores`: per candidate, the seed first, by case. On ties the earlier candidate wins.
#[must_use]
pub fn kfold(scores: &[Vec<WeightedScore>], counter: &Counter) -> f64 {
    let cases = scores.first().map_or(0, Vec::len);
    let order = counter.shuffled(Purpose::Split, 2, cases);
    let fold_of = |place: usize| order.get(place).map_or(0, |drawn| drawn % FOLDS);
    let mut held_out = Vec::new();
    for fold in 0..FOLDS {
        let part = |candidate: &[WeightedScore], is_inside: bool| {
            let of = candidate.iter().enumerate().filter(|(place, _)| (fold_of(*place) == fold) == is_inside);
            of.map(|(_, case)| (case.weight, case.score)).collect::<Vec<(f64, f64)>>()
        };
        let mut best: Option<(f64, &Vec<WeightedScore>)> = None;
        for candidate in scores {
            let chosen_by = mean(part(candidate, false).into_iter()).unwrap_or_default();
            if best.is_none_or(|(score, _)| chosen_by > score + NOISE) {
                best = Some((chosen_by, candidate));
            }
        }
        held_out.extend(best.into_iter().flat_map(|(_, winner)| part(winner, true)));
    }
    mean(held_out.into_iter()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(measured: f64, expected: f64) {
        assert!((measured - expected).abs() < 1e-9, "{measured} is not {expected}");
    }

    fn weighted(cases: &[(f64, f64)]) -> Vec<WeightedScore> {
        cases.iter().map(|(weight, score)| WeightedScore { weight: *weight, score: *score }).collect()
    }

    /// Cases with weight 1.
    fn equal(scores: &[f64]) -> Vec<WeightedScore> {
        scores.iter().map(|score| WeightedScore { weight: 1.0, score: *score }).collect()
    }

    fn compared(first: &[f64], second: &[f64]) -> Comparison {
        Comparison::from_scores(&equal(first), &equal(second))
    }

    #[test]
    fn differences_are_measured_pair_by_pair() {
        let four = compared(&[0.0, 0.5, 1.0, 0.5], &[0.5, 0.5, 1.0, 1.0]);
        near(four.mean_diff, 0.25);
        let deviation = (4.0 * 0.25_f64.powi(2) / 3.0).sqrt();
        near(four.z, 0.25 / ((deviation + 0.03) / 2.0));
        assert!(!four.is_significant(), "four cases prove nothing here");
        let many = compared(&[0.0; 40], &[0.02; 40]);
        assert!(many.is_significant() && !many.is_regression(), "{many:?}");
        // Without the floor, any two equal differences would be infinitely significant.
        assert!(!compared(&[0.0, 0.0], &[0.01, 0.01]).is_significant());
        assert!(compared(&[1.0; 20], &[0.9; 20]).is_regression());
        assert_eq!(compared(&[], &[]), Comparison { n: 0, mean_diff: 0.0, z: 0.0 });
    }

    #[test]
    fn equal_weights_of_any_size_change_nothing() {
        let scores = [0.1, 0.7, 0.4, 0.9, 0.2];
        let ones = Comparison::from_scores(&equal(&[0.3; 5]), &equal(&scores));
        for weight in [1e9, 0.1, 1e-200] {
            let of = |scores: &[f64]| {
                weighted(&scores.iter().map(|score| (weight, *score)).collect::<Vec<(f64, f64)>>())
            };
            assert_eq!(Comparison::from_scores(&of(&[0.3; 5]), &of(&scores)), ones, "{weight}");
            let intervals = (
                interval(&of(&[0.3; 5]), &of(&scores), &Counter::new(1)),
                interval(&equal(&[0.3; 5]), &equal(&scores), &Counter::new(1)),
            );
            assert_eq!(intervals.0, intervals.1, "{weight}");
        }
    }

    #[test]
    fn weights_count_in_the_mean_and_its_error() {
        let first = weighted(&[(3.0, 0.0), (1.0, 0.0), (0.0, 0.0)]);
        let second = weighted(&[(3.0, 1.0), (1.0, 0.0), (0.0, 0.5)]);
        let two = Comparison::from_scores(&first, &second);
        assert_eq!(two.n, 2, "a case with weight 0 does not count");
        near(two.mean_diff, 0.75);
        // Σw = 4, Σw² = 10: 1.6 effective cases; squares: (3 · 0.25² + 0.75²) / (4 - 10 / 4).
        let deviation = ((3.0 * 0.25_f64.powi(2) + 0.75_f64.powi(2)) / 1.5).sqrt();
        near(two.z, 0.75 / ((deviation + 0.03) / 1.6_f64.sqrt()));
        // One heavy case proves less than many light ones.
        let of = |heavy: f64, score: f64| {
            let mut cases = vec![(1.0, score); 40];
            cases[0].0 = heavy;
            weighted(&cases)
        };
        assert!(Comparison::from_scores(&of(1.0, 0.5), &of(1.0, 0.52)).is_significant());
        assert!(!Comparison::from_scores(&of(400.0, 0.5), &of(400.0, 0.52)).is_significant());
        let nothing = Comparison::from_scores(&weighted(&[(0.0, 0.1)]), &weighted(&[(0.0, 0.9)]));
        assert_eq!(nothing, Comparison { n: 0, mean_diff: 0.0, z: 0.0 });
    }

    #[test]
    fn an_interval_contains_the_mean_and_is_deterministic() {
        let scores = (0..30).map(|n| f64::from(n % 3) / 2.0).collect::<Vec<f64>>();
        let (first, second) = (equal(&[0.0; 30]), equal(&scores));
        let (low, high) = interval(&first, &second, &Counter::new(1));
        assert!(low < 0.5 && 0.5 < high && low > 0.3 && high < 0.7, "{low} {high}");
        assert_eq!((low, high), interval(&first, &second, &Counter::new(1)));
        let fractions = equal(&(1..31).map(|n| 1.0 / f64::from(n)).collect::<Vec<f64>>());
        let of_seed = |seed| interval(&first, &fractions, &Counter::new(seed));
        assert_ne!(of_seed(1), of_seed(2));
        assert_eq!(interval(&equal(&[0.5]), &equal(&[0.5]), &Counter::new(1)), (0.0, 0.0));
        assert_eq!(interval(&[], &[], &Counter::new(1)), (0.0, 0.0));
    }

    #[test]
    fn an_interval_counts_weights() {
        // The good cases have three quarters of the weight.
        let of = |score: f64| {
            let case = |place: usize| if place < 30 { (3.0, score) } else { (1.0, 0.0) };
            weighted(&(0..60).map(case).collect::<Vec<(f64, f64)>>())
        };
        let (low, high) = interval(&of(0.0), &of(1.0), &Counter::new(1));
        assert!(low > 0.55 && low < 0.75 && high > 0.75 && high < 0.95, "{low} {high}");
    }

    #[test]
    fn a_race_ends_at_the_first_worse_block() {
        let race_of =
            |candidate: &[f64], total| race(&equal(&vec![0.5; candidate.len()]), &equal(candidate), total);
        assert_eq!(race_of(&[], 20), Race::Next(4));
        assert_eq!(race_of(&[0.4; 2], 20), Race::Next(2), "a block is seen whole");
        assert_eq!(race_of(&[0.4; 4], 20), Race::Rejected);
        assert_eq!(race_of(&[0.5; 4], 20), Race::Next(4), "as good may still be better");
        assert_eq!(race_of(&[0.6; 8], 20), Race::Next(8));
        assert_eq!(race_of(&[0.6; 16], 20), Race::Next(4));
        assert_eq!(race_of(&[0.6; 20], 20), Race::Accepted);
        assert_eq!(race_of(&[0.5; 20], 20), Race::Rejected, "as good is not better");
        assert_eq!((race_of(&[], 3), race_of(&[0.6; 3], 3)), (Race::Next(3), Race::Accepted));
        // Equal sums whose floats differ by their order.
        let (parent, candidate) = (equal(&[0.0, 0.0, 0.3]), equal(&[0.1, 0.2, 0.0]));
        assert_eq!(
            (race(&parent, &candidate, 3), race(&candidate, &parent, 3)),
            (Race::Rejected, Race::Rejected)
        );
    }

    #[test]
    fn a_race_counts_weights() {
        let parent = weighted(&[(1.0, 0.5), (1.0, 0.5), (5.0, 0.5), (0.0, 0.5)]);
        let candidate = |scores: [f64; 4]| {
            let scores = parent.iter().zip(scores);
            scores.map(|(case, score)| WeightedScore { score, ..*case }).collect::<Vec<WeightedScore>>()
        };
        // Worse on more cases, better by weight.
        assert_eq!(race(&parent, &candidate([0.0, 0.0, 1.0, 0.0]), 4), Race::Accepted);
        assert_eq!(race(&parent, &candidate([1.0, 1.0, 0.0, 1.0]), 4), Race::Rejected);
        assert_eq!(race(&parent, &candidate([0.5, 0.5, 0.5, 1.0]), 4), Race::Rejected);
    }

    #[test]
    fn a_choice_is_scored_on_held_out_folds() {
        let seed = equal(&[0.5; 20]);
        near(kfold(&[seed.clone(), equal(&[0.8; 20])], &Counter::new(1)), 0.8);
        near(kfold(std::slice::from_ref(&seed), &Counter::new(1)), 0.5);
        // Each candidate is right by chance in four cases: chosen on the other folds, it scores 0.4 on the held-out
        // fold.
        let lucky = |lucky: usize| {
            let scores = (0..20).map(|case| if case % 5 == lucky { 1.0 } else { 0.4 });
            equal(&scores.collect::<Vec<f64>>())
        };
        let all: Vec<Vec<WeightedScore>> = std::iter::once(seed).chain((0..5).map(lucky)).collect();
        near(kfold(&all, &Counter::new(1)), 0.4);
        near(kfold(&[], &Counter::new(1)), 0.0);
    }

    #[test]
    fn folds_count_weights() {
        let of = |heavy: f64, light: f64| {
            let case = |place: usize| if place < 5 { (9.0, heavy) } else { (1.0, light) };
            weighted(&(0..20).map(case).collect::<Vec<(f64, f64)>>())
        };
        // 45 of 60 weight units.
        near(kfold(&[of(1.0, 0.0)], &Counter::new(1)), 0.75);
        // Better on most cases, worse by weight.
        near(kfold(&[of(0.9, 0.5), of(0.0, 1.0)], &Counter::new(1)), 0.8);
    }
}
