//! The task model: answers for workflow nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::attention::{Attention, Demo};
use super::cases::Case;
use super::definition::World;
use super::phrases::{NOTHING, PLACEHOLDER};
use super::words::{desk_in, word_set};

/// Line prefixes in a pipeline node's user message.
pub(super) const STEP: &str = "Step: ";
pub(super) const INPUT: &str = "Input: ";
pub(super) const DRAFT: &str = "Draft: ";

impl World {
    /// The task model's answer to a system and a user message, without demos.
    ///
    /// A function of system, user and seed. `user`: the input, or the lines `Step: `, `Input: ` and `Draft: ` in a
    /// pipeline. The answer lists actions in rule order: those in the draft, and those from the step's own rules that
    /// apply and are met.
    #[must_use]
    pub fn answer(&self, system: &str, user: &str, seed: u64) -> String {
        self.answer_with(system, &[], user, seed)
    }

    /// The task model's answer with demos before the user message.
    #[must_use]
    pub fn answer_with(&self, system: &str, demos: &[Demo], user: &str, seed: u64) -> String {
        let step = line_of(user, STEP).unwrap_or_default();
        let place = self.place_of(step);
        let attention = Attention::new(self, place, system, demos);
        let draw = self.drawn("answer").number(seed).for_key(system).for_key(user);
        if !attention.works(desk_in(user)) {
            return NOTHING.to_owned();
        }
        let input = word_set(user);
        let draft = line_of(user, DRAFT).map(word_set).unwrap_or_default();
        let met = self.rules.iter().enumerate().filter(|(at, rule)| {
            let is_own = rule.prompt == place && rule.applies(&input);
            draft.contains(&rule.action) || (is_own && draw.at(*at).happens(attention.chance(*at)))
        });
        let actions: Vec<&str> = met.map(|(_, rule)| rule.action.as_str()).collect();
        let gates =
            [0, 1].map(|gate| !self.is_json() || draw.for_key("gate").at(gate).happens(attention.gate(gate)));
        self.written(&actions, gates)
    }

    /// Executes the workflow for a case without a service, node by node, and returns its output. Missing prompts
    /// default to the seed's.
    #[must_use]
    pub fn execute(
        &self,
        prompts: &BTreeMap<String, String>,
        demos: &BTreeMap<String, Vec<Demo>>,
        case: &Case,
        seed: u64,
    ) -> String {
        let seeds = self.seed_prompts();
        let mut draft = NOTHING.to_owned();
        for name in self.prompt_names() {
            let text =
                prompts.get(*name).or_else(|| seeds.get(*name)).map(String::as_str).unwrap_or_default();
            let system = filled(text, &case.desk);
            let user = if self.prompt_names().len() > 1 {
                format!("{STEP}{name}\n{INPUT}{}\n{DRAFT}{draft}", case.message)
            } else {
                case.message.clone()
            };
            let demos = demos.get(*name).map(Vec::as_slice).unwrap_or_default();
            draft = self.answer_with(&system, demos, &user, seed);
        }
        draft
    }

    /// Writes an output. `gates`: whether it is a JSON object, and whether it has no other text.
    fn written(&self, actions: &[&str], gates: [bool; 2]) -> String {
        if !self.is_json() {
            return if actions.is_empty() { NOTHING.to_owned() } else { actions.join(", ") };
        }
        match gates {
            [false, _] if actions.is_empty() => NOTHING.to_owned(),
            [false, _] => actions.join("\n"),
            [true, is_bare] => {
                let members = actions.iter().map(|action| ((*action).to_owned(), Value::Bool(true)));
                let object = Value::Object(members.collect::<Map<_, _>>()).to_string();
                if is_bare { object } else { format!("Here is the result:\n{object}\nPlease check it.") }
            }
        }
    }

    /// The positions of rules that apply to an input.
    pub(super) fn applying(&self, words: &BTreeSet<String>) -> Vec<usize> {
        let rules = self.rules.iter().enumerate();
        rules.filter(|(_, rule)| rule.applies(words)).map(|(at, _)| at).collect()
    }
}

/// The rest of the first line with this prefix.
fn line_of<'t>(text: &'t str, begin: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(begin)).map(str::trim)
}

