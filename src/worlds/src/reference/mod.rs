//! Published algorithms, and variations without feedback, that run directly on a world and count calls: yardsticks for
//! training results. They never ship.

mod models;
mod pareto;
mod rewrites;
mod variations;

use std::collections::BTreeMap;

use self::models::Models;
use self::rewrites::CaseSelection;
use super::definition::World;

/// A reference algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// Varies a drawn prompt without feedback, and accepts a variation that is better on all scoring cases; eight cases
    /// may reject it.
    Random,
    /// Critiques all failing cases, blames each prompt for each, and accepts every rewrite. A checkpoint pairs the
    /// prompts after an epoch with the score before it. The algorithm has no splits: here it reads training and
    /// validation cases.
    Rewrites,
    /// The same on training cases alone.
    RewritesTrain,
    /// `Rewrites`, but a checkpoint has the prompts that were scored.
    RewritesPaired,
    /// The same on training cases alone.
    RewritesPairedTrain,
    /// GEPA.
    ///
    /// Source: Agrawal et al. 2025, arXiv 2507.19457, algorithms 1 to 4, with the merges of appendix F.
    Gepa,
}

/// An algorithm's result.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceResult {
    /// The prompts by name.
    pub prompts: BTreeMap<String, String>,
    /// Model calls; never above the budget.
    pub calls: u64,
}

impl Reference {
    /// All algorithms, by the names that reports use.
    pub const ALL: [(&'static str, Self); 6] = [
        ("random", Self::Random),
        ("reference", Self::Rewrites),
        ("reference_train", Self::RewritesTrain),
        ("reference_paired", Self::RewritesPaired),
        ("reference_paired_train", Self::RewritesPairedTrain),
        ("gepa_published", Self::Gepa),
    ];

    /// Runs the algorithm with at most `budget` model calls. The result is a function of world, budget and seed.
    #[must_use]
    pub fn run(self, world: &World, budget: u64, seed: u64) -> ReferenceResult {
        let mut models = Models::new(world, budget, seed);
        let prompts = match self {
            Self::Random => variations::run(&mut models, seed),
            Self::Rewrites => rewrites::run(&mut models, CaseSelection::All, false),
            Self::RewritesTrain => rewrites::run(&mut models, CaseSelection::Train, false),
            Self::RewritesPaired => rewrites::run(&mut models, CaseSelection::All, true),
            Self::RewritesPairedTrain => rewrites::run(&mut models, CaseSelection::Train, true),
            Self::Gepa => pareto::run(&mut models, seed),
        };
        ReferenceResult { prompts, calls: models.calls() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::mean;
    use super::super::{Family, World};
    use super::*;

    fn score(reference: Reference, family: Family, budget: u64) -> f64 {
        mean((300..306).map(|seed| {
            let world = World::draw(family, seed);
            world.true_score(&reference.run(&world, budget, seed).prompts)
        }))
    }

    #[test]
    fn a_run_is_the_same_each_time_and_within_its_budget() {
        for (name, reference) in Reference::ALL {
            for family in [Family::One, Family::Quad, Family::Tiny, Family::NullOpt] {
                let world = World::draw(family, 300);
                for budget in [0, 7, 100, 333] {
                    let result = reference.run(&world, budget, 1);
                    assert!(result.calls <= budget, "{name} {family:?} {budget}: {}", result.calls);
                    assert_eq!(result, reference.run(&world, budget, 1), "{name}");
                }
                assert_eq!(reference.run(&world, 0, 1).prompts, world.seed_prompts());
            }
        }
    }

    #[test]
    fn reference_algorithms_learn() {
        let seed = mean((300..306).map(|seed| World::draw(Family::One, seed).seed_score()));
        let published = Reference::ALL.into_iter().filter(|(_, reference)| *reference != Reference::Random);
        for (name, reference) in published {
            assert!(score(reference, Family::One, 500) > seed + 0.1, "{name}");
        }
        assert!(score(Reference::Random, Family::One, 4_000) > seed + 0.1, "chance learns slowly");
        let [few, many] = [500, 2_000].map(|budget| score(Reference::Gepa, Family::Pair, budget));
        assert!(many > few + 0.1, "{few} {many}");
    }

    #[test]
    fn a_checkpoint_with_its_own_prompts_is_better() {
        let score = |reference| score(reference, Family::One, 1_000);
        let (fixed, reference) = (score(Reference::RewritesPaired), score(Reference::Rewrites));
        assert!(fixed > reference, "{fixed} {reference}");
    }

    #[test]
    fn the_readings_differ_only_where_there_are_splits() {
        let pairs = [
            (Reference::Rewrites, Reference::RewritesTrain),
            (Reference::RewritesPaired, Reference::RewritesPairedTrain),
        ];
        for (all, train) in pairs {
            let run = |reference: Reference, family, budget| {
                reference.run(&World::draw(family, 300), budget, 1).prompts
            };
            assert_eq!(run(all, Family::Tiny, 300), run(train, Family::Tiny, 300));
            assert_ne!(run(all, Family::One, 300), run(train, Family::One, 300));
        }
    }
}
