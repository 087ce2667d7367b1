//! A dataset case.

use engine::Fields;
use serde_json::{Map, Value, json};
use wire::FieldError;

/// A dataset case.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The name: `id`, or the index without one.
    pub id: String,
    /// The position in the whole dataset, from 0.
    pub index: u32,
    /// The run inputs.
    pub inputs: Map<String, Value>,
    /// The output that a good run returns; null if unknown.
    pub expected_output: Value,
    /// All other members: `split`, `weight`, `group`, `messages`, `mocks`, `answers`, `human`, and members that
    /// evaluators read.
    pub metadata: Map<String, Value>,
}

impl Case {
    /// Merges the case inputs over the request inputs, member by member.
    #[must_use]
    pub fn inputs(&self, request: &Map<String, Value>) -> Value {
        let mut inputs = request.clone();
        inputs.extend(self.inputs.iter().map(|(name, value)| (name.clone(), value.clone())));
        Value::Object(inputs)
    }

    /// The thread that templates read: `metadata.messages`, else the input `message` as a user message, else nothing.
    #[must_use]
    pub fn messages(&self, inputs: &Value) -> Vec<Value> {
        if let Some(messages) = self.metadata.get("messages").and_then(Value::as_array) {
            return messages.clone();
        }
        let message = inputs.get("message").and_then(Value::as_str);
        message.map(|message| json!({"role": "user", "content": message})).into_iter().collect()
    }

    /// Whether the case is a copy of a chat turn.
    #[must_use]
    pub fn is_of_visitor(&self) -> bool {
        self.metadata.get("thread_id").is_some_and(|thread| !thread.is_null())
    }

    /// Results of nodes that are not executed, by node name.
    #[must_use]
    pub fn mocks(&self) -> Option<&Map<String, Value>> {
        self.metadata.get("mocks").and_then(Value::as_object)
    }

    /// The human answer to a question, by the question's key.
    #[must_use]
    pub fn answer(&self, key: &str) -> Option<&Value> {
        self.metadata.get("answers").and_then(|answers| answers.get(key))
    }
}

impl Case {
    /// The case as datasets store it: `{id, inputs, expected_output?, metadata?}`.
    #[must_use]
    pub fn stored(&self) -> Value {
        let mut members = Map::from_iter([
            ("id".to_owned(), json!(self.id)),
            ("inputs".to_owned(), Value::Object(self.inputs.clone())),
        ]);
        if !self.expected_output.is_null() {
            members.insert("expected_output".to_owned(), self.expected_output.clone());
        }
        if !self.metadata.is_empty() {
            members.insert("metadata".to_owned(), Value::Object(self.metadata.clone()));
        }
        Value::Object(members)
    }
}

/// Reads a stored case ([`Case::stored`]); `None` if it is invalid. A case with erased content has no inputs.
#[must_use]
pub fn read_stored_case(stored: &Value, index: u32) -> Option<Case> {
    if is_erased(stored) {
        let id = stored.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        return Some(Case {
            id,
            index,
            inputs: Map::new(),
            expected_output: Value::Null,
            metadata: Map::new(),
        });
    }
    read_case(stored, index, "", &mut Vec::new())
}

/// Whether the case's content was erased with a visitor's data.
#[must_use]
pub fn is_erased(stored: &Value) -> bool {
    stored.get("erased") == Some(&Value::Bool(true))
}

/// Maximum case size, in bytes of JSON.
pub const LARGEST: usize = 1 << 20;

/// The problem for a case above [`LARGEST`].
pub(crate) fn too_large(pointer: impl Into<String>) -> FieldError {
    FieldError::new(pointer, "size", "a case has at most 1 MiB")
}

/// Reads the case at `index` in the dataset; `pointer` is its place in the request. Reports every problem.
pub(crate) fn read_case(
    value: &Value,
    index: u32,
    pointer: &str,
    problems: &mut Vec<FieldError>,
) -> Option<Case> {
    let before = problems.len();
    let mut fields = Fields::from_value(pointer, value, problems)?;
    if value.to_string().len() > LARGEST {
        problems.push(too_large(pointer));
        return None;
    }
    let id = match fields.value("id") {
        None => index.to_string(),
        Some(Value::Number(id)) => id.to_string(),
        Some(Value::String(id)) if (1..=200).contains(&id.chars().count()) => id.clone(),
        Some(_) => {
            problems.push(FieldError::new(fields.at("id"), "type", "must be a text of 1 to 200 characters"));
            String::new()
        }
    };
    let inputs =
        fields.required("inputs", problems).and_then(|inputs| object(inputs, fields.at("inputs"), problems));
    let metadata = fields.value("metadata");
    let metadata =
        metadata.and_then(|metadata| object(metadata, fields.at("metadata"), problems)).unwrap_or_default();
    for (name, is_good, what) in METADATA {
        if metadata.get(*name).is_some_and(|value| !value.is_null() && !is_good(value)) {
            problems.push(FieldError::new(format!("{pointer}/metadata/{name}"), "type", *what));
        }
    }
    let expected_output = fields.value("expected_output").cloned().unwrap_or_default();
    fields.refuse_others(problems);
    let inputs = inputs.filter(|_| problems.len() == before)?;
    Some(Case { id, index, inputs, expected_output, metadata })
}

