//! Workflows, their versions and their publication.

#[cfg(feature = "schema")]
mod examples;

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, delete, get, json, operations, post, put, text};
use crate::{
    CheckVersion, Checked, CreateWorkflow, ErrorCode, Listed, PublicWorkflow, PublishRequest, Published,
    SaveVersion, SavedVersion, Scope, SetLive, ShownWorkflow, UpdateWorkflow, VersionDiff, VersionRecord,
    VersionSummary, WorkflowRecord, WorkflowUses,
};

/// Refusals for an unknown workflow or version in the path.
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
        .answers(&[Answer::new(200, json!(Vec<WorkflowRecord>))]);

    CREATE = post("/api/workflows", "create_workflow", "Creates a workflow.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .body(json!(CreateWorkflow, examples::CREATE))
        .answers(&[Answer::new(201, json!(WorkflowRecord, examples::WORKFLOW))])
        .errors(&[ErrorCode::WorkflowHandleTaken]);

    READ = get(
        "/api/workflows/{ref}",
        "read_workflow",
        "Reads the record of a workflow, and in `readiness` `{\"ready\", \"missing_credentials\"}` whether the workspace has the credentials \
         that its live version names, if it names any.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(ShownWorkflow))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    UPDATE = put(
        "/api/workflows/{ref}",
        "update_workflow",
        "Changes the members in the body; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(UpdateWorkflow, examples::UPDATE))
    .answers(&[Answer::new(200, json!(WorkflowRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::WorkflowHandleTaken, ErrorCode::WorkflowArchived]);

    ARCHIVE = delete("/api/workflows/{ref}", "archive_workflow", "Archives the workflow; returns the record.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .answers(&[Answer::new(200, json!(WorkflowRecord))])
        .errors(&[ErrorCode::WorkflowNotFound]);

    RESTORE = post(
        "/api/workflows/{ref}/restore",
        "restore_workflow",
        "Restores an archived workflow, unpublished; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::new(200, json!(WorkflowRecord))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    READ_USES = get(
        "/api/workflows/{ref}/uses",
        "read_workflow_uses",
        "Reads the triggers, the apps and the other workflows that run the workflow, and whether it is published.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(WorkflowUses, examples::USES))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    READ_PUBLIC = get(
        "/api/workflows/{ref}/public",
        "read_public_workflow",
        "Reads the public record of a published workflow.",
    )
    .answers(&[Answer::new(200, json!(PublicWorkflow, examples::PUBLIC))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    SAVE_VERSION = post("/api/workflows/{ref}/versions", "save_version", "Saves a version.")
        .needs(Scope::WorkflowsWrite)
        .repeatable()
        .body(json!(SaveVersion, examples::SAVE_VERSION))
        .answers(&[
            Answer::new(201, json!(SavedVersion)),
            Answer::new(200, json!(SavedVersion)).when("the same version was already saved"),
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
        .answers(&[Answer::new(200, json!(Listed<VersionSummary>, examples::VERSIONS))])
        .errors(&[ErrorCode::WorkflowNotFound]);

    SET_LIVE = post(
        "/api/workflows/{ref}/versions/{number}/live",
        "set_live_version",
        "Makes a version live; an older version is a rollback.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .optional_body(json!(SetLive, examples::SET_LIVE))
    .answers(&[Answer::new(200, json!(WorkflowRecord))])
    .shared_errors(VERSION)
    .errors(&[ErrorCode::WorkflowArchived, ErrorCode::VersionGateFailed]);

    READ_VERSION = get("/api/workflows/{ref}/versions/{number}", "read_version", "Reads a version.")
        .needs(Scope::WorkflowsRead)
        .answers(&[Answer::new(200, json!(VersionRecord, examples::VERSION))])
        .shared_errors(VERSION);

    DIFF = get(
        "/api/workflows/{ref}/versions/{base}/diff/{target}",
        "compare_versions",
        "Compares two versions.",
    )
    .needs(Scope::WorkflowsRead)
    .answers(&[Answer::new(200, json!(VersionDiff, examples::DIFF))])
    .shared_errors(VERSION);

    DIAGRAM_SVG =
        get("/api/workflows/{ref}/versions/{number}/diagram.svg", "draw_version", "Draws a version.")
            .needs(Scope::WorkflowsRead)
            .answers(&[
                Answer::new(200, text!("image/svg+xml")),
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
    .answers(&[Answer::new(200, text!("text/plain")), Answer::empty(304).when("the client has the text")])
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
        Answer::new(201, json!(Published)),
        Answer::new(200, json!(Published)).when("it was already published"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::WorkflowArchived, ErrorCode::VersionGateFailed]);

    UNPUBLISH = post(
        "/api/workflows/{ref}/publish/revoke",
        "unpublish_workflow",
        "Ends the publication; returns the record.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .answers(&[Answer::new(200, json!(WorkflowRecord))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    CHECK = post("/api/workflows/check", "check_graph", "Checks a graph and saves nothing.")
        .needs_anywhere(Scope::WorkflowsRead)
        .body(json!(CheckVersion, examples::CHECK))
        .answers(&[Answer::new(200, json!(Checked, examples::CHECKED))])
        .errors(&[ErrorCode::CodeUnavailable]);
}
