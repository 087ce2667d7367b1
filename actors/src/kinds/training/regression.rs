//! Runs as dataset cases.

use engine::references;
use serde_json::{Map, Value, json};
use store::{NewCase, StoreError, StoredRun};
use training::{Case, LARGEST_CASE, outside, recorded_mocks, resolve};

use super::Trainings;
use super::datasets::as_row;
use super::prepare::VersionsOf;
use crate::run::kind::PastRun;
use crate::run::read_journal;
use crate::run::refill::MAX_JOURNAL;
use crate::text::stored_json;

/// Maximum nesting of a case: JSON readers stop at 128.
const DEEPEST: usize = 100;

/// Options for a run that becomes a case.
#[derive(Debug, Clone, Default)]
pub struct WantedCase {
    /// Replaces the run's output, if given.
    pub expected_output: Option<Value>,
    /// `train`, `val` or `test`.
    pub split: Option<String>,
}

/// The reason why a run cannot become a case.
#[derive(Debug, thiserror::Error)]
pub enum NotACase {
    /// It has not ended.
    #[error("the run has not ended")]
    NotEnded,
    /// Its content or its version was erased.
    #[error("the content of the run was erased")]
    Erased,
    /// It is a training or an evaluation.
    #[error("a training is not a case")]
    Training,
    /// Its inputs, thread and node results have more than 1 MiB as JSON, or no canonical form.
    #[error("{0}")]
    Unfit(String),
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Trainings {
    /// Converts a run to a case: its inputs, its output as the expected output unless given, the thread before it,
    /// people's answers, and results of nodes that sent or read external data. The case has the run's id.
    ///
    /// # Errors
    /// [`NotACase`].
    pub async fn case_of_run(&self, run: &StoredRun, wanted: &WantedCase) -> Result<NewCase, NotACase> {
        let store = &self.ports.store;
        let kind = self
            .kinds
            .for_trigger(&run.trigger)
            .filter(|_| wire::TrainingKind::from_name(&run.trigger).is_none());
        let kind = kind.ok_or(NotACase::Training)?;
        if !run.status.is_terminal() {
            return Err(NotACase::NotEnded);
        }
        // The stream is erased together with the turn's content.
        if run.thread_id.is_some() && run.stream_id.is_none() {
            return Err(NotACase::Erased);
        }
        let (attempts, bytes) = store.journal_size(run.id).await?;
        if attempts > MAX_JOURNAL.0 || bytes > MAX_JOURNAL.1 {
            return Err(NotACase::Unfit("the results of its nodes are too large for a case".to_owned()));
        }
        let version = self.ports.plans.usable_version(run.version_id).await?.ok_or(NotACase::Erased)?;
        let inputs: Value = stored_json(&run.inputs).map_err(|_| NotACase::Erased)?;
        let past = PastRun { stored: run, inputs: inputs.clone(), version: &version };
        let input = kind.past_input(past).await?;
        let metadata = self.case_metadata(run, wanted.split.as_deref(), &input.messages).await?;
        let output = || run.output.as_deref().and_then(|output| stored_json(output).ok());
        let case = Case {
            id: run.id.to_string(),
            index: 0,
            inputs: match inputs {
                Value::Object(inputs) => inputs,
                _ => Map::new(),
            },
            expected_output: wanted.expected_output.clone().or_else(output).unwrap_or_default(),
            metadata,
        };
        row_of(&case)
    }

    /// The metadata of a run's case: its origin, the messages before it, people's answers, and recorded node results.
    async fn case_metadata(
        &self,
        run: &StoredRun,
        split: Option<&str>,
        messages: &[Value],
    ) -> Result<Map<String, Value>, NotACase> {
        let store = &self.ports.store;
        let mut metadata = Map::from_iter([("run_id".to_owned(), json!(run.id.to_string()))]);
        if let Some(thread) = run.thread_id {
            metadata.insert("thread_id".to_owned(), json!(thread.to_string()));
        }
        if let Some(split) = split {
            metadata.insert("split".to_owned(), json!(split));
        }
        if !messages.is_empty() {
            metadata.insert("messages".to_owned(), json!(messages));
        }
        let answers = store.answers_of_run(run.id).await?.into_iter();
        let answers: Map<String, Value> =
            answers.filter_map(|(key, answer)| Some((key, stored_json(&answer).ok()?))).collect();
        if !answers.is_empty() {
            metadata.insert("answers".to_owned(), Value::Object(answers));
        }
        let mocks = recorded_mocks(&read_journal(store, run.id).await?, &self.outside(run).await?);
        let mocks = mocks.map_err(|node| {
            NotACase::Unfit(format!("the node '{node}' failed in the run, which a replay cannot repeat"))
        })?;
        if !mocks.is_empty() {
            metadata.insert("mocks".to_owned(), Value::Object(mocks));
        }
        Ok(metadata)
    }

    /// The nodes in a run's graph that send or read external data, including nodes in the current versions of its
    /// sub-workflows.
    async fn outside(&self, run: &StoredRun) -> Result<Vec<String>, NotACase> {
        let version = self.ports.store.version_by_id(run.version_id).await?;
        let graph = version.map(|version| version.graph).unwrap_or_default();
        let versions = VersionsOf { ports: &self.ports, workspace: run.workspace_id };
        let mut problems = Vec::new();
        let resolution = resolve(references(&graph), &versions, &mut problems).await?;
        if let Some(problem) = problems.into_iter().next() {
            return Err(NotACase::Unfit(format!(
                "a workflow of its graph was not found: {}",
                problem.message
            )));
        }
        Ok(outside(&graph, &|reference| resolution.graph(reference)))
    }
}

/// The row of a case, unless the case is too deep or too large.
fn row_of(case: &Case) -> Result<NewCase, NotACase> {
    let row = as_row(case).map_err(NotACase::Unfit)?;
    if !is_flat(&case.stored(), DEEPEST) {
        let message = format!("its values are deeper than {DEEPEST} levels");
        return Err(NotACase::Unfit(message));
    }
    if row.content.len() > LARGEST_CASE {
        let message = "its inputs, thread and results have more than 1 MiB as JSON".to_owned();
        return Err(NotACase::Unfit(message));
    }
    Ok(row)
}

/// Whether arrays and objects are nested at most this deep.
fn is_flat(value: &Value, levels: usize) -> bool {
    let inside: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => return true,
    };
    levels > 0 && inside.into_iter().all(|value| is_flat(value, levels - 1))
}
