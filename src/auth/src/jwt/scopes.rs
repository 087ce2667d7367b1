//! Claims with several texts, in all their spellings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Objects in which issuers keep claims for this service.
const NESTED: [&str; 2] = ["orcheo", "callboard"];

/// The claim is present but has another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrongType;

/// Collects the values of the claims `names`, and of the claims `nested` in the service's own objects. `None` if no
/// such claim is present.
pub(super) fn union(
    claims: &Map<String, Value>,
    names: &[&str],
    nested: &str,
) -> Result<Option<BTreeSet<String>>, WrongType> {
    let mut found = None;
    for value in names.iter().filter_map(|name| claims.get(*name)) {
        add(value, found.get_or_insert_default())?;
    }
    for object in NESTED.iter().filter_map(|name| claims.get(*name)) {
        let Value::Object(object) = object else { return Err(WrongType) };
        if let Some(value) = object.get(nested) {
            add(value, found.get_or_insert_default())?;
        }
    }
    Ok(found)
}

/// Adds a text split at spaces or commas, or a list of unsplit texts.
fn add(value: &Value, to: &mut BTreeSet<String>) -> Result<(), WrongType> {
    match value {
        Value::String(text) => {
            let parts = text.split([' ', ',']).filter(|part| !part.is_empty());
            for part in parts {
                to.insert(checked(part)?);
            }
        }
        Value::Array(items) => {
            for item in items {
                let Value::String(item) = item else { return Err(WrongType) };
                if !item.is_empty() {
                    to.insert(checked(item)?);
                }
            }
        }
        _ => return Err(WrongType),
    }
    Ok(())
}

/// Control characters do not belong in a name, and a database rejects some of them.
fn checked(item: &str) -> Result<String, WrongType> {
    if item.chars().any(char::is_control) { Err(WrongType) } else { Ok(item.to_owned()) }
}
