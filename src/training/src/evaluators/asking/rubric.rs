//! `llm_judge`: a model scores the answer by a rubric, by the expected output, or by both.

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::judge_graph::{JudgeGraph, Opinion};
use super::model_fields;
use crate::estimate::CallRange;
use crate::evaluators::config::Config;
use crate::evaluators::judge::{Ask, Asking, MOST_SAMPLES, VerdictResult};
use crate::evaluators::subject::Subject;
use crate::evaluators::verdict::Verdict;
use crate::pins::Resolution;

/// The criteria if there is only an expected output.
const AS_EXPECTED: &str = "The answer says what the expected answer says.";

pub(in crate::evaluators) struct Rubric {
    rubric: Option<String>,
    samples: u32,
    graph: JudgeGraph,
}

impl Rubric {
    pub(in crate::evaluators) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Asking>> {
        let rubric = config.optional_text("rubric").map(str::to_owned);
        let samples = config.whole("samples", 1..=MOST_SAMPLES).unwrap_or(1);
        let graph = JudgeGraph::new(&model_fields(config));
        Some(Box::new(Self { rubric, samples, graph }))
    }
}

#[async_trait]
impl Asking for Rubric {
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult {
        let expected = subject.expected_text();
        let criteria = match (&self.rubric, &expected) {
            (Some(rubric), _) => rubric.as_str(),
            (None, Some(_)) => AS_EXPECTED,
            (None, None) => return Err("neither a rubric nor an expected output".to_owned().into()),
        };
        let mut opinions = Vec::new();
        for sample in 0..self.samples {
            opinions.push(self.graph.opinion(subject, criteria, expected.clone(), ask, sample).await?);
        }
        let Some(Opinion { score, feedback }) = median(opinions) else {
            return Err("no sample".to_owned().into());
        };
        let verdict = Verdict::from_score(score, threshold.unwrap_or(0.5));
        Ok(match feedback {
            Some(feedback) if verdict.score < 1.0 => verdict.because(feedback),
            _ => verdict,
        })
    }

    fn calls(&self, _resolution: &Resolution) -> CallRange {
        CallRange::exactly(u64::from(self.samples))
    }

    fn problem(&self, model: &Map<String, Value>) -> Option<String> {
        self.graph.problem(model)
    }
}

/// The middle opinion; the lower one if two are in the middle.
fn median(mut opinions: Vec<Opinion>) -> Option<Opinion> {
    opinions.sort_by(|one, other| one.score.total_cmp(&other.score));
    let middle = opinions.len().checked_sub(1)? / 2;
    opinions.into_iter().nth(middle)
}
