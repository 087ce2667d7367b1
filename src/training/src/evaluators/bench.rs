//! The port for evaluators that do more than compare.

use async_trait::async_trait;
use engine::Plan;
use serde_json::{Map, Value};

use super::asking::{FunctionName, PostTarget};
use crate::calls::Role;

/// Executes graphs, functions and requests for evaluators.
#[async_trait]
pub trait Bench: Send + Sync {
    /// The default judge model for evaluators that name none, as node fields: `model`, `base_url`, `api_key`. May be
    /// empty.
    fn model(&self) -> &Map<String, Value>;

    /// Executes a graph, a function or a service request with these inputs and returns its output. `sample`: the
    /// execution's number within one verdict, from 0.
    ///
    /// # Errors
    /// [`BenchError`] without an output.
    async fn execute(
        &self,
        graph: Executed<'_>,
        inputs: Map<String, Value>,
        sample: u32,
    ) -> Result<Value, BenchError>;
}

/// The target of an execution.
#[derive(Clone, Copy)]
pub enum Executed<'a> {
    /// An evaluator's own graph; its calls count under this role.
    Own(&'a Plan, Role),
    /// The workflow with this handle or id, at this version; `None`: the live one.
    Workflow(&'a str, Option<u64>),
    /// A function of the evaluated graph.
    Function(&'a FunctionName),
    /// Another service.
    Post(&'a PostTarget),
}

/// The reason why an evaluator has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchError {
    /// The run's budget is spent: the case has no score.
    Exhausted,
    /// The evaluator failed.
    Failed(String),
}

impl From<String> for BenchError {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

/// Executes nothing, for evaluators that only compare.
#[derive(Debug, Clone, Default)]
pub struct NoBench(Map<String, Value>);

#[async_trait]
impl Bench for NoBench {
    fn model(&self) -> &Map<String, Value> {
        &self.0
    }

    async fn execute(&self, _: Executed<'_>, _: Map<String, Value>, _: u32) -> Result<Value, BenchError> {
        Err(BenchError::Failed("the evaluator needs more than the result of the case".to_owned()))
    }
}
