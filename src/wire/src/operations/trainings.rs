//! Trainings, evaluations and checkpoints.

use super::parameters::{AFTER, CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, events, get, json, operations, post, text};
use crate::{
    CandidateRecord, CaseRecord, CheckpointRecord, ErrorCode, Listed, RescoreTraining, Scope, StartTraining,
    TrainingFrame, TrainingPlan, TrainingRecord, TrainingReport,
};

const STATES: &[&str] = &["queued", "running", "paused", "waiting", "succeeded", "failed", "cancelled"];
const SPLITS: &[&str] = &["train", "val", "test"];

const fn filter(name: &'static str, about: &'static str, values: Values) -> Parameter {
    Parameter { name, about, values }
}

operations! {
    START = post(
        "/api/workflows/{ref}/trainer/runs",
        "start_training",
        "Starts a training or an evaluation; if it has a `graph_config` or names a credential, the caller also needs `workflows:write`.",
    )
    .needs(Scope::WorkflowsExecute)
    .repeatable()
    .query(&[filter("dry_run", "Returns the plan of the run; starts nothing.", Values::Boolean)])
    .body(json!(StartTraining, examples::START))
    .answers(&[
        Answer::new(202, json!(TrainingRecord, examples::RECORD)),
        Answer::new(200, json!(TrainingPlan)).when("the request says `?dry_run=true`"),
    ])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::WorkflowArchived,
        ErrorCode::WorkflowNoVersion,
        ErrorCode::GraphInvalid,
        ErrorCode::WorkspaceFull,
        ErrorCode::CodeUnavailable,
    ]);

    LIST = get(
        "/api/workflows/{ref}/trainer/runs",
        "list_trainings",
        "Lists the trainings and evaluations of a workflow, newest first.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[LIMIT, CURSOR, filter("status", "Only runs in this state.", Values::OneOf(STATES))])
    .answers(&[Answer::new(200, json!(Listed<TrainingRecord>))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    READ = get(
        "/api/workflows/{ref}/trainer/runs/{id}",
        "read_training",
        "Reads the record of a training or an evaluation.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(TrainingRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound]);

    EVENTS = get(
        "/api/workflows/{ref}/trainer/runs/{id}/events",
        "watch_training",
        "Streams the events of a training or an evaluation, for as long as its run is kept.",
    )
    .needs(Scope::WorkflowsRead)
    .without_head()
    .query(&[AFTER])
    .answers(&[
        Answer::new(200, events!(TrainingFrame)),
        Answer::empty(204).when("the client has read all events of a run that has ended"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound, ErrorCode::StreamNotFound]);

    CANDIDATES = get(
        "/api/workflows/{ref}/trainer/runs/{id}/candidates",
        "list_candidates",
        "Lists the candidates of a training in the order in which they were compared.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[LIMIT, CURSOR])
    .answers(&[Answer::new(200, json!(Listed<CandidateRecord>))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound]);

    CASES = get(
        "/api/workflows/{ref}/trainer/runs/{id}/cases",
        "list_cases",
        "Lists the results of cases by candidate, case and sample.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[
        LIMIT,
        CURSOR,
        filter("candidate", "Only results with the prompts of this candidate.", Values::Integer(0, 1_000_000)),
        filter("case", "Only results of the case with this place in the dataset.", Values::Integer(0, 1_000_000)),
        filter("split", "Only results of this split.", Values::OneOf(SPLITS)),
        filter("failed", "Only results that have failed, or only those that have passed.", Values::Boolean),
        filter("trace", "Whether each result has its trace.", Values::Boolean),
    ])
    .answers(&[Answer::new(200, json!(Listed<CaseRecord>))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound]);

    REPORT = get(
        "/api/workflows/{ref}/trainer/runs/{id}/report",
        "read_training_report",
        "Reads the report of a run, also while it executes: whether anything improved, and what changed.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[filter(
        "format",
        "JSON unless given; `html` is a page without scripts.",
        Values::OneOf(&["json", "html"]),
    )])
    .answers(&[
        Answer::new(200, json!(TrainingReport)),
        Answer::new(200, text!("text/html")).when("`format` is `html`"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound]);

    CURVE = get(
        "/api/workflows/{ref}/trainer/runs/{id}/curve.svg",
        "draw_training_curve",
        "Draws the scores of a training by epoch, with the seed's score and the interval of the result; of an evaluation, how its scores are distributed.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, text!("image/svg+xml"))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound]);

    RESCORE = post(
        "/api/workflows/{ref}/trainer/runs/{id}/rescore",
        "rescore_training",
        "Judges the stored results of a run that has ended with other evaluators, as a new evaluation; calls no model.",
    )
    .needs(Scope::WorkflowsExecute)
    .repeatable()
    .body(json!(RescoreTraining, examples::RESCORE))
    .answers(&[Answer::new(202, json!(TrainingRecord))])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::WorkflowArchived,
        ErrorCode::RunNotFound,
        ErrorCode::RunNotEnded,
        ErrorCode::RunContentErased,
        ErrorCode::WorkspaceFull,
    ]);

    PAUSE = post(
        "/api/workflows/{ref}/trainer/runs/{id}/pause",
        "pause_training",
        "Pauses a run at the next border between cases; returns the record.",
    )
    .needs(Scope::WorkflowsExecute)
    .repeatable()
    .answers(&[Answer::new(200, json!(TrainingRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound, ErrorCode::RunNotActive]);

    RESUME = post(
        "/api/workflows/{ref}/trainer/runs/{id}/resume",
        "resume_training",
        "Resumes a paused run; returns the record.",
    )
    .needs(Scope::WorkflowsExecute)
    .repeatable()
    .answers(&[Answer::new(200, json!(TrainingRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound, ErrorCode::RunNotActive]);

    CANCEL = post(
        "/api/workflows/{ref}/trainer/runs/{id}/cancel",
        "cancel_training",
        "Cancels a run; what it has found so far is kept. Returns the record.",
    )
    .needs(Scope::WorkflowsExecute)
    .repeatable()
    .answers(&[Answer::new(200, json!(TrainingRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::RunNotFound, ErrorCode::RunNotActive]);

    CHECKPOINTS = get(
        "/api/workflows/{ref}/trainer/checkpoints",
        "list_checkpoints",
        "Lists the checkpoints of a workflow, newest first.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[
        filter("limit", "Checkpoints of the list (default: 20).", Values::Integer(1, 200)),
        filter("best", "Only the best checkpoint of each dataset and its evaluators.", Values::Boolean),
    ])
    .answers(&[Answer::new(200, json!(Vec<CheckpointRecord>, examples::CHECKPOINTS))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    CHECKPOINT = get(
        "/api/workflows/{ref}/trainer/checkpoints/{id}",
        "read_checkpoint",
        "Reads a checkpoint with its config and its metrics.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(CheckpointRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::CheckpointNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const START: &str = r#"{
  "training": {
    "dataset": {
      "cases": [
        {
          "inputs": {
            "message": "Where is my parcel?"
          },
          "expected_output": "shipping"
        }
      ]
    },
    "evaluators": [
      {
        "id": "label",
        "entrypoint": "builtin:exact_match"
      }
    ],
    "optimizer": {
      "epochs": 3
    }
  }
}"#;

    pub(super) const RESCORE: &str = r#"{
  "evaluators": [
    {
      "id": "brief",
      "entrypoint": "builtin:length",
      "config": {
        "max": 200
      }
    }
  ],
  "candidate": "best"
}"#;

    pub(super) const RECORD: &str = r#"{
  "id": "0198c2f4-0000-7c88-9d21-3f4a5b6c7d8e",
  "kind": "training",
  "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "version": 1,
  "version_id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
  "status": "running",
  "optimizer": {
    "name": "textgrad",
    "epochs": 3
  },
  "dataset": {
    "id": null,
    "version": null,
    "n_cases": 24,
    "fingerprint": "0e567933fa498649980d0c2131f426221b74f55146bf40c82f7f667b50812da3"
  },
  "progress": {
    "done": 34,
    "planned": 152,
    "running_mean": 0.75,
    "best_score": 0.875,
    "cases_per_s": 4.25,
    "eta_s": 27.76,
    "llm_calls": 38,
    "cost": 0.0125,
    "budget_left": null
  },
  "best_score": 0.875,
  "best_checkpoint": "0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e",
  "stop_reason": null,
  "outcome": null,
  "usage": {
    "llm_calls": 38,
    "retries": 0,
    "cached_calls": 2,
    "lost_calls": 0,
    "input_tokens": 6369,
    "output_tokens": 874,
    "cost_usd": 0.0125,
    "estimated": false,
    "by_role": {
      "task": 34,
      "judge": 0,
      "optimizer": 4,
      "embedding": 0
    }
  },
  "error": null,
  "origin_run_id": null,
  "created_at": "2026-01-01T12:00:00.000000Z",
  "started_at": "2026-01-01T12:00:00.010000Z",
  "finished_at": null
}"#;

    pub(super) const CHECKPOINTS: &str = r#"[
  {
    "id": "0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e",
    "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
    "config_version": 7,
    "runnable_config": {
      "prompts": {
        "rules": {
          "text": "Sort the message into shipping, billing or account.",
          "requires_grad": true
        }
      }
    },
    "metrics": {
      "label": 0.875
    },
    "metadata": {
      "candidate_id": 4,
      "epoch": 2,
      "n_cases": 24,
      "run_id": "0198c2f4-0000-7c88-9d21-3f4a5b6c7d8e",
      "score": 0.875,
      "split": "val",
      "summary": {
        "label": 0.875
      }
    },
    "artifact_url": null,
    "is_best": true,
    "created_at": "2026-01-01T12:00:01.250000Z"
  }
]"#;
}
