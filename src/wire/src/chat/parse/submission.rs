//! Answers to an item's questions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::params::EXAMPLE_ANSWERS;
use super::{missing, optional_text, wrong};
use crate::chat::{InputAnswer, InputSubmission, SubmissionStatus};
use crate::{FieldError, escape};

const AT: &str = "/params/input";

/// Parses `input` of `threads.add_structured_input`.
pub(super) fn parse(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<InputSubmission> {
    match params.get("input") {
        Some(Value::Object(input)) => submission_at(input, AT, problems),
        None | Some(Value::Null) => {
            problems.push(missing(AT).suggest(EXAMPLE_ANSWERS));
            None
        }
        Some(_) => {
            problems.push(wrong(AT, "an object").suggest(EXAMPLE_ANSWERS));
            None
        }
    }
}

/// Parses a submission at this pointer.
pub(in crate::chat) fn submission_at(
    input: &Map<String, Value>,
    at: &str,
    problems: &mut Vec<FieldError>,
) -> Option<InputSubmission> {
    let before = problems.len();
    let status = match optional_text(input, "status", at, problems).as_deref() {
        None | Some("answered") => SubmissionStatus::Answered,
        Some("skipped") => SubmissionStatus::Skipped,
        Some(_) => {
            let problem = FieldError::new(format!("{at}/status"), "unknown", "is not a status of answers");
            problems.push(problem.suggest("`answered` or `skipped`"));
            SubmissionStatus::Skipped
        }
    };
    let mut answers = BTreeMap::new();
    match input.get("answers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(given)) => {
            for (id, answer) in given {
                if let Some(answer) = self::answer(answer, &format!("{at}/answers/{}", escape(id)), problems)
                {
                    answers.insert(id.clone(), answer);
                }
            }
        }
        Some(_) => problems.push(wrong(format!("{at}/answers"), "an object").suggest(EXAMPLE_ANSWERS)),
    }
    (problems.len() == before).then_some(InputSubmission { status, answers })
}

fn answer(answer: &Value, at: &str, problems: &mut Vec<FieldError>) -> Option<InputAnswer> {
    let Some(answer) = answer.as_object() else {
        problems.push(wrong(at, "an object").suggest(r#"{"values": ["yes"]}"#));
        return None;
    };
    let mut values = Vec::new();
    match answer.get("values") {
        None | Some(Value::Null) => {}
        Some(Value::Array(given)) => {
            for (index, value) in given.iter().enumerate() {
                match value.as_str() {
                    Some(value) => values.push(value.to_owned()),
                    None => problems.push(wrong(format!("{at}/values/{index}"), "a string")),
                }
            }
        }
        Some(_) => problems.push(wrong(format!("{at}/values"), "an array of strings")),
    }
    let skipped = match answer.get("skipped") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(skipped)) => *skipped,
        Some(_) => {
            problems.push(wrong(format!("{at}/skipped"), "a boolean"));
            false
        }
    };
    Some(InputAnswer { values, skipped })
}
