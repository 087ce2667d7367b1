//! `workflow:<handle>` and `workflow:<handle>@<version>`: another workflow judges. Its inputs are the evaluators'
//! whole context, its output is the verdict.

use async_trait::async_trait;
use engine::Reference;
use serde_json::Value;
use wire::FieldError;

use crate::estimate::{CallRange, calls_of_graph};
use crate::evaluators::Evaluator;
use crate::evaluators::bench::Executed;
use crate::evaluators::builtin::known_evaluators;
use crate::evaluators::judge::{Ask, Asking, VerdictResult};
use crate::evaluators::subject::Subject;
use crate::evaluators::verdict::normalized;
use crate::pins::Resolution;

/// Reports missing workflows that judge; replaces the problem that [`resolve`](crate::resolve) reported for such a
/// reference.
pub fn check_workflows(evaluators: &[Evaluator], resolution: &Resolution, problems: &mut Vec<FieldError>) {
    // The resolution stopped before it reached all workflows.
    if problems.iter().any(|problem| problem.code == "too_large") {
        return;
    }
    for reference in evaluators.iter().flat_map(Evaluator::workflows) {
        if resolution.graph(&reference).is_some() {
            continue;
        }
        let Reference { pointer, workflow, .. } = reference;
        problems.retain(|problem| problem.pointer != pointer || problem.code != "workflow_not_found");
        let message =
            format!("this workspace has no workflow '{workflow}' with a version; {}", known_evaluators(&[]));
        problems.push(FieldError::new(pointer, "evaluator_not_found", message));
    }
}

pub(in crate::evaluators) struct WorkflowJudge {
    pub(in crate::evaluators) reference: Reference,
    pub(in crate::evaluators) config: Value,
}

#[async_trait]
impl Asking for WorkflowJudge {
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult {
        let inputs = subject.context(&self.config);
        let Reference { workflow, version, .. } = &self.reference;
        let said = ask.execute(Executed::Workflow(workflow, *version), inputs, 0).await?;
        Ok(normalized(&said, threshold.unwrap_or(0.5))?)
    }

    fn calls(&self, resolution: &Resolution) -> CallRange {
        resolution
            .graph(&self.reference)
            .map_or_else(CallRange::default, |graph| calls_of_graph(graph, resolution))
    }

    fn workflow(&self) -> Option<&Reference> {
        Some(&self.reference)
    }
}
