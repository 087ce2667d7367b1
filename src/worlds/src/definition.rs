//! World definitions: rules, vocabulary and prompts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::cases::Case;
use super::family::{Family, Scoring};
use super::phrases::{self, GATES};
use super::random::{Draw, float};
use super::rates::Rates;
use super::words::Vocabulary;

/// The share of rules with two triggers.
const TWO_TRIGGERS: f64 = 0.25;
/// Niches in the family `niche`.
const NICHES: usize = 2;
/// Rule kinds in the family `demo`; a demo teaches a kind as a whole.
pub(super) const KINDS: usize = 3;
/// Distractor words, unpredictable words, and desks.
const DISTRACTORS: usize = 40;
const UNPREDICTABLE: usize = 30;
const DESKS: usize = 6;

/// A rule: if the input contains all triggers, the output must contain the action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// One or two input words.
    pub triggers: Vec<String>,
    /// An output word.
    pub action: String,
    /// The position, from 0, of the prompt that owns the rule.
    pub prompt: usize,
    /// The niche in which it occurs: 0, or 1 in the family `niche`.
    pub niche: usize,
    /// Rules with the same kind are taught by the same demos.
    pub(super) kind: usize,
}

impl Rule {
    /// Whether an input with these words, in lower case, has all triggers.
    #[must_use]
    pub fn applies(&self, words: &BTreeSet<String>) -> bool {
        self.triggers.iter().all(|trigger| words.contains(trigger))
    }
}

/// A simulated world. Worlds with the same family and seed are equal.
#[derive(Debug, Clone)]
pub struct World {
    pub(super) family: Family,
    pub(super) seed: u64,
    pub(super) rates: Rates,
    pub(super) rules: Vec<Rule>,
    pub(super) distractors: Vec<String>,
    pub(super) unpredictable: Vec<String>,
    pub(super) desks: Vec<String>,
    /// The ticket prefixes: for val and test cases, and for other cases.
    pub(super) canary_prefix: String,
    pub(super) ticket_prefix: String,
    /// Fresh cases, drawn at first use.
    pub(super) fresh: OnceLock<Vec<Case>>,
}

impl World {
    /// Draws the world for a family and a seed.
    #[must_use]
    pub fn draw(family: Family, seed: u64) -> Self {
        let shape = family.shape();
        let draw = Draw::new(seed, family.as_str());
        let mut vocabulary = Vocabulary::new(draw.for_key("words"));
        let (least, most) = shape.rules;
        let count = draw.for_key("rules").within(least, most);
        let rule = |at: usize| {
            let triggers = if draw.for_key("triggers").at(at).happens(TWO_TRIGGERS) { 2 } else { 1 };
            Rule {
                triggers: (0..triggers).map(|_| vocabulary.trigger()).collect(),
                action: vocabulary.action(),
                prompt: at % shape.prompts.len(),
                niche: if family == Family::Niche { at % NICHES } else { 0 },
                kind: at % KINDS,
            }
        };
        let rules = (0..count).map(rule).collect();
        Self {
            family,
            seed,
            rates: Rates::default(),
            rules,
            distractors: (0..DISTRACTORS).map(|_| vocabulary.trigger()).collect(),
            unpredictable: (0..UNPREDICTABLE).map(|_| vocabulary.action()).collect(),
            desks: (0..DESKS).map(|_| vocabulary.desk()).collect(),
            canary_prefix: vocabulary.ticket_prefix(),
            ticket_prefix: vocabulary.ticket_prefix(),
            fresh: OnceLock::new(),
        }
    }

