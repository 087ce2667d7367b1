//! Converts a version's cases from any source to rows.

use actix_web::web;
use actors::kinds::training::{DatasetContent, ReadDataset};
use kernel::ThreadId;
use serde_json::Value;
use store::{Changes, StoredWorkflow};
use wire::{ErrorCode, FieldError};

use super::origin;
use super::requests::CaseSource;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::Caller;

/// Parsed or collected cases.
pub(super) struct Collected {
    pub(super) read: ReadDataset,
    /// The number of feedback entries or runs that could not become cases.
    pub(super) skipped: u32,
    /// Whether the cases are copies of turns rather than client input.
    is_copy: bool,
}

impl Collected {
    /// Removes copies of turns whose threads have been deleted meanwhile.
    pub(super) async fn without_deleted(mut self, changes: &mut Changes) -> ApiResult<Self> {
        let threads: Vec<ThreadId> = self.read.cases.iter().filter_map(|case| case.thread).collect();
        if !self.is_copy || threads.is_empty() {
            return Ok(self);
        }
        let living = changes.living_threads(&threads).await?;
        let before = self.read.cases.len();
        let mut cases = self.read.cases;
        cases.retain(|case| case.thread.is_none_or(|thread| living.contains(&thread)));
        let gone = u32::try_from(before - cases.len()).unwrap_or(u32::MAX);
        self.skipped = self.skipped.saturating_add(gone);
        found(&cases)?;
        self.read = ReadDataset::from_rows(cases);
        Ok(self)
    }
}

/// Parses or collects cases.
pub(super) async fn collect<S>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    source: CaseSource,
) -> ApiResult<Collected> {
    match source {
        CaseSource::Given(content) => {
            Ok(Collected { read: read(content, "/cases").await?, skipped: 0, is_copy: false })
        }
        CaseSource::Feedback(filter) => {
            let (cases, skipped) = origin::of_feedback(caller, workflow.id, &filter).await?;
            found(&cases)?;
            let read = read(DatasetContent::List(Value::Array(cases)), "/from/feedback").await?;
            Ok(Collected { read, skipped, is_copy: true })
        }
        CaseSource::Runs(filter, limit) => {
            let (cases, skipped) = origin::of_runs(caller, workflow, filter, limit).await?;
            found(&cases)?;
            Ok(Collected { read: ReadDataset::from_rows(cases), skipped, is_copy: true })
        }
    }
}

/// A source without cases is an error; an empty list is not.
fn found<T>(cases: &[T]) -> ApiResult<()> {
    if cases.is_empty() {
        let problem =
            FieldError::new("/from", "dataset_empty", "matches no feedback or run that can be a case");
        return Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]));
    }
    Ok(())
}

/// Parses on another thread, because the content may have 64 MiB and the worker must serve other requests.
async fn read(content: DatasetContent, at: &'static str) -> ApiResult<ReadDataset> {
    let read = web::block(move || ReadDataset::read(content, at)).await;
    let read = read.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    read.map_err(|problems| ApiError::problems(ErrorCode::InvalidRequest, problems))
}
