//! JSON as tokens and key sets may contain it: no duplicate names in an object, limited depth.

use std::fmt;

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize as _, Deserializer};
use serde_json::{Map, Number, Value};

/// Maximum levels of objects and lists. Tokens have two or three; more is suspicious.
const DEPTH: u8 = 16;

/// Parses one complete object without trailing text.
///
/// Builds the value itself because serde_json keeps the last of two members with one name. Names are compared after
/// unescaping, so `"\u0061lg"` is `"alg"`.
pub(crate) fn object(bytes: &[u8]) -> Option<Map<String, Value>> {
    let mut text = serde_json::Deserializer::from_slice(bytes);
    let value = Level(DEPTH).deserialize(&mut text).ok()?;
    text.end().ok()?;
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// The remaining levels of a value.
#[derive(Clone, Copy)]
struct Level(u8);

impl Level {
    fn inner<E: Error>(self) -> Result<Self, E> {
        self.0.checked_sub(1).map(Self).ok_or_else(|| E::custom("too deep"))
    }
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without duplicate names")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut object = Map::new();
        while let Some(name) = members.next_key_seed(Name)? {
            let value = members.next_value_seed(inner)?;
            if object.insert(name, value).is_some() {
                return Err(Error::custom("a duplicate name"));
            }
        }
        Ok(Value::Object(object))
    }
}

/// A member's name.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        String::deserialize(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_reads_as_serde_json_reads_it() {
        let text = r#" {"a":[1,-2,2.5,1e3,true,null,"x\u00e9"],"b":{"c":{}}} "#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(object(text.as_bytes()).map(Value::Object), Some(expected));
    }

    #[test]
    fn duplicate_names_are_rejected_at_every_level_and_in_every_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"{"x":{"a":1,"a":2}}"#,
            r#"{"x":[{"a":1,"b":2,"a":3}]}"#,
        ] {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        assert!(object(nested(15).as_bytes()).is_some());
        assert!(object(nested(16).as_bytes()).is_none());
        assert!(object(nested(100_000).as_bytes()).is_none());
    }

    #[test]
    fn anything_but_one_object_is_rejected() {
        for text in
            ["", "null", "[]", "\"a\"", "1", "{", "{}{}", "{} x", "{\"a\":NaN}", "{\"a\":1e400}", "{a:1}"]
        {
            assert_eq!(object(text.as_bytes()), None, "{text}");
        }
        assert_eq!(object(b"{\"a\":\"\xff\"}"), None);
        assert_eq!(object(b"\xef\xbb\xbf{}"), None);
    }

    #[test]
    fn special_names_of_the_library_have_no_meaning() {
        let object = object(br#"{"$serde_json::private::RawValue":"{\"alg\":\"HS256\"}"}"#).unwrap();
        assert!(!object.contains_key("alg"));
    }
}
