//! Reads a prompt text: the rules that it states, how precisely, and its instruction count.

use super::definition::World;
use super::phrases::{GATES, PLACEHOLDER};
use super::words::word_set;

/// Maximum actions in a sentence whose rules still count as precise.
const LEGIBLE: usize = 2;

/// The precision with which a text states a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Statement {
    Absent,
    /// The text names the triggers or the action.
    Vague,
    /// A sentence names all triggers and the action.
    Precise,
}

/// A text as a task model understands it.
#[derive(Debug, Clone)]
pub(super) struct ParsedPrompt {
    /// One statement per world rule.
    pub(super) rules: Vec<Statement>,
    /// One statement per format requirement.
    pub(super) gates: [Statement; 2],
    /// Sentences besides the seed's general ones; a sentence about several rules counts as several.
    pub(super) instructions: usize,
    text: String,
    has_placeholder: bool,
}

impl ParsedPrompt {
    /// Reads the text of the prompt at this place, with or without a filled placeholder.
    pub(super) fn new(world: &World, place: usize, text: &str) -> Self {
        let general = world.general(place);
        let mut prompt = Self {
            rules: vec![Statement::Absent; world.rules.len()],
            gates: [Statement::Absent; 2],
            instructions: 0,
            text: text.to_owned(),
            has_placeholder: without_blanks(text).contains(&without_blanks(PLACEHOLDER)),
        };
        for sentence in sentences(text) {
            let words = word_set(sentence);
            let actions = world.rules.iter().filter(|rule| words.contains(&rule.action)).count();
            let is_general = general.iter().any(|line| is_same(line, sentence));
            if words.len() > 1 && !is_general {
                prompt.instructions += actions.max(1);
            }
            for (rule, stated) in world.rules.iter().zip(&mut prompt.rules) {
                let is_named =
                    words.contains(&rule.action) || rule.triggers.iter().any(|word| words.contains(word));
                let is_precise = words.contains(&rule.action) && rule.applies(&words) && actions <= LEGIBLE;
                *stated = (*stated).max(match (is_precise, is_named) {
                    (true, _) => Statement::Precise,
                    (false, true) => Statement::Vague,
                    (false, false) => Statement::Absent,
                });
            }
            let lower = sentence.to_lowercase();
            for (gate, stated) in GATES.iter().zip(&mut prompt.gates) {
                let found = if lower.contains(gate.precise_mark) {
                    Statement::Precise
                } else if gate.vague_marks.iter().any(|mark| words.contains(*mark)) {
                    Statement::Vague
                } else {
                    Statement::Absent
                };
                *stated = (*stated).max(found);
            }
        }
        prompt
    }

    /// Whether the text names the desk, by placeholder or by name.
    pub(super) fn names(&self, desk: &str) -> bool {
        self.has_placeholder || self.text.contains(desk)
    }
}

/// The sentences of a text: lines, split at full stops, semicolons, question and exclamation marks.
pub(super) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .flat_map(|line| line.split_inclusive(". "))
        .flat_map(|part| part.split([';', '!', '?']))
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

/// Whether a sentence is a general one, with any desk in its placeholder.
fn is_same(general: &str, sentence: &str) -> bool {
    match general.split_once(PLACEHOLDER) {
        Some((before, after)) => sentence.starts_with(before) && sentence.ends_with(after),
        None => sentence == general,
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::family::Family;
    use super::super::phrases::{precise, spurious, vague};
    use super::super::random::Draw;
    use super::*;

    fn world() -> World {
        World::draw(Family::One, 1)
    }

    fn read(text: &str) -> ParsedPrompt {
        ParsedPrompt::new(&world(), 0, text)
    }

    #[test]
    fn sentences_of_the_reflector_are_understood() {
        let world = world();
        for (at, rule) in world.rules.iter().enumerate() {
            for draw in (0..8).map(|at| Draw::new(at, "test")) {
                assert_eq!(read(&precise(rule, draw)).rules[at], Statement::Precise);
                assert_eq!(read(&vague(rule, draw)).rules[at], Statement::Vague);
            }
            let others = read(&precise(rule, Draw::new(0, "test"))).rules;
            assert_eq!(others.iter().filter(|stated| **stated != Statement::Absent).count(), 1);
        }
    }

    #[test]
    fn triggers_and_action_must_be_in_one_sentence() {
        let world = world();
        let rule = &world.rules[0];
        let apart = format!("Mind {}. Write {}.", rule.triggers.join(" and "), rule.action);
        assert_eq!(read(&apart).rules[0], Statement::Vague);
        let all: Vec<String> =
            world.rules.iter().flat_map(|rule| rule.triggers.iter().chain([&rule.action]).cloned()).collect();
        let list = read(&all.join(" "));
        assert!(
            list.rules.iter().all(|stated| *stated == Statement::Vague),
            "a list of all words states nothing precisely"
        );
        assert_eq!(list.instructions, world.rules.len());
    }

    #[test]
    fn general_sentences_are_not_instructions() {
        let world = world();
        let seed = world.seed_prompts().remove("answer").unwrap();
        let stated = read(&seed).rules.iter().filter(|stated| **stated == Statement::Precise).count();
        assert!(stated > 0);
        assert_eq!(read(&seed).instructions, stated);
        let filled = seed.replace(PLACEHOLDER, &world.desks[0]);
        assert_eq!(read(&filled).instructions, stated);
        assert_eq!(read(&format!("{seed}\n{}", spurious("kezami"))).instructions, stated + 1);
    }

    #[test]
    fn a_desk_is_identified_by_its_placeholder_or_name() {
        assert!(read("For {{inputs.desk}}.").names("desk-kozu"));
        assert!(read("For desk-kozu.").names("desk-kozu"));
        assert!(!read("For desk-kozu.").names("desk-lazu") && !read("For the desk.").names("desk-kozu"));
    }

    #[test]
    fn requirements_of_the_format_are_understood() {
        for (at, gate) in GATES.iter().enumerate() {
            assert_eq!(read(gate.precise).gates[at], Statement::Precise);
            assert_eq!(read(gate.vague).gates[at], Statement::Vague);
            assert_eq!(read(gate.precise).gates[1 - at], Statement::Absent);
        }
        let seed = World::draw(Family::Format, 1).seed_prompts().remove("answer").unwrap();
        assert_eq!(read(&seed).gates, [Statement::Absent; 2]);
    }
}
