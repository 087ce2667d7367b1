//! App releases: acknowledges permissions, publishes deployments, repeats releases.

use std::collections::BTreeMap;

use store::{Acknowledgement, Changes, Drafts, StoredApp, StoredCollection, StoredRelease};
use uuid::Uuid;
use wire::{AppCollection, AuditAction, ErrorCode, FrozenBinding, FrozenCollection};

use super::entry;
use crate::{Decision, Refusal, Requester};

/// A deployment as it was resolved before the transaction.
#[derive(Debug)]
pub struct Resolved {
    /// The id of the new release.
    pub release: Uuid,
    /// The deployment.
    pub deployment: Uuid,
    /// The app's bindings and collections, as last read.
    pub drafts: Drafts,
    /// Whether its manifest declares the bindings.
    pub declares_bindings: bool,
    /// Whether its manifest declares the collections.
    pub declares_collections: bool,
    /// The frozen bindings.
    pub bindings: BTreeMap<String, FrozenBinding>,
    /// The collections that apply.
    pub collections: BTreeMap<String, AppCollection>,
    /// Every workflow that the bindings run.
    pub workflows: Vec<Uuid>,
    /// A digest of all permissions.
    pub permission_revision: String,
    /// All permissions as JSON.
    pub permissions: String,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// JSON: the origins that can show the app in a frame.
    pub frame_ancestors: String,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
}

/// The result of a publish.
#[derive(Debug)]
pub enum PublishOutcome {
    /// The new, active release.
    Released(Box<StoredRelease>),
    /// The app would exceed its maximum number of collections.
    TooManyCollections,
}

/// Acknowledges an app deployment's permissions.
///
/// # Errors
/// [`ErrorCode::AppNotFound`] if the app was deleted meanwhile.
pub async fn acknowledge(
    changes: &mut Changes,
    by: Requester<'_>,
    new: Acknowledgement,
) -> Decision<Acknowledgement> {
    let app = lock(changes, new.app_id, new.workspace_id).await?;
    let is_known = changes.is_acknowledged(app.id, &new.permission_revision).await?;
    let stored = changes.acknowledge(new).await?;
    if !is_known {
        let revision = stored.permission_revision.clone();
        changes.audit(&entry(by, AuditAction::AppPermissionsAcknowledged, &app, revision)).await?;
    }
    Ok(stored)
}

/// Publishes a deployment: freezes the resolved state in a new release and makes it active.
///
/// # Errors
/// [`ErrorCode::AppNotFound`], [`ErrorCode::DeploymentStale`], [`ErrorCode::PermissionAckRequired`],
/// [`ErrorCode::CollectionTaken`] if the app has a collection of another kind under a name in the manifest,
/// [`ErrorCode::PermissionRevisionStale`] if something has changed since the deployment was resolved: resolve it again.
pub async fn publish(
    changes: &mut Changes,
    by: Requester<'_>,
    app: &StoredApp,
    resolved: &Resolved,
    created_by: Option<String>,
) -> Decision<PublishOutcome> {
    let app = lock(changes, app.id, app.workspace_id).await?;
    if !changes.hold_deployment(app.id, resolved.deployment).await? {
        return Err(Refusal::new(ErrorCode::DeploymentStale));
    }
    let drafts = changes.drafts(app.id).await?;
    let same_bindings = resolved.declares_bindings || drafts.bindings == resolved.drafts.bindings;
    let same_collections = resolved.declares_collections || drafts.collections == resolved.drafts.collections;
    if !same_bindings || !same_collections || !changes.hold_workflows(&resolved.workflows).await? {
        return Err(Refusal::new(ErrorCode::PermissionRevisionStale));
    }
    if !changes.is_acknowledged(app.id, &resolved.permission_revision).await? {
        return Err(Refusal::new(ErrorCode::PermissionAckRequired));
    }
    let Some(ids) = collections(changes, by, &app, resolved, drafts.collections).await? else {
        return Ok(PublishOutcome::TooManyCollections);
    };
    let frozen: BTreeMap<&String, FrozenCollection> = resolved
        .collections
        .iter()
        .filter_map(|(name, collection)| {
            let AppCollection { kind, capabilities, schema } = collection.clone();
            let id = ids.get(name)?.to_string();
            Some((name, FrozenCollection { id, kind, capabilities, schema }))
        })
        .collect();
    let new = StoredRelease {
        id: resolved.release,
        app_id: app.id,
        workspace_id: app.workspace_id,
        number: 0,
        deployment_id: resolved.deployment,
        source_release_id: None,
        permission_revision: resolved.permission_revision.clone(),
        permissions: resolved.permissions.clone(),
        bindings: json(&resolved.bindings)?,
        collections: json(&frozen)?,
        spa: resolved.spa,
        frame_ancestors: resolved.frame_ancestors.clone(),
        wasm: resolved.wasm,
        created_by,
        created_at: app.created_at,
    };
    let made = changes.create_release(new).await?;
    changes.audit(&entry(by, AuditAction::AppPublished, &app, made.id.to_string())).await?;
    Ok(PublishOutcome::Released(Box::new(made)))
}

