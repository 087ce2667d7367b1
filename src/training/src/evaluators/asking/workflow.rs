//! `workflow:<handle>`: another workflow judges. Its inputs are everything that evaluators know of a case, its output is the verdict.

use async_trait::async_trait;
use engine::Reference;
use serde_json::{Map, Value};

use crate::estimate::{CallRange, calls_of_graph};
use crate::evaluators::bench::{BenchError, Executed};
use crate::evaluators::judge::{Ask, Asking};
use crate::evaluators::subject::Subject;
use crate::evaluators::verdict::{Verdict, normalized};
use crate::pins::Resolution;

pub(in crate::evaluators) struct WorkflowJudge {
    pub(in crate::evaluators) reference: Reference,
    pub(in crate::evaluators) config: Value,
}

#[async_trait]
impl Asking for WorkflowJudge {
    async fn judge(
        &self,
        subject: &Subject<'_>,
        threshold: Option<f64>,
        ask: Ask<'_>,
    ) -> Result<Verdict, BenchError> {
        let mut inputs = subject.context();
        inputs.insert("config".to_owned(), self.config.clone());
        let said = ask.execute(Executed::Workflow(&self.reference.workflow), inputs, 0).await?;
        Ok(normalized(&said, threshold.unwrap_or(0.5))?)
    }

    fn calls(&self, resolution: &Resolution) -> CallRange {
        resolution
            .graph(&self.reference)
            .map_or_else(CallRange::default, |graph| calls_of_graph(graph, resolution))
    }

    fn problem(&self, _model: &Map<String, Value>) -> Option<String> {
        None
    }

    fn workflow(&self) -> Option<&Reference> {
        Some(&self.reference)
    }
}
