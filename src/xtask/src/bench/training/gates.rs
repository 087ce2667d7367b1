//! True scores by family and optimizer, and the gates that they must pass. Pure.

use std::collections::BTreeMap;

use worlds::Family;

use super::bootstrap::{Estimate, estimate, mean};
use crate::bench::outcome::{Gates, Outcome};
use crate::bench::server::count;

/// Prompts that score lower by less than this do not count as worse.
const LOSS: f64 = 0.01;
/// The share of runs on worlds without a gain that may lose more than [`LOSS`].
const MOST_LOSSES: f64 = 0.05;

/// Families with something to gain. Only the last one needs demos; in the first four, variations without feedback find
/// little.
const WITH_GAIN: &[Family] = &[
    Family::One,
    Family::Pair,
    Family::Strict,
    Family::Quad,
    Family::Tiny,
    Family::Niche,
    Family::Format,
    Family::Demo,
];
const BY_TEXTS: &[Family] = WITH_GAIN.split_at(7).0;
const LARGE: &[Family] = WITH_GAIN.split_at(4).0;
const NULL: [Family; 2] = [Family::NullOpt, Family::NullFlat];

/// The minimum advantage of one optimizer over another, compared world by world.
struct Gate {
    one: &'static str,
    other: &'static str,
    least: f64,
    /// Whether the interval's lower end must also be above 0.
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

const GATES: [Gate; 8] = [
    gate("gepa", "reference", 0.10, true, BY_TEXTS),
    gate("gepa", "reference_train", 0.10, true, BY_TEXTS),
    gate("gepa", "gepa_published", -0.02, false, WITH_GAIN),
    gate("gepa", "random", 0.05, false, LARGE),
    gate("textgrad", "reference_paired", -0.02, false, &Family::ALL),
    gate("textgrad", "reference_paired_train", -0.02, false, &Family::ALL),
    gate("fewshot", "none", 0.10, false, &[Family::Demo]),
    gate("auto", "fewshot", -0.05, false, &[Family::Demo]),
];

/// The minimum difference between `auto` and the better optimizer.
const OF_AUTO: f64 = -0.02;

/// Score pairs by seed: the scores of the initial and the returned prompts.
type WorldScores = BTreeMap<u64, (f64, f64)>;

/// Scores by family and optimizer.
#[derive(Default)]
pub(super) struct Scores(BTreeMap<(Family, &'static str), WorldScores>);

impl Scores {
    /// Adds the scores of the initial and the returned prompts.
    pub(super) fn add(
        &mut self,
        family: Family,
        optimizer: &'static str,
        seed: u64,
        initial: f64,
        returned: f64,
    ) {
        self.0.entry((family, optimizer)).or_default().insert(seed, (initial, returned));
    }

    fn returned(&self, family: Family, optimizer: &'static str) -> Vec<f64> {
        let all = self.0.get(&(family, optimizer)).into_iter().flatten();
        all.map(|(_, (_, returned))| *returned).collect()
    }

    /// The returned prompts' mean score with its interval; `None` if the optimizer was not used.
    pub(super) fn interval(&self, family: Family, optimizer: &'static str) -> Option<Estimate> {
        Some(self.returned(family, optimizer)).filter(|all| !all.is_empty()).map(|all| estimate(&all))
    }

    /// The mean difference, world by world; `None` without a world in which both were used.
    fn difference(&self, family: Family, one: &'static str, other: &'static str) -> Option<Estimate> {
        let (one, other) = (self.0.get(&(family, one))?, self.0.get(&(family, other))?);
        let paired = |(seed, (_, returned)): (&u64, &(f64, f64))| Some(returned - other.get(seed)?.1);
        let differences: Vec<f64> = one.iter().filter_map(paired).collect();
        (!differences.is_empty()).then(|| estimate(&differences))
    }

    /// Prints the means, one line per family.
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

    /// Runs that have lost on worlds without a gain, and all runs; `None` without runs.
    fn losses(&self, family: Family, optimizer: &'static str) -> Option<(usize, usize)> {
        let scores = self.0.get(&(family, optimizer)).filter(|scores| !scores.is_empty())?;
        let lost = scores.values().filter(|(seed, returned)| *returned <= seed - LOSS).count();
        Some((lost, scores.len()))
    }

    /// Prints the runs that lost where no gain is possible, one line per family.
    pub(super) fn print_losses(&self, optimizers: &[&'static str]) {
        println!("\n  runs that lost {LOSS} or more where no gain is possible");
        for family in NULL {
            let of = |optimizer: &&'static str| {
                let (lost, runs) = self.losses(family, optimizer)?;
                Some(format!("{optimizer} {lost} of {runs}"))
            };
            let losses: Vec<String> = optimizers.iter().filter_map(of).collect();
            let losses = if losses.is_empty() { "not measured".to_owned() } else { losses.join("  ") };
            println!("  {:<10} {losses}", family.as_str());
        }
    }

    /// All score gates, measured or not. `ours`: the service's optimizers.
    pub(super) fn gates(&self, ours: &[&'static str]) -> Gates {
        let mut gates = Gates::default();
        let mut check = |found: Option<(String, bool)>, gate: String| match found {
            Some((found, is_passed)) => {
                gates.add(Outcome::from_passed(is_passed), format!("{gate}: {found}"))
            }
            None => gates.add(Outcome::NotMeasured, gate),
        };
        for Gate { one, other, least, is_certain, families } in &GATES {
            for family in *families {
                let found = self
                    .difference(*family, one, other)
                    .map(|found| (shown(found), found.mean >= *least && (!is_certain || found.low > 0.0)));
                let also = if *is_certain { ", lower end above 0" } else { "" };
                check(found, format!("{}: {one} − {other}, at least {least:+.3}{also}", family.as_str()));
            }
        }
        for family in Family::ALL {
            let found = self.of_auto(family).map(|(better, found)| {
                (format!("{better} is better, {}", shown(found)), found.mean >= OF_AUTO)
            });
            let gate = format!("{}: auto − the better of gepa and textgrad", family.as_str());
            check(found, format!("{gate}, at least {OF_AUTO:+.3}"));
        }
        for family in NULL {
            for optimizer in ours {
                let found = self.losses(family, optimizer).map(|(lost, runs)| {
                    let kept = 1.0 - count(lost) / count(runs);
                    (format!("{:.0} % of {runs} runs", kept * 100.0), kept >= 1.0 - MOST_LOSSES)
                });
                let least = (1.0 - MOST_LOSSES) * 100.0;
                check(
                    found,
                    format!("{}: {optimizer} loses nothing in at least {least:.0} %", family.as_str()),
                );
            }
        }
        gates
    }

    /// Compares `auto` with the optimizer that is better in the whole family, not in each world: the better one per
    /// world would win by chance.
    fn of_auto(&self, family: Family) -> Option<(&'static str, Estimate)> {
        let mean_of = |optimizer| self.interval(family, optimizer).map(|found| found.mean);
        let better = if mean_of("gepa")? > mean_of("textgrad")? { "gepa" } else { "textgrad" };
        Some((better, self.difference(family, "auto", better)?))
    }
}

fn shown(Estimate { mean, low, high }: Estimate) -> String {
    format!("{mean:+.3} [{low:+.3}, {high:+.3}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(of: &[(Family, &'static str, [f64; 2])]) -> Scores {
        let mut scores = Scores::default();
        for (family, optimizer, returned) in of {
            for (seed, returned) in (0_u64..).zip(returned) {
                scores.add(*family, optimizer, seed, 0.5, *returned);
            }
        }
        scores
    }

    /// Numbers of passed and failed gates.
    fn outcomes(scores: &Scores) -> (usize, usize) {
        let gates = scores.gates(&["gepa", "none"]);
        (gates.count(Outcome::Passed), gates.count(Outcome::Failed))
    }

    #[test]
    fn a_gate_needs_its_difference_and_optionally_significance() {
        let one = |gepa: [f64; 2]| {
            outcomes(&scores(&[(Family::One, "gepa", gepa), (Family::One, "reference", [0.5, 0.5])]))
        };
        assert_eq!((one([0.7, 0.7]), one([0.55, 0.55]), one([1.0, 0.4])), ((1, 0), (0, 1), (0, 1)));
    }

    #[test]
    fn auto_is_compared_with_the_better_optimizer_of_the_family() {
        let of = |auto: [f64; 2]| {
            let parts = [(Family::One, "gepa", [0.9, 0.5]), (Family::One, "textgrad", [0.5, 0.8])];
            outcomes(&scores(&[parts[0], parts[1], (Family::One, "auto", auto)]))
        };
        assert_eq!((of([0.7, 0.7]), of([0.6, 0.7])), ((1, 0), (0, 1)));
    }

    #[test]
    fn a_loss_where_nothing_can_be_gained_fails() {
        let of = |returned: [f64; 2]| outcomes(&scores(&[(Family::NullOpt, "gepa", returned)]));
        assert_eq!((of([0.5, 0.495]), of([0.5, 0.4])), ((1, 0), (0, 1)));
        // A reference algorithm may lose.
        assert_eq!(outcomes(&scores(&[(Family::NullOpt, "reference", [0.1, 0.1])])), (0, 0));
    }

    #[test]
    fn a_gate_without_data_is_not_measured() {
        let unmeasured = |scores: &Scores| scores.gates(&["gepa"]).count(Outcome::NotMeasured);
        let all: usize = GATES.iter().map(|gate| gate.families.len()).sum::<usize>() + Family::ALL.len() + 2;
        assert_eq!(unmeasured(&Scores::default()), all);
        // No optimizer to compare with, and different worlds.
        let mut few = scores(&[(Family::Strict, "gepa", [0.9, 0.9]), (Family::Strict, "auto", [0.1, 0.1])]);
        few.add(Family::Strict, "random", 7, 0.5, 0.5);
        assert_eq!((unmeasured(&few), outcomes(&few)), (all, (0, 0)));
    }

    #[test]
    fn family_lists_of_gates_match_their_properties() {
        assert_eq!(Family::ALL.into_iter().filter(|family| family.has_gain()).count(), WITH_GAIN.len());
        assert!(!BY_TEXTS.contains(&Family::Demo) && LARGE.last() == Some(&Family::Quad));
        assert!(NULL.iter().all(|family| !family.has_gain()));
    }
}
