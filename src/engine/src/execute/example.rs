//! Records model inputs as one half of a demo.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reads::PromptReads;
use super::visit::Visit;

/// One half of a demo: the attempt's result is the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleInputs {
    /// The prompts that it can demonstrate, sorted.
    pub prompts: Vec<String>,
    /// The demo's `inputs`.
    pub inputs: Value,
}

impl Visit<'_> {
    /// The node's model inputs. Only in a rehearsal, and only if its instructions read prompts with
    /// `demos_trainable`.
    pub(super) fn example(&self, reads: &PromptReads, input: &Value) -> Option<ExampleInputs> {
        let (prompts, demos) = reads.trained_by_demos();
        if prompts.is_empty() || self.env.ports.rehearsal.is_none() {
            return None;
        }
        Some(ExampleInputs { prompts, inputs: inputs_of(input, demos)? })
    }
}

/// Converts a node's model inputs to demo inputs: `{user}` for a single user message after the instructions and
/// `demos` messages, else `{messages: [{role, content}]}`. `None` without messages, or if one contains more than text.
fn inputs_of(input: &Value, demos: usize) -> Option<Value> {
    let messages = input.get("messages")?.as_array()?;
    let rest = messages.get(1 + demos..).filter(|rest| !rest.is_empty())?;
    let has_more = |message: &Value| {
        let more =
            ["files", "parts", "tool_calls"].into_iter().filter_map(|name| message.get(name)?.as_array());
        more.into_iter().any(|list| !list.is_empty())
    };
    if rest.iter().any(has_more) {
        return None;
    }
    let content = |message: &Value| message.get("content").cloned().unwrap_or_default();
    match rest {
        [one] if one.get("role").and_then(Value::as_str) == Some("user") => {
            Some(json!({"user": content(one)}))
        }
        several => {
            let message = |message: &Value| json!({"role": message.get("role"), "content": content(message)});
            Some(json!({"messages": several.iter().map(message).collect::<Vec<_>>()}))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_inputs_follow_the_instructions_and_demos() {
        let message = |role: &str, content: &str| json!({"role": role, "content": content});
        let (system, user) = (message("system", "s"), message("user", "u"));
        let of = |messages: &[Value], demos| inputs_of(&json!({"messages": messages}), demos);
        assert_eq!(of(&[system.clone(), user.clone()], 0), Some(json!({"user": "u"})));
        let talk = [system.clone(), message("user", "x"), message("assistant", "y"), user.clone()];
        assert_eq!(of(&talk, 2), Some(json!({"user": "u"})));
        assert_eq!(of(&talk, 0), Some(json!({"messages": talk[1..]})));
        assert_eq!(of(&talk[..1], 0), None);
        let mut with_file = user;
        with_file["files"] = json!([{"attachment": "a"}]);
        assert_eq!(of(&[system, with_file], 0), None);
    }
}
