//! What evaluators need from outside that do more than compare.

use async_trait::async_trait;
use engine::Plan;
use serde_json::{Map, Value};

use super::asking::{FunctionName, PostTarget};
use crate::calls::Role;

/// Executes what evaluators need: graphs, functions, requests.
#[async_trait]
pub trait Bench: Send + Sync {
    /// The model that judges unless an evaluator names one, as fields of a node: `model`, `base_url`, `api_key`. Empty if there is none.
    fn model(&self) -> &Map<String, Value>;

    /// The output of a graph with these inputs, or the answer of a function or a service to them. `sample`: the number of the execution among those of one verdict, from 0.
    ///
    /// # Errors
    /// [`BenchError`] if there is no output.
    async fn execute(
        &self,
        graph: Executed<'_>,
        inputs: Map<String, Value>,
        sample: u32,
    ) -> Result<Value, BenchError>;
}

/// What is executed.
#[derive(Clone, Copy)]
pub enum Executed<'a> {
    /// An evaluator's own graph, whose calls count under this role.
    Own(&'a Plan, Role),
    /// The workflow with this handle or id, at this version; `None`: the live one.
    Workflow(&'a str, Option<u64>),
    /// A function of the graph that is evaluated.
    Function(&'a FunctionName),
    /// Another service.
    Post(&'a PostTarget),
}

/// An evaluator has no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BenchError {
    /// The budget of the run is spent: the case has no score.
    Exhausted,
    /// The evaluator failed.
    Failed(String),
}

impl From<String> for BenchError {
    fn from(error: String) -> Self {
        Self::Failed(error)
    }
}

/// Executes nothing: for evaluators that only compare.
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
