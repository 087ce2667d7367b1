//! The evaluators of a request by their needs: none, something outside this package, or other evaluators.

use async_trait::async_trait;
use engine::Reference;
use serde_json::{Map, Value};

use super::asking::{FunctionName, PostTarget};
use super::bench::{Bench, BenchError, Executed};
use super::combine::Combined;
use super::subject::Subject;
use super::verdict::Verdict;
use crate::estimate::CallRange;
use crate::pins::Resolution;

/// Judges a case result from its content alone. Pure.
pub(super) trait Judge: Send + Sync {
    /// `threshold`: as in the request, if set.
    ///
    /// # Errors
    /// The reason why the case cannot be judged.
    fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>) -> Result<Verdict, String>;
}

/// Maximum samples per verdict.
pub(super) const MOST_SAMPLES: u32 = 9;

/// Executes an evaluator's graphs for one verdict.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    bench: &'a dyn Bench,
    /// The number of its first sample.
    first: u32,
}

impl Ask<'_> {
    pub(super) fn model(&self) -> &Map<String, Value> {
        self.bench.model()
    }

    /// See [`Bench::execute`].
    pub(super) async fn execute(
        &self,
        graph: Executed<'_>,
        inputs: Map<String, Value>,
        sample: u32,
    ) -> Result<Value, BenchError> {
        self.bench.execute(graph, inputs, self.first.saturating_add(sample)).await
    }
}

/// A verdict, or the reason why the case cannot be judged now.
pub(super) type VerdictResult = Result<Verdict, BenchError>;

/// Judges a case result with a model, another workflow, a function or another service.
#[async_trait]
pub(super) trait Asking: Send + Sync {
    /// See [`Judge::judge`].
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult;

    /// The calls per verdict, without a second attempt; zero unless it asks a model.
    fn calls(&self, _resolution: &Resolution) -> CallRange {
        CallRange::exactly(0)
    }

    /// The problem with the model that it would use, if any; `model`: from [`Bench::model`].
    fn problem(&self, _model: &Map<String, Value>) -> Option<String> {
        None
    }

    /// The workflow that it executes.
    fn workflow(&self) -> Option<&Reference> {
        None
    }

    /// Whether it may ask a model, so that verdicts about the same result may differ.
    fn asks_model(&self) -> bool {
        self.function().is_none() && self.post().is_none()
    }

    /// The function that it calls.
    fn function(&self) -> Option<&FunctionName> {
        None
    }

    /// The service that it asks.
    fn post(&self) -> Option<&PostTarget> {
        None
    }
}

/// The implementation of an evaluator.
pub(super) enum Judging {
    Pure(Box<dyn Judge>),
    Asking(Box<dyn Asking>),
    Combined(Box<Combined>),
}

impl Judging {
    pub(super) async fn judge(
        &self,
        subject: &Subject<'_>,
        threshold: Option<f64>,
        bench: &dyn Bench,
    ) -> Result<Verdict, BenchError> {
        match self {
            Self::Pure(judge) => judge.judge(subject, threshold).map_err(BenchError::Failed),
            Self::Asking(asking) => match asking.judge(subject, threshold, Ask { bench, first: 0 }).await {
                // Retries once with other seeds: an endpoint may have failed, or a model may have ignored the format.
                Err(BenchError::Failed(_)) => {
                    asking.judge(subject, threshold, Ask { bench, first: MOST_SAMPLES }).await
                }
                judged => judged,
            },
            Self::Combined(combined) => Box::pin(combined.judge(subject, threshold, bench)).await,
        }
    }

    /// The evaluators that need something outside this package.
    pub(super) fn asking(&self) -> Vec<&dyn Asking> {
        match self {
            Self::Pure(_) => Vec::new(),
            Self::Asking(asking) => vec![&**asking],
            Self::Combined(combined) => combined.parts().flat_map(Self::asking).collect(),
        }
    }
}
