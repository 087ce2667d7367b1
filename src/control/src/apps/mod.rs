//! Hosted apps: created, changed, deployed to, published, deleted.

mod releases;

use auth::scope::Scope;
use store::{
    AppChange, AuditEntry, AuditOutcome, AuditTarget, Changes, NewApp, NewFile, SetBinding, StoredApp,
    StoredBinding, StoredCollection, StoredDeployment, StoredWorkspace,
};
use uuid::Uuid;
use wire::{AuditAction, CreateApp, ErrorCode, UpdateApp};

use crate::{Decision, Refusal, Requester, place};
pub use releases::{PublishOutcome, Resolved, acknowledge, publish, roll_back};

/// A host that browsers often try on their own.
const RESERVED: &str = "www";
/// Maximum characters of a host label.
const LONGEST_ALIAS: usize = 63;

/// Whether a text can be an app alias. Ids cannot: an app is found by either.
#[must_use]
pub fn is_alias(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=LONGEST_ALIAS).contains(&text.len())
        && text.bytes().all(plain)
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text != RESERVED
        && Uuid::parse_str(text).is_err()
}

/// Checks that the caller may decide what the workspace's app visitors receive. This takes the scope and, for members,
/// the role admin or owner.
///
/// # Errors
/// [`ErrorCode::MissingScope`].
pub fn check_publishes(by: Requester<'_>, workspace: &StoredWorkspace) -> Decision<()> {
    let holds_scope = by.principal.may_in(Scope::AppsPublish, place(workspace)).is_ok();
    if holds_scope && by.principal.may_publish_in(workspace.id) {
        return Ok(());
    }
    Err(Refusal::missing([Scope::AppsPublish].into_iter().collect()))
}

/// Creates an app.
///
/// # Errors
/// [`ErrorCode::AliasTaken`], [`ErrorCode::WorkspaceForbidden`] if the workspace was deleted meanwhile.
pub async fn create(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: Uuid,
    wanted: &CreateApp,
) -> Decision<StoredApp> {
    if !changes.hold_workspace(workspace).await? {
        return Err(Refusal::new(ErrorCode::WorkspaceForbidden));
    }
    let access = wanted.access.unwrap_or_default().as_str();
    let new = NewApp { workspace, alias: &wanted.alias, name: &wanted.name, access };
    let made = changes.create_app(new).await?;
    changes.audit(&entry(by, AuditAction::AppCreated, &made, made.alias.clone())).await?;
    Ok(made)
}

/// Changes an app's name or access.
///
/// # Errors
/// [`ErrorCode::AppNotFound`].
pub async fn update(
    changes: &mut Changes,
    by: Requester<'_>,
    app: Uuid,
    wanted: UpdateApp,
) -> Decision<StoredApp> {
    let not_found = || Refusal::new(ErrorCode::AppNotFound);
    let before = changes.lock_app(app).await?.ok_or_else(not_found)?;
    let change =
        AppChange { name: wanted.name, access: wanted.access.map(|access| access.as_str().to_owned()) };
    let is_new = |new: &Option<String>, old: &String| new.as_ref().is_some_and(|new| new != old);
    if !is_new(&change.name, &before.name) && !is_new(&change.access, &before.access) {
        return Ok(before);
    }
    let changed = changes.change_app(app, change).await?.ok_or_else(not_found)?;
    if changed.name != before.name {
        changes.audit(&entry(by, AuditAction::AppUpdated, &changed, changed.name.clone())).await?;
    }
    if changed.access != before.access {
        changes.audit(&entry(by, AuditAction::AppAccessChanged, &changed, changed.access.clone())).await?;
    }
    Ok(changed)
}

/// Deletes an app.
///
/// # Errors
/// [`ErrorCode::AppNotFound`].
pub async fn delete(changes: &mut Changes, by: Requester<'_>, app: &StoredApp) -> Decision<()> {
    if !changes.delete_app(app.id).await? {
        return Err(Refusal::new(ErrorCode::AppNotFound));
    }
    Ok(changes.audit(&entry(by, AuditAction::AppDeleted, app, app.alias.clone())).await?)
}

/// Stores an accepted bundle as a deployment; its files are stored as blobs.
///
/// # Errors
/// [`ErrorCode::AppNotFound`] if the app was deleted meanwhile.
pub async fn deploy(
    changes: &mut Changes,
    by: Requester<'_>,
    new: StoredDeployment,
    files: &[NewFile],
) -> Decision<StoredDeployment> {
    let app =
        changes.lock_app(new.listed.app_id).await?.ok_or_else(|| Refusal::new(ErrorCode::AppNotFound))?;
    let made = changes.create_deployment(new, files).await?;
    changes.audit(&entry(by, AuditAction::AppDeployed, &app, made.listed.id.to_string())).await?;
    Ok(made)
}

