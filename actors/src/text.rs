//! Conversions between values and text, for the wire and rows.

pub(crate) use kernel::timestamp;

/// Parses JSON stored by this service, at any depth that it accepted.
pub(crate) fn stored_json(text: &str) -> serde_json::Result<serde_json::Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    serde::Deserialize::deserialize(&mut reader)
}

/// Serializes a value; our own types always have a JSON form. Twice as fast as a value's `to_string`, which uses a
/// formatter.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