/// Repeats the release `source` with everything that it froze. The new release gets this `id`.
///
/// # Errors
/// [`ErrorCode::AppNotFound`], [`ErrorCode::ReleaseNotFound`], [`ErrorCode::DeploymentStale`].
pub async fn roll_back(
    changes: &mut Changes,
    by: Requester<'_>,
    app: &StoredApp,
    source: Uuid,
    id: Uuid,
    created_by: Option<String>,
) -> Decision<StoredRelease> {
    let app = lock(changes, app.id, app.workspace_id).await?;
    let not_found = || Refusal::new(ErrorCode::ReleaseNotFound);
    let source = changes.release(app.id, source).await?.ok_or_else(not_found)?;
    if !changes.hold_deployment(app.id, source.deployment_id).await? {
        return Err(Refusal::new(ErrorCode::DeploymentStale));
    }
    let made = changes.create_release(StoredRelease {
        id,
        source_release_id: Some(source.id),
        created_by,
        ..source
    });
    let made = made.await?;
    changes.audit(&entry(by, AuditAction::AppRolledBack, &app, made.id.to_string())).await?;
    Ok(made)
}

/// Locks an app. Its workspace comes first, as when the workspace is deleted.
async fn lock(changes: &mut Changes, app: Uuid, workspace: Uuid) -> Decision<StoredApp> {
    let not_found = || Refusal::new(ErrorCode::AppNotFound);
    if !changes.hold_workspace(workspace).await? {
        return Err(not_found());
    }
    changes.lock_app(app).await?.ok_or_else(not_found)
}

/// Returns the ids of the collections that apply, and creates those in the manifest that the app lacks. Returns `None`
/// if the app would exceed its maximum.
async fn collections(
    changes: &mut Changes,
    by: Requester<'_>,
    app: &StoredApp,
    resolved: &Resolved,
    known: BTreeMap<String, StoredCollection>,
) -> Decision<Option<BTreeMap<String, Uuid>>> {
    let mut ids = BTreeMap::new();
    if !resolved.declares_collections {
        ids.extend(known.into_iter().map(|(name, collection)| (name, collection.id)));
        return Ok(Some(ids));
    }
    for (name, declared) in &resolved.collections {
        let (kind, capabilities) = (declared.kind.as_str(), json(&declared.capabilities)?);
        let schema = declared.schema.as_ref().map(json).transpose()?;
        let id = match known.get(name) {
            Some(known) if known.kind != kind => {
                let message = format!(
                    "The app has the collection '{name}' of the kind '{}', and the manifest declares one of the kind '{kind}'. Delete it, or \
                     use another name.",
                    known.kind
                );
                return Err(Refusal::new(ErrorCode::CollectionTaken).with_message(message));
            }
            Some(known) => {
                if known.capabilities != capabilities || known.schema != schema {
                    changes.change_collection(known.id, &capabilities, schema.as_deref()).await?;
                }
                known.id
            }
            None => {
                let Some(made) = changes.declare_collection(app, name, kind, &capabilities, schema).await?
                else {
                    return Ok(None);
                };
                changes.audit(&entry(by, AuditAction::AppCollectionCreated, app, name.clone())).await?;
                made.id
            }
        };
        ids.insert(name.clone(), id);
    }
    Ok(Some(ids))
}

fn json(value: &impl serde::Serialize) -> Decision<String> {
    serde_json::to_string(value)
        .map_err(|error| Refusal { cause: Some(error.to_string()), ..Refusal::new(ErrorCode::Internal) })
}