/// Deletes a deployment without a release.
///
/// # Errors
/// [`ErrorCode::AppNotFound`], [`ErrorCode::DeploymentReleased`].
pub async fn delete_deployment(
    changes: &mut Changes,
    by: Requester<'_>,
    app: Uuid,
    deployment: Uuid,
) -> Decision<()> {
    let app = changes.lock_app(app).await?.ok_or_else(|| Refusal::new(ErrorCode::AppNotFound))?;
    if !changes.delete_unreleased(app.id, deployment).await? {
        return Err(Refusal::new(ErrorCode::DeploymentReleased));
    }
    Ok(changes.audit(&entry(by, AuditAction::AppDeploymentDeleted, &app, deployment.to_string())).await?)
}

/// Creates or replaces a binding; the flag says whether the name is new. Returns `None` if the app has the maximum
/// number of bindings.
///
/// # Errors
/// [`ErrorCode::AppNotFound`].
pub async fn set_binding(
    changes: &mut Changes,
    by: Requester<'_>,
    app: Uuid,
    name: &str,
    binding: &str,
) -> Decision<Option<(StoredBinding, bool)>> {
    let app = changes.lock_app(app).await?.ok_or_else(|| Refusal::new(ErrorCode::AppNotFound))?;
    let SetBinding::Set(set, is_new) = changes.set_binding(app.id, app.workspace_id, name, binding).await?
    else {
        return Ok(None);
    };
    changes.audit(&entry(by, AuditAction::AppBindingSet, &app, name.to_owned())).await?;
    Ok(Some((set, is_new)))
}

/// Deletes a binding.
///
/// # Errors
/// [`ErrorCode::AppNotFound`], [`ErrorCode::BindingNotFound`].
pub async fn delete_binding(changes: &mut Changes, by: Requester<'_>, app: Uuid, name: &str) -> Decision<()> {
    let app = changes.lock_app(app).await?.ok_or_else(|| Refusal::new(ErrorCode::AppNotFound))?;
    if name.contains('\0') || !changes.delete_binding(app.id, name).await? {
        return Err(Refusal::new(ErrorCode::BindingNotFound));
    }
    Ok(changes.audit(&entry(by, AuditAction::AppBindingDeleted, &app, name.to_owned())).await?)
}

/// Creates a collection. Returns `None` if the app has the maximum number of collections.
///
/// # Errors
/// [`ErrorCode::AppNotFound`], [`ErrorCode::CollectionTaken`].
pub async fn create_collection(
    changes: &mut Changes,
    by: Requester<'_>,
    new: StoredCollection,
) -> Decision<Option<StoredCollection>> {
    let app = changes.lock_app(new.app_id).await?.ok_or_else(|| Refusal::new(ErrorCode::AppNotFound))?;
    let Some(made) = changes.create_collection(new).await? else { return Ok(None) };
    changes.audit(&entry(by, AuditAction::AppCollectionCreated, &app, made.name.clone())).await?;
    Ok(Some(made))
}

/// Deletes a collection.
///
/// # Errors
/// [`ErrorCode::AppNotFound`], [`ErrorCode::CollectionNotFound`].
pub async fn delete_collection(
    changes: &mut Changes,
    by: Requester<'_>,
    app: Uuid,
    name: &str,
) -> Decision<()> {
    let app = changes.lock_app(app).await?.ok_or_else(|| Refusal::new(ErrorCode::AppNotFound))?;
    if name.contains('\0') || !changes.delete_collection(app.id, name).await? {
        return Err(Refusal::new(ErrorCode::CollectionNotFound));
    }
    Ok(changes.audit(&entry(by, AuditAction::AppCollectionDeleted, &app, name.to_owned())).await?)
}

/// An audit entry for a rejected bundle.
#[must_use]
pub fn refused(by: Requester<'_>, app: &StoredApp, code: ErrorCode) -> AuditEntry {
    let entry = entry(by, AuditAction::AppDeployRefused, app, code.as_str().to_owned());
    AuditEntry { outcome: AuditOutcome::Denied, ..entry }
}

/// Deletes the apps of a deleted workspace.
pub(crate) async fn delete_all(changes: &mut Changes, by: Requester<'_>, workspace: Uuid) -> Decision<()> {
    for app in changes.delete_apps_of(workspace).await? {
        let reason = "its workspace was deleted".to_owned();
        changes.audit(&entry(by, AuditAction::AppDeleted, &app, reason)).await?;
    }
    Ok(())
}

fn entry(by: Requester<'_>, action: AuditAction, app: &StoredApp, reason: String) -> AuditEntry {
    let target = AuditTarget { kind: "app", id: app.id.to_string() };
    by.audit(action, target, Some(app.workspace_id), Some(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alias_is_a_label_of_a_host() {
        let longest = "a".repeat(LONGEST_ALIAS);
        for alias in ["a", "0", "my-app", "a--b", "www2", "api", longest.as_str()] {
            assert!(is_alias(alias), "{alias}");
        }
        let too_long = "a".repeat(LONGEST_ALIAS + 1);
        let id = "0190b0a0-0000-7000-8000-000000000000";
        for text in
            ["", "-a", "a-", "A", "a.b", "a_b", "ü", "a\n", "www", id, &id.replace('-', ""), &too_long]
        {
            assert!(!is_alias(text), "{text}");
        }
    }
}
