//! The sentences with which prompts state rules.

use super::definition::Rule;
use super::random::Draw;

/// The placeholder of every prompt.
pub(super) const PLACEHOLDER: &str = "{{ inputs.desk }}";
/// The text that replaces a lost placeholder.
pub(super) const LOST: &str = "the desk";
/// The task model's output if a case requires nothing.
pub(super) const NOTHING: &str = "nothing";

/// The format requirements in the family `format`: a JSON object, and nothing around it.
pub(super) const GATES: [Gate; 2] = [
    Gate {
        precise: "Answer with one JSON object in which each required word is a member with the value true.",
        vague: "Use a structured format.",
        precise_mark: "json object",
        vague_marks: &["json", "structured"],
    },
    Gate {
        precise: "Write nothing else before or after it.",
        vague: "Be concise.",
        precise_mark: "nothing else",
        vague_marks: &["concise", "only"],
    },
];

/// Sentences that do not affect any rule.
pub(super) const FILLERS: [&str; 4] = [
    "Work carefully.",
    "Read the whole note before you answer.",
    "Check the answer once more.",
    "Keep calm.",
];

/// A format requirement.
pub(super) struct Gate {
    pub(super) precise: &'static str,
    pub(super) vague: &'static str,
    /// The mark in a sentence that states it precisely.
    pub(super) precise_mark: &'static str,
    /// The marks in sentences that state it vaguely.
    pub(super) vague_marks: &'static [&'static str],
}

/// A prompt's general sentences, which state no rule. `step`: the prompt name in a pipeline.
pub(super) fn general(step: Option<&str>, is_json: bool) -> Vec<String> {
    match (step, is_json) {
        (Some(step), _) => vec![
            format!("You are step {step} of the notes for {PLACEHOLDER}."),
            "Add the words that the note requires in this step to those of the draft.".to_owned(),
        ],
        (None, true) => vec![
            format!("You handle notes for {PLACEHOLDER}."),
            "Read the note and write the words that it requires.".to_owned(),
        ],
        (None, false) => vec![
            format!("You handle notes for {PLACEHOLDER}."),
            "Read the note and write the words that it requires, separated by commas.".to_owned(),
            format!("Write \"{NOTHING}\" if it requires none."),
        ],
    }
}

/// A sentence that names a rule's triggers and action.
pub(super) fn precise(rule: &Rule, draw: Draw) -> String {
    let (triggers, action) = (quoted(&rule.triggers), &rule.action);
    match draw.below(3) {
        0 => format!("If the note mentions {triggers}, write \"{action}\"."),
        1 => format!("Write \"{action}\" whenever {triggers} occurs in the note."),
        _ => format!("A note with {triggers} requires \"{action}\"."),
    }
}

/// A sentence that names a rule's triggers or its action, but not both.
pub(super) fn vague(rule: &Rule, draw: Draw) -> String {
    match draw.below(2) {
        0 => format!("Pay attention to {}.", quoted(&rule.triggers)),
        _ => spurious(&rule.action),
    }
}

/// A sentence about a word that the reflector cannot explain.
pub(super) fn spurious(action: &str) -> String {
    format!("Consider \"{action}\" where it fits.")
}

/// A critique that names a rule.
pub(super) fn critique(rule: &Rule) -> String {
    format!("The prompt does not say that {} calls for \"{}\".", quoted(&rule.triggers), rule.action)
}

/// The critique if another prompt caused the failure.
pub(super) const OTHER_CAUSE: &str = "Another step is the cause of this failure.";
/// The critique if a case shows no cause.
pub(super) const NO_CAUSE: &str = "The record does not show what the prompt leaves out.";

fn quoted(triggers: &[String]) -> String {
    triggers.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" and ")
}
