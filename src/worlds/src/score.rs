//! Output scores, and true prompt scores.

use std::collections::BTreeMap;

use serde_json::Value;

use super::attention::{Attention, Demo};
use super::cases::Case;
use super::definition::World;
use super::family::{Family, Scoring};
use super::random::{float, mean};
use super::words::word_set;

/// Fresh cases per true score.
const FRESH: usize = 600;
/// Maximum oracle demos.
const DEMOS: usize = 4;

impl World {
    /// Scores an output, from 0 to 1, like the family's evaluator.
    #[must_use]
    pub fn score(&self, output: &str, case: &Case) -> f64 {
        let words = word_set(output);
        let found = case.expected.iter().filter(|word| words.contains(*word)).count();
        match self.family.scoring() {
            Scoring::Share => share(found, case.expected.len()),
            Scoring::F1 => share(2 * found, case.expected.len() + written(output)),
            Scoring::Exact => f64::from(u8::from(case.expected_output == *output)),
            Scoring::Json => match serde_json::from_str(output) {
                Ok(Value::Object(members)) => {
                    let extra = members.keys().filter(|name| !case.expected.contains(name)).count();
                    share(found, case.expected.len() + extra)
                }
                _ => 0.0,
            },
        }
    }

    /// The expected prompt score on fresh cases, from 0 to 1, without demos. Missing prompts default to the seed's.
    ///
    /// The expectation over the answers is exact; the 600 fresh cases are the same in every call.
    #[must_use]
    pub fn true_score(&self, prompts: &BTreeMap<String, String>) -> f64 {
        self.true_score_with(prompts, &BTreeMap::new())
    }

    /// The expected score for prompts with demos, both by prompt name.
    #[must_use]
    pub fn true_score_with(
        &self,
        prompts: &BTreeMap<String, String>,
        demos: &BTreeMap<String, Vec<Demo>>,
    ) -> f64 {
        let seeds = self.seed_prompts();
        let attention = |(place, name): (usize, &&str)| {
            let text =
                prompts.get(*name).or_else(|| seeds.get(*name)).map(String::as_str).unwrap_or_default();
            let demos = demos.get(*name).map(Vec::as_slice).unwrap_or_default();
            Attention::new(self, place, text, demos)
        };
        let attentions: Vec<Attention<'_>> = self.prompt_names().iter().enumerate().map(attention).collect();
        let fresh =
            self.fresh.get_or_init(|| (0..FRESH).map(|index| self.case("fresh", index, None)).collect());
        mean(fresh.iter().map(|case| self.expected_score(case, &attentions)))
    }

    /// The seed prompts' true score.
    #[must_use]
    pub fn seed_score(&self) -> f64 {
        self.true_score(&self.seed_prompts())
    }

    /// The true score for prompts that state everything, with helpful demos.
    #[must_use]
    pub fn oracle_score(&self) -> f64 {
        self.true_score_with(&self.oracle_prompts(), &self.oracle_demos())
    }

    /// Correct examples from training cases, by prompt name: up to four that show the most kinds of rules. Empty
    /// except in the family `demo`.
    #[must_use]
    pub fn oracle_demos(&self) -> BTreeMap<String, Vec<Demo>> {
        if self.family != Family::Demo {
            return BTreeMap::new();
        }
        let mut cases = self.cases();
        cases.retain(|case| case.canary().is_none());
        let mut chosen: Vec<Demo> = Vec::new();
        for _ in 0..DEMOS {
            let score = |case: &Case| {
                let mut demos = chosen.clone();
                demos.push(example(case));
                self.true_score_with(&BTreeMap::new(), &BTreeMap::from([(self.first_name(), demos)]))
            };
            let scored = cases.iter().map(|case| (score(case), case));
            let best = scored.fold(None, |best: Option<(f64, &Case)>, one| match best {
                Some(best) if best.0 >= one.0 => Some(best),
                _ => Some(one),
            });
            chosen.extend(best.map(|(_, case)| example(case)));
        }
        BTreeMap::from([(self.first_name(), chosen)])
    }

    fn first_name(&self) -> String {
        self.prompt_names().first().map(|name| (*name).to_owned()).unwrap_or_default()
    }

