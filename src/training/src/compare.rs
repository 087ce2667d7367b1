//! Whether one candidate is better than another: on the same cases, pair by pair. Pure.

use kernel::{Counter, Purpose};
use serde::Serialize;

use crate::numbers::{self, float};

/// Added to the deviation, so that a few equal differences prove nothing.
const DEVIATION_FLOOR: f64 = 0.03;
/// From which z on a winner counts as better than the seed.
const SIGNIFICANT: f64 = 1.9;
/// Below which z a guard counts as worse: one-sided, p < .05.
const REGRESSED: f64 = -1.645;
/// Differences below it are rounding.
const NOISE: f64 = 1e-9;
/// Resamples of an interval.
const RESAMPLES: u64 = 2_000;
/// Cases of the first two blocks of a race.
const FIRST_BLOCK: usize = 4;
/// Folds of an estimate without a test split.
const FOLDS: usize = 5;

/// The scores of two candidates on the same cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// How many cases.
    pub n: usize,
    /// Mean of the second less mean of the first.
    pub mean_diff: f64,
    /// The mean difference in parts of its standard error.
    pub z: f64,
}

impl Comparison {
    /// Of scores in the order of the cases.
    #[must_use]
    pub fn of(first: &[f64], second: &[f64]) -> Self {
        let differences = differences(first, second);
        let n = differences.len();
        if n == 0 {
            return Self { n, mean_diff: 0.0, z: 0.0 };
        }
        let mean_diff = mean(&differences);
        let squares: f64 = differences.iter().map(|difference| (difference - mean_diff).powi(2)).sum();
        let deviation = if n > 1 { (squares / (float(n) - 1.0)).sqrt() } else { 0.0 };
        let z = mean_diff / ((deviation + DEVIATION_FLOOR) / float(n).sqrt());
        Self { n, mean_diff, z }
    }

    /// Whether the second is better, and not by chance.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.z > SIGNIFICANT
    }

    /// Whether the second is worse, and not by chance: what rejects a candidate whose guard it is.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        self.z < REGRESSED
    }
}

/// The 95 % interval of the mean difference, by bootstrap over the cases.
#[must_use]
pub fn interval(first: &[f64], second: &[f64], counter: &Counter) -> (f64, f64) {
    let differences = differences(first, second);
    if differences.is_empty() {
        return (0.0, 0.0);
    }
    let resample = |resample: u64| {
        let drawn = (0..differences.len()).filter_map(|place| {
            let index = u64::try_from(place).unwrap_or(u64::MAX);
            differences.get(counter.below(Purpose::Bootstrap, resample, index, differences.len())).copied()
        });
        mean(&drawn.collect::<Vec<f64>>())
    };
    let mut means: Vec<f64> = (0..RESAMPLES).map(resample).collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |place: usize| means.get(place).copied().unwrap_or_default();
    (at(means.len() / 40), at(means.len() - 1 - means.len() / 40))
}

fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().zip(second).map(|(first, second)| second - first).collect()
}

fn mean(values: &[f64]) -> f64 {
    numbers::mean(values.iter().map(|value| (1.0, *value))).unwrap_or_default()
}

/// How far a race is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Race {
    /// So many cases are wanted next.
    Next(usize),
    /// The candidate is not better.
    Rejected,
    /// The candidate is better on all cases.
    Accepted,
}

/// Judges a race after these cases, which are the first of `total`: after 4, 8, 16, 32, … of them.
#[must_use]
pub fn race(parent: &[f64], candidate: &[f64], total: usize) -> Race {
    let seen = parent.len().min(candidate.len());
    let end = block_end(seen).min(total);
    if seen < end {
        return Race::Next(end - seen);
    }
    let mean_diff = Comparison::of(parent, candidate).mean_diff;
    match (mean_diff, seen >= total) {
        (mean_diff, _) if mean_diff < -NOISE => Race::Rejected,
        (mean_diff, true) if mean_diff > NOISE => Race::Accepted,
        (_, true) => Race::Rejected,
        (_, false) => Race::Next(block_end(seen + 1).min(total) - seen),
    }
}

/// The end of the block that the last of so many cases is in.
fn block_end(seen: usize) -> usize {
    let mut end = FIRST_BLOCK;
    while end < seen {
        end = end.saturating_mul(2);
    }
    end
}

