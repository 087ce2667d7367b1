//! `checklist`: a model checks the answer point by point.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::judge_graph::JudgeGraph;
use super::model_fields;
use crate::estimate::CallRange;
use crate::evaluators::config::Config;
use crate::evaluators::judge::{Ask, Asking, VerdictResult};
use crate::evaluators::subject::Subject;
use crate::evaluators::verdict::Verdict;
use crate::numbers::float;
use crate::pins::Resolution;

/// Maximum points: each costs one call per case.
const MOST: usize = 20;
/// The lowest score at which a point is met.
const MET: f64 = 0.5;

pub(in crate::evaluators) struct Checklist {
    points: Vec<String>,
    graph: JudgeGraph,
}

impl Checklist {
    pub(in crate::evaluators) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Asking>> {
        let graph = JudgeGraph::new(&model_fields(config));
        let points = config.texts("points");
        match points {
            Some(points) if points.len() <= MOST => Some(Box::new(Self { points, graph })),
            Some(_) => {
                config.note("points", "size", format!("has more than {MOST} points"));
                None
            }
            None => {
                config.note("points", "required", "needs at least one point");
                None
            }
        }
    }
}

#[async_trait]
impl Asking for Checklist {
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult {
        let mut missed = Vec::new();
        for point in &self.points {
            let opinion = self.graph.opinion(subject, point, subject.expected_text(), ask, 0).await?;
            if opinion.score < MET {
                let why = opinion.feedback.map(|feedback| format!(" {feedback}")).unwrap_or_default();
                missed.push(format!("Not met: {point}{why}"));
            }
        }
        let met = self.points.len() - missed.len();
        let verdict = Verdict::from_score(float(met) / float(self.points.len()), threshold.unwrap_or(1.0));
        Ok(if missed.is_empty() { verdict } else { verdict.because(missed.join("\n")) })
    }

    fn calls(&self, _resolution: &Resolution) -> CallRange {
        CallRange::exactly(u64::try_from(self.points.len()).unwrap_or(u64::MAX))
    }

    fn problem(&self, model: &Map<String, Value>) -> Option<String> {
        self.graph.problem(model)
    }
}
