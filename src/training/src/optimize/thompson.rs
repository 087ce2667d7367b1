//! Thompson sampling over combinations: the options' gains add up to the combination's gain. Pure.
//!
//! Source: Thompson 1933, "On the likelihood that one unknown probability exceeds another"; gains follow a Bayesian
//! linear model with independent priors.

use kernel::{Counter, Purpose};

use crate::numbers::{NOISE, float, squared};

/// Standard deviations: an option's prior gain, and the gain on a single case.
const PRIOR: f64 = 0.15;
const OF_CASE: f64 = 0.35;
/// Iterations that fit the option means to each other.
const SWEEPS: usize = 40;
/// Uniform draws whose sum is nearly normal: additions alone are the same on every machine.
const UNIFORMS: u64 = 12;

/// One option per dimension; 0 is the seed's.
pub(super) type Combination = Vec<usize>;

/// A combination's observed gain over the seed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observation {
    pub(super) combination: Combination,
    /// The number of cases.
    pub(super) cases: usize,
    /// The mean difference.
    pub(super) gain: f64,
}

/// The belief about the options: each gain's mean and deviation, by dimension. The seed's are 0.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Belief {
    options: Vec<Vec<(f64, f64)>>,
}

impl Belief {
    /// The belief after these observations. `counts`: options per dimension, including the seed's.
    pub(super) fn after(counts: &[usize], observations: &[Observation]) -> Self {
        let mut means: Vec<Vec<f64>> = counts.iter().map(|count| vec![0.0; *count]).collect();
        let weight = |seen: &Observation| float(seen.cases) / squared(OF_CASE);
        let seen_with = |dimension: usize, option: usize| {
            observations.iter().filter(move |seen| seen.combination.get(dimension) == Some(&option))
        };
        let precision = |dimension: usize, option: usize| {
            squared(PRIOR).recip() + seen_with(dimension, option).map(weight).sum::<f64>()
        };
        for _ in 0..SWEEPS {
            for (dimension, count) in counts.iter().enumerate() {
                for option in 1..*count {
                    let mut sum = 0.0;
                    for seen in seen_with(dimension, option) {
                        let others = seen.combination.iter().enumerate().filter(|(at, _)| *at != dimension);
                        let explained: f64 =
                            others.filter_map(|(at, chosen)| means.get(at)?.get(*chosen)).sum();
                        sum += weight(seen) * (seen.gain - explained);
                    }
                    if let Some(mean) = means.get_mut(dimension).and_then(|means| means.get_mut(option)) {
                        *mean = sum / precision(dimension, option);
                    }
                }
            }
        }
        let with_deviation = |(dimension, means): (usize, Vec<f64>)| {
            let of = |(option, mean): (usize, f64)| match option {
                0 => (0.0, 0.0),
                _ => (mean, precision(dimension, option).sqrt().recip()),
            };
            means.into_iter().enumerate().map(of).collect()
        };
        Self { options: means.into_iter().enumerate().map(with_deviation).collect() }
    }

    /// The combination with the largest gain in a draw from the belief; ties go to the first option.
    pub(super) fn draw(&self, counter: &Counter, iteration: u64) -> Combination {
        let mut index = 0;
        let mut choose = |options: &Vec<(f64, f64)>| {
            let mut best = (0, f64::NEG_INFINITY);
            for (option, (mean, deviation)) in options.iter().enumerate() {
                let gain = mean + deviation * normal(counter, iteration, index);
                index += 1;
                if gain > best.1 + NOISE {
                    best = (option, gain);
                }
            }
            best.0
        };
        self.options.iter().map(&mut choose).collect()
    }
}

fn normal(counter: &Counter, iteration: u64, index: u64) -> f64 {
    let first = index * UNIFORMS;
    let drawn = (first..first + UNIFORMS).map(|index| counter.unit(Purpose::Thompson, iteration, index));
    drawn.sum::<f64>() - 6.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(combination: &[usize], cases: usize, gain: f64) -> Observation {
        Observation { combination: combination.to_vec(), cases, gain }
    }

    #[test]
    fn gains_of_options_add_up() {
        let observations = [
            observation(&[1, 0], 4_000, 0.1),
            observation(&[0, 2], 4_000, -0.2),
            observation(&[1, 2], 4_000, -0.1),
        ];
        let belief = Belief::after(&[2, 3], &observations);
        let near =
            |(mean, _): (f64, f64), expected: f64| assert!((mean - expected).abs() < 0.01, "{belief:?}");
        near(belief.options[0][1], 0.1);
        near(belief.options[1][2], -0.2);
        assert_eq!(belief.options[1][1], (0.0, PRIOR), "nothing is known about it");
        assert_eq!((belief.options[0][0], belief.options[1][0]), ((0.0, 0.0), (0.0, 0.0)));
        assert!(belief.options[0][1].1 < 0.01);
    }

    #[test]
    fn few_cases_change_the_belief_little() {
        let gain = |cases| Belief::after(&[2], &[observation(&[1], cases, 0.4)]).options[0][1].0;
        assert!(gain(1) < 0.1 && gain(8) > gain(1) && gain(1_000) > 0.39);
    }

    #[test]
    fn good_options_are_drawn_often_and_others_sometimes() {
        let observations = [observation(&[1], 8, 0.1), observation(&[2], 8, -0.3)];
        let belief = Belief::after(&[4], &observations);
        let mut drawn = [0; 4];
        for iteration in 0..1_000 {
            let combination = belief.draw(&Counter::new(1), iteration);
            assert_eq!(combination, belief.draw(&Counter::new(1), iteration));
            drawn[combination[0]] += 1;
        }
        assert!(drawn[1] > drawn[0] && drawn[1] > drawn[2], "{drawn:?}");
        assert!(drawn[3] > 200, "unknown options may be the best: {drawn:?}");
        assert!(drawn[2] > 0 && drawn[2] < 100, "{drawn:?}");
    }

    #[test]
    fn draws_are_nearly_normal() {
        let drawn: Vec<f64> = (0..5_000).map(|index| normal(&Counter::new(3), 0, index)).collect();
        let mean = drawn.iter().sum::<f64>() / 5_000.0;
        let variance = drawn.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 5_000.0;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.06, "{mean} {variance}");
    }
}
