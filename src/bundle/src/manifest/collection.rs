//! A collection: records that the app stores, and who can do what with them.

use serde_json::{Map, Value};

use super::binding;
use super::reader::{Reader, below};

/// Records that the app's pages read and write.
#[derive(Debug, Clone, PartialEq)]
pub struct Collection {
    /// Whose the records are.
    pub kind: CollectionKind,
    /// What visitors without a sign-in can do.
    pub anonymous: Vec<Verb>,
    /// What members who are signed in can do.
    pub member: Vec<Verb>,
    /// What a record must be; a valid JSON Schema.
    pub schema: Option<Value>,
}

/// Whose the records of a collection are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CollectionKind {
    /// All visitors see the same records.
    Shared,
    /// Each member sees their own records.
    User,
}

/// What can be done with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// Read records.
    Read,
    /// Create a record.
    Create,
    /// Change a record.
    Update,
    /// Delete a record.
    Delete,
}

const KINDS: [(&str, CollectionKind); 2] =
    [("shared", CollectionKind::Shared), ("user", CollectionKind::User)];
const VERBS: [(&str, Verb); 4] =
    [("read", Verb::Read), ("create", Verb::Create), ("update", Verb::Update), ("delete", Verb::Delete)];

pub(super) fn read(value: &Value, pointer: &str, reader: &mut Reader<'_>) -> Option<Collection> {
    let members = reader.object(value, pointer, &["kind", "capabilities", "schema"])?;
    let kind = reader.needed(members, pointer, "kind");
    let kind = kind.and_then(|value| reader.choice(value, &below(pointer, "kind"), &KINDS));
    let capabilities = reader.needed(members, pointer, "capabilities");
    let place = below(pointer, "capabilities");
    let capabilities = capabilities.and_then(|value| reader.object(value, &place, &["anonymous", "member"]));
    let schema = binding::schema(members, pointer, "schema", reader);
    let capabilities = capabilities?;
    let anonymous = verbs(capabilities, &place, "anonymous", reader);
    let member = verbs(capabilities, &place, "member", reader);
    if kind == Some(CollectionKind::User) && !anonymous.is_empty() {
        reader.invalid(
            &below(&place, "anonymous"),
            "must be empty: a collection of kind user belongs to members.",
        );
    }
    Some(Collection { kind: kind?, anonymous, member, schema })
}

fn verbs(capabilities: &Map<String, Value>, pointer: &str, name: &str, reader: &mut Reader<'_>) -> Vec<Verb> {
    let Some(value) = reader.needed(capabilities, pointer, name) else { return Vec::new() };
    let pointer = below(pointer, name);
    let names = reader.strings(value, &pointer, VERBS.len());
    let mut verbs: Vec<Verb> =
        names.into_iter().filter_map(|name| reader.choice(&Value::String(name), &pointer, &VERBS)).collect();
    verbs.sort_unstable();
    verbs
}
