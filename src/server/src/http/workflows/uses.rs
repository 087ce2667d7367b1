//! A workflow's uses, for people who are about to archive it.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use store::{LiveGraph, StoredWorkflow};
use wire::{BindingUse, WorkflowUses};

use crate::http::error::ApiResult;
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::query;

/// Returns its triggers, its publication, and the apps and workflows that run it.
pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<WorkflowUses>> {
    let workflow = caller.workflow(&name).await?;
    query::none(&request)?;
    let store = caller.store();
    let mut triggers = Vec::new();
    if store.cron_trigger(workflow.id).await?.is_some() {
        triggers.push("cron".to_owned());
    }
    if store.webhook(workflow.id).await?.is_some() {
        triggers.push("webhook".to_owned());
    }
    let bindings = store.bindings_to(&workflow).await?;
    let apps = bindings.into_iter().map(|found| BindingUse { app: found.alias, binding: found.binding });
    let graphs = store.graphs_naming(&workflow).await?;
    let workflows = graphs.into_iter().filter(|found| runs(found, &workflow)).map(|found| found.handle);
    Ok(Json(WorkflowUses {
        is_public: workflow.is_public,
        triggers,
        apps: apps.collect(),
        workflows: workflows.collect(),
    }))
}

/// Whether a node or tool in the graph runs the workflow.
fn runs(found: &LiveGraph, workflow: &StoredWorkflow) -> bool {
    let id = workflow.id.to_string();
    let names = |name: &str| name == workflow.handle || name.eq_ignore_ascii_case(&id);
    engine::references(&found.graph).iter().any(|reference| names(&reference.workflow))
}
