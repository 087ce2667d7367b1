//! A statement parameter made from JSON: a text that the server parses as the parameter's type.

use bytes::BytesMut;
use serde_json::Value;
use tokio_postgres::types::{Format, IsNull, ToSql, Type, to_sql_checked};

/// Maximum nesting of lists.
const DEPTH: usize = 6;

/// A parameter; `None` is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parameter(Option<String>);

impl Parameter {
    /// Converts a value to the text that the server expects, also for array and JSON parameters.
    ///
    /// # Errors
    /// The reason why the value cannot be a parameter.
    pub(crate) fn new(value: &Value, is_list: bool, is_json: bool) -> Result<Self, String> {
        let text = match value {
            Value::Null => None,
            value if is_json => Some(value.to_string()),
            Value::Array(items) if is_list => Some(list(items, 0)?),
            value => Some(text(value)),
        };
        // PostgreSQL cannot store NUL.
        if text.as_ref().is_some_and(|text| text.contains('\0') || (is_json && text.contains("\\u0000"))) {
            return Err("holds U+0000".to_owned());
        }
        Ok(Self(text))
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// An array literal, `{…}`.
fn list(items: &[Value], depth: usize) -> Result<String, String> {
    if depth >= DEPTH {
        return Err(format!("has more than {DEPTH} lists inside one another"));
    }
    let mut written = Vec::with_capacity(items.len());
    for item in items {
        written.push(match item {
            Value::Null => "NULL".to_owned(),
            Value::Array(inner) => list(inner, depth.saturating_add(1))?,
            other => format!("\"{}\"", text(other).replace('\\', "\\\\").replace('"', "\\\"")),
        });
    }
    Ok(format!("{{{}}}", written.join(",")))
}

impl ToSql for Parameter {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let Some(text) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_the_server_reads_them() {
        for (value, is_list, is_json, written) in [
            (json!(null), false, false, None),
            (json!(true), false, false, Some("true")),
            (json!(-1.5), false, false, Some("-1.5")),
            (json!("a' OR 1=1"), false, false, Some("a' OR 1=1")),
            (json!({"a": [1]}), false, true, Some(r#"{"a":[1]}"#)),
            (json!("a"), false, true, Some(r#""a""#)),
            (json!([1, null, "a\"\\,{}", [true]]), true, false, Some(r#"{"1",NULL,"a\"\\,{}",{"true"}}"#)),
            (json!([1]), false, false, Some("[1]")),
        ] {
            let made = Parameter::new(&value, is_list, is_json);
            assert_eq!(made, Ok(Parameter(written.map(str::to_owned))), "{value}");
        }
        for bad in [json!("a\0"), json!({"a": "\u{0}"}), json!([[[[[[[1]]]]]]])] {
            assert!(Parameter::new(&bad, true, bad.is_object()).is_err(), "{bad}");
        }
    }
}
