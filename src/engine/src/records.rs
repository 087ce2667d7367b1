//! Record data in app collections: validation and merge patches.

use serde_json::{Map, Value};
use wire::FieldError;

use crate::Schema;

/// Maximum record data bytes, as compact JSON.
pub const MAX_RECORD_BYTES: usize = 64 << 10;
/// Maximum nesting of objects and arrays, including the data itself.
pub const MAX_RECORD_DEPTH: usize = 32;

/// The reason why data cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordFault {
    /// More than [`MAX_RECORD_BYTES`].
    TooLarge,
    /// Its problems, with pointers below `/data`.
    Invalid(Vec<FieldError>),
}

/// Checks data, and returns it as stored: compact JSON.
///
/// # Errors
/// [`RecordFault`].
pub fn record_text(data: &Value, schema: Option<&Schema>) -> Result<String, RecordFault> {
    let one =
        |code: &str, message: String| RecordFault::Invalid(vec![FieldError::new("/data", code, message)]);
    if !data.is_object() {
        return Err(one("type", "must be an object".to_owned()));
    }
    let Some(has_nul) = look(data, MAX_RECORD_DEPTH) else {
        return Err(one("depth", format!("is deeper than {MAX_RECORD_DEPTH} levels")));
    };
    if has_nul {
        return Err(one("nul", "contains U+0000, which cannot be stored".to_owned()));
    }
    let text = data.to_string();
    if text.len() > MAX_RECORD_BYTES {
        return Err(RecordFault::TooLarge);
    }
    match schema.map(|schema| schema.problems(data, "/data")) {
        Some(problems) if !problems.is_empty() => Err(RecordFault::Invalid(problems)),
        _ => Ok(text),
    }
}

/// Whether a value contains U+0000; `None` if it is nested deeper than `levels`.
fn look(value: &Value, levels: usize) -> Option<bool> {
    let mut found = false;
    match value {
        Value::String(text) => found = text.contains('\0'),
        Value::Array(items) => {
            let below = levels.checked_sub(1)?;
            for item in items {
                found |= look(item, below)?;
            }
        }
        Value::Object(members) => {
            let below = levels.checked_sub(1)?;
            for (name, member) in members {
                found |= name.contains('\0') || look(member, below)?;
            }
        }
        _ => {}
    }
    Some(found)
}

/// Applies a merge patch.
///
/// Source: RFC 7396, section 2.
#[must_use]
pub fn merge_patch(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut members = match target {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for (name, change) in changes {
        if change.is_null() {
            members.shift_remove(name);
        } else {
            let before = members.get_mut(name).map(Value::take).unwrap_or_default();
            members.insert(name.clone(), merge_patch(before, change));
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!({}), |inner, _| json!({"a": inner}))
    }

    fn codes(data: &Value) -> Vec<String> {
        match record_text(data, None) {
            Err(RecordFault::Invalid(problems)) => problems.into_iter().map(|problem| problem.code).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn data_is_an_object_of_at_most_64_kib_and_32_levels() {
        assert_eq!(record_text(&json!({"b": 1, "a": [1.5]}), None).unwrap(), r#"{"b":1,"a":[1.5]}"#);
        for other in [json!([]), json!("x"), json!(null), json!(1)] {
            assert_eq!(codes(&other), ["type"]);
        }
        assert!(record_text(&nested(32), None).is_ok());
        assert_eq!(codes(&nested(33)), ["depth"]);
        let sized = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
        assert_eq!(record_text(&sized(65_536), None).unwrap().len(), 65_536);
        assert_eq!(record_text(&sized(65_537), None), Err(RecordFault::TooLarge));
        for nul in [json!({"a": "x\0"}), json!({"a\0": 1}), json!({"a": [{"b": "\0"}]})] {
            assert_eq!(codes(&nul), ["nul"]);
        }
    }

    #[test]
    fn data_matches_the_schema() {
        let schema =
            Schema::read(&json!({"required": ["n"], "properties": {"n": {"type": "integer"}}})).unwrap();
        assert!(record_text(&json!({"n": 1}), Some(&schema)).is_ok());
        let Err(RecordFault::Invalid(problems)) = record_text(&json!({"n": "x"}), Some(&schema)) else {
            panic!("it was accepted")
        };
        assert_eq!(problems[0].pointer, "/data/n");
    }

    /// The examples in RFC 7396, appendix A.
    #[test]
    fn merge_patches_follow_the_rfc() {
        for (target, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "b"}), json!(["c"]), json!(["c"])),
            (json!({"a": "foo"}), json!(null), json!(null)),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merge_patch(target.clone(), &patch), result, "{target} {patch}");
        }
    }
}
