//! A release's permissions: their revision, and the changes between two releases.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use wire::{
    AppBinding, AppCollection, BindingPermissions, CollectionPermissions, CollectionVerb, DataAccess,
    ErrorCode, PermissionChange, Permissions,
};

use super::preflight::Preflight;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::escape;

/// The permissions that a manifest declares for the app's pages.
pub(super) struct PagePermissions {
    /// Origins that may show the pages in frames.
    pub(super) frame_ancestors: Vec<String>,
    /// Whether the pages may run WebAssembly.
    pub(super) wasm: bool,
}

/// Collects the permissions for bindings, collections and pages, with sorted lists.
pub(super) fn collect(
    bindings: &BTreeMap<String, AppBinding>,
    collections: &BTreeMap<String, AppCollection>,
    found: &Preflight,
    pages: PagePermissions,
) -> Permissions {
    let binding = |(name, binding): (&String, &AppBinding)| {
        let walked = found.bindings.get(name)?;
        let permissions = BindingPermissions {
            workflow_id: walked.workflow.to_string(),
            version: walked.version,
            access_mode: binding.access_mode,
            fields: sorted(binding.output_projection.fields.iter().cloned()),
            visitor_can_read_output: binding.visitor_can_read_output,
            limits: binding.limits,
            outbound: walked.outbound.iter().cloned().collect(),
            credentials: walked.credentials.iter().cloned().collect(),
            data: walked.data.iter().map(|(collection, found)| used(collection, found)).collect(),
        };
        Some((name.clone(), permissions))
    };
    let collection = |(name, collection): (&String, &AppCollection)| {
        let permissions = CollectionPermissions {
            kind: collection.kind,
            anonymous: verbs(&collection.capabilities.anonymous),
            member: verbs(&collection.capabilities.member),
        };
        (name.clone(), permissions)
    };
    Permissions {
        bindings: bindings.iter().filter_map(binding).collect(),
        collections: collections.iter().map(collection).collect(),
        frame_ancestors: sorted(pages.frame_ancestors),
        wasm: pages.wasm,
    }
}

fn used(collection: &str, found: &BTreeSet<CollectionVerb>) -> DataAccess {
    DataAccess { collection: collection.to_owned(), verbs: verbs(&found.iter().copied().collect::<Vec<_>>()) }
}

/// Sorted by name, without duplicates.
fn verbs(verbs: &[CollectionVerb]) -> Vec<CollectionVerb> {
    let mut verbs = verbs.to_vec();
    verbs.sort_unstable_by_key(|verb| verb.as_str());
    verbs.dedup();
    verbs
}

fn sorted(texts: impl IntoIterator<Item = String>) -> Vec<String> {
    texts.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}

/// The SHA-256 of the RFC 8785 form, in hexadecimal.
pub(super) fn revision(permissions: &Permissions) -> ApiResult<String> {
    let digest = engine::digest(&value(permissions)?);
    digest.map(hex::encode).map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}

/// The changes between two permission sets. A member that only one set has is one change, and so is a list.
pub(super) fn changes(before: &Permissions, after: &Permissions) -> ApiResult<Vec<PermissionChange>> {
    let mut changes = Vec::new();
    compare(String::new(), &value(before)?, &value(after)?, &mut changes);
    Ok(changes)
}

fn compare(path: String, before: &Value, after: &Value, changes: &mut Vec<PermissionChange>) {
    if before == after {
        return;
    }
    let (Value::Object(one), Value::Object(other)) = (before, after) else {
        changes.push(PermissionChange { path, before: before.clone(), after: after.clone() });
        return;
    };
    let at = |members: &Map<String, Value>, name: &str| members.get(name).cloned().unwrap_or_default();
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names {
        compare(format!("{path}/{}", escape(name)), &at(one, name), &at(other, name), changes);
    }
}

fn value(permissions: &Permissions) -> ApiResult<Value> {
    serde_json::to_value(permissions).map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn permissions(text: Value) -> Permissions {
        serde_json::from_value(text).unwrap()
    }

    fn two() -> (Permissions, Permissions) {
        let binding = |version: u32, fields: Value| {
            json!({"workflow_id": "w", "version": version, "access_mode": "anonymous", "fields": fields,
                "visitor_can_read_output": true, "limits": {}, "outbound": [], "credentials": [], "data": []})
        };
        let before = json!({"bindings": {"ask": binding(1, json!(["a"])), "old": binding(1, json!([]))},
            "collections": {}, "frame_ancestors": [], "wasm": false});
        let after = json!({"bindings": {"ask": binding(2, json!(["a", "b"]))},
            "collections": {"notes": {"kind": "user", "anonymous": [], "member": ["read"]}},
            "frame_ancestors": [], "wasm": true});
        (permissions(before), permissions(after))
    }

    #[test]
    fn each_differing_member_is_a_change() {
        let (before, after) = two();
        let changes = changes(&before, &after).unwrap();
        let shown: Vec<String> = changes
            .iter()
            .map(|change| {
                let whole = |value: &Value| {
                    if value.is_object() { "{…}".to_owned() } else { value.to_string() }
                };
                format!("{} {} {}", change.path, whole(&change.before), whole(&change.after))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "/bindings/ask/fields [\"a\"] [\"a\",\"b\"]",
                "/bindings/ask/version 1 2",
                "/bindings/old {…} null",
                "/collections/notes null {…}",
                "/wasm false true"
            ]
        );
        assert_eq!(super::changes(&after, &after).unwrap(), []);
    }

    #[test]
    fn the_revision_is_the_digest_of_the_canonical_form() {
        // The SHA-256 of `{"bindings":{},"collections":{},"frame_ancestors":[],"wasm":false}`.
        let none = revision(&Permissions::default()).unwrap();
        let text = br#"{"bindings":{},"collections":{},"frame_ancestors":[],"wasm":false}"#;
        assert_eq!(none, hex::encode(ring::digest::digest(&ring::digest::SHA256, text)));
        let (before, after) = two();
        assert_ne!(revision(&before).unwrap(), revision(&after).unwrap());
    }
}
