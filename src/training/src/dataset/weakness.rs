//! Warnings about datasets that teach little, or that may not mean what their author intended. Pure.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use serde_json::{Value, json};

use crate::case::Case;
use crate::warning::Warning;

/// Below this number, cases alone never decide between two prompts.
const ENOUGH: usize = 8;
/// Maximum cases named in a message.
const NAMED: usize = 3;
/// Input names that probably hold the expected output, normalized without case and punctuation.
const EXPECTED: [&str; 5] = ["expectedoutput", "expected", "expectedanswer", "expectedresult", "groundtruth"];

/// All weaknesses in a training's cases.
#[must_use]
pub fn weaknesses(cases: &[Case]) -> Vec<Warning> {
    let mut found = Vec::new();
    if cases.len() < ENOUGH {
        let message = format!(
            "the dataset has {}: with fewer than {ENOUGH}, chance decides which prompt is better; 20 or more are useful",
            counted(cases.len())
        );
        found.push(Warning::new("few_cases", message));
    }
    found.extend(empty(cases));
    found.extend(duplicates(cases));
    found.extend(misread(cases));
    found
}

fn empty(cases: &[Case]) -> Option<Warning> {
    let empty: Vec<&Case> = cases.iter().filter(|case| is_empty(case)).collect();
    let message = || format!("{} without any input: {}", have(empty.len()), named(&empty));
    (!empty.is_empty()).then(|| Warning::new("empty_cases", message()))
}

fn is_empty(case: &Case) -> bool {
    let is_blank = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(entries) => entries.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    case.inputs.values().all(is_blank) && case.metadata.get("messages").is_none_or(is_blank)
}

/// Cases that repeat an earlier one count twice, also in the deciding split. Empty cases have their own warning.
fn duplicates(cases: &[Case]) -> Option<Warning> {
    let mut first: HashMap<[u8; 32], &Case> = HashMap::new();
    let (mut repeated, mut contradicting) = (Vec::new(), 0);
    for case in cases.iter().filter(|case| !is_empty(case)) {
        match first.entry(question(case)) {
            Entry::Occupied(earlier) => {
                repeated.push(case);
                contradicting += usize::from(earlier.get().expected_output != case.expected_output);
            }
            Entry::Vacant(vacant) => _ = vacant.insert(case),
        }
    }
    if repeated.is_empty() {
        return None;
    }
    let mut message =
        format!("{} the inputs of an earlier one: {}", repeat(repeated.len()), named(&repeated));
    if contradicting > 0 {
        message.push_str(&format!("; {contradicting} of these with another expected output"));
    }
    Some(Warning::new("duplicate_cases", message))
}

/// A digest over all data that a run reads from the case.
fn question(case: &Case) -> [u8; 32] {
    let part = |name: &str| case.metadata.get(name).cloned().unwrap_or_default();
    let mut read = json!([case.inputs, part("messages"), part("answers"), part("mocks")]);
    engine::digest(&read).unwrap_or_else(|_| {
        // An integer beyond 2^53 has no canonical form.
        read.sort_all_objects();
        engine::identity(&read, None)
    })
}

/// Inputs whose names resemble other columns.
fn misread(cases: &[Case]) -> Vec<Warning> {
    let mut columns: BTreeMap<(&str, &'static str), usize> = BTreeMap::new();
    for case in cases {
        for (name, column) in case.inputs.keys().filter_map(|name| Some((name.as_str(), meant(name)?))) {
            *columns.entry((name, column)).or_default() += 1;
        }
    }
    let has = |column: &str| match column {
        "split" => cases.iter().any(|case| case.split().is_some()),
        _ => cases.iter().any(|case| !case.expected_output.is_null()),
    };
    columns.retain(|(_, column), _| *column == "metadata" || !has(column));
    let told = |((name, column), count): ((&str, &str), usize)| {
        let name: String = name.chars().take(80).collect();
        let meaning = match column {
            "expected_output" => "the workflow receives the answer, and no evaluator does",
            "split" => "the cases are split as if it were not there",
            _ => "evaluators and splits do not see it",
        };
        let message =
            format!("'{name}' is an input of {}: {meaning}; did you mean `{column}`?", counted(count));
        Warning::new("input_looks_like_column", message)
    };
    columns.into_iter().map(told).collect()
}

/// The case member that an input name probably means; `None` for an ordinary name.
fn meant(name: &str) -> Option<&'static str> {
    let plain: String =
        name.chars().filter(|letter| letter.is_alphanumeric()).collect::<String>().to_lowercase();
    match plain.as_str() {
        plain if EXPECTED.contains(&plain) => Some("expected_output"),
        "split" => Some("split"),
        _ => name.to_lowercase().starts_with("metadata.").then_some("metadata"),
    }
}

fn counted(count: usize) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}