    fn expected_score(&self, case: &Case, attentions: &[Attention<'_>]) -> f64 {
        // A broken node loses the draft: only the nodes after the last broken one count.
        let broken = attentions.iter().rposition(|attention| !attention.works(Some(&case.desk)));
        let first = broken.map_or(0, |at| at + 1);
        let chance = |rule: &usize| {
            let place = self.rules.get(*rule).map_or(0, |rule| rule.prompt);
            attentions.get(place).filter(|_| place >= first).map_or(0.0, |attention| attention.chance(*rule))
        };
        let chances: Vec<f64> = case.rules.iter().map(chance).collect();
        let expected = case.expected.len();
        let mean_share = chances.iter().sum::<f64>() / float(expected.max(1));
        match self.family.scoring() {
            Scoring::Share => mean_share,
            Scoring::F1 => {
                let met = counts(&chances).into_iter().enumerate();
                met.map(|(count, probability)| probability * share(2 * count, expected + count)).sum()
            }
            Scoring::Exact if expected > chances.len() => 0.0,
            Scoring::Exact => chances.iter().product(),
            Scoring::Json => {
                let gates =
                    attentions.first().filter(|_| first == 0).map_or(0.0, |one| one.gate(0) * one.gate(1));
                gates * mean_share
            }
        }
    }
}

/// The correct example for a case.
fn example(case: &Case) -> Demo {
    Demo { user: case.message.clone(), assistant: case.expected.join(", ") }
}

/// The success count distribution: a probability for each count from 0 to `chances.len()`.
fn counts(chances: &[f64]) -> Vec<f64> {
    let mut distribution = vec![1.0];
    for chance in chances {
        let mut next = vec![0.0; distribution.len() + 1];
        for (at, probability) in distribution.iter().enumerate() {
            for (at, share) in [(at, 1.0 - chance), (at + 1, *chance)] {
                if let Some(sum) = next.get_mut(at) {
                    *sum += probability * share;
                }
            }
        }
        distribution = next;
    }
    distribution
}

/// The entries in an output, as `set_f1` counts them.
fn written(output: &str) -> usize {
    output.split(['\n', ',', ';']).filter(|entry| !entry.trim().is_empty()).count()
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_demos() -> BTreeMap<String, Vec<Demo>> {
        BTreeMap::new()
    }

    #[test]
    fn the_true_score_is_the_mean_score_of_many_executions() {
        for family in Family::ALL {
            let world = World::draw(family, 11);
            let demos = world.oracle_demos();
            for prompts in [world.seed_prompts(), world.oracle_prompts()] {
                let fresh = (0..FRESH).map(|index| world.case("fresh", index, None));
                let scores = fresh.flat_map(|case| {
                    let (world, prompts, demos) = (&world, &prompts, &demos);
                    (0..4).map(move |seed| world.score(&world.execute(prompts, demos, &case, seed), &case))
                });
                let measured = mean(scores);
                let expected = world.true_score_with(&prompts, &demos);
                assert!((measured - expected).abs() < 0.02, "{family:?}: {measured} instead of {expected}");
            }
        }
    }

    #[test]
    fn scores_match_the_evaluators() {
        let world = |family| World::draw(family, 1);
        let case = |family| world(family).cases().into_iter().find(|case| case.rules.len() == 2).unwrap();
        let one = case(Family::One);
        let first = one.expected[0].clone();
        assert_eq!(
            (world(Family::One).score(&first, &one), world(Family::One).score("nothing", &one)),
            (0.5, 0.0)
        );
        let flat = case(Family::NullFlat);
        assert_eq!(world(Family::NullFlat).score(&flat.expected[0], &flat), 2.0 / 3.0);
        let strict = case(Family::Strict);
        assert_eq!(world(Family::Strict).score(&strict.expected.join(", "), &strict), 1.0);
        assert_eq!(world(Family::Strict).score(&strict.expected[0], &strict), 0.0);
        let format = case(Family::Format);
        let half = format!("{{\"{}\":true}}", format.expected[0]);
        assert_eq!(world(Family::Format).score(&half, &format), 0.5);
        assert_eq!(world(Family::Format).score(&format!("Here: {half}"), &format), 0.0);
    }

    #[test]
    fn the_oracle_is_near_the_top_and_null_worlds_have_no_gain() {
        for seed in 0..12 {
            for family in Family::ALL {
                let world = World::draw(family, seed);
                let (first, best) = (world.seed_score(), world.oracle_score());
                assert!(first >= 0.0 && best <= 1.0);
                match family.has_gain() {
                    true => assert!(best > first + 0.4, "{family:?} {seed}: {first} {best}"),
                    false => assert_eq!(first, best),
                }
                if family == Family::One {
                    assert!(best > 0.85 && first < 0.4, "{seed}: {first} {best}");
                }
            }
        }
    }

    #[test]
    fn no_rule_of_an_optimal_seed_can_be_left_out_or_added() {
        let world = World::draw(Family::NullOpt, 4);
        let seed = world.seed_prompts()["answer"].clone();
        let score = |text: String| world.true_score(&BTreeMap::from([("answer".to_owned(), text)]));
        let best = score(seed.clone());
        let lines: Vec<&str> = seed.lines().collect();
        for at in 0..lines.len() {
            let mut fewer = lines.clone();
            fewer.remove(at);
            assert!(score(fewer.join("\n")) <= best, "without {}", lines[at]);
        }
        assert!(score(format!("{seed}\nConsider \"kezami\" where it fits.")) < best);
    }

    #[test]
    fn a_flat_world_has_one_score() {
        let world = World::draw(Family::NullFlat, 4);
        let empty = BTreeMap::from([("answer".to_owned(), String::new())]);
        assert_eq!(world.true_score(&empty), world.seed_score());
    }

    #[test]
    fn absent_prompts_default_to_the_seed() {
        let world = World::draw(Family::Quad, 2);
        assert_eq!(world.true_score_with(&BTreeMap::new(), &without_demos()), world.seed_score());
    }
}
