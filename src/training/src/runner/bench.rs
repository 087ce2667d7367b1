//! Executes the graphs, functions and requests of evaluators. Graphs run as cases do: same time in templates, same
//! budget, same call journal.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::outbox::{SignedPost, post_signed};
use engine::ports::Ports;
use engine::{NodeError, Plan};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use wire::ErrorCode;

use super::{CaseError, CaseSettings, run_case};
use crate::calls::{Calls, Role, Spent};
use crate::case::Case;
use crate::evaluators::{Bench, BenchError, Executed, FunctionName, PostTarget};

/// Maximum duration of an evaluator per case, without the time in which its calls wait.
const LIMIT: Duration = Duration::from_secs(60);
/// Maximum duration of a function per verdict.
const FUNCTION_TIME: Duration = Duration::from_secs(2);
/// Maximum bytes of a function's result.
const FUNCTION_RESULT: usize = 64 << 10;
/// Maximum calls of a function while no worker is free, and the pause between them; a busy pool is not the function's
/// fault.
const BUSY_CALLS: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_secs(1);
/// Maximum duration of a service request per verdict, and maximum bytes of its answer.
const POST_LIMIT: Duration = Duration::from_secs(30);
const LONGEST_ANSWER: u64 = 1 << 20;

/// Runs the evaluators for one sample of a case.
pub struct CaseBench<'a> {
    /// The evaluated graph.
    pub plan: &'a Plan,
    /// The run's calls.
    pub calls: &'a Calls,
    /// The settings that all cases of the run share.
    pub settings: &'a CaseSettings,
    /// The case's ports.
    pub ports: Ports<'a>,
    /// The sample number of the case, from 0.
    pub sample: u32,
    /// Candidate and case, as used in `Idempotency-Key`.
    pub name: &'a str,
    /// The judge model, as node fields.
    pub model: &'a Map<String, Value>,
    /// Usage of the calls so far.
    pub spent: &'a Arc<Mutex<Spent>>,
}

/// Sample numbers reserved for the evaluators of each case sample.
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
            Executed::Function(name) => return self.call(name, inputs).await,
            Executed::Post(target) => return self.post(target, inputs).await,
            Executed::Own(_, role) => (None, role),
            Executed::Workflow(workflow, version) => {
                let version = version.and_then(|version| u32::try_from(version).ok());
                let found = self.ports.workflows.find(workflow, version).await;
                (Some(found.map_err(|error| error.message)?), Role::Judge)
            }
        };
        let empty = Map::new();
        let (plan, config) = match (&graph, &resolved) {
            (Executed::Own(plan, _), _) => (*plan, &empty),
            (Executed::Workflow(..), Some(found)) => (&*found.plan, &*found.config),
            _ => return Err("the workflow was not found".to_owned().into()),
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
        let ran = run_case(plan, config, &case, &settings, &scope, self.ports).await;
        match ran.error {
            None => Ok(ran.output),
            Some(CaseError::Exhausted) => Err(BenchError::Exhausted),
            Some(CaseError::Timeout) => Err(format!("it took longer than {} s", LIMIT.as_secs()).into()),
            Some(error) => Err(error.message().into()),
        }
    }
}

impl CaseBench<'_> {
    /// Calls a function of the graph.
    async fn call(&self, name: &FunctionName, context: Map<String, Value>) -> Result<Value, BenchError> {
        let failed = |error: NodeError| BenchError::Failed(error.message);
        let function = self.plan.function(&name.module, &name.function).map_err(failed)?;
        let context = Value::Object(context);
        for _ in 1..BUSY_CALLS {
            match function.call(context.clone(), FUNCTION_TIME, FUNCTION_RESULT, self.ports.sandbox).await {
                Err(error) if error.code == ErrorCode::CodeBusy => self.ports.clock.sleep(BUSY_PAUSE).await,
                called => return called.map_err(failed),
            }
        }
        function.call(context, FUNCTION_TIME, FUNCTION_RESULT, self.ports.sandbox).await.map_err(failed)
    }

    /// Posts to a service. A repeated verdict sends the same idempotency key.
    async fn post(&self, target: &PostTarget, context: Map<String, Value>) -> Result<Value, BenchError> {
        let PostTarget { pointer, credential, url, .. } = target;
        let key = format!("{}-{}-{}-{pointer}", self.settings.run, self.name, self.sample);
        let post = SignedPost { key: &key, url, credential, most: LONGEST_ANSWER, limit: POST_LIMIT };
        let Ports { credentials, outbound, clock, .. } = self.ports;
        let answered = post_signed(post, Value::Object(context), credentials, outbound, clock).await;
        answered.map_err(|error| BenchError::Failed(error.message))
    }
}
