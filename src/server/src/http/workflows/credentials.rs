//! Checks the credentials named in a graph against its workspace.

use std::collections::BTreeSet;

use auth::scope::Scope;
use engine::CredentialUse;
use sandbox::Sandbox;
use serde_json::Value;
use store::StoredWorkflow;
use uuid::Uuid;
use wire::{FieldError, MOST_PROBLEMS, Readiness};

use super::{names, prices};
use crate::http::error::ApiResult;
use crate::http::guard::{Caller, RouteScope};

/// Errors and warnings about the names in a graph.
#[derive(Default)]
pub(super) struct NameProblems {
    pub(super) errors: Vec<FieldError>,
    pub(super) warnings: Vec<FieldError>,
}

/// Checks every name; pointers start at the graph. Without a workspace, uses the caller's.
pub(super) async fn of_graph<S: RouteScope>(
    caller: &Caller<S>,
    uses: &[CredentialUse],
    workspace: Option<Uuid>,
    sandbox: &Sandbox,
) -> ApiResult<NameProblems> {
    let Some(first) = uses.first() else { return Ok(NameProblems::default()) };
    let workspace = match workspace {
        Some(workspace) => workspace,
        None => caller.workspace().await?,
    };
    let known: BTreeSet<String> = caller.store().credential_names(workspace).await?.into_iter().collect();
    let unknown = uses.iter().filter(|one| !known.contains(&one.name)).take(MOST_PROBLEMS);
    let unknown: Vec<&CredentialUse> = unknown.collect();
    // Suggestions reveal names only to callers who may list them.
    let shown = if caller.principal().may(Scope::VaultRead).is_ok() { known } else { BTreeSet::new() };
    let wanted = unknown.iter().map(|one| one.name.clone()).collect();
    let near = names::similar(sandbox, wanted, shown.into_iter().collect()).await;
    let near = near.into_iter().chain(std::iter::repeat(None));
    let errors = unknown.into_iter().zip(near).map(|(one, near)| of_name(one, near)).collect();
    let mut warnings = Vec::new();
    if caller.app().vault().is_none() {
        let message = "the vault has no key, so a run that reaches this node fails";
        let warning = FieldError::new(first.pointer.clone(), "vault_key_missing", message);
        warnings.push(warning.suggest("the operator sets SERVICE_VAULT_KEYS"));
    }
    Ok(NameProblems { errors, warnings })
}

fn of_name(one: &CredentialUse, near: Option<String>) -> FieldError {
    let name = &one.name;
    let message = format!("this workspace has no credential '{name}'");
    let problem = FieldError::new(one.pointer.clone(), "unknown_credential", message);
    match near {
        Some(near) => problem.suggest(format!("did you mean '{near}'?")),
        None => problem.suggest(format!(
            "create it first: `callboard credential create \"{name}\"`; write literal text as {{{{ \"[[{name}]]\" }}}}"
        )),
    }
}

/// Checks that the live version's credentials exist; `None` if it names none and has no warnings.
pub(super) async fn readiness<S>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
) -> ApiResult<Option<Readiness>> {
    let version = match workflow.live_version {
        Some(number) => caller.store().version(workflow.id, number).await?,
        None => None,
    };
    let graph = version.map(|version| version.graph).unwrap_or_default();
    let chat = serde_json::to_value(&workflow.chat).unwrap_or_default();
    let warnings = prices::unpriced([&graph, &chat], &workflow.chat.limits);
    let mut missing: BTreeSet<String> = engine::credentials(&graph).into_iter().map(|one| one.name).collect();
    let of_settings = ["/title/credential", "/transcription/credential"].map(|place| chat.pointer(place));
    missing.extend(of_settings.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    if missing.is_empty() && warnings.is_empty() {
        return Ok(None);
    }
    for known in caller.store().credential_names(workflow.workspace_id).await? {
        missing.remove(&known);
    }
    let missing_credentials: Vec<String> = missing.into_iter().collect();
    Ok(Some(Readiness { ready: missing_credentials.is_empty(), missing_credentials, warnings }))
}
