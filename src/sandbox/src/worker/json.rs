//! Converts JSON to Python values and back.

use monty_types::MontyObject as Object;
use serde_json::{Map, Number, Value};

/// Maximum nesting of lists and dicts.
const DEEPEST: usize = 100;

/// Converts JSON to a Python value.
pub(super) fn object(value: Value) -> Object {
    match value {
        Value::Null => Object::None,
        Value::Bool(value) => Object::Bool(value),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Object::Int(whole),
            (None, Some(whole)) => Object::BigInt(whole.into()),
            (None, None) => Object::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Object::String(text),
        Value::Array(items) => Object::List(items.into_iter().map(object).collect()),
        Value::Object(members) => {
            let pairs = members.into_iter().map(|(name, value)| (Object::String(name), object(value)));
            Object::dict(pairs.collect::<Vec<_>>())
        }
    }
}

/// Converts a Python value to JSON.
///
/// # Errors
/// A description of the part that is not JSON.
pub(super) fn value(object: Object) -> Result<Value, String> {
    within(object, 0)
}

fn within(object: Object, depth: usize) -> Result<Value, String> {
    if depth > DEEPEST {
        return Err(format!("more than {DEEPEST} nested lists and dicts"));
    }
    Ok(match object {
        Object::None => Value::Null,
        Object::Bool(value) => Value::Bool(value),
        Object::Int(whole) => whole.into(),
        Object::BigInt(whole) => {
            let natural = u64::try_from(&whole);
            natural
                .map_err(|_| {
                    format!("the integer {}, which has more than 64 bits; convert it to str", short(&whole))
                })?
                .into()
        }
        Object::Float(number) => Value::Number(
            Number::from_f64(number)
                .ok_or_else(|| format!("the float {number}, which is not a number in JSON"))?,
        ),
        Object::String(text) => Value::String(text),
        Object::List(items) | Object::Tuple(items) | Object::NamedTuple { values: items, .. } => {
            let items = items.into_iter().map(|item| within(item, depth + 1));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Object::Dict(pairs) => {
            let mut members = Map::new();
            for (name, value) in pairs {
                members.insert(key(name)?, within(value, depth + 1)?);
            }
            Value::Object(members)
        }
        Object::Set(_) | Object::FrozenSet(_) => {
            return Err("a set; convert it to a list, such as sorted(…)".to_owned());
        }
        Object::Bytes(_) => return Err("bytes; convert them to str, such as .decode() or base64".to_owned()),
        Object::Date(_) | Object::DateTime(_) | Object::Time(_) => {
            return Err("a date or a time; convert it to str, such as .isoformat()".to_owned());
        }
        Object::Cycle(..) => return Err("a value that contains itself".to_owned()),
        Object::ClassInstance(_) => return Err("an instance of a class; convert it to a dict".to_owned()),
        other => {
            return Err(short(&other));
        }
    })
}

/// Shortens a value for a message.
fn short(value: &impl ToString) -> String {
    value.to_string().chars().take(80).collect()
}

/// Converts a dict key, as Python's `json` does.
fn key(name: Object) -> Result<String, String> {
    match name {
        Object::String(name) => Ok(name),
        Object::Int(whole) => Ok(whole.to_string()),
        Object::Bool(value) => Ok(value.to_string()),
        other => Err(format!("a dict with the key {other}; its keys must be str")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_values_round_trip() {
        let all = json!({"a": [null, true, -1, 1.5, u64::MAX, i64::MIN, "text"], "b": {"c": {}}});
        assert_eq!(value(object(all.clone())), Ok(all));
    }

    #[test]
    fn non_json_values_are_named() {
        assert!(value(Object::Float(f64::NAN)).is_err_and(|error| error.contains("NaN")));
        assert!(value(Object::Set(vec![])).is_err_and(|error| error.contains("sorted")));
        assert!(value(Object::List(vec![Object::Bytes(vec![])])).is_err());
        let mut deep = Object::List(vec![]);
        for _ in 0..=DEEPEST {
            deep = Object::List(vec![deep]);
        }
        assert!(value(deep).is_err_and(|error| error.contains("nested")));
    }
}