fn have(count: usize) -> String {
    format!("{} {}", counted(count), if count == 1 { "is" } else { "are" })
}

fn repeat(count: usize) -> String {
    format!("{} {}", counted(count), if count == 1 { "repeats" } else { "repeat" })
}

/// The first cases' ids.
fn named(cases: &[&Case]) -> String {
    let ids = cases.iter().take(NAMED).map(|case| case.id.chars().take(80).collect::<String>());
    let ids = ids.collect::<Vec<_>>().join(", ");
    if cases.len() > NAMED { format!("{ids}, …") } else { ids }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{read_cases, read_csv};

    fn warning_lines(cases: &[Case]) -> Vec<String> {
        weaknesses(cases)
            .into_iter()
            .map(|warning| format!("{}: {}", warning.code, warning.message))
            .collect()
    }

    /// More than enough cases with different inputs.
    fn good() -> Vec<Value> {
        (0..20).map(|n| json!({"inputs": {"n": n}, "expected_output": n})).collect()
    }

    fn read(list: Vec<Value>) -> Vec<Case> {
        let mut problems = Vec::new();
        let cases = read_cases(&Value::Array(list), "", None, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        cases
    }

    #[test]
    fn a_good_dataset_has_no_weakness() {
        assert_eq!(warning_lines(&read(good())), [""; 0]);
        let mut same_inputs = good();
        same_inputs
            .push(json!({"inputs": {"n": 1}, "metadata": {"messages": [{"role": "user", "content": "x"}]}}));
        assert_eq!(warning_lines(&read(same_inputs)), [""; 0], "other messages make another case");
    }

    #[test]
    fn few_cases_are_a_weakness() {
        let warnings = warning_lines(&read(good().split_off(17)));
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("few_cases: the dataset has 3 cases"), "{warnings:?}");
        assert!(warning_lines(&read(good().split_off(12))).is_empty());
    }

    #[test]
    fn duplicates_are_named_with_their_contradictions() {
        let mut cases = good();
        cases.push(json!({"id": "x", "inputs": {"n": 1}, "expected_output": 1}));
        assert_eq!(
            warning_lines(&read(cases.clone())),
            ["duplicate_cases: 1 case repeats the inputs of an earlier one: x"]
        );
        cases.push(json!({"id": "y", "inputs": {"n": 2}, "expected_output": "other"}));
        assert_eq!(
            warning_lines(&read(cases)),
            [
                "duplicate_cases: 2 cases repeat the inputs of an earlier one: x, y; 1 of these with another expected output"
            ]
        );
    }

    #[test]
    fn duplicates_with_large_integers_are_named() {
        let mut cases = good();
        for (id, text) in [
            ("x", r#"{"n": 9007199254740993, "m": 1}"#),
            ("y", r#"{"m": 1, "n": 9007199254740993}"#),
            ("z", r#"{"m": 1, "n": 9007199254740995}"#),
        ] {
            cases.push(json!({"id": id, "inputs": serde_json::from_str::<Value>(text).unwrap()}));
        }
        assert_eq!(
            warning_lines(&read(cases)),
            ["duplicate_cases: 1 case repeats the inputs of an earlier one: y"]
        );
    }

    #[test]
    fn empty_rows_are_named() {
        let mut cases = good();
        cases.extend([json!({"id": "a", "inputs": {}}), json!({"id": "b", "inputs": {"n": " ", "m": null}})]);
        cases.push(json!({"inputs": {"n": false}}));
        assert_eq!(warning_lines(&read(cases)), ["empty_cases: 2 cases are without any input: a, b"]);
    }

    #[test]
    fn a_misspelled_column_is_named() {
        for (column, meaning) in [
            ("Expected_Output", "`expected_output`"),
            ("expectedOutput", "`expected_output`"),
            ("Expected Answer", "`expected_output`"),
            ("Split", "`split`"),
            ("Metadata.weight", "`metadata`"),
        ] {
            let rows: String = (0..9).map(|n| format!("m{n},train\n")).collect();
            let cases = read_csv(&format!("message,{column}\n{rows}"), &mut Vec::new());
            let warnings = warning_lines(&cases);
            assert_eq!(warnings.len(), 1, "{column}: {warnings:?}");
            assert!(
                warnings[0]
                    .starts_with(&format!("input_looks_like_column: '{column}' is an input of 9 cases")),
                "{warnings:?}"
            );
            assert!(warnings[0].ends_with(&format!("did you mean {meaning}?")), "{warnings:?}");
        }
        // If the column also exists, the input is intended.
        let rows: String = (0..9).map(|n| format!("m{n},a,b\n")).collect();
        let cases = read_csv(&format!("message,expected,expected_output\n{rows}"), &mut Vec::new());
        assert_eq!(warning_lines(&cases), [""; 0]);
    }
}