    /// The world with this name, `<family>-<seed>`; `None` if the name is invalid.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let (family, seed) = name.rsplit_once('-')?;
        Some(Self::draw(Family::parse(family)?, seed.parse().ok()?))
    }

    /// The same world with other model rates.
    #[must_use]
    pub fn with_rates(mut self, rates: Rates) -> Self {
        self.rates = rates;
        self
    }

    /// `<family>-<seed>`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}-{}", self.family.as_str(), self.seed)
    }

    /// The family.
    #[must_use]
    pub const fn family(&self) -> Family {
        self.family
    }

    /// The seed.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The rules, in the order in which outputs name their actions.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The prompt names in pipeline order.
    #[must_use]
    pub const fn prompt_names(&self) -> &'static [&'static str] {
        self.family.shape().prompts
    }

    /// The initial prompts by name.
    #[must_use]
    pub fn seed_prompts(&self) -> BTreeMap<String, String> {
        let stated = (float(self.rules.len()) * self.family.shape().stated).round();
        let mut order: Vec<usize> = (0..self.rules.len()).collect();
        self.drawn("stated").shuffle(&mut order);
        let chosen: BTreeSet<usize> = order
            .into_iter()
            .zip(0_u32..)
            .filter(|(_, at)| f64::from(*at) < stated)
            .map(|(rule, _)| rule)
            .collect();
        self.prompts(&chosen, false)
    }

    /// Prompts that state every rule precisely, by name. Those for `null_opt` and `null_flat` equal the seed's, and
    /// also those for `demo`, whose demos are [`World::oracle_demos`](Self::oracle_demos).
    #[must_use]
    pub fn oracle_prompts(&self) -> BTreeMap<String, String> {
        match self.family {
            Family::NullOpt | Family::NullFlat | Family::Demo => self.seed_prompts(),
            _ => self.prompts(&(0..self.rules.len()).collect(), self.is_json()),
        }
    }

    /// The position of the prompt with this name; 0 if unknown.
    pub(super) fn place_of(&self, name: &str) -> usize {
        self.prompt_names().iter().position(|known| *known == name).unwrap_or_default()
    }

    /// A prompt's general sentences.
    pub(super) fn general(&self, place: usize) -> Vec<String> {
        let names = self.prompt_names();
        let step = names.get(place).filter(|_| names.len() > 1);
        phrases::general(step.copied(), self.is_json())
    }

    pub(super) fn is_json(&self) -> bool {
        self.family.scoring() == Scoring::Json
    }

    /// The rule with this action.
    pub(super) fn rule_of(&self, action: &str) -> Option<usize> {
        self.rules.iter().position(|rule| rule.action == action)
    }

    /// The world's draws for a purpose.
    pub(super) fn drawn(&self, purpose: &str) -> Draw {
        Draw::new(self.seed, self.family.as_str()).for_key(purpose)
    }

    fn prompts(&self, stated: &BTreeSet<usize>, has_gates: bool) -> BTreeMap<String, String> {
        let text = |place: usize| {
            let mut lines = self.general(place);
            lines.extend(GATES.iter().filter(|_| has_gates).map(|gate| gate.precise.to_owned()));
            let rules = self.rules.iter().enumerate();
            let rules = rules.filter(|(at, rule)| rule.prompt == place && stated.contains(at));
            lines.extend(rules.map(|(at, rule)| phrases::precise(rule, self.drawn("phrase").at(at))));
            lines.join("\n")
        };
        self.prompt_names()
            .iter()
            .enumerate()
            .map(|(place, name)| ((*name).to_owned(), text(place)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_is_the_same_each_time() {
        for family in Family::ALL {
            let (one, again, other) =
                (World::draw(family, 3), World::draw(family, 3), World::draw(family, 4));
            assert_eq!((&one.rules, one.seed_prompts()), (&again.rules, again.seed_prompts()));
            assert_ne!(one.rules, other.rules);
            assert!((8..=24).contains(&one.rules.len()));
            assert_eq!(World::named(&one.name()).unwrap().rules, one.rules);
        }
        assert!(
            World::named("one").is_none()
                && World::named("two-1").is_none()
                && World::named("one-x").is_none()
        );
    }

    #[test]
    fn every_word_has_one_meaning() {
        for seed in 0..20 {
            let world = World::draw(Family::Quad, seed);
            let triggers = world.rules.iter().flat_map(|rule| &rule.triggers);
            let actions = world.rules.iter().map(|rule| &rule.action);
            let all: Vec<&String> =
                triggers.chain(actions).chain(&world.distractors).chain(&world.unpredictable).collect();
            assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
            assert!((0..4).all(|prompt| world.rules.iter().any(|rule| rule.prompt == prompt)));
        }
    }

    #[test]
    fn every_prompt_has_the_placeholder() {
        for family in Family::ALL {
            let world = World::draw(family, 1);
            for prompts in [world.seed_prompts(), world.oracle_prompts()] {
                assert_eq!(prompts.len(), world.prompt_names().len());
                assert!(prompts.values().all(|text| text.contains(phrases::PLACEHOLDER)));
                assert!(
                    prompts.values().all(|text| text.chars().count() < 2_000),
                    "below the least limit of a prompt"
                );
            }
        }
    }
}
