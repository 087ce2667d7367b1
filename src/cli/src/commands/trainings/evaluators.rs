//! `--evaluator`: the evaluators of a request. Pure.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::output::CommandError;

/// The default evaluator.
const DEFAULT_EVALUATOR: &str = "builtin:exact_match";

/// A parsed argument.
struct EvaluatorArgument {
    id: Option<String>,
    /// The part of the entrypoint that serves as default id.
    name: String,
    /// The evaluator's members without the id.
    members: Map<String, Value>,
}

/// Builds the list `evaluators` for a request. The default id is the entrypoint's name, with a number if it is taken.
pub(super) fn evaluators(arguments: &[String]) -> Result<Value, CommandError> {
    let default = [DEFAULT_EVALUATOR.to_owned()];
    let arguments = if arguments.is_empty() { default.as_slice() } else { arguments };
    let read = arguments.iter().map(|text| read(text)).collect::<Result<Vec<_>, _>>()?;
    // Given ids come first, so that no default id takes one of them.
    let mut taken: BTreeSet<String> = read.iter().filter_map(|argument| argument.id.clone()).collect();
    let named = read.into_iter().map(|argument| {
        let id = argument.id.unwrap_or_else(|| free_id(&argument.name, &mut taken));
        let mut members = argument.members;
        members.insert("id".to_owned(), Value::String(id));
        Value::Object(members)
    });
    Ok(named.collect())
}

/// Parses an entrypoint, `ID=ENTRYPOINT`, or an evaluator in request format.
fn read(text: &str) -> Result<EvaluatorArgument, CommandError> {
    let text = text.trim();
    if text.starts_with('{') {
        return whole(text);
    }
    let (id, entrypoint) = match text.split_once('=') {
        // After the colon, `=` is part of the entrypoint.
        Some((id, entrypoint)) if !id.contains(':') => (Some(id), entrypoint),
        _ => (None, text),
    };
    if id == Some("") {
        return Err(CommandError::usage(format!(
            "--evaluator `{text}` has an empty id; write it as ID=ENTRYPOINT"
        )));
    }
    let name = name_of(text, entrypoint)?;
    let members = Map::from_iter([("entrypoint".to_owned(), json!(entrypoint))]);
    Ok(EvaluatorArgument { id: id.map(str::to_owned), name, members })
}

fn whole(text: &str) -> Result<EvaluatorArgument, CommandError> {
    let mut members: Map<String, Value> = serde_json::from_str(text).map_err(|error| {
        CommandError::usage(format!("--evaluator `{text}` is not a JSON object: {error}"))
    })?;
    let name = name_of(text, members.get("entrypoint").and_then(Value::as_str).unwrap_or_default())?;
    let id = match members.shift_remove("id") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id),
        Some(other) => {
            return Err(CommandError::usage(format!(
                "--evaluator `{text}`: `id` must be a string, and {other} is not"
            )));
        }
    };
    Ok(EvaluatorArgument { id, name, members })
}

/// The name in an entrypoint: `contains` for `builtin:contains`.
fn name_of(text: &str, entrypoint: &str) -> Result<String, CommandError> {
    match entrypoint.split_once(':') {
        Some((module, name)) if !module.is_empty() && !name.is_empty() => Ok(name.to_owned()),
        _ => Err(CommandError::usage(format!(
            "--evaluator `{text}` has no valid entrypoint; write it as module:name, such as {DEFAULT_EVALUATOR}"
        ))),
    }
}

fn free_id(name: &str, taken: &mut BTreeSet<String>) -> String {
    let mut id = name.to_owned();
    let mut number = 2_u64;
    while !taken.insert(id.clone()) {
        id = format!("{name}_{number}");
        number += 1;
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Value, CommandError> {
        evaluators(&arguments.iter().map(|&text| text.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_default_is_the_exact_match() {
        assert_eq!(parsed(&[]).unwrap(), json!([{"id": "exact_match", "entrypoint": "builtin:exact_match"}]));
    }

    #[test]
    fn ids_are_given_or_derived_from_entrypoints() {
        for (argument, id, entrypoint) in [
            ("builtin:contains", "contains", "builtin:contains"),
            ("polite=builtin:llm_judge", "polite", "builtin:llm_judge"),
            ("workflow:support", "support", "workflow:support"),
            ("grading:a=b", "a=b", "grading:a=b"),
            (" builtin:rouge_l ", "rouge_l", "builtin:rouge_l"),
        ] {
            assert_eq!(parsed(&[argument]).unwrap(), json!([{"id": id, "entrypoint": entrypoint}]));
        }
    }

    #[test]
    fn duplicate_ids_get_numbers_and_given_ids_stay() {
        let read =
            parsed(&["builtin:contains", "builtin:contains", "contains_2=builtin:regex", "other:contains"])
                .unwrap();
        let ids: Vec<&Value> = read.as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, ["contains", "contains_3", "contains_2", "contains_4"]);
    }

    #[test]
    fn an_object_is_an_evaluator_as_in_a_request() {
        let read = parsed(&[r#"{"entrypoint": "builtin:regex", "config": {"pattern": "^a"}, "weight": 2}"#]);
        let expected = json!([
            {"id": "regex", "entrypoint": "builtin:regex", "config": {"pattern": "^a"}, "weight": 2}
        ]);
        assert_eq!(read.unwrap(), expected);
    }

    #[test]
    fn arguments_that_are_not_evaluators_are_rejected() {
        for bad in [
            "",
            "exact_match",
            "builtin:",
            ":x",
            "=builtin:contains",
            "a=b",
            "{",
            "{}",
            r#"{"id": 1, "entrypoint": "a:b"}"#,
        ] {
            assert!(parsed(&[bad]).is_err(), "{bad}");
        }
    }
}
