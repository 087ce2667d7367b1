//! JSON digests: of the text for versions, of the canonical form (RFC 8785) for other documents.

use ring::digest::{Context, SHA256};
use serde_json::{Map, Value};

/// The document has no canonical form, because a double cannot hold one of its numbers.
#[derive(Debug, thiserror::Error)]
#[error("the document has no canonical form: {0}")]
pub struct CanonicalError(String);

fn canonical(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    check_numbers(value)?;
    serde_json_canonicalizer::to_vec(value).map_err(|error| CanonicalError(error.to_string()))
}

/// Refuses integers over 2^53: they would be rounded, so that two different graphs would have one digest.
fn check_numbers(value: &Value) -> Result<(), CanonicalError> {
    const EXACT: u64 = 1 << 53;
    match value {
        Value::Number(number) => {
            let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
            match size {
                Some(size) if size > EXACT => {
                    Err(CanonicalError(format!("the integer {number} is beyond 2^53")))
                }
                _ => Ok(()),
            }
        }
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(members) => members.values().try_for_each(check_numbers),
        _ => Ok(()),
    }
}

/// Returns a document's digest.
///
/// # Errors
/// [`CanonicalError`] if the document has no canonical form.
pub fn digest(graph: &Value) -> Result<[u8; 32], CanonicalError> {
    Ok(sha256(&[&canonical(graph)?]))
}

/// Returns a version's digest: the SHA-256 of its graph and its runnable config as compact JSON, with a line feed
/// between them. Member order counts: a model writes the members of its answer in the schema's order.
#[must_use]
pub fn identity(graph: &Value, config: Option<&Map<String, Value>>) -> [u8; 32] {
    let config = config.map(serde_json::to_string).and_then(Result::ok);
    sha256(&[text(graph).as_bytes(), b"\n", config.as_deref().unwrap_or("null").as_bytes()])
}

/// Serializes a value. Twice as fast as `to_string`, which uses a formatter.
pub(crate) fn text(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Returns the SHA-256 of a value's JSON text, and that text's length in bytes.
pub(crate) fn text_digest(value: &Value) -> ([u8; 32], usize) {
    let text = text(value);
    (sha256(&[text.as_bytes()]), text.len())
}

/// Whether a recorded digest belongs to this value, whose current digest is `digest`. Older builds recorded the
/// digest of the text with sorted members.
pub(crate) fn is_digest_of(recorded: [u8; 32], value: &Value, digest: [u8; 32]) -> bool {
    recorded == digest || {
        let mut sorted = value.clone();
        sorted.sort_all_objects();
        recorded == text_digest(&sorted).0
    }
}

pub(crate) fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut digest = [0_u8; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn digests_depend_on_content_not_on_spelling() {
        let one: Value = serde_json::from_str(r#"{"b":1.0,"a":"\u00e9"}"#).unwrap();
        let two: Value = serde_json::from_str("{\"a\": \"é\", \"b\": 1}").unwrap();
        assert_eq!(digest(&one).unwrap(), digest(&two).unwrap());
        assert_ne!(digest(&one).unwrap(), digest(&json!({"a": "é", "b": 2})).unwrap());
    }

    #[test]
    fn identities_depend_on_member_order_and_config() {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let graph = read(r#"{"b": 1, "a": 9007199254740993}"#);
        assert_eq!(identity(&graph, None), identity(&read(r#"{"b":1,"a":9007199254740993}"#), None));
        assert_ne!(identity(&graph, None), identity(&read(r#"{"a": 9007199254740993, "b": 1}"#), None));
        let config = json!({"x": 1}).as_object().cloned();
        assert_ne!(identity(&graph, config.as_ref()), identity(&graph, None));
    }

    #[test]
    fn digests_of_older_rows_are_recognized() {
        let value: Value = serde_json::from_str(r#"{"b": [{"d": 1, "c": 2}], "a": 1}"#).unwrap();
        let sorted = sha256(&[br#"{"a":1,"b":[{"c":2,"d":1}]}"#]);
        let (digest, _) = text_digest(&value);
        assert_ne!(digest, sorted);
        assert!(is_digest_of(sorted, &value, digest) && is_digest_of(digest, &value, digest));
        assert!(!is_digest_of([0; 32], &value, digest));
    }

    #[test]
    fn integers_that_would_be_rounded_are_rejected() {
        assert!(digest(&json!([9_007_199_254_740_992_u64])).is_ok());
        assert!(digest(&json!([9_007_199_254_740_993_u64])).is_err());
        assert!(digest(&json!({"a": [-9_007_199_254_740_993_i64]})).is_err());
    }
}
