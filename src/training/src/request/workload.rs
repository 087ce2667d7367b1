//! The cases of a request, what judges them, and what their nodes may do.

use engine::Fields;
use serde_json::{Map, Value};
use wire::FieldError;

use super::fields::{ID, choice, count, object, text, whole};
use crate::case::Case;
use crate::dataset::read_cases;
use crate::evaluators::{Evaluator, read_evaluators};

/// Whether nodes may really send something.
const EFFECTS: [(&str, bool); 2] = [("refuse", false), ("run", true)];

/// What is executed and judged.
#[derive(Debug)]
pub struct Workload {
    /// The cases.
    pub dataset: DatasetSource,
    /// Only the first ones are used; all unless given.
    pub max_cases: Option<usize>,
    /// What judges a case; at least one.
    pub evaluators: Vec<Evaluator>,
    /// Results of nodes that are not executed, by the names of the nodes; those of a case have precedence.
    pub mocks: Option<Map<String, Value>>,
    /// `effects`: whether nodes may really send something (`run`) or not (`refuse`, the default).
    pub may_send: bool,
}

/// Where the cases are.
#[derive(Debug, Clone, PartialEq)]
pub enum DatasetSource {
    /// In the request, at least one; those after `max_cases` are not read.
    Inline(Vec<Case>),
    /// In a stored dataset.
    Stored {
        /// The dataset.
        id: String,
        /// Its version, from 1; the latest unless given.
        version: Option<u64>,
    },
}

impl Workload {
    /// Reads the fields that a training and an evaluation have in common.
    pub(super) fn read(fields: &mut Fields<'_>, problems: &mut Vec<FieldError>) -> Option<Self> {
        let max_cases = count(fields, "max_cases", problems);
        let dataset = fields.required("dataset", problems).and_then(|_| object(fields, "dataset", problems));
        let dataset = dataset.and_then(|fields| DatasetSource::read(fields, max_cases, problems));
        let evaluators = fields.required("evaluators", problems);
        let evaluators = evaluators.map(|value| read_evaluators(value, &fields.at("evaluators"), problems));
        let mocks = fields.value("mocks");
        if mocks.is_some_and(|mocks| !mocks.is_object()) {
            let message = "must be an object: results by the names of nodes";
            problems.push(FieldError::new(fields.at("mocks"), "type", message));
        }
        let mocks = mocks.and_then(Value::as_object).cloned();
        let may_send = choice(fields, "effects", &EFFECTS, problems).unwrap_or_default();
        Some(Self { dataset: dataset?, max_cases, evaluators: evaluators?, mocks, may_send })
    }
}

impl DatasetSource {
    fn read(
        mut fields: Fields<'_>,
        max_cases: Option<usize>,
        problems: &mut Vec<FieldError>,
    ) -> Option<Self> {
        let cases = fields.value("cases");
        let id = text(&mut fields, "id", ID, problems);
        let version = whole(&mut fields, "version", 1, problems);
        fields.refuse_others(problems);
        let Some(cases) = cases else {
            if fields.value("id").is_none() {
                let problem = FieldError::new(fields.at("cases"), "required", "needs 'cases' or 'id'");
                problems.push(problem.suggest(r#""cases": [{"inputs": {"message": "Hello"}}]"#));
            }
            return id.map(|id| Self::Stored { id, version });
        };
        // The id is only a label of these cases.
        if fields.value("version").is_some() {
            let message = "cannot be combined with 'cases': it is the version of a stored dataset";
            let problem = FieldError::new(fields.at("version"), "conflict", message);
            problems.push(problem.suggest("remove 'version'"));
        }
        Some(Self::Inline(read_cases(cases, &fields.at("cases"), max_cases, problems)))
    }
}
