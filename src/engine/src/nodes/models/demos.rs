//! Prompt demos: examples that a model reads before its actual input. Pure.

use minijinja::Value as View;
use models::{Message, Role};
use serde_json::{Map, Value, json};

use crate::NodeError;
use crate::execute::reading_instructions;
use crate::template::{as_text, fill};

/// Result members that are not part of a model's answer.
const ADDED: [&str; 3] = ["usage", "model", "passed"];

/// A prompt's demo.
#[derive(Debug, Clone, PartialEq)]
struct Demo {
    inputs: Value,
    output: Value,
}

/// Fills the instructions of a node that has its own messages. Returns them with the demos of the prompts that they
/// read: one user and one assistant message each.
pub(crate) fn with_pairs(template: &Value, scope: &View) -> Result<(String, Vec<Message>), NodeError> {
    let pairs = |demos: Vec<Demo>| -> Vec<Message> {
        let pair = |demo: Demo| {
            let user = Message::text(Role::User, text_of(asked(demo.inputs)));
            [user, Message::text(Role::Assistant, text_of(demo.output))]
        };
        demos.into_iter().flat_map(pair).collect()
    };
    let (text, messages) =
        reading_instructions(scope, |view| fill(template, view), |prompts| pairs(demos_of(prompts)));
    Ok((as_text(&text?), messages))
}

/// Fills the instructions of a node without its own messages. The demos of the prompts that they read follow, one
/// line `{"input": …, "output": …}` each.
pub(crate) fn with_lines(template: &Value, scope: &View) -> Result<String, NodeError> {
    let mut lines = Vec::new();
    let none = |prompts: &[View]| {
        let line = |demo: Demo| json!({"input": asked(demo.inputs), "output": demo.output}).to_string();
        lines.extend(demos_of(prompts).into_iter().map(line));
        Vec::new()
    };
    let (text, _) = reading_instructions(scope, |view| fill(template, view), none);
    let mut text = as_text(&text?);
    for line in lines {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&line);
    }
    Ok(text)
}

/// Returns the prompts' demos in order. Skips invalid ones: a config may be older than its check.
fn demos_of(prompts: &[View]) -> Vec<Demo> {
    let demos = |prompt: &View| {
        let demos = prompt.get_attr("demos").ok().filter(|demos| !demos.is_undefined())?;
        match serde_json::to_value(demos).ok()? {
            Value::Array(demos) => Some(demos),
            _ => None,
        }
    };
    let demo = |demo: Value| {
        let Value::Object(mut members) = demo else { return None };
        Some(Demo { inputs: members.shift_remove("inputs")?, output: members.shift_remove("output")? })
    };
    prompts.iter().filter_map(demos).flatten().filter_map(demo).collect()
}

/// The content of a demo's inputs: `user` if it is a text, else all inputs.
fn asked(inputs: Value) -> Value {
    match inputs.get("user") {
        Some(Value::String(text)) => Value::String(text.clone()),
        _ => inputs,
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Builds a demo's output from a model node's result: its answer as JSON if a schema was set, else its text. `None`
/// for a result without an answer.
#[must_use]
pub fn demo_output(result: &Value) -> Option<Value> {
    let members = result.as_object()?;
    let of = |name: &str| members.get(name).filter(|value| !value.is_null());
    if let Some(answer) = of("json").or_else(|| of("data")).or_else(|| of("text")) {
        return Some(answer.clone()).filter(|answer| answer.as_str() != Some(""));
    }
    let answer = members.iter().filter(|(name, _)| !ADDED.contains(&name.as_str()));
    let answer: Map<String, Value> = answer.map(|(name, value)| (name.clone(), value.clone())).collect();
    (!answer.is_empty()).then_some(Value::Object(answer))
}

#[cfg(test)]
mod tests {
    use minijinja::value::Serde;

    use super::*;

    #[test]
    fn invalid_demos_are_left_out() {
        let prompts = [
            json!({"text": "a"}),
            json!({"demos": "x"}),
            json!({"demos": [1, {"inputs": {}}, {"inputs": {"user": "u"}, "output": null}]}),
        ];
        let views: Vec<View> = prompts.iter().map(|prompt| View::from(Serde(prompt))).collect();
        assert_eq!(demos_of(&views), [Demo { inputs: json!({"user": "u"}), output: Value::Null }]);
    }

    #[test]
    fn an_answer_excludes_members_added_by_the_node() {
        let usage = json!({"calls": 1});
        for (result, expected) in [
            (json!({"text": "yes", "usage": usage}), Some(json!("yes"))),
            (json!({"text": "{}", "json": {"a": 1}}), Some(json!({"a": 1}))),
            (json!({"data": {"b": 2}, "usage": usage, "model": "m"}), Some(json!({"b": 2}))),
            (
                json!({"label": "x", "reason": "r", "usage": usage, "model": null}),
                Some(json!({"label": "x", "reason": "r"})),
            ),
            (json!({"score": 1, "passed": true, "usage": usage}), Some(json!({"score": 1}))),
            (json!({"text": ""}), None),
            (json!({"usage": usage}), None),
            (json!("text"), None),
        ] {
            assert_eq!(demo_output(&result), expected, "{result}");
        }
    }
}
