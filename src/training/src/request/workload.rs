//! The cases of a request, their evaluators, and the allowed effects of nodes.

use engine::Fields;
use serde_json::{Map, Value};
use wire::FieldError;

use super::fields::{ID, choice, count, object, text, whole};
use crate::case::Case;
use crate::dataset::read_cases;
use crate::evaluators::{Evaluator, read_evaluators};

/// Whether nodes may really send data.
const EFFECTS: [(&str, bool); 2] = [("refuse", false), ("run", true)];

/// The cases, and how they are executed and judged.
#[derive(Debug)]
pub struct Workload {
    /// The cases.
    pub dataset: DatasetSource,
    /// Maximum number of cases, taken from the start; default all.
    pub max_cases: Option<usize>,
    /// The evaluators; at least one.
    pub evaluators: Vec<Evaluator>,
    /// Results of nodes that are not executed, by node name; a case's own mocks take precedence.
    pub mocks: Option<Map<String, Value>>,
    /// `effects`: whether nodes may really send data (`run`) or not (`refuse`, the default).
    pub may_send: bool,
}

/// The source of the cases.
#[derive(Debug, Clone, PartialEq)]
pub enum DatasetSource {
    /// Cases in the request, at least one; those after `max_cases` are not read.
    Inline(Vec<Case>),
    /// A stored dataset.
    Stored {
        /// The dataset id.
        id: String,
        /// The version, from 1; default the latest.
        version: Option<u64>,
    },
}

impl Workload {
    /// Reads the fields that trainings and evaluations share.
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
        // Here the id is only a label for the cases.
        if fields.value("version").is_some() {
            let message = "cannot be combined with 'cases': it is the version of a stored dataset";
            let problem = FieldError::new(fields.at("version"), "conflict", message);
            problems.push(problem.suggest("remove 'version'"));
        }
        Some(Self::Inline(read_cases(cases, &fields.at("cases"), max_cases, problems)))
    }
}
