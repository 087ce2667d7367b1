//! A collection: records that the app stores, and its permissions.

use serde_json::{Map, Value};
use wire::{AppCollection, CollectionCapabilities, CollectionKind, CollectionVerb};

use super::binding;
use super::reader::{ManifestReader, below};

const KINDS: [(&str, CollectionKind); 2] =
    [("shared", CollectionKind::Shared), ("user", CollectionKind::User)];
const VERBS: [(&str, CollectionVerb); 4] = [
    ("read", CollectionVerb::Read),
    ("create", CollectionVerb::Create),
    ("update", CollectionVerb::Update),
    ("delete", CollectionVerb::Delete),
];

pub(super) fn read(value: &Value, pointer: &str, reader: &mut ManifestReader<'_>) -> Option<AppCollection> {
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
    Some(AppCollection { kind: kind?, capabilities: CollectionCapabilities { anonymous, member }, schema })
}

fn verbs(
    capabilities: &Map<String, Value>,
    pointer: &str,
    name: &str,
    reader: &mut ManifestReader<'_>,
) -> Vec<CollectionVerb> {
    let Some(value) = reader.needed(capabilities, pointer, name) else { return Vec::new() };
    let pointer = below(pointer, name);
    let names = reader.strings(value, &pointer, VERBS.len());
    let mut verbs: Vec<CollectionVerb> =
        names.into_iter().filter_map(|name| reader.choice(&Value::String(name), &pointer, &VERBS)).collect();
    verbs.sort_unstable();
    verbs
}
