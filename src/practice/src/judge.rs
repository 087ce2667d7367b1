//! Compares an answer with the expected one by their common topics.

use serde_json::{Value, json};

use super::text::topics;

/// Labels before the expected answer, and before the answer to judge.
const EXPECTED: [&str; 4] = ["expected output", "expected answer", "expected", "reference"];
const GOT: [&str; 6] = ["actual output", "candidate", "answer", "output", "got", "actual"];

/// The verdict `{reasoning, score, feedback}` about a text with lines `Expected: …` and `Answer: …`.
pub(super) fn verdict(text: &str) -> Value {
    let (Some(expected), Some(got)) = (labelled(text, &EXPECTED), labelled(text, &GOT)) else {
        return json!({"reasoning": "There is nothing to compare.", "score": 0.0,
                      "feedback": "Name the expected and the actual answer."});
    };
    if expected.trim().eq_ignore_ascii_case(got.trim()) {
        return json!({"reasoning": "Both are the same.", "score": 1.0, "feedback": ""});
    }
    let (wanted, given) = (topics(&expected), topics(&got));
    let count = |number: usize| u32::try_from(number).map_or(0.0, f64::from);
    let both = count(wanted.intersection(&given).count());
    let all = count(wanted.len()) + count(given.len());
    let score = if all > 0.0 { (200.0 * both / all).round() / 100.0 } else { 0.0 };
    let missing: Vec<&str> = wanted.difference(&given).map(String::as_str).collect();
    let surplus: Vec<&str> = given.difference(&wanted).map(String::as_str).collect();
    let mut feedback = format!("Expected \"{}\", got \"{}\".", expected.trim(), got.trim());
    for (what, words) in [("Missing", missing), ("Not expected", surplus)] {
        if !words.is_empty() {
            feedback.push_str(&format!(" {what}: {}.", words.join(", ")));
        }
    }
    json!({"reasoning": format!("They share {both} of their topics."), "score": score, "feedback": feedback})
}

/// The text after one of these labels and a colon: the rest of the line, or the lines below.
pub(super) fn labelled(text: &str, labels: &[&str]) -> Option<String> {
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim().trim_start_matches(['-', '*', '#', ' ']).trim_matches('*');
        let Some((label, rest)) = bare.split_once(':') else { continue };
        if !labels.iter().any(|known| label.trim().trim_matches('*').eq_ignore_ascii_case(known)) {
            continue;
        }
        let rest = rest.trim().trim_matches('*').trim();
        if !rest.is_empty() {
            return Some(rest.to_owned());
        }
        let below: Vec<&str> = lines.by_ref().take_while(|line| !line.trim().is_empty()).collect();
        return Some(below.join("\n")).filter(|below| !below.is_empty());
    }
    None
}
