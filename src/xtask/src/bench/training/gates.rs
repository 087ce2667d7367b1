//! True scores by family and optimizer, and what they must be. Pure.

use std::collections::BTreeMap;

use worlds::Family;

use super::bootstrap::{Estimate, estimate, mean};
use crate::bench::server::count;

/// Prompts that are worse by less than this are not worse.
const LOSS: f64 = 0.01;
/// The share of runs on worlds without a gain that may lose more.
const MOST_LOSSES: f64 = 0.05;

/// Families with something to gain by texts.
const GAINS: [Family; 7] =
    [Family::One, Family::Pair, Family::Strict, Family::Quad, Family::Tiny, Family::Niche, Family::Format];
/// Families in which variations without feedback find little.
const LARGE: [Family; 4] = [Family::One, Family::Pair, Family::Strict, Family::Quad];
const GAINS_AND_DEMO: [Family; 8] = [
    Family::One,
    Family::Pair,
    Family::Strict,
    Family::Quad,
    Family::Tiny,
    Family::Niche,
    Family::Format,
    Family::Demo,
];
const NULL: [Family; 2] = [Family::NullOpt, Family::NullFlat];

/// An optimizer must be better than another one by this, world by world.
struct Gate {
    one: &'static str,
    other: &'static str,
    least: f64,
    /// Whether the lower end of the interval must be above 0.
    is_certain: bool,
    families: &'static [Family],
}

const fn gate(
    one: &'static str,
    other: &'static str,
    least: f64,
    is_certain: bool,
    families: &'static [Family],
) -> Gate {
    Gate { one, other, least, is_certain, families }
}

const GATES: [Gate; 6] = [
    gate("gepa", "reference", 0.10, true, &GAINS),
    gate("gepa", "gepa_published", -0.02, false, &GAINS_AND_DEMO),
    gate("gepa", "random", 0.05, false, &LARGE),
    gate("textgrad", "reference_paired", -0.02, false, &Family::ALL),
    gate("fewshot", "none", 0.10, false, &[Family::Demo]),
    gate("auto", "fewshot", -0.05, false, &[Family::Demo]),
];

/// How far `auto` may be below the better of both.
const OF_AUTO: f64 = -0.02;

/// By seed: the score at the start, and that of the returned prompts.
type OfWorlds = BTreeMap<u64, (f64, f64)>;

