//! `embedding_cosine`: the similarity between the vectors of the answer and the expected text.

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::{AskingGraph, model_fields};
use crate::calls::Role;
use crate::estimate::CallRange;
use crate::evaluators::bench::Executed;
use crate::evaluators::config::Config;
use crate::evaluators::judge::{Ask, Asking, VerdictResult};
use crate::evaluators::subject::{Subject, shown};
use crate::evaluators::verdict::Verdict;
use crate::pins::Resolution;

pub(in crate::evaluators) struct Cosine {
    expected: Option<String>,
    graph: AskingGraph,
}

impl Cosine {
    pub(in crate::evaluators) fn read(config: &mut Config<'_, '_>) -> Option<Box<dyn Asking>> {
        let expected = config.optional_text("expected").map(str::to_owned);
        let mut model = model_fields(config);
        // The judge model computes no vectors.
        if !model.contains_key("model") {
            config.note("model", "required", "is required: a model that computes embeddings");
        }
        if model.shift_remove("temperature").is_some() {
            config.note("temperature", "unknown_field", "vectors have none");
        }
        let input = json!(["{{ inputs.output }}", "{{ inputs.expected }}"]);
        let node = Map::from_iter([("type".to_owned(), json!("embed")), ("input".to_owned(), input)]);
        Some(Box::new(Self { expected, graph: AskingGraph::new(node, model) }))
    }
}

#[async_trait]
impl Asking for Cosine {
    async fn judge(&self, subject: &Subject<'_>, threshold: Option<f64>, ask: Ask<'_>) -> VerdictResult {
        let expected = self.expected.clone().or_else(|| subject.expected_text());
        let expected = expected.ok_or("no expected output".to_owned())?;
        let inputs = Map::from_iter([
            ("output".to_owned(), json!(subject.text)),
            ("expected".to_owned(), json!(expected)),
        ]);
        let plan = self.graph.plan(ask.model())?;
        let said = ask.execute(Executed::Own(plan, Role::Embedding), inputs, 0).await?;
        let vector = |place: usize| -> Option<Vec<f64>> {
            said.pointer(&format!("/vectors/{place}"))?.as_array()?.iter().map(Value::as_f64).collect()
        };
        let vectors = vector(0).zip(vector(1)).ok_or("the model gave no vectors".to_owned())?;
        let verdict = Verdict::from_score(cosine(&vectors.0, &vectors.1), threshold.unwrap_or(0.5));
        let reason = || {
            format!("expected something close to \"{}\", got \"{}\"", shown(&expected), shown(subject.text))
        };
        Ok(if verdict.score < 1.0 { verdict.because(reason()) } else { verdict })
    }

    fn calls(&self, _resolution: &Resolution) -> CallRange {
        CallRange::exactly(1)
    }

    fn problem(&self, model: &Map<String, Value>) -> Option<String> {
        self.graph.problem(model)
    }
}

/// 0 for a zero vector, and for vectors with a negative cosine.
fn cosine(one: &[f64], other: &[f64]) -> f64 {
    let dot = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(a, b)| a * b).sum::<f64>();
    let lengths = (dot(one, one) * dot(other, other)).sqrt();
    if lengths > 0.0 { (dot(one, other) / lengths).clamp(0.0, 1.0) } else { 0.0 }
}
