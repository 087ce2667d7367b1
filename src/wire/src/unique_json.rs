//! JSON without repeated members. Programs disagree about repeated members, so a check and the code after it could read
//! different values.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::shortened;

/// A value in which no object, at any depth, repeats a member; other texts do not deserialize. Numbers are parsed as in
/// [`Value`].
#[derive(Debug, Clone, PartialEq)]
pub struct UniqueJson(pub Value);

impl<'de> Deserialize<'de> for UniqueJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Values).map(Self)
    }
}

struct Values;

impl<'de> Visitor<'de> for Values {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(UniqueJson(item)) = sequence.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            match members.entry(name) {
                Entry::Vacant(free) => {
                    let UniqueJson(value) = map.next_value()?;
                    free.insert(value);
                }
                Entry::Occupied(taken) => {
                    let name = shortened(taken.key());
                    return Err(A::Error::custom(format_args!("the member `{name}` is repeated")));
                }
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map(|UniqueJson(value)| value).map_err(|error| error.to_string())
    }

    #[test]
    fn repeated_members_are_rejected_at_any_depth() {
        assert_eq!(read(r#"{"a": {"b": 1}, "b": [{"a": 2}]}"#), Ok(json!({"a": {"b": 1}, "b": [{"a": 2}]})));
        for text in
            [r#"{"a": 1, "a": 1}"#, r#"{"x": [0, {"a": 1, "b": 2, "a": 3}]}"#, r#"{"a": 1, "\u0061": 2}"#]
        {
            let error = read(text).unwrap_err();
            assert!(error.starts_with("the member `a` is repeated"), "{text}: {error}");
        }
        assert!(read("{\"a\": 1} x").is_err());
    }

    #[test]
    fn values_equal_those_read_by_serde() {
        for text in [
            "null",
            "true",
            "0",
            "-0",
            "-0.0",
            "1e300",
            "1e-7",
            "0.1",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "1.7976931348623157e308",
            "123456789.123456789",
            "2.0",
            "[]",
            "{}",
            r#""\u00e9\ud83d\ude00""#,
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read(text).map(|read| read.to_string()), Ok(value.to_string()), "{text}");
        }
        assert!(read("1e999").is_err() && read(r#""\ud800""#).is_err());
    }
}
