//! Scores from a `judge` node, on which other evaluators build.

use serde_json::{Map, Value, json};

use super::{AskingGraph, asked};
use crate::calls::Role;
use crate::evaluators::bench::{BenchError, Executed};
use crate::evaluators::judge::Ask;
use crate::evaluators::subject::Subject;

/// The node with and without an expected answer.
pub(super) struct JudgeGraph {
    with_expected: AskingGraph,
    plain: AskingGraph,
}

/// The node's opinion.
pub(super) struct Opinion {
    pub(super) score: f64,
    pub(super) feedback: Option<String>,
}

impl JudgeGraph {
    pub(super) fn new(model: &Map<String, Value>) -> Self {
        let graph = |fields: &[&str]| {
            let field = |name: &&str| ((*name).to_owned(), json!(format!("{{{{ inputs.{name} }}}}")));
            let kind = ("type".to_owned(), json!("judge"));
            AskingGraph::new(fields.iter().map(field).chain([kind]).collect(), model.clone())
        };
        let plain = graph(&["input", "output", "criteria"]);
        Self { with_expected: graph(&["input", "output", "criteria", "expected"]), plain }
    }

    pub(super) fn problem(&self, default: &Map<String, Value>) -> Option<String> {
        self.plain.problem(default)
    }

    /// Asks the model about the answer, by these criteria and the expected answer, if there is one.
    pub(super) async fn opinion(
        &self,
        subject: &Subject<'_>,
        criteria: &str,
        expected: Option<String>,
        ask: Ask<'_>,
        sample: u32,
    ) -> Result<Opinion, BenchError> {
        let graph = if expected.is_some() { &self.with_expected } else { &self.plain };
        let plan = graph.plan(ask.model())?;
        let mut inputs = Map::from_iter([
            ("input".to_owned(), asked(subject)),
            ("output".to_owned(), json!(subject.text)),
            ("criteria".to_owned(), json!(criteria)),
        ]);
        inputs.extend(expected.map(|expected| ("expected".to_owned(), json!(expected))));
        let said = ask.execute(Executed::Own(plan, Role::Judge), inputs, sample).await?;
        let score = said.get("score").and_then(Value::as_f64).ok_or("the model gave no score".to_owned())?;
        let text =
            |name: &str| said.get(name).and_then(Value::as_str).map(str::trim).filter(|it| !it.is_empty());
        let feedback = text("feedback").or_else(|| text("reasoning")).map(str::to_owned);
        Ok(Opinion { score, feedback })
    }
}
