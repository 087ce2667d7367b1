//! Edges: their sources and targets.

use serde_json::Value;
use wire::FieldError;

use super::fields::Fields;
use super::{Case, EdgeSpec, Target};
use crate::Problems;

const CASES: &str = r#""cases": [{"when": "<condition>", "to": "<node>"}], "else": "<node>""#;

pub(super) fn read_edge(pointer: String, edge: &Value, problems: &mut Problems) -> Option<EdgeSpec> {
    let mut fields = Fields::from_value(pointer.clone(), edge, problems)?;
    let from = read_from(&mut fields, problems);
    let target = read_target(&mut fields, problems);
    fields.refuse_others(problems);
    Some(EdgeSpec { from, target, pointer })
}

fn read_from(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let names: Option<Vec<String>> = match fields.required("from", problems) {
        None => return Vec::new(),
        Some(Value::String(name)) => Some(vec![name.clone()]),
        Some(Value::Array(names)) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let names = names.filter(|names| !names.is_empty());
    if names.is_none() {
        let message = "must be the name of a node, START, or a list of names to wait for";
        let problem = FieldError::new(fields.at("from"), "type", message);
        problems.push(problem.suggest(r#""from": "START" or "from": ["<a node>", "<another>"]"#));
    }
    names.unwrap_or_default()
}

fn read_target(fields: &mut Fields<'_>, problems: &mut Problems) -> Target {
    let to = fields.optional_text("to", problems);
    let cases = match fields.value("cases") {
        Some(Value::Array(cases)) => Some(read_cases(&fields.at("cases"), cases, problems)),
        Some(_) => {
            let problem = FieldError::new(fields.at("cases"), "type", "must be an array");
            problems.push(problem.suggest(CASES));
            Some(Vec::new())
        }
        None => None,
    };
    let otherwise = fields.optional_text("else", problems).map(str::to_owned);
    let has_to = fields.value("to").is_some();
    match (has_to, cases.is_some(), fields.value("else").is_some()) {
        (true, true, _) => {
            let message = "an edge has either 'to' or 'cases'";
            let problem = FieldError::new(fields.at("cases"), "exclusive", message);
            problems.push(problem.suggest("remove 'to', and put its target into 'else'"));
        }
        (true, false, true) => {
            let message = "'else' belongs to 'cases', not to 'to'";
            let problem = FieldError::new(fields.at("else"), "exclusive", message);
            problems.push(problem.suggest(CASES));
        }
        (false, false, _) => {
            let problem = FieldError::new(fields.at("to"), "required", "an edge needs 'to' or 'cases'");
            problems.push(problem.suggest(r#""to": "END""#));
        }
        (true, false, false) | (false, true, _) => {}
    }
    match (to, cases) {
        (Some(to), None) => Target::To(to.to_owned()),
        (_, cases) => Target::Cases { cases: cases.unwrap_or_default(), otherwise },
    }
}

fn read_cases(pointer: &str, cases: &[Value], problems: &mut Problems) -> Vec<Case> {
    if cases.is_empty() {
        problems.push(FieldError::new(pointer, "empty", "needs at least one case").suggest(CASES));
    }
    let mut read = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        let Some(mut case) = Fields::from_value(pointer.clone(), case, problems) else { continue };
        let when = case.text("when", problems);
        let to = case.text("to", problems);
        case.refuse_others(problems);
        if let (Some(when), Some(to)) = (when, to) {
            read.push(Case { when: when.to_owned(), to: to.to_owned(), pointer });
        }
    }
    read
}
