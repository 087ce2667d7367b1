//! A case of a dataset.

use serde_json::{Map, Value, json};

/// A case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its name: `id`, else its place.
    pub id: String,
    /// Its place in the whole dataset, from 0.
    pub index: u32,
    /// The inputs of a run.
    pub inputs: Map<String, Value>,
    /// What a good run would return; null if that is not known.
    pub expected_output: Value,
    /// Everything else: `split`, `weight`, `group`, `messages`, `mocks`, `answers`, `human`, and what evaluators read.
    pub metadata: Map<String, Value>,
}

impl Case {
    /// The inputs of the case over those of the request, member by member.
    #[must_use]
    pub fn inputs(&self, request: &Map<String, Value>) -> Value {
        let mut inputs = request.clone();
        inputs.extend(self.inputs.iter().map(|(name, value)| (name.clone(), value.clone())));
        Value::Object(inputs)
    }

    /// The thread that templates read: `metadata.messages`, else the input `message` as the user's, else nothing.
    #[must_use]
    pub fn messages(&self, inputs: &Value) -> Vec<Value> {
        if let Some(messages) = self.metadata.get("messages").and_then(Value::as_array) {
            return messages.clone();
        }
        let message = inputs.get("message").and_then(Value::as_str);
        message.map(|message| json!({"role": "user", "content": message})).into_iter().collect()
    }

    /// Results that stand in for executions.
    #[must_use]
    pub fn mocks(&self) -> Option<&Map<String, Value>> {
        self.metadata.get("mocks").and_then(Value::as_object)
    }

    /// What people answer, by the key of the question.
    #[must_use]
    pub fn answer(&self, key: &str) -> Option<&Value> {
        self.metadata.get("answers").and_then(|answers| answers.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(inputs: Value, metadata: Value) -> Case {
        let map = |value: Value| value.as_object().unwrap().clone();
        Case {
            id: "a".into(),
            index: 0,
            inputs: map(inputs),
            expected_output: Value::Null,
            metadata: map(metadata),
        }
    }

    #[test]
    fn inputs_of_the_case_have_precedence() {
        let request = json!({"message": "all", "desk": 3});
        let inputs = case(json!({"message": "one"}), json!({})).inputs(request.as_object().unwrap());
        assert_eq!(inputs, json!({"message": "one", "desk": 3}));
    }

    #[test]
    fn the_thread_is_given_or_the_message() {
        let given = json!([{"role": "assistant", "content": "Hello."}]);
        let inputs = json!({"message": "hi"});
        assert_eq!(json!(case(json!({}), json!({"messages": given})).messages(&inputs)), given);
        let said = case(json!({}), json!({})).messages(&inputs);
        assert_eq!(said, [json!({"role": "user", "content": "hi"})]);
        assert!(case(json!({}), json!({})).messages(&json!({"message": 1})).is_empty());
    }
}
