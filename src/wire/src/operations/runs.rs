//! Workflow runs.

use super::parameters::{AFTER, CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, events, get, json, operations, post};
use crate::{CreateRun, ErrorCode, Listed, Rerun, RunFrame, RunInput, RunRecord, RunSummary, Scope, Trace};

/// Run states.
const STATES: &[&str] = &["queued", "running", "waiting", "succeeded", "failed", "cancelled"];
/// Values of a run's `trigger`.
pub const TRIGGERS: &[&str] = &[
    "api",
    "websocket",
    "app",
    "chat",
    "action",
    "cron",
    "webhook",
    "rerun",
    "training",
    "evaluation",
    "gate",
];

/// Reasons for rejecting a run.
const START: &[ErrorCode] = &[
    ErrorCode::WorkflowNotFound,
    ErrorCode::WorkflowArchived,
    ErrorCode::WorkflowNoVersion,
    ErrorCode::VersionNotFound,
    ErrorCode::RunInputsInvalid,
    ErrorCode::WorkspaceFull,
    ErrorCode::CodeUnavailable,
];

const fn filter(name: &'static str, about: &'static str, values: Values) -> Parameter {
    Parameter { name, about, values }
}

operations! {
    START_RUN = post("/api/workflows/{ref}/runs", "start_run", "Starts a run.")
        .needs(Scope::WorkflowsExecute)
        .repeatable()
        .query(&[filter(
            "wait",
            "Seconds to wait for the end of the run, or until it waits itself.",
            Values::Number(0.0, 60.0),
        )])
        .optional_body(json!(CreateRun, examples::CREATE))
        .answers(&[
            Answer::new(202, json!(RunRecord)),
            Answer::new(200, json!(RunRecord, examples::RUN)).when("the run has ended, or waits, within `?wait=`"),
        ])
        .shared_errors(START);

    LIST_OF_WORKFLOW = get(
        "/api/workflows/{ref}/runs",
        "list_runs_of_workflow",
        "Lists the workflow's runs, newest first.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[LIMIT, CURSOR, filter("status", "Only runs in this state.", Values::OneOf(STATES))])
    .answers(&[Answer::new(200, json!(Listed<RunRecord>))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    LIST = get(
        "/api/runs",
        "list_runs",
        "Lists the runs of the workspace, the newest first, without inputs and outputs.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[
        LIMIT,
        CURSOR,
        filter("status", "Only runs in one of these states.", Values::AnyOf(STATES)),
        filter("trigger", "Only runs started by one of these; without it, trainings and evaluations are left out.", Values::AnyOf(TRIGGERS)),
        filter("workflow", "Only runs of this workflow: its handle or id.", Values::Text),
        filter("thread", "Only runs of this thread.", Values::Text),
        filter("from", "Only runs created at this time or later.", Values::Time),
        filter("to", "Only runs created before this time.", Values::Time),
        filter("waits", "Whether the runs wait for an answer.", Values::Boolean),
    ])
    .answers(&[
        Answer::new(200, json!(Listed<RunSummary>, examples::LIST)),
        Answer::empty(304).when("the client has the page"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound]);

    READ = get("/api/runs/{id}", "read_run", "Reads the record of a run.")
        .needs(Scope::WorkflowsRead)
        .answers(&[Answer::new(200, json!(RunRecord))])
        .errors(&[ErrorCode::RunNotFound]);

    EVENTS = get("/api/runs/{id}/events", "watch_run", "Streams the events of a run.")
        .needs(Scope::WorkflowsRead)
        .without_head()
        .query(&[AFTER])
        .answers(&[
            Answer::new(200, events!(RunFrame)),
            Answer::empty(204).when("the client has read all events of a run that has ended"),
        ])
        .errors(&[ErrorCode::RunNotFound, ErrorCode::StreamNotFound]);

    TRACE = get("/api/runs/{id}/trace", "trace_run", "Reads every attempt of every node of a run.")
        .needs(Scope::WorkflowsRead)
        .query(&[filter("limit", "Attempts of a page (default: 1000).", Values::Integer(1, 5000)), CURSOR])
        .answers(&[Answer::new(200, json!(Trace))])
        .errors(&[ErrorCode::RunNotFound]);

    CANCEL = post("/api/runs/{id}/cancel", "cancel_run", "Cancels a run; returns the record.")
        .needs(Scope::WorkflowsExecute)
        .repeatable()
        .answers(&[Answer::new(200, json!(RunRecord))])
        .errors(&[ErrorCode::RunNotFound]);

    ANSWER = post("/api/runs/{id}/inputs/{key}", "answer_run", "Answers an input that a run waits for.")
        .needs(Scope::WorkflowsExecute)
        .repeatable()
        .body(json!(RunInput, examples::ANSWER))
        .answers(&[Answer::new(202, json!(RunRecord))])
        .errors(&[
            ErrorCode::RunNotFound,
            ErrorCode::RunNotWaiting,
            ErrorCode::RunInputInvalid,
            ErrorCode::RunInputForbidden,
        ]);

    RERUN = post(
        "/api/runs/{id}/rerun",
        "rerun",
        "Starts a run that repeats another: from its failed or any other step, or with other inputs or another version.",
    )
    .needs(Scope::WorkflowsExecute)
    .repeatable()
    .optional_body(json!(Rerun, examples::RERUN))
    .answers(&[Answer::new(202, json!(RunRecord))])
    .shared_errors(START)
    .errors(&[ErrorCode::RunNotFound, ErrorCode::RunNotRepeatable]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "inputs": {
    "message": "Where is order 7?"
  },
  "version": 1,
  "config": {},
  "timeout_seconds": 60.0,
  "metadata": {
    "ticket": 7
  }
}"#;

    pub(super) const RUN: &str = r#"{
  "id": "0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e",
  "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "version": 1,
  "version_id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
  "status": "succeeded",
  "inputs": {
    "message": "Where is order 7?"
  },
  "output": {
    "reply": "It is on its way."
  },
  "error": null,
  "warning": null,
  "trigger": "api",
  "origin_run_id": null,
  "continued_by": null,
  "waits_for": [],
  "resumes_at": null,
  "metadata": {
    "ticket": 7
  },
  "created_at": "2026-01-01T12:00:00.000000Z",
  "started_at": "2026-01-01T12:00:00.000000Z",
  "finished_at": "2026-01-01T12:00:01.250000Z"
}"#;

    pub(super) const LIST: &str = r#"{
  "data": [
    {
      "id": "0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e",
      "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
      "workflow_handle": "support",
      "workflow_name": "Support",
      "version": 1,
      "version_id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
      "status": "succeeded",
      "trigger": "api",
      "error": null,
      "warning": null,
      "waits": false,
      "origin_run_id": null,
      "thread_id": null,
      "created_at": "2026-01-01T12:00:00.000000Z",
      "started_at": "2026-01-01T12:00:00.000000Z",
      "finished_at": "2026-01-01T12:00:01.250000Z"
    }
  ],
  "next_cursor": null
}"#;

    pub(super) const ANSWER: &str = r#"true"#;

    pub(super) const RERUN: &str = r#"{
  "from_step": 3,
  "patch": {
    "tries": 0
  }
}"#;
}
