//! Adds a run to a dataset as a case.

use actix_web::HttpResponse;
use actix_web::web::Path;
use actors::kinds::training::{NotACase, WantedCase, fingerprint_of};
use serde_json::{Map, Value};
use store::{KeptCase as Kept, WorkflowRef};
use wire::{ErrorCode, FieldError, KeptCase};

use super::named_in;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::WorkflowsWrite;
use crate::http::idempotency::ChangeReply;
use crate::http::runs;

pub(super) async fn keep(change: Change<WorkflowsWrite>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (run, _) = runs::found(caller, &id).await?;
    let (dataset, wanted) = change.wanted(read)?;
    let app = caller.app();
    let workflow = app.store().workflow(&WorkflowRef::Id(run.workflow_id), run.workspace_id).await?;
    let workflow = workflow.ok_or_else(|| ApiError::new(ErrorCode::RunNotFound))?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let dataset = named_in(caller, &workflow, &dataset).await?;
    app.trainings().check_room(run.workspace_id)?;
    let case = app.trainings().case_of_run(&run, &wanted).await.map_err(not_a_case)?;
    let corrects = wanted.expected_output.is_some() || wanted.split.is_some();
    let fingerprint = |digests: &[Vec<u8>]| fingerprint_of(digests.iter().map(Vec::as_slice));
    change
        .make(async |changes| {
            let (version, is_new) = match changes.keep_case(dataset.id, case, corrects, fingerprint).await? {
                Kept::Added(version) => (version, true),
                Kept::Known(version) => (version, false),
                Kept::Full => return Err(unfit("the dataset has 100,000 cases, or 64 MiB")),
                Kept::Erased => return Err(ApiError::new(ErrorCode::RunContentErased)),
                Kept::Deleted => return Err(ApiError::new(ErrorCode::DatasetNotFound)),
            };
            ChangeReply::made(
                is_new,
                &KeptCase { dataset_id: dataset.id.to_string(), version, case_id: run.id.to_string() },
            )
        })
        .await
}

/// Reads the dataset and the options for the case.
fn read(members: &Map<String, Value>) -> Result<(String, WantedCase), Vec<FieldError>> {
    let mut fields = Fields::new(members);
    fields.require("dataset");
    let dataset = fields.text("dataset").unwrap_or_default().to_owned();
    let expected_output = fields.stands("expected_output").filter(|expected| !expected.is_null()).cloned();
    let split = fields.one_of("split", &["train", "val", "test"]).map(str::to_owned);
    let problems = fields.finish();
    if problems.is_empty() { Ok((dataset, WantedCase { expected_output, split })) } else { Err(problems) }
}

fn not_a_case(error: NotACase) -> ApiError {
    match error {
        NotACase::NotEnded => ApiError::new(ErrorCode::RunNotEnded),
        NotACase::Erased => ApiError::new(ErrorCode::RunContentErased),
        // The run is not a workflow run.
        NotACase::Training => ApiError::new(ErrorCode::RunNotFound),
        NotACase::Unfit(message) => unfit(&message),
        NotACase::Store(error) => error.into(),
    }
}

fn unfit(message: &str) -> ApiError {
    ApiError::problems(ErrorCode::InvalidRequest, vec![FieldError::new("", "size", message)])
}
