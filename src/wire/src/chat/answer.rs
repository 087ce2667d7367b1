//! Answers to a pending item's questions.

use serde_json::{Map, Value, json};

use super::item::ItemBody;
use super::parse::submission_at;
use super::parts::{InputStatus, InputSubmission, StructuredInput, ToolCallStatus};
use crate::FieldError;

/// The answer to a pending item.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemAnswer {
    /// The value for the workflow: `{status, answers}`, or the tool's output.
    pub value: Value,
    /// The item with its answer.
    pub body: ItemBody,
}

impl ItemBody {
    /// Whether it waits for an answer.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(
            self,
            Self::StructuredInput { status: InputStatus::Pending, .. }
                | Self::ClientToolCall { status: ToolCallStatus::Pending, .. }
        )
    }

    /// Answers the item's questions; `None` if it has none or they are already answered.
    #[must_use]
    pub fn submitted(&self, submission: &InputSubmission) -> Option<ItemAnswer> {
        let Self::StructuredInput { status: InputStatus::Pending, inputs } = self else { return None };
        let (status, inputs) = submission.applied_to(inputs.clone());
        let value = json!({"status": status, "answers": answers(&inputs)});
        Some(ItemAnswer { value, body: Self::StructuredInput { status, inputs } })
    }

    /// Completes the item's tool call with this output; `None` without a pending call.
    #[must_use]
    pub fn returned(&self, output: Value) -> Option<ItemAnswer> {
        let Self::ClientToolCall { status: ToolCallStatus::Pending, call_id, name, arguments, .. } = self
        else {
            return None;
        };
        let (call_id, name, arguments) = (call_id.clone(), name.clone(), arguments.clone());
        let (status, value) = (ToolCallStatus::Completed, output.clone());
        let body = Self::ClientToolCall { status, call_id, name, arguments, output: Some(output) };
        Some(ItemAnswer { value, body })
    }

    /// Answers the item with a submission or a tool output; `None` if the item is not pending.
    ///
    /// # Errors
    /// Every problem in a submission, with a pointer into the value.
    pub fn answered(&self, value: Value) -> Result<Option<ItemAnswer>, Vec<FieldError>> {
        let Self::StructuredInput { .. } = self else { return Ok(self.returned(value)) };
        let mut problems = Vec::new();
        let submission = match &value {
            Value::Object(members) => submission_at(members, "", &mut problems),
            _ => {
                problems.push(FieldError::new("", "type", "must be an object"));
                None
            }
        };
        match submission {
            Some(submission) => Ok(self.submitted(&submission)),
            None => Err(problems),
        }
    }
}

fn answers(inputs: &[StructuredInput]) -> Map<String, Value> {
    inputs.iter().map(|input| (input.id.clone(), json!(input.answer))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending_item() -> ItemBody {
        serde_json::from_value(json!({"type": "structured_input", "status": "pending", "inputs": [
            {"id": "one", "question": "One?", "type": "multiple_choice", "options": [{"value": "a"}, {"value": "b"}]},
            {"id": "many", "question": "Many?", "type": "multiple_choice", "multiple": true, "options": [{"value": "a"}]},
            {"id": "text", "question": "Text?", "type": "freeform"}]}))
        .unwrap()
    }

    fn value(given: Value) -> Value {
        pending_item().answered(given).unwrap().unwrap().value
    }

    #[test]
    fn answers_follow_the_rules_of_the_protocol() {
        let given = json!({"answers": {
            "one": {"values": ["b", "a"]}, "many": {"values": ["a", "own"]}, "other": {"values": ["x"]}, "text": {"values": []}}});
        let expected = json!({"status": "answered", "answers": {
            "one": {"values": ["b"], "skipped": false}, "many": {"values": ["a", "own"], "skipped": false},
            "text": {"values": [], "skipped": true}}});
        assert_eq!(value(given), expected);
        let skipped =
            |id: &str, given: Value| value(given)["answers"][id] == json!({"values": [], "skipped": true});
        assert!(skipped("one", json!({"answers": {"one": {"values": ["a"], "skipped": true}}})));
        assert!(skipped("one", json!({"status": "skipped", "answers": {"one": {"values": ["a"]}}})));
        assert_eq!(value(json!({"status": "skipped"}))["status"], "skipped");
        assert_eq!(value(json!({}))["status"], "answered");
    }

    #[test]
    fn an_answered_item_is_not_open() {
        let answered = pending_item().submitted(&InputSubmission::skipped()).unwrap().body;
        assert!(pending_item().is_pending() && !answered.is_pending());
        assert_eq!(answered.submitted(&InputSubmission::skipped()), None);
        assert_eq!(pending_item().returned(json!(1)), None, "it calls no tool");
        let call: ItemBody = serde_json::from_value(json!({
            "type": "client_tool_call", "status": "pending", "call_id": "c", "name": "n", "arguments": {}}))
        .unwrap();
        let returned = call.answered(json!(null)).unwrap().unwrap();
        assert_eq!((returned.value, returned.body.is_pending()), (json!(null), false));
        assert_eq!(serde_json::to_value(&returned.body).unwrap()["output"], json!(null));
    }

    #[test]
    fn every_submission_problem_has_a_pointer() {
        let given = json!({"status": "done", "answers": {"a/b": {"values": "x", "skipped": 1}, "c": 1, "d": {"values": [1]}}});
        let problems = pending_item().answered(given).unwrap_err();
        let places: Vec<&str> = problems.iter().map(|problem| problem.pointer.as_str()).collect();
        assert_eq!(
            places,
            ["/status", "/answers/a~1b/values", "/answers/a~1b/skipped", "/answers/c", "/answers/d/values/0"]
        );
        assert!(pending_item().answered(json!("yes")).is_err());
    }
}
