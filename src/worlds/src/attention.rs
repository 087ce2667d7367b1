//! The probabilities that a task model meets rules, given its prompt and demos.

use super::definition::{KINDS, World};
use super::family::Family;
use super::random::float;
use super::reading::{ParsedPrompt, Statement};
use super::words::word_set;

/// Above this number, each further instruction weakens all.
const LIMIT: usize = 10;
/// The factor per further instruction.
const DILUTION: f64 = 0.99;
/// The factor per rule for the other niche that a prompt in the family `niche` states.
const DISTRACTION: f64 = 0.99;
/// The probability for a rule that is stated vaguely, or only shown by a demo.
const VAGUE: f64 = 0.5;
/// The probability for a rule in the family `null_flat`.
const FLAT: f64 = 0.5;
/// The probability for a rule in the family `demo` if its kind has no demo, one, or more.
const SHOWN: [f64; 3] = [0.35, 0.85, 0.95];
/// The probability for an unstated format requirement.
const HABIT: f64 = 0.25;

/// An example: a user message and the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demo {
    /// The user message.
    pub user: String,
    /// The answer.
    pub assistant: String,
}

/// The rules that a prompt's demos show.
#[derive(Debug, Clone)]
pub(super) struct DemonstratedRules {
    rules: Vec<bool>,
    /// Correct minus wrong examples per kind of rules.
    kinds: [i32; KINDS],
}

impl DemonstratedRules {
    pub(super) fn new(world: &World, demos: &[Demo]) -> Self {
        let mut shown = Self { rules: vec![false; world.rules.len()], kinds: [0; KINDS] };
        for demo in demos {
            let (user, assistant) = (word_set(&demo.user), word_set(&demo.assistant));
            for (rule, seen) in
                world.rules.iter().zip(&mut shown.rules).filter(|(rule, _)| rule.applies(&user))
            {
                let is_right = assistant.contains(&rule.action);
                *seen |= is_right;
                if let Some(count) = shown.kinds.get_mut(rule.kind) {
                    *count += if is_right { 1 } else { -1 };
                }
            }
        }
        shown
    }
}

/// The probabilities under a prompt with its demos.
pub(super) struct Attention<'w> {
    world: &'w World,
    prompt: ParsedPrompt,
    demonstrated: DemonstratedRules,
    dilution: f64,
}

impl<'w> Attention<'w> {
    /// Reads the prompt at this place.
    pub(super) fn new(world: &'w World, place: usize, text: &str, demos: &[Demo]) -> Self {
        let prompt = ParsedPrompt::new(world, place, text);
        let excess = float(prompt.instructions.saturating_sub(LIMIT));
        Self {
            world,
            demonstrated: DemonstratedRules::new(world, demos),
            dilution: DILUTION.powf(excess),
            prompt,
        }
    }

    /// Whether the model works at all in a case for this desk: a prompt without its placeholder breaks it.
    pub(super) fn works(&self, desk: Option<&str>) -> bool {
        self.world.family == Family::NullFlat || desk.is_none_or(|desk| self.prompt.names(desk))
    }

    /// The probability that the model meets an applicable rule; from 0 to 1.
    pub(super) fn chance(&self, rule: usize) -> f64 {
        let Some(meant) = self.world.rules.get(rule) else { return 0.0 };
        let base = match self.world.family {
            Family::NullFlat => return FLAT,
            Family::Demo => {
                let shown = self.demonstrated.kinds.get(meant.kind).copied().unwrap_or_default();
                let at = usize::try_from(shown).unwrap_or_default().min(SHOWN.len() - 1);
                SHOWN.get(at).copied().unwrap_or_default()
            }
            _ => match self.prompt.rules.get(rule) {
                Some(Statement::Precise) => 1.0,
                Some(Statement::Vague) => VAGUE,
                _ if self.demonstrated.rules.get(rule) == Some(&true) => VAGUE,
                _ => 0.0,
            },
        };
        let foreign = self.world.rules.iter().zip(&self.prompt.rules);
        let foreign =
            foreign.filter(|(other, stated)| other.niche != meant.niche && **stated != Statement::Absent);
        base * self.dilution * DISTRACTION.powf(float(foreign.count()))
    }

    /// The probability that the model meets a format requirement; from 0 to 1.
    pub(super) fn gate(&self, gate: usize) -> f64 {
        match self.prompt.gates.get(gate) {
            Some(Statement::Precise) => 1.0,
            Some(Statement::Vague) => VAGUE,
            _ => HABIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::phrases::{precise, vague};
    use super::super::random::Draw;
    use super::*;

    #[test]
    fn chances_follow_the_precision_of_statements() {
        let world = World::draw(Family::One, 2);
        let draw = Draw::new(0, "test");
        let chance = |text: &str| Attention::new(&world, 0, text, &[]).chance(0);
        let rule = &world.rules[0];
        assert_eq!(
            (chance(&precise(rule, draw)), chance(&vague(rule, draw)), chance("Be kind.")),
            (1.0, 0.5, 0.0)
        );
        let demo = Demo { user: rule.triggers.join(" "), assistant: rule.action.clone() };
        assert_eq!(Attention::new(&world, 0, "", &[demo]).chance(0), 0.5);
    }

    #[test]
    fn many_instructions_weaken_all() {
        let world = World::draw(Family::One, 2);
        let stated = precise(&world.rules[0], Draw::new(0, "test"));
        let chance = |more: usize| {
            Attention::new(&world, 0, &format!("{stated}\n{}", "Be kind.\n".repeat(more)), &[]).chance(0)
        };
        assert_eq!((chance(0), chance(LIMIT - 1)), (1.0, 1.0));
        assert!((chance(LIMIT + 9) - DILUTION.powi(10)).abs() < 1e-12);
    }

    #[test]
    fn rules_of_the_other_niche_distract() {
        let world = World::draw(Family::Niche, 2);
        let state = |rules: &[usize]| {
            let lines: Vec<String> =
                rules.iter().map(|at| precise(&world.rules[*at], Draw::new(0, "test"))).collect();
            Attention::new(&world, 0, &lines.join("\n"), &[]).chance(0)
        };
        assert_eq!((state(&[0]), state(&[0, 2])), (1.0, 1.0));
        assert!((state(&[0, 1, 3]) - DISTRACTION.powi(2)).abs() < 1e-12);
    }

    #[test]
    fn only_demos_teach_the_rules_of_demo() {
        let world = World::draw(Family::Demo, 2);
        let rule = &world.rules[0];
        let text = precise(rule, Draw::new(0, "test"));
        let demo = |assistant: &str| Demo { user: rule.triggers.join(" "), assistant: assistant.to_owned() };
        let chance = |demos: &[Demo]| Attention::new(&world, 0, &text, demos).chance(0);
        let right = demo(&rule.action);
        assert_eq!(chance(&[]), SHOWN[0]);
        assert_eq!(chance(std::slice::from_ref(&right)), SHOWN[1]);
        assert_eq!(chance(&[right.clone(), right.clone(), right.clone()]), SHOWN[2]);
        assert_eq!(chance(&[right, demo("nothing")]), SHOWN[0], "a wrong example undoes a right one");
    }
}