/// By family and optimizer.
#[derive(Default)]
pub(super) struct Scores(BTreeMap<(Family, &'static str), OfWorlds>);

impl Scores {
    pub(super) fn add(&mut self, family: Family, optimizer: &'static str, seed: u64, scores: (f64, f64)) {
        self.0.entry((family, optimizer)).or_default().insert(seed, scores);
    }

    fn returned(&self, family: Family, optimizer: &'static str) -> Vec<f64> {
        let all = self.0.get(&(family, optimizer)).into_iter().flatten();
        all.map(|(_, (_, returned))| *returned).collect()
    }

    /// Mean of the returned prompts with its interval; `None` if the optimizer was not used.
    pub(super) fn interval(&self, family: Family, optimizer: &'static str) -> Option<Estimate> {
        Some(self.returned(family, optimizer)).filter(|all| !all.is_empty()).map(|all| estimate(&all))
    }

    /// The differences, world by world; `None` without a world in which both were used.
    fn difference(&self, family: Family, one: &'static str, other: &'static str) -> Option<Estimate> {
        let (one, other) = (self.0.get(&(family, one))?, self.0.get(&(family, other))?);
        let paired = |(seed, (_, returned)): (&u64, &(f64, f64))| Some(returned - other.get(seed)?.1);
        let differences: Vec<f64> = one.iter().filter_map(paired).collect();
        (!differences.is_empty()).then(|| estimate(&differences))
    }

    /// The means, a line for each family.
    pub(super) fn print(&self, optimizers: &[&'static str]) {
        println!("\n  {:<10} {:>8}", "family", "seed");
        for family in Family::ALL {
            let seeds: Vec<f64> = (self.0.iter())
                .filter(|((of, _), _)| *of == family)
                .flat_map(|(_, scores)| scores.values().map(|(seed, _)| *seed))
                .collect();
            let means = optimizers
                .iter()
                .map(|optimizer| (optimizer, self.returned(family, optimizer)))
                .filter(|(_, returned)| !returned.is_empty())
                .map(|(optimizer, returned)| format!("{optimizer} {:.3}", mean(&returned)));
            let means: Vec<String> = means.collect();
            if !means.is_empty() {
                println!("  {:<10} {:>8.3}  {}", family.as_str(), mean(&seeds), means.join("  "));
            }
        }
    }

    /// Prints each gate; returns those that failed.
    pub(super) fn failed(&self) -> Vec<String> {
        let mut failed = Vec::new();
        let mut check = |line: String, is_passed: bool| {
            println!("  {} {line}", if is_passed { "pass" } else { "FAIL" });
            if !is_passed {
                failed.push(line);
            }
        };
        println!();
        for Gate { one, other, least, is_certain, families } in &GATES {
            for family in *families {
                let Some(found) = self.difference(*family, one, other) else { continue };
                let is_passed = found.mean >= *least && (!is_certain || found.low > 0.0);
                let also = if *is_certain { ", lower end above 0" } else { "" };
                let what = format!("{one} − {other}");
                check(
                    format!("{}: {}, at least {least:+.3}{also}", family.as_str(), told(&what, found)),
                    is_passed,
                );
            }
        }
        for family in Family::ALL {
            // The better one of the family, not of each world: that one would be better by chance.
            let mean_of = |optimizer| mean(&self.returned(family, optimizer));
            let better = if mean_of("gepa") > mean_of("textgrad") { "gepa" } else { "textgrad" };
            let Some(found) = self.difference(family, "auto", better) else { continue };
            let what = told(&format!("auto − the better of gepa and textgrad ({better})"), found);
            check(format!("{}: {what}, at least {OF_AUTO:+.3}", family.as_str()), found.mean >= OF_AUTO);
        }
        for ((family, optimizer), scores) in self.0.iter().filter(|((family, _), _)| NULL.contains(family)) {
            // What is published is not ours to pass.
            if !super::OPTIMIZERS.contains(optimizer) {
                continue;
            }
            let lost = scores.values().filter(|(seed, returned)| *returned <= seed - LOSS).count();
            let kept = 1.0 - count(lost) / count(scores.len()).max(1.0);
            let line = format!(
                "{}: {optimizer} loses nothing in {:.0} % of {} runs, at least {:.0} %",
                family.as_str(),
                kept * 100.0,
                scores.len(),
                (1.0 - MOST_LOSSES) * 100.0
            );
            check(line, kept >= 1.0 - MOST_LOSSES);
        }
        failed
    }
}

fn told(what: &str, Estimate { mean, low, high }: Estimate) -> String {
    format!("{what} {mean:+.3} [{low:+.3}, {high:+.3}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(of: &[(Family, &'static str, [f64; 2])]) -> Scores {
        let mut scores = Scores::default();
        for (family, optimizer, returned) in of {
            for (seed, returned) in (0_u64..).zip(returned) {
                scores.add(*family, optimizer, seed, (0.5, *returned));
            }
        }
        scores
    }

    #[test]
    fn a_gate_needs_its_difference_and_where_it_says_so_certainty() {
        let one = |gepa: [f64; 2]| {
            scores(&[(Family::One, "gepa", gepa), (Family::One, "reference", [0.5, 0.5])]).failed().len()
        };
        assert_eq!((one([0.7, 0.7]), one([0.55, 0.55]), one([1.0, 0.4])), (0, 1, 1));
    }

    #[test]
    fn auto_is_compared_with_what_is_better_in_the_family() {
        let of = |auto: [f64; 2]| {
            let parts = [(Family::One, "gepa", [0.9, 0.5]), (Family::One, "textgrad", [0.5, 0.8])];
            scores(&[parts[0], parts[1], (Family::One, "auto", auto)]).failed().len()
        };
        assert_eq!((of([0.7, 0.7]), of([0.6, 0.7])), (0, 1));
    }

    #[test]
    fn a_loss_where_nothing_can_be_gained_fails() {
        let of = |returned: [f64; 2]| scores(&[(Family::NullOpt, "gepa", returned)]).failed().len();
        assert_eq!((of([0.5, 0.495]), of([0.5, 0.4])), (0, 1));
        assert_eq!(scores(&[(Family::NullOpt, "reference", [0.1, 0.1])]).failed().len(), 0);
    }
}
