//! Workflows, their versions and their publication.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, delete, get, json, operations, post, put, text};
use crate::{
    CheckVersion, Checked, CreateWorkflow, ErrorCode, Listed, PublicWorkflow, PublishRequest, Published,
    SaveVersion, SavedVersion, Scope, SetLive, ShownWorkflow, UpdateWorkflow, VersionDiff, VersionRecord,
    VersionSummary, WorkflowRecord,
};

/// What a path with a version may name in vain.
const VERSION: &[ErrorCode] = &[ErrorCode::WorkflowNotFound, ErrorCode::VersionNotFound];

operations! {
    LIST = get("/api/workflows", "list_workflows", "Lists workflows, the newest first, as a bare array of records.")
        .needs(Scope::WorkflowsRead)
        .query(&[
            Parameter {
                name: "limit",
                about: "Entries of a page (default: 1000).",
                values: Values::Integer(1, 1000),
            },
            Parameter {
                name: "cursor",
                about: "The header `X-Next-Cursor` of the page before.",
                values: Values::Text,
            },
            Parameter {
                name: "include_archived",
                about: "Whether archived workflows are included.",
                values: Values::Boolean,
            },
        ])
        .answers(&[Answer::of(200, json!(Vec<WorkflowRecord>))]);

    CREATE = post("/api/workflows", "create_workflow", "Creates a workflow.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .body(json!(CreateWorkflow, examples::CREATE))
        .answers(&[Answer::of(201, json!(WorkflowRecord, examples::WORKFLOW))])
        .errors(&[ErrorCode::WorkflowHandleTaken]);

    READ = get(
        "/api/workflows/{ref}",
        "read_workflow",
        "Reads the record of a workflow, and in `readiness` `{\"ready\", \"missing_credentials\"}` whether the workspace has the credentials \
         that its live version names, if it names any.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::of(200, json!(ShownWorkflow))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    UPDATE = put(
        "/api/workflows/{ref}",
        "update_workflow",
        "Changes the members in the body; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(UpdateWorkflow, examples::UPDATE))
    .answers(&[Answer::of(200, json!(WorkflowRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::WorkflowHandleTaken, ErrorCode::WorkflowArchived]);

    ARCHIVE = delete("/api/workflows/{ref}", "archive_workflow", "Archives the workflow; returns the record.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .answers(&[Answer::of(200, json!(WorkflowRecord))])
        .errors(&[ErrorCode::WorkflowNotFound]);

    READ_PUBLIC = get(
        "/api/workflows/{ref}/public",
        "read_public_workflow",
        "Reads the public record of a published workflow.",
    )
    .answers(&[Answer::of(200, json!(PublicWorkflow, examples::PUBLIC))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    SAVE_VERSION = post("/api/workflows/{ref}/versions", "save_version", "Saves a version.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .body(json!(SaveVersion, examples::SAVE_VERSION))
        .answers(&[
            Answer::of(201, json!(SavedVersion)),
            Answer::of(200, json!(SavedVersion)).when("the same version was already saved"),
        ])
        .shared_errors(VERSION)
        .errors(&[
            ErrorCode::GraphInvalid,
            ErrorCode::WorkflowArchived,
            ErrorCode::CheckpointNotFound,
            ErrorCode::CodeUnavailable,
        ]);

    LIST_VERSIONS = get("/api/workflows/{ref}/versions", "list_versions", "Lists versions, the newest first.")
        .needs(Scope::WorkflowsRead)
        .query(&[
            LIMIT,
            CURSOR,
            Parameter {
                name: "drafts",
                about: "Whether drafts are included; then entries are ordered by time.",
                values: Values::Boolean,
            },
        ])
        .answers(&[Answer::of(200, json!(Listed<VersionSummary>, examples::VERSIONS))])
        .errors(&[ErrorCode::WorkflowNotFound]);

    SET_LIVE = post(
        "/api/workflows/{ref}/versions/{number}/live",
        "set_live_version",
        "Makes a version live; an older version is a rollback.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .optional_body(json!(SetLive, examples::SET_LIVE))
    .answers(&[Answer::of(200, json!(WorkflowRecord))])
    .shared_errors(VERSION)
    .errors(&[ErrorCode::WorkflowArchived, ErrorCode::VersionGateFailed]);

    READ_VERSION = get("/api/workflows/{ref}/versions/{number}", "read_version", "Reads a version.")
        .needs(Scope::WorkflowsRead)
        .answers(&[Answer::of(200, json!(VersionRecord, examples::VERSION))])
        .shared_errors(VERSION);

    DIFF = get(
        "/api/workflows/{ref}/versions/{base}/diff/{target}",
        "compare_versions",
        "Compares two versions.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::of(200, json!(VersionDiff, examples::DIFF))])
    .shared_errors(VERSION);

    DIAGRAM_SVG =
        get("/api/workflows/{ref}/versions/{number}/diagram.svg", "draw_version", "Draws a version.")
            .needs(Scope::WorkflowsRead)
            .answers(&[
                Answer::of(200, text!("image/svg+xml")),
                Answer::empty(304).when("the client has the picture"),
            ])
            .shared_errors(VERSION)
            .errors(&[ErrorCode::DiagramTooLarge]);

    DIAGRAM_MERMAID = get(
        "/api/workflows/{ref}/versions/{number}/diagram.mmd",
        "write_version_as_mermaid",
        "Writes a version as a Mermaid flowchart.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::of(200, text!("text/plain")), Answer::empty(304).when("the client has the text")])
    .shared_errors(VERSION);

    PUBLISH = post(
        "/api/workflows/{ref}/publish",
        "publish_workflow",
        "Publishes the workflow, or changes `require_login`.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .optional_body(json!(PublishRequest, examples::PUBLISH))
    .answers(&[
        Answer::of(201, json!(Published)),
        Answer::of(200, json!(Published)).when("it was already published"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::WorkflowArchived, ErrorCode::VersionGateFailed]);

    UNPUBLISH = post(
        "/api/workflows/{ref}/publish/revoke",
        "unpublish_workflow",
        "Ends the publication; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::of(200, json!(WorkflowRecord))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    CHECK = post("/api/workflows/check", "check_graph", "Checks a graph and saves nothing.")
        .needs_anywhere(Scope::WorkflowsRead)
        .body(json!(CheckVersion, examples::CHECK))
        .answers(&[Answer::of(200, json!(Checked, examples::CHECKED))])
        .errors(&[ErrorCode::CodeUnavailable]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "name": "Order desk",
  "handle": "order-desk",
  "description": "Says where an order is.",
  "tags": [
    "support"
  ]
}"#;

    pub(super) const WORKFLOW: &str = r#"{
  "id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "handle": "order-desk",
  "name": "Order desk",
  "description": "Says where an order is.",
  "tags": [
    "support"
  ],
  "workspace_id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "is_public": true,
  "require_login": false,
  "published_at": "2026-01-01T12:00:00.000Z",
  "published_by": null,
  "share_url": "http://localhost:8000/chat/0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "is_archived": false,
  "latest_version": 1,
  "live_version": 1,
  "chat": {
    "start_prompts": [],
    "models": [],
    "busy": "enqueue",
    "uploads": true,
    "transcription": null,
    "title": "words",
    "limits": {
      "session_tokens_per_day": 20000,
      "usd_per_day": 5.0
    },
    "retention_days": 90
  },
  "max_concurrent_runs": null,
  "created_at": "2026-01-01T12:00:00.000Z",
  "updated_at": "2026-01-01T12:00:00.000Z"
}"#;

    pub(super) const UPDATE: &str = r#"{
  "description": null,
  "chat": {
    "start_prompts": [
      {
        "label": "My order",
        "prompt": "Where is my order?"
      }
    ],
    "models": [
      {
        "id": "openai/gpt-4o-mini",
        "label": "Quick"
      }
    ],
    "busy": "interrupt"
  },
  "max_concurrent_runs": 8
}"#;

    pub(super) const PUBLIC: &str = r#"{
  "id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "name": "Order desk",
  "description": "Says where an order is.",
  "require_login": false,
  "share_url": "http://localhost:8000/chat/0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "chat": {
    "start_prompts": [],
    "models": [],
    "busy": "enqueue",
    "uploads": true,
    "dictation": false
  }
}"#;

    pub(super) const SAVE_VERSION: &str = r#"{
  "graph": {
    "format": "graph/1",
    "nodes": [
      {
        "name": "answer",
        "type": "reply",
        "text": "You said: {{ inputs.message }}"
      }
    ],
    "edges": [
      {
        "from": "START",
        "to": "answer"
      },
      {
        "from": "answer",
        "to": "END"
      }
    ]
  },
  "runnable_config": null,
  "metadata": null,
  "notes": "First."
}"#;

    pub(super) const VERSIONS: &str = r#"{
  "data": [
    {
      "id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
      "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
      "version": 1,
      "draft": false,
      "digest": "9f2c…",
      "notes": "First.",
      "created_by": null,
      "created_at": "2026-01-01T12:00:00.000Z"
    }
  ],
  "next_cursor": null
}"#;

    pub(super) const SET_LIVE: &str = r#"{}"#;

    pub(super) const VERSION: &str = r#"{
  "id": "0198c2e9-0c44-7f21-a3b2-4d5e6f708192",
  "workflow_id": "0198c2e7-5d3f-7a41-b0c2-1d2e3f4a5b6c",
  "version": 1,
  "draft": false,
  "digest": "9f2c…",
  "graph": {
    "format": "graph/1",
    "nodes": [
      {
        "name": "answer",
        "type": "reply",
        "text": "You said: {{ inputs.message }}"
      }
    ],
    "edges": [
      {
        "from": "START",
        "to": "answer"
      },
      {
        "from": "answer",
        "to": "END"
      }
    ]
  },
  "runnable_config": null,
  "metadata": {},
  "notes": "First.",
  "created_by": null,
  "created_at": "2026-01-01T12:00:00.000Z"
}"#;

    pub(super) const DIFF: &str = r#"{
  "base": 1,
  "target": 2,
  "changes": [
    {
      "node": "answer",
      "field": "text",
      "before": "You said: {{ inputs.message }}",
      "after": "Thank you."
    },
    {
      "node": "note",
      "field": null,
      "before": null,
      "after": {
        "name": "note",
        "type": "log",
        "message": "x"
      }
    },
    {
      "node": null,
      "field": "edges",
      "before": {
        "from": "START",
        "to": "answer"
      },
      "after": {
        "from": "START",
        "to": "note"
      }
    },
    {
      "node": null,
      "field": "edges",
      "before": null,
      "after": {
        "from": "note",
        "to": "answer"
      }
    },
    {
      "node": null,
      "field": "runnable_config.prompts.sort.text",
      "before": "Be kind.",
      "after": "Be brief."
    }
  ]
}"#;

    pub(super) const PUBLISH: &str = r#"{
  "require_login": false
}"#;

    pub(super) const CHECK: &str = r#"{
  "graph": {
    "format": "graph/1",
    "nodes": [
      {
        "name": "answer",
        "type": "reply",
        "text": "You said: {{ inputs.message }}"
      }
    ],
    "edges": [
      {
        "from": "START",
        "to": "answer"
      },
      {
        "from": "answer",
        "to": "END"
      }
    ]
  }
}"#;

    pub(super) const CHECKED: &str = r#"{
  "valid": false,
  "errors": [
    {
      "pointer": "/nodes/0/type",
      "code": "unknown_type",
      "message": "unknown node type 'replay'",
      "suggestion": "did you mean 'reply'?"
    }
  ],
  "warnings": [
    {
      "pointer": "/nodes/1/workflow",
      "code": "unknown_workflow",
      "message": "this workspace has no workflow 'refnud'",
      "suggestion": "did you mean 'refund'?"
    }
  ]
}"#;
}
