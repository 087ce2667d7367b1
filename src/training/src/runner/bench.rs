//! Executes the graphs of evaluators for a case, as cases are executed: same time, same budget, same journal of calls.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::Ports;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::{CaseError, CaseSettings, run_case};
use crate::calls::{Calls, Role, Spent};
use crate::case::Case;
use crate::evaluators::{Bench, BenchError, Executed};

/// How long an evaluator may take for a case, without the time in which its calls wait.
const LIMIT: Duration = Duration::from_secs(60);

/// The evaluators of one sample of a case.
pub struct CaseBench<'a> {
    /// The calls of the run.
    pub calls: &'a Calls,
    /// What the cases of the run have in common.
    pub settings: &'a CaseSettings,
    /// Of the case.
    pub ports: Ports<'a>,
    /// The number of the sample of the case, from 0.
    pub sample: u32,
    /// Candidate and case, in `Idempotency-Key`.
    pub name: &'a str,
    /// The model that judges, as fields of a node.
    pub model: &'a Map<String, Value>,
    /// What the calls have used.
    pub spent: &'a Arc<Mutex<Spent>>,
}

/// Numbers of samples that the evaluators of one sample of a case have for themselves.
const SAMPLES: u32 = 32;

#[async_trait]
impl Bench for CaseBench<'_> {
    fn model(&self) -> &Map<String, Value> {
        self.model
    }

    async fn execute(
        &self,
        graph: Executed<'_>,
        inputs: Map<String, Value>,
        sample: u32,
    ) -> Result<Value, BenchError> {
        let (resolved, role) = match graph {
            Executed::Own(_, role) => (None, role),
            Executed::Workflow(workflow) => {
                let found = self.ports.workflows.find(workflow, None).await;
                (Some(found.map_err(|error| error.message)?), Role::Judge)
            }
        };
        let empty = Map::new();
        let (plan, config) = match (&graph, &resolved) {
            (Executed::Own(plan, _), _) => (*plan, &empty),
            (Executed::Workflow(_), Some(found)) => (&*found.plan, &*found.config),
            (Executed::Workflow(_), None) => return Err("the workflow was not found".to_owned().into()),
        };
        let sample = self.sample.saturating_mul(SAMPLES).saturating_add(sample);
        let scope = self.calls.scope(role, sample, self.name.to_owned()).counted_in(self.spent);
        let case = Case {
            id: "evaluator".to_owned(),
            index: 0,
            inputs,
            expected_output: Value::Null,
            metadata: Map::new(),
        };
        let settings =
            CaseSettings { inputs: Map::new(), mocks: None, limit: LIMIT, ..self.settings.clone() };
        let ran = run_case((plan, config), &case, &settings, &scope, self.ports).await;
        match ran.error {
            None => Ok(ran.output),
            Some(CaseError::Exhausted) => Err(BenchError::Exhausted),
            Some(CaseError::Timeout) => Err(format!("it took longer than {} s", LIMIT.as_secs()).into()),
            Some(error) => Err(error.message().into()),
        }
    }
}
