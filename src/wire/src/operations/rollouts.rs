//! Rollouts: how workflow versions become live.

use crate::operation::{Answer, get, json, operations, post, put};
use crate::{ErrorCode, PutRollout, Rollout, Scope};

operations! {
    READ = get(
        "/api/workflows/{ref}/rollout",
        "read_rollout",
        "Reads how versions become live: the gate, the canary and its counts.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(Rollout, examples::ROLLOUT))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    PUT = put(
        "/api/workflows/{ref}/rollout",
        "put_rollout",
        "Sets the gate and the canary; absent ones are removed.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(PutRollout, examples::PUT_ROLLOUT))
    .answers(&[Answer::new(200, json!(Rollout))])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::VersionNotFound,
        ErrorCode::WorkflowArchived, ErrorCode::VersionGateFailed, ErrorCode::CodeUnavailable]);

    PROMOTE = post(
        "/api/workflows/{ref}/rollout/promote",
        "promote_canary",
        "Makes the canary live; returns the rollout.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::new(200, json!(Rollout))])
    .errors(&[
        ErrorCode::WorkflowNotFound,
        ErrorCode::VersionNotFound,
        ErrorCode::WorkflowArchived, ErrorCode::VersionGateFailed]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const PUT_ROLLOUT: &str = r#"{
  "gate": {
    "dataset": "orders",
    "evaluators": [
      {
        "id": "label",
        "entrypoint": "builtin:exact_match"
      }
    ],
    "threshold": 0.8
  },
  "canary": {
    "version": 2,
    "percent": 10,
    "promote_after_turns": 500
  }
}"#;

    pub(super) const ROLLOUT: &str = r#"{
  "live_version": 1,
  "gate": {
    "dataset": "orders",
    "dataset_version": null,
    "evaluators": [
      {
        "id": "label",
        "entrypoint": "builtin:exact_match"
      }
    ],
    "threshold": 0.8,
    "max_drop": 0.02,
    "max_cases": null,
    "budget": null
  },
  "canary": {
    "version": 2,
    "percent": 10,
    "promote_after_turns": 500,
    "started_at": "2026-01-01T12:00:00.000000Z"
  },
  "counts": {
    "canary": {
      "turns": 41,
      "failed_turns": 0,
      "ratings": 6,
      "negative_ratings": 1
    },
    "live": {
      "turns": 377,
      "failed_turns": 2,
      "ratings": 52,
      "negative_ratings": 9
    }
  },
  "last_canary": null
}"#;
}