/// What a winner that is chosen on four folds scores on the fifth, over all folds. `scores`: of each candidate, the seed first, by case.
/// Ties go to the candidate that comes first.
#[must_use]
pub fn kfold(scores: &[Vec<f64>], counter: &Counter) -> f64 {
    let cases = scores.first().map_or(0, Vec::len);
    let order = counter.shuffled(Purpose::Split, 2, cases);
    let fold_of = |place: usize| order.get(place).map_or(0, |drawn| drawn % FOLDS);
    let mut held_out = Vec::new();
    for fold in 0..FOLDS {
        let part = |candidate: &[f64], is_inside: bool| {
            let of = candidate.iter().enumerate().filter(|(place, _)| (fold_of(*place) == fold) == is_inside);
            of.map(|(_, score)| *score).collect::<Vec<f64>>()
        };
        let mut best: Option<(f64, &Vec<f64>)> = None;
        for candidate in scores {
            let chosen_by = mean(&part(candidate, false));
            if best.is_none_or(|(score, _)| chosen_by > score) {
                best = Some((chosen_by, candidate));
            }
        }
        held_out.extend(best.into_iter().flat_map(|(_, winner)| part(winner, true)));
    }
    mean(&held_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(measured: f64, expected: f64) {
        assert!((measured - expected).abs() < 1e-9, "{measured} is not {expected}");
    }

    #[test]
    fn differences_are_measured_pair_by_pair() {
        let compared = Comparison::of(&[0.0, 0.5, 1.0, 0.5], &[0.5, 0.5, 1.0, 1.0]);
        near(compared.mean_diff, 0.25);
        let deviation = (4.0 * 0.25_f64.powi(2) / 3.0).sqrt();
        near(compared.z, 0.25 / ((deviation + 0.03) / 2.0));
        assert!(!compared.is_significant(), "four cases prove nothing here");
        let many = Comparison::of(&[0.0; 40], &[0.02; 40]);
        assert!(many.is_significant() && !many.is_regression(), "{many:?}");
        // Without the floor any two equal differences would be infinitely sure.
        assert!(!Comparison::of(&[0.0, 0.0], &[0.01, 0.01]).is_significant());
        assert!(Comparison::of(&[1.0; 20], &[0.9; 20]).is_regression());
        assert_eq!(Comparison::of(&[], &[]), Comparison { n: 0, mean_diff: 0.0, z: 0.0 });
    }

    #[test]
    fn an_interval_contains_the_mean_and_is_the_same_each_time() {
        let (first, second) = (vec![0.0; 30], (0..30).map(|n| f64::from(n % 3) / 2.0).collect::<Vec<f64>>());
        let (low, high) = interval(&first, &second, &Counter::new(1));
        assert!(low < 0.5 && 0.5 < high && low > 0.3 && high < 0.7, "{low} {high}");
        assert_eq!((low, high), interval(&first, &second, &Counter::new(1)));
        assert_eq!(interval(&[0.5], &[0.5], &Counter::new(1)), (0.0, 0.0));
    }

    #[test]
    fn a_race_ends_at_the_first_block_that_is_worse() {
        let race_of = |candidate: &[f64], total| race(&vec![0.5; candidate.len()], candidate, total);
        assert_eq!(race_of(&[], 20), Race::Next(4));
        assert_eq!(race_of(&[0.4; 2], 20), Race::Next(2), "a block is seen whole");
        assert_eq!(race_of(&[0.4; 4], 20), Race::Rejected);
        assert_eq!(race_of(&[0.5; 4], 20), Race::Next(4), "as good may still be better");
        assert_eq!(race_of(&[0.6; 8], 20), Race::Next(8));
        assert_eq!(race_of(&[0.6; 16], 20), Race::Next(4));
        assert_eq!(race_of(&[0.6; 20], 20), Race::Accepted);
        assert_eq!(race_of(&[0.5; 20], 20), Race::Rejected, "as good is not better");
        assert_eq!((race_of(&[], 3), race_of(&[0.6; 3], 3)), (Race::Next(3), Race::Accepted));
        // Equal sums, whose floats differ by their order.
        let (parent, candidate) = ([0.0, 0.0, 0.3], [0.1, 0.2, 0.0]);
        assert_eq!(
            (race(&parent, &candidate, 3), race(&candidate, &parent, 3)),
            (Race::Rejected, Race::Rejected)
        );
    }

    #[test]
    fn a_choice_is_scored_where_it_was_not_made() {
        let seed = vec![0.5; 20];
        near(kfold(&[seed.clone(), vec![0.8; 20]], &Counter::new(1)), 0.8);
        near(kfold(std::slice::from_ref(&seed), &Counter::new(1)), 0.5);
        // Each is right by chance in four cases: chosen by the other folds, it scores 0.4 where it was not chosen.
        let lucky = |lucky: usize| {
            (0..20).map(|case| if case % 5 == lucky { 1.0 } else { 0.4 }).collect::<Vec<f64>>()
        };
        let all: Vec<Vec<f64>> = std::iter::once(seed).chain((0..5).map(lucky)).collect();
        near(kfold(&all, &Counter::new(1)), 0.4);
        near(kfold(&[], &Counter::new(1)), 0.0);
    }
}
