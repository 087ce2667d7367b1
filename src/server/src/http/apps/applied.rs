//! The bindings and collections that apply to a deployment, and their permissions.

use std::collections::BTreeMap;

use bundle::{MANIFEST, declared};
use control::apps::Resolved;
use store::{Drafts, StoredApp, StoredDeployment};
use uuid::Uuid;
use wire::{
    AppBinding, AppCollection, BundleFinding, CollectionRecord, FrozenBinding, Permissions, PermissionsRecord,
};

use super::permissions::PagePermissions;
use super::preflight::{Preflight, Walked, preflight};
use super::{drafts, permissions, records};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Caller;

/// The bindings and collections that apply to a deployment.
pub(super) struct Applied {
    pub(super) bindings: BTreeMap<String, AppBinding>,
    pub(super) collections: BTreeMap<String, AppCollection>,
    declares_bindings: bool,
    declares_collections: bool,
    /// The app's own drafts.
    drafts: Drafts,
}

impl Applied {
    /// Uses the parts declared in the manifest, and the app's drafts for the others.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer.
    pub(super) async fn new<S>(
        caller: &Caller<S>,
        app: &StoredApp,
        bindings: Option<BTreeMap<String, AppBinding>>,
        collections: Option<BTreeMap<String, AppCollection>>,
    ) -> ApiResult<Self> {
        let (declares_bindings, declares_collections) = (bindings.is_some(), collections.is_some());
        let drafts = match (declares_bindings, declares_collections) {
            (true, true) => Drafts::default(),
            _ => caller.store().drafts(app.id).await?,
        };
        let bindings = match bindings {
            Some(bindings) => bindings,
            None => {
                let read =
                    |(name, binding): (&String, &String)| Ok((name.clone(), records::stored(binding)?));
                drafts.bindings.iter().map(read).collect::<ApiResult<_>>()?
            }
        };
        let collections = match collections {
            Some(collections) => collections,
            None => {
                let read = |row: store::StoredCollection| {
                    let CollectionRecord { name, kind, capabilities, schema, .. } = records::collection(row)?;
                    Ok((name, AppCollection { kind, capabilities, schema }))
                };
                drafts.collections.values().cloned().map(read).collect::<ApiResult<_>>()?
            }
        };
        Ok(Self { bindings, collections, declares_bindings, declares_collections, drafts })
    }

    /// The parts that currently apply to a stored deployment.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer.
    pub(super) async fn for_deployment<S>(
        caller: &Caller<S>,
        app: &StoredApp,
        deployment: &StoredDeployment,
    ) -> ApiResult<Self> {
        let read = |declares: bool, json: &str| declares.then(|| records::stored(json)).transpose();
        let bindings = read(deployment.declares_bindings, &deployment.bindings)?;
        let collections = deployment.declares_collections.then(|| records::stored(&deployment.collections));
        Self::new(caller, app, bindings, collections.transpose()?).await
    }

    /// Whether the manifest declares bindings, and whether it declares collections.
    pub(super) fn declares(&self) -> (bool, bool) {
        (self.declares_bindings, self.declares_collections)
    }

    /// Validates the parts and determines their permissions.
    ///
    /// # Errors
    /// The findings; 503 if the check takes too long.
    pub(super) async fn check<S>(
        &self,
        caller: &Caller<S>,
        app: &StoredApp,
        pages: PagePermissions,
    ) -> ApiResult<CheckedPermissions> {
        match self.inspect(caller, app, pages).await? {
            Ok(checked) => Ok(checked),
            Err(findings) => Err(ApiError::found(findings)),
        }
    }

    /// Like [`Self::check`], but returns findings as a value.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer, 503 if the check takes too long.
    pub(super) async fn inspect<S>(
        &self,
        caller: &Caller<S>,
        app: &StoredApp,
        pages: PagePermissions,
    ) -> ApiResult<Result<CheckedPermissions, Vec<BundleFinding>>> {
        let path = if self.declares_bindings { MANIFEST } else { "bindings" };
        if !self.declares_bindings || !self.declares_collections {
            let findings = declared::together(&self.bindings, &self.collections);
            if !findings.is_empty() {
                return Ok(Err(drafts::found_in(path, findings)));
            }
        }
        let clock = &**caller.app().clock();
        let found =
            preflight(caller.store(), app.workspace_id, &self.bindings, &self.collections, path, clock)
                .await?;
        if !found.findings.is_empty() {
            return Ok(Err(found.findings));
        }
        let permissions = permissions::collect(&self.bindings, &self.collections, &found, pages);
        let revision = permissions::revision(&permissions)?;
        Ok(Ok(CheckedPermissions { found, permissions, revision }))
    }

    /// Assembles everything that a release of the deployment freezes.
    ///
    /// # Errors
    /// [`ApiError`] if a part cannot be serialized.
    pub(super) fn resolve(
        self,
        checked: CheckedPermissions,
        deployment: &StoredDeployment,
        release: Uuid,
    ) -> ApiResult<Resolved> {
        let CheckedPermissions { found, permissions, revision } = checked;
        let permissions = records::json(&permissions)?;
        let mut walked = found.bindings;
        let frozen = self.bindings.into_iter().filter_map(|(name, binding)| {
            let walked = walked.remove(&name)?;
            Some((name, frozen(binding, walked)))
        });
        Ok(Resolved {
            release,
            deployment: deployment.listed.id,
            drafts: self.drafts,
            declares_bindings: self.declares_bindings,
            declares_collections: self.declares_collections,
            bindings: frozen.collect(),
            collections: self.collections,
            workflows: found.workflows.into_keys().collect(),
            permission_revision: revision,
            permissions,
            spa: deployment.listed.spa,
            frame_ancestors: deployment.listed.frame_ancestors.clone(),
            wasm: deployment.listed.wasm,
        })
    }
}

/// The result of a check without findings.
pub(super) struct CheckedPermissions {
    found: Preflight,
    permissions: Permissions,
    pub(super) revision: String,
}

impl CheckedPermissions {
    /// Creates the API record.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer.
    pub(super) async fn record<S>(self, caller: &Caller<S>, app: &StoredApp) -> ApiResult<PermissionsRecord> {
        let store = caller.store();
        let active = match app.active_release {
            Some(active) => store.release(app.id, active).await?,
            None => None,
        };
        let before = active.map(|release| records::stored(&release.permissions)).transpose()?;
        Ok(PermissionsRecord {
            acknowledged: store.is_acknowledged(app.id, &self.revision).await?,
            changes: permissions::changes(&before.unwrap_or_default(), &self.permissions)?,
            permission_revision: self.revision,
            permissions: self.permissions,
            workflows: self.found.workflows.into_iter().map(|(id, shown)| (id.to_string(), shown)).collect(),
        })
    }
}

fn frozen(binding: AppBinding, walked: Walked) -> FrozenBinding {
    FrozenBinding {
        workflow_id: walked.workflow.to_string(),
        workflow_handle: walked.handle,
        version: walked.version,
        version_id: walked.version_id.to_string(),
        digest: walked.digest,
        runnable_config: walked.runnable_config.map(serde_json::Value::Object),
        includes: walked.includes.into_iter().collect(),
        access_mode: binding.access_mode,
        input_schema: binding.input_schema,
        output_projection: binding.output_projection,
        visitor_can_read_output: binding.visitor_can_read_output,
        limits: binding.limits,
    }
}
