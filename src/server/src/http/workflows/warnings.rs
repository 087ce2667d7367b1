//! Warnings for graphs that name a missing workflow, which may exist later.

use std::collections::BTreeMap;

use engine::Reference;
use sandbox::Sandbox;
use store::{StoredWorkflow, WorkflowRef};
use wire::{FieldError, MOST_PROBLEMS};

use super::names;
use crate::http::error::ApiResult;
use crate::http::fields::shortened;
use crate::http::guard::{Caller, RouteScope};

/// Maximum handles searched for a similar one.
const MOST_HANDLES: i64 = 1000;

/// Returns warnings about the workflows that a graph names; pointers start at the graph. `saving` is the workflow whose
/// next version the graph will become; the graph may name it.
pub(super) async fn of_references<S: RouteScope>(
    caller: &Caller<S>,
    references: &[Reference],
    saving: Option<&StoredWorkflow>,
    sandbox: &Sandbox,
) -> ApiResult<Vec<FieldError>> {
    if references.is_empty() {
        return Ok(Vec::new());
    }
    let workspace = match saving {
        Some(workflow) => workflow.workspace_id,
        None => caller.workspace().await?,
    };
    let saving = saving.map(|workflow| workflow.id);
    let mut known: BTreeMap<&str, Option<StoredWorkflow>> = BTreeMap::new();
    let (mut warnings, mut missing, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    // Each reference costs one or two queries.
    for reference in references.iter().take(MOST_PROBLEMS) {
        let name = reference.workflow.as_str();
        if !known.contains_key(name) {
            let found = caller.store().workflow(&WorkflowRef::parse(name), workspace).await?;
            known.insert(name, found.filter(|found| found.workspace_id == workspace));
        }
        match known.get(name).and_then(Option::as_ref) {
            Some(workflow) if saving == Some(workflow.id) && is_next(reference, workflow) => {}
            Some(workflow) => warnings.extend(of_version(caller, reference, workflow).await?),
            None => {
                missing.push(warnings.len());
                wanted.push(name.to_owned());
                warnings.push(of_workflow(reference));
            }
        }
    }
    if wanted.is_empty() {
        return Ok(warnings);
    }
    let handles = caller.store().workflows(workspace, false, None, MOST_HANDLES).await?;
    let handles = handles.into_iter().map(|workflow| workflow.handle).collect();
    for (index, near) in missing.into_iter().zip(names::similar(sandbox, wanted, handles).await) {
        if let (Some(warning), Some(near)) = (warnings.get_mut(index), near) {
            warning.suggestion = Some(format!("did you mean '{near}'?"));
        }
    }
    Ok(warnings)
}

/// Whether the reference means the version about to be saved, or the live version at run time.
fn is_next(reference: &Reference, workflow: &StoredWorkflow) -> bool {
    let next = workflow.latest_version.unwrap_or(0).saturating_add(1);
    reference.version.is_none_or(|wanted| i32::try_from(wanted).is_ok_and(|wanted| wanted == next))
}

fn of_workflow(reference: &Reference) -> FieldError {
    let name = shortened(&reference.workflow);
    let message = format!("this workspace has no workflow '{name}'");
    FieldError::new(format!("{}/workflow", reference.pointer), "unknown_workflow", message)
        .suggest("create it before you run this one; until then a run that reaches this node fails")
}

async fn of_version<S: RouteScope>(
    caller: &Caller<S>,
    reference: &Reference,
    workflow: &StoredWorkflow,
) -> ApiResult<Option<FieldError>> {
    let name = &workflow.handle;
    let Some(latest) = workflow.latest_version else {
        let message = format!("the workflow '{name}' has no version yet");
        let pointer = format!("{}/workflow", reference.pointer);
        return Ok(Some(FieldError::new(pointer, "no_version", message)));
    };
    let Some(wanted) = reference.version else { return Ok(None) };
    let there = match i32::try_from(wanted) {
        Ok(number) => caller.store().version(workflow.id, number).await?.is_some(),
        Err(_) => false,
    };
    if there {
        return Ok(None);
    }
    let message = format!("the workflow '{name}' has no version {wanted}");
    let warning = FieldError::new(format!("{}/version", reference.pointer), "unknown_version", message);
    Ok(Some(warning.suggest(format!("its latest is {latest}; without 'version' the live version is used"))))
}