/// A prompt as the service fills it for this desk.
fn filled(text: &str, desk: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    let name = PLACEHOLDER.trim_matches(['{', '}', ' ']);
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((inside, left)) = after.split_once("}}") else { break };
        filled.push_str(before);
        if inside.trim() == name {
            filled.push_str(desk);
        } else {
            filled.push_str(&format!("{{{{{inside}}}}}"));
        }
        rest = left;
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::super::family::Family;
    use super::*;

    #[test]
    fn an_answer_is_the_same_each_time_and_differs_by_seed_and_prompt() {
        let world = World::draw(Family::NullFlat, 1);
        let prompts = world.seed_prompts();
        let texts = |seed: u64, prompt: &str| -> Vec<String> {
            world.cases().iter().map(|case| world.answer(prompt, &case.message, seed)).collect()
        };
        let prompt = &prompts["answer"];
        assert_eq!(texts(1, prompt), texts(1, prompt));
        assert_ne!(texts(1, prompt), texts(2, prompt));
        assert_ne!(texts(1, prompt), texts(1, &format!("{prompt}\nBe kind.")));
    }

    #[test]
    fn rules_are_met_at_their_rates() {
        let world = World::draw(Family::One, 3);
        let rule = world.rules.iter().find(|rule| rule.triggers.len() == 1).unwrap();
        let user = format!("Note x for desk-kozu: {} is new.", rule.triggers[0]);
        let base = "You serve desk-kozu.";
        let rate = |line: &str| {
            let met = (0..2_000)
                .filter(|seed| world.answer(&format!("{base}\n{line}"), &user, *seed) == rule.action);
            f64::from(u32::try_from(met.count()).unwrap()) / 2_000.0
        };
        assert_eq!(rate(&format!("If the note mentions {}, write {}.", rule.triggers[0], rule.action)), 1.0);
        assert!((rate(&format!("Pay attention to {}.", rule.triggers[0])) - 0.5).abs() < 0.04);
        assert_eq!(rate("Be kind."), 0.0);
    }

    #[test]
    fn a_prompt_without_its_placeholder_breaks_the_model() {
        let world = World::draw(Family::Pair, 1);
        let mut prompts = world.oracle_prompts();
        let case = &world.cases()[0];
        let run = |prompts: &BTreeMap<String, String>| world.execute(prompts, &BTreeMap::new(), case, 1);
        assert_eq!(run(&prompts), case.expected.join(", "));
        let last = prompts.get_mut("second").unwrap();
        *last = last.replace(PLACEHOLDER, "the desk");
        assert_eq!(run(&prompts), NOTHING);
    }

    #[test]
    fn a_step_meets_its_own_rules_alone_and_keeps_the_draft() {
        let world = World::draw(Family::Pair, 1);
        let all: String = world.oracle_prompts().into_values().collect::<Vec<_>>().join("\n");
        for case in world.cases() {
            let of = |place: usize| -> Vec<&str> {
                let rules = case.rules.iter().map(|at| &world.rules[*at]);
                rules.filter(|rule| rule.prompt == place).map(|rule| rule.action.as_str()).collect()
            };
            let system = filled(&all, &case.desk);
            let user =
                |step: &str, draft: &str| format!("{STEP}{step}\n{INPUT}{}\n{DRAFT}{draft}", case.message);
            let first = word_set(&world.answer(&system, &user("first", NOTHING), 1));
            assert!(of(1).iter().all(|action| !first.contains(*action)));
            let last = word_set(&world.answer(&system, &user("second", &of(0).join(", ")), 1));
            assert!(of(0).iter().all(|action| last.contains(*action)));
        }
    }

    #[test]
    fn the_format_is_met_if_it_is_stated() {
        let world = World::draw(Family::Format, 1);
        let case = &world.cases()[0];
        let oracle = world.execute(&world.oracle_prompts(), &BTreeMap::new(), case, 1);
        let object: Map<String, Value> = serde_json::from_str(&oracle).unwrap();
        assert!(object.values().all(|value| *value == Value::Bool(true)));
        let seeds = world.seed_prompts();
        let plain =
            (0..100).filter(|seed| !world.execute(&seeds, &BTreeMap::new(), case, *seed).starts_with('{'));
        assert!(plain.count() > 80);
    }

    #[test]
    fn placeholders_are_filled() {
        assert_eq!(
            filled("For {{inputs.desk}} and {{ inputs.desk }}, {{ other }}, {{", "d"),
            "For d and d, {{ other }}, {{"
        );
    }
}
