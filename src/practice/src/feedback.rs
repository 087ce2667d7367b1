//! Parses feedback: failed cases with their inputs, expected and actual outputs.

use serde_json::Value;

use super::parse::parse;
use super::text::{Token, sentences, tokens};

const INPUT: [&str; 6] = ["input", "inputs", "message", "case", "question", "ticket"];
const EXPECTED: [&str; 5] = ["expected", "expected output", "expected_output", "expected answer", "want"];
const GOT: [&str; 7] = ["got", "output", "answer", "actual", "actual output", "response", "came"];
const ADVICE: [&str; 7] = ["feedback", "reason", "advice", "critique", "hint", "error", "note"];

/// A failed case, as far as the text describes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct FailedCase {
    /// The input.
    pub(super) input: String,
    /// The expected output.
    pub(super) expected: String,
    /// The actual output.
    pub(super) got: String,
    /// Instructions that the feedback spells out.
    pub(super) advice: Vec<String>,
}

/// The cases in a text: lines `Input: …`, `Expected: …`, `Got: …`, `Feedback: …`, or JSON lines with such members.
pub(super) fn items(text: &str) -> Vec<FailedCase> {
    let mut items: Vec<FailedCase> = Vec::new();
    let mut current = FailedCase::default();
    // Whether a line without a label continues the case: a separate paragraph is something else, such as the answer
    // format.
    let mut continues = false;
    for line in text.lines() {
        if line.trim().is_empty() {
            continues = false;
            continue;
        }
        let bare = line.trim().trim_start_matches(['-', '*', '#', '>', ' ']);
        if let Some(item) = serde_json::from_str(bare).ok().and_then(|value| of_json(&value)) {
            items.push(std::mem::take(&mut current));
            items.push(item);
            continues = false;
            continue;
        }
        let (label, rest) = match bare.split_once(':') {
            Some((label, rest)) => {
                (label.trim().trim_matches('*').to_lowercase(), rest.trim().trim_matches('*').trim())
            }
            None => (String::new(), bare),
        };
        // "Case 3", "Input 1"
        let label = label.trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
        if INPUT.contains(&label) {
            if current != FailedCase::default() {
                items.push(std::mem::take(&mut current));
            }
            current.input = plain(rest);
        } else if EXPECTED.contains(&label) {
            current.expected = plain(rest);
        } else if GOT.contains(&label) {
            current.got = plain(rest);
        } else if ADVICE.contains(&label) {
            advise(&mut current, rest);
        } else if continues || bare.to_lowercase().contains("expected") {
            advise(&mut current, bare);
        } else {
            continue;
        }
        continues = true;
    }
    items.push(current);
    items.retain(|item| !item.expected.is_empty() || !item.advice.is_empty());
    items
}

fn of_json(value: &Value) -> Option<FailedCase> {
    let object = value.as_object()?;
    let member = |names: &[&str]| {
        let found = names.iter().find_map(|name| object.get(*name));
        found.map(text_of).unwrap_or_default()
    };
    let mut item = FailedCase {
        input: member(&INPUT),
        expected: member(&EXPECTED),
        got: member(&GOT),
        advice: Vec::new(),
    };
    advise(&mut item, &member(&ADVICE));
    Some(item)
}

/// A text, or the texts inside a JSON value.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(" "),
        Value::Object(members) => members.values().map(text_of).collect::<Vec<_>>().join(" "),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The text without surrounding quotes, or the texts inside a JSON value.
fn plain(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value) => text_of(&value),
        Err(_) => text.trim_matches(['"', '`', '“', '”']).to_owned(),
    }
}

/// Parses a feedback text: `expected "a", got "b"`, missing phrases, and instructions.
fn advise(item: &mut FailedCase, text: &str) {
    for sentence in sentences(text) {
        let parts = tokens(&sentence);
        let behind = |wanted: &[&str]| {
            let at = parts.iter().position(|part| part.word().is_some_and(|word| wanted.contains(&word)))?;
            parts.iter().skip(at).take(4).find_map(Token::quote).map(str::to_owned)
        };
        let says =
            |wanted: &[&str]| parts.iter().any(|part| part.word().is_some_and(|word| wanted.contains(&word)));
        if says(&["expected"]) && says(&["got", "but", "was"]) {
            if let Some(expected) = behind(&["expected"]).filter(|_| item.expected.is_empty()) {
                item.expected = expected;
            }
            if let Some(got) = behind(&["got", "but", "was"]).filter(|_| item.got.is_empty()) {
                item.got = got;
            }
            continue;
        }
        let lacks =
            says(&["missing", "lacks", "lack"]) || says(&["contain", "mention"]) && says(&["not", "doesnt"]);
        let must_not = says(&["must", "should", "never"]) && says(&["not", "never"]);
        if let Some(phrase) =
            behind(&["missing", "lacks", "lack", "contain", "mention"]).filter(|_| lacks && !must_not)
        {
            item.advice.push(format!("Include \"{phrase}\"."));
        } else if let Some(phrase) = behind(&["not", "never"]).filter(|_| must_not) {
            item.advice.push(format!("Never say \"{phrase}\"."));
        } else if parse(&sentence).is_some() {
            item.advice.push(sentence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(input: &str, expected: &str, got: &str) -> FailedCase {
        FailedCase { input: input.into(), expected: expected.into(), got: got.into(), advice: Vec::new() }
    }

    #[test]
    fn cases_are_parsed_in_every_form() {
        let lines = "### Case 1\nInput: where is my parcel?\nExpected: shipping\nGot: other\n\n\
                     - Input 2: {\"message\": \"pay\"}\n  Expected: \"billing\"\n  Output: other";
        let both = [item("where is my parcel?", "shipping", "other"), item("pay", "billing", "other")];
        assert_eq!(items(lines), both);
        let json = r#"{"inputs": {"message": "pay"}, "expected_output": "billing", "output": "other"}"#;
        assert_eq!(items(json), [item("pay", "billing", "other")]);
        let text = "Input: pay\nFeedback: expected \"billing\", got \"other\".";
        assert_eq!(items(text), [item("pay", "billing", "other")]);
        assert!(items("Improve the prompt.\nThank you.").is_empty());
        let more = "Say why.\n\nThis was tried and rejected (worse):\nAnswer in French.";
        assert_eq!(items(&format!("{text}\n\n{more}")), items(text), "feedback ends with its paragraph");
    }

    #[test]
    fn advice_becomes_instructions() {
        for (feedback, advice) in [
            ("The answer must begin with \"Dear\".", "The answer must begin with \"Dear\"."),
            ("It does not contain \"order\".", "Include \"order\"."),
            ("missing \"order\"", "Include \"order\"."),
            ("It must not mention \"price\".", "Never say \"price\"."),
            ("Use at most 20 words.", "Use at most 20 words."),
        ] {
            let found = items(&format!("Input: x\nFeedback: {feedback}"));
            assert_eq!(
                found.first().map(|item| &item.advice[..]),
                Some(&[advice.to_owned()][..]),
                "{feedback}"
            );
        }
    }
}