fn object(value: &Value, pointer: String, problems: &mut Vec<FieldError>) -> Option<Map<String, Value>> {
    if !value.is_object() {
        problems.push(FieldError::new(pointer, "type", "must be an object"));
    }
    value.as_object().cloned()
}

type Check = fn(&Value) -> bool;

/// Members of `metadata` with a meaning: name, check, and the requirement for the error text.
const METADATA: &[(&str, Check, &str)] = &[
    ("split", |value| matches!(value.as_str(), Some("train" | "val" | "test")), "must be train, val or test"),
    (
        "weight",
        |value| value.as_f64().is_some_and(|weight| (0.0..=1e9).contains(&weight)),
        "must be a number from 0 to 1e9",
    ),
    ("group", Value::is_string, "must be a text"),
    ("messages", Value::is_array, "must be a list of {role, content}"),
    ("mocks", Value::is_object, "must be an object: results by the names of nodes"),
    ("answers", Value::is_object, "must be an object: answers by the keys of questions"),
    ("human", Value::is_object, "must be {passed} or {score}"),
];

impl Case {
    /// The split that the case names.
    #[must_use]
    pub fn split(&self) -> Option<&str> {
        self.metadata.get("split").and_then(Value::as_str)
    }

    /// The group of similar cases.
    #[must_use]
    pub fn group(&self) -> &str {
        self.metadata.get("group").and_then(Value::as_str).unwrap_or_default()
    }

    /// A recorded output, which people may have judged.
    #[must_use]
    pub fn recorded_output(&self) -> Option<&Value> {
        self.metadata.get("output").filter(|output| !output.is_null())
    }

    /// Whether a person judged the recorded output good; a score passes from `threshold` on.
    #[must_use]
    pub fn human_passed(&self, threshold: f64) -> Option<bool> {
        let human = self.metadata.get("human")?;
        let passed = human.get("passed").and_then(Value::as_bool);
        passed.or_else(|| Some(human.get("score")?.as_f64()? >= threshold))
    }

    /// The case weight in means.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.metadata.get("weight").and_then(Value::as_f64).unwrap_or(1.0)
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
    fn a_stored_case_is_read_back() {
        let bare = case(json!({}), json!({}));
        let full = Case {
            expected_output: json!([1, {"a": 0.1}]),
            ..case(json!({"n": 1}), json!({"weight": 2, "x": null}))
        };
        for case in [bare, full] {
            assert_eq!(read_stored_case(&case.stored(), 0), Some(case));
        }
    }

    #[test]
    fn a_case_has_either_a_thread_or_a_message() {
        let given = json!([{"role": "assistant", "content": "Hello."}]);
        let inputs = json!({"message": "hi"});
        assert_eq!(json!(case(json!({}), json!({"messages": given})).messages(&inputs)), given);
        let messages = case(json!({}), json!({})).messages(&inputs);
        assert_eq!(messages, [json!({"role": "user", "content": "hi"})]);
        assert!(case(json!({}), json!({})).messages(&json!({"message": 1})).is_empty());
    }

    #[test]
    fn bad_cases_are_named() {
        let found = |case: Value| {
            let mut problems = Vec::new();
            let read = read_case(&case, 3, "/cases/3", &mut problems);
            assert_eq!(read.is_none(), !problems.is_empty(), "{case}");
            let below = |problem: FieldError| {
                format!("{} {}", problem.pointer.trim_start_matches("/cases/3"), problem.code)
            };
            problems.into_iter().map(below).collect::<Vec<_>>()
        };
        for (case, expected) in [
            (json!(1), &[" type"][..]),
            (json!({}), &["/inputs required"]),
            (json!({"inputs": {}, "expected": 1}), &["/expected unknown_field"]),
            (
                json!({"inputs": [], "id": true, "metadata": 1}),
                &["/id type", "/inputs type", "/metadata type"],
            ),
            (
                json!({"inputs": {}, "metadata": {"split": "dev", "weight": -1, "group": 1, "messages": {}, "mocks": [], "answers": 1, "human": true}}),
                &[
                    "/metadata/split type",
                    "/metadata/weight type",
                    "/metadata/group type",
                    "/metadata/messages type",
                    "/metadata/mocks type",
                    "/metadata/answers type",
                    "/metadata/human type",
                ],
            ),
            (json!({"inputs": {"text": "x".repeat(LARGEST)}}), &[" size"]),
            (json!({"inputs": {}, "metadata": {"anything": 1, "weight": 0, "split": null}}), &[]),
        ] {
            assert_eq!(
                found(case.clone()),
                expected,
                "{}",
                case.to_string().chars().take(80).collect::<String>()
            );
        }
    }

    #[test]
    fn a_case_without_an_id_is_named_by_its_index() {
        let read = |case: Value| read_case(&case, 3, "", &mut Vec::new()).unwrap();
        assert_eq!(
            (read(json!({"inputs": {}})).id, read(json!({"inputs": {}, "id": 7})).id),
            ("3".into(), "7".into())
        );
        let case = read(json!({"inputs": {}, "metadata": {"weight": 2, "group": "g", "split": "test"}}));
        assert_eq!((case.weight(), case.group(), case.split()), (2.0, "g", Some("test")));
    }
}
