//! Workflow datasets.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, delete, get, json, operations, post};
use crate::{
    CreateDataset, CreateDatasetVersion, DatasetCase, DatasetRecord, ErrorCode, KeepRunAsCase, KeptCase,
    Listed, SavedDataset, Scope,
};

operations! {
    LIST = get("/api/workflows/{ref}/datasets", "list_datasets", "Lists the datasets of a workflow, newest first.")
        .needs(Scope::WorkflowsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<DatasetRecord>))])
        .errors(&[ErrorCode::WorkflowNotFound]);

    CREATE = post(
        "/api/workflows/{ref}/datasets",
        "create_dataset",
        "Creates a dataset: of cases as JSON, as `application/x-ndjson` or `text/csv` with `?name=`, of feedback or of runs.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .query(&[Parameter { name: "name", about: "The name, for bodies that are lines or CSV.", values: Values::Text }])
    .body(json!(CreateDataset, examples::CREATE))
    .answers(&[Answer::new(201, json!(SavedDataset))])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::WorkflowArchived,
        ErrorCode::DatasetNameTaken,
        ErrorCode::WorkspaceFull,
    ]);

    READ = get("/api/workflows/{ref}/datasets/{id}", "read_dataset", "Reads the record of a dataset, by its id or its name.")
        .needs(Scope::WorkflowsRead)
        .answers(&[Answer::new(200, json!(DatasetRecord))])
        .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::DatasetNotFound]);

    DELETE = delete(
        "/api/workflows/{ref}/datasets/{id}",
        "delete_dataset",
        "Deletes a dataset; runs that use it keep its cases.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::DatasetNotFound]);

    CASES = get(
        "/api/workflows/{ref}/datasets/{id}/cases",
        "list_dataset_cases",
        "Lists the cases of a version in their order; a page has at most about 4 MiB.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[
        LIMIT,
        CURSOR,
        Parameter {
            name: "version",
            about: "The version (default: the latest).",
            values: Values::Integer(1, 2_147_483_647),
        },
    ])
    .answers(&[Answer::new(200, json!(Listed<DatasetCase>))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::DatasetNotFound]);

    ADD_VERSION = post(
        "/api/workflows/{ref}/datasets/{id}/versions",
        "create_dataset_version",
        "Gives a dataset a version with other cases. The cases of the latest version again are that version.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(CreateDatasetVersion, examples::VERSION))
    .answers(&[
        Answer::new(201, json!(SavedDataset)),
        Answer::new(200, json!(SavedDataset)).when("the latest version has these cases"),
    ])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::WorkflowArchived,
        ErrorCode::DatasetNotFound,
        ErrorCode::WorkspaceFull,
    ]);

    KEEP_RUN = post(
        "/api/runs/{id}/case",
        "keep_run_as_case",
        "Adds a run that has ended to a dataset, with the results of the nodes that sent or read something, so that \
         a replay calls only models. The same run again is the same case, which `expected_output` and `split` correct.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(KeepRunAsCase, examples::KEEP_RUN))
    .answers(&[
        Answer::new(201, json!(KeptCase)),
        Answer::new(200, json!(KeptCase)).when("the dataset has the run already"),
    ])
    .errors(&[
        ErrorCode::RunNotFound,
        ErrorCode::WorkflowArchived,
        ErrorCode::RunNotEnded,
        ErrorCode::RunContentErased,
        ErrorCode::DatasetNotFound,
        ErrorCode::WorkspaceFull,
    ]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "name": "refunds",
  "cases": [
    {
      "id": "late-parcel",
      "inputs": {
        "message": "My parcel is late. I want my money back."
      },
      "expected_output": "refund"
    }
  ]
}"#;

    pub(super) const VERSION: &str = r#"{
  "from": {
    "feedback": {
      "kind": "negative"
    }
  }
}"#;

    pub(super) const KEEP_RUN: &str = r#"{
  "dataset": "refunds",
  "expected_output": "refund"
}"#;
}
