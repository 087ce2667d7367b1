//! Claims that hold several texts, in all of their spellings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// The objects in which issuers keep claims that are meant for this service.
const NESTED: [&str; 2] = ["orcheo", "callboard"];

/// The claim is there and is of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrongType;

/// Everything that the claims of these names say, and the claims of the names `nested` in the service's own objects.
/// `None` when none of them is there.
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

/// A text divided by spaces or commas, or a list of texts that are taken whole.
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

/// Control characters have no business in a name, and a database would not take all of them.
fn checked(item: &str) -> Result<String, WrongType> {
    if item.chars().any(char::is_control) { Err(WrongType) } else { Ok(item.to_owned()) }
}
