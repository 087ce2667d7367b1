//! True scores by family and optimizer, and what they must be. Pure.

use std::collections::BTreeMap;

use worlds::Family;

use crate::bench::server::count;

/// Prompts that are worse by less than this are not worse.
const LOSS: f64 = 0.01;
/// The share of runs on worlds without a gain that may lose more.
const MOST_LOSSES: f64 = 0.05;
/// Half of a 95 % interval, in standard errors.
const INTERVAL: f64 = 1.96;

/// Families with something to gain.
const GAINS: [Family; 7] =
    [Family::One, Family::Pair, Family::Strict, Family::Quad, Family::Tiny, Family::Niche, Family::Format];

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

    /// Mean of the returned prompts and half of its interval; `None` if the optimizer was not used.
    pub(super) fn interval(&self, family: Family, optimizer: &'static str) -> Option<(f64, f64)> {
        Some(self.returned(family, optimizer)).filter(|all| !all.is_empty()).map(|all| with_interval(&all))
    }

    /// Mean and half of the interval of the differences, world by world.
    fn difference(&self, family: Family, one: &'static str, other: &'static str) -> (f64, f64) {
        let (one, other) = (self.returned(family, one), self.returned(family, other));
        with_interval(&one.iter().zip(&other).map(|(one, other)| one - other).collect::<Vec<_>>())
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
            println!(
                "  {:<10} {:>8.3}  {}",
                family.as_str(),
                mean(&seeds),
                means.collect::<Vec<_>>().join("  ")
            );
        }
    }

    /// Prints each gate; returns those that failed.
    pub(super) fn failed(&self) -> Vec<String> {
        let mut failed = Vec::new();
        let mut gate = |family: Family, what: &str, (found, half): (f64, f64), least: f64| {
            let is_passed = found >= least;
            let line = format!("{}: {what} {found:+.3} ± {half:.3}, at least {least:+.3}", family.as_str());
            println!("  {} {line}", if is_passed { "ok  " } else { "FAIL" });
            if !is_passed {
                failed.push(line);
            }
        };
        println!();
        for family in [Family::One, Family::Pair, Family::Strict, Family::Quad] {
            gate(family, "gepa − random", self.difference(family, "gepa", "random"), 0.05);
        }
        for family in GAINS {
            let mean_of = |optimizer| mean(&self.returned(family, optimizer));
            let better = if mean_of("gepa") > mean_of("textgrad") { "gepa" } else { "textgrad" };
            gate(
                family,
                "auto − the better of gepa and textgrad",
                self.difference(family, "auto", better),
                -0.02,
            );
        }
        let of_demos = |one, other| self.difference(Family::Demo, one, other);
        gate(Family::Demo, "fewshot − none", of_demos("fewshot", "none"), 0.10);
        gate(Family::Demo, "auto − fewshot", of_demos("auto", "fewshot"), -0.05);
        for family in [Family::NullOpt, Family::NullFlat] {
            let all: Vec<&(f64, f64)> = self
                .0
                .iter()
                .filter(|((of, _), _)| *of == family)
                .flat_map(|(_, scores)| scores.values())
                .collect();
            let lost = all.iter().filter(|(seed, returned)| *returned <= seed - LOSS).count();
            let share = count(lost) / count(all.len()).max(1.0);
            gate(family, "runs that lose nothing", (1.0 - share, 0.0), 1.0 - MOST_LOSSES);
        }
        failed
    }
}

/// The mean, and half of its 95 % interval.
fn with_interval(all: &[f64]) -> (f64, f64) {
    let (mean, n) = (mean(all), count(all.len()));
    let square = all.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, INTERVAL * (square / n).sqrt())
}

fn mean(all: &[f64]) -> f64 {
    all.iter().sum::<f64>() / count(all.len()).max(1.0)
}
