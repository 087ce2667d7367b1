//! From what the check of a bundle has read to what is stored.

use std::collections::BTreeMap;

use bundle::{Accepted, Binding, Collection, Manifest, Verb};
use serde::Serialize;
use wire::{
    AppBinding, AppCollection, BindingAccess, BindingLimits, CollectionCapabilities, CollectionKind,
    CollectionVerb, DeploymentNote, DeploymentReport, ErrorCode, OutputProjection,
};

use crate::http::error::{ApiError, ApiResult};

/// The bindings of a manifest, by name.
pub(super) fn bindings(manifest: Option<&Manifest>) -> BTreeMap<String, AppBinding> {
    let bindings = manifest.map(|manifest| &manifest.bindings);
    bindings.into_iter().flatten().map(|(name, one)| (name.clone(), binding(one))).collect()
}

/// The collections of a manifest, by name.
pub(super) fn collections(manifest: Option<&Manifest>) -> BTreeMap<String, AppCollection> {
    let collections = manifest.and_then(|manifest| manifest.collections.as_ref());
    collections.into_iter().flatten().map(|(name, one)| (name.clone(), collection(one))).collect()
}

/// JSON of the report.
pub(super) fn report(accepted: &Accepted) -> ApiResult<String> {
    let note = |note: &bundle::Note| DeploymentNote {
        code: note.code.to_owned(),
        path: note.path.clone(),
        line: note.line,
        detail: note.detail.clone(),
    };
    let notes = accepted.notes.iter().map(note).collect();
    json(&DeploymentReport { dropped: accepted.dropped.clone(), notes })
}

/// JSON as it is stored.
pub(super) fn json(value: &impl Serialize) -> ApiResult<String> {
    serde_json::to_string(value).map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}

fn binding(binding: &Binding) -> AppBinding {
    let limits = binding.limits;
    AppBinding {
        workflow: binding.workflow.clone(),
        version: binding.version,
        access_mode: match binding.access_mode {
            bundle::AccessMode::Anonymous => BindingAccess::Anonymous,
            bundle::AccessMode::Authenticated => BindingAccess::Authenticated,
        },
        input_schema: binding.input_schema.clone(),
        output_projection: OutputProjection { fields: binding.fields.clone() },
        visitor_can_read_output: binding.visitor_can_read_output,
        limits: BindingLimits {
            timeout_seconds: limits.timeout_seconds,
            output_max_bytes: limits.output_max_bytes,
            max_concurrent: limits.max_concurrent,
            per_visitor_per_minute: limits.per_visitor_per_minute,
        },
    }
}

fn collection(collection: &Collection) -> AppCollection {
    AppCollection {
        kind: match collection.kind {
            bundle::CollectionKind::Shared => CollectionKind::Shared,
            bundle::CollectionKind::User => CollectionKind::User,
        },
        capabilities: CollectionCapabilities {
            anonymous: collection.anonymous.iter().map(verb).collect(),
            member: collection.member.iter().map(verb).collect(),
        },
        schema: collection.schema.clone(),
    }
}

fn verb(verb: &Verb) -> CollectionVerb {
    match verb {
        Verb::Read => CollectionVerb::Read,
        Verb::Create => CollectionVerb::Create,
        Verb::Update => CollectionVerb::Update,
        Verb::Delete => CollectionVerb::Delete,
    }
}
