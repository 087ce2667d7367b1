//! Detects prompts that repeat held-out cases. Such a prompt would be good only at these cases.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use crate::case::Case;

/// Consecutive words, and characters without blanks, that do not match by chance.
const WORDS: usize = 8;
const CHARACTERS: usize = 40;
/// Maximum characters read per word: longer words are data.
const LONGEST_WORD: usize = 2_000;

/// Knows the text that occurs only in held-out cases: in no training case and not in the seed.
#[derive(Debug, Clone, Default)]
pub struct LeakGuard {
    held_out: HashSet<u64>,
    /// Text in training inputs.
    open: HashSet<u64>,
}

impl LeakGuard {
    /// `held_out`: cases for validation and test. `open`: training cases. `seeds`: the seed prompts.
    #[must_use]
    pub fn new<'a>(
        held_out: impl Iterator<Item = &'a Case>,
        open: impl Iterator<Item = &'a Case>,
        seeds: impl Iterator<Item = &'a str>,
    ) -> Self {
        let (mut guard, mut open_inputs) = (HashSet::new(), HashSet::new());
        for case in held_out {
            texts(case, &mut |text| {
                parts(text, &mut |part, _, _| {
                    guard.insert(part);
                })
            });
        }
        let mut known = |text: &str| {
            parts(text, &mut |part, _, _| {
                guard.remove(&part);
            })
        };
        for case in open {
            texts(case, &mut known);
            let mut keep = |text: &str| parts(text, &mut |part, _, _| _ = open_inputs.insert(part));
            case.inputs.values().for_each(|input| each_text(input, &mut keep));
        }
        for seed in seeds {
            known(seed);
            parts(seed, &mut |part, _, _| _ = open_inputs.remove(&part));
        }
        Self { held_out: guard, open: open_inputs }
    }

    /// The first text repeated from a training input, unless the seed contains it.
    #[must_use]
    pub fn memorised(&self, text: &str) -> Option<String> {
        first_of(&self.open, text)
    }

    /// The first text repeated from a held-out case.
    #[must_use]
    pub fn leak(&self, text: &str) -> Option<String> {
        first_of(&self.held_out, text)
    }

    /// Whether any text inside a value repeats a held-out case.
    pub(crate) fn leaks_in(&self, value: &Value) -> bool {
        let mut leaks = false;
        each_text(value, &mut |text| leaks |= self.leak(text).is_some());
        leaks
    }
}

/// The first part of a text that is among the known parts.
fn first_of(known: &HashSet<u64>, text: &str) -> Option<String> {
    let mut first: Option<(usize, String)> = None;
    parts(text, &mut |part, place, written| {
        if known.contains(&part) && first.as_ref().is_none_or(|(earlier, _)| place < *earlier) {
            first = Some((place, written()));
        }
    });
    first.map(|(_, text)| text)
}

/// Visits every text in a case, at any depth.
fn texts(case: &Case, each: &mut dyn FnMut(&str)) {
    case.inputs.values().for_each(|input| each_text(input, each));
    each_text(&case.expected_output, each);
    case.metadata.get("messages").into_iter().for_each(|messages| each_text(messages, each));
}

/// Visits every text in a value, at any depth.
fn each_text(value: &Value, each: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) => each(text),
        Value::Array(entries) => entries.iter().for_each(|entry| each_text(entry, each)),
        Value::Object(members) => members.values().for_each(|member| each_text(member, each)),
        _ => {}
    }
}

/// Receives a part's hash, its place and its original text.
type Each<'a> = &'a mut dyn FnMut(u64, usize, &dyn Fn() -> String);

/// Visits a text's parts: hash, place and original text.
fn parts(text: &str, each: Each<'_>) {
    // Punctuation between words does not count as a word.
    let words: Vec<(&str, String)> = text
        .split_whitespace()
        .map(|word| (word, plain(word)))
        .filter(|(_, plain)| !plain.is_empty())
        .collect();
    for (place, part) in words.windows(WORDS).enumerate() {
        let plain: Vec<&str> = part.iter().map(|(_, plain)| plain.as_str()).collect();
        each(hash(&plain), place, &|| part.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" "));
    }
    for (place, (word, _)) in words.iter().enumerate() {
        let letters: Vec<char> = word.chars().take(LONGEST_WORD).collect();
        for part in letters.windows(CHARACTERS) {
            each(hash(part), place, &|| part.iter().collect());
        }
    }
}

/// Normalizes a word: trims surrounding punctuation and lowercases.
fn plain(word: &str) -> String {
    word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase()
}

fn hash<T: Hash + ?Sized>(part: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    part.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn case(inputs: &Value, expected: &str) -> Case {
        let inputs = inputs.as_object().unwrap().clone();
        Case { id: "0".into(), index: 0, inputs, expected_output: json!(expected), metadata: Map::new() }
    }

    fn guard(held_out: &[Case], open: &[Case], seed: &str) -> LeakGuard {
        LeakGuard::new(held_out.iter(), open.iter(), [seed].into_iter())
    }

    const NINE: &str = "The order number seven was sent on Monday morning.";

    #[test]
    fn eight_consecutive_words_are_a_leak_and_seven_are_not() {
        let guard = guard(&[case(&json!({"deep": {"list": [NINE]}}), "")], &[], "");
        let leak = guard.leak("Note: “the ORDER number seven, was sent on Monday” is an example.");
        assert_eq!(leak.as_deref(), Some("“the ORDER number seven, was sent on Monday”"));
        assert_eq!(guard.leak("the order number seven was sent on Tuesday"), None);
    }

    #[test]
    fn words_of_an_expected_output_are_a_leak_too() {
        let guard = guard(&[case(&json!({}), NINE)], &[], "");
        assert!(guard.leak(NINE).is_some());
    }

    #[test]
    fn marks_are_not_words() {
        let table = "| --- | --- | --- | --- | --- |";
        let guard = guard(&[case(&json!({"table": table, "text": NINE}), "")], &[], "");
        assert_eq!(guard.leak(table), None);
        assert!(guard.leak("the order – number – seven – was – sent – on – Monday").is_some());
    }

    #[test]
    fn training_inputs_are_memorised_unless_the_seed_contains_them() {
        let open = [case(&json!({"text": NINE}), "an expected output of more than eight words is no input")];
        let of = |seed: &str, text: &str| guard(&[], &open, seed).memorised(text);
        assert!(of("", &format!("For example: {NINE}")).is_some());
        assert_eq!((of(NINE, NINE), of("", "the order number seven was sent on Tuesday")), (None, None));
        assert_eq!(of("", "an expected output of more than eight words is no input"), None);
    }

    #[test]
    fn words_of_training_cases_or_the_seed_are_not_a_leak() {
        let held_out = [case(&json!({"text": NINE}), "")];
        assert_eq!(guard(&held_out, &[case(&json!({"other": NINE}), "")], "").leak(NINE), None);
        assert_eq!(guard(&held_out, &[], NINE).leak(NINE), None);
    }

    #[test]
    fn forty_characters_without_blanks_are_a_leak() {
        let token =
            "注文番号七は月曜日の朝に発送されました。お届けまでしばらくお待ちください。よろしくお願いします";
        assert!(token.chars().count() >= CHARACTERS);
        let guard = guard(&[case(&json!({"text": token}), "")], &[], "");
        assert!(guard.leak(&format!("例：{token}")).is_some());
        let short: String = token.chars().take(CHARACTERS - 1).collect();
        assert_eq!(guard.leak(&short), None);
    }
}
