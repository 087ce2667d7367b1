//! Chat visitors' data, for themselves and for the workflow's owner.

use super::chat::{ACCESS, CHAT_WORKFLOW};
use super::parameters::{CURSOR, LIMIT};
use crate::chat::{ThreadItem, ThreadStatus};
use crate::operation::{Answer, Parameter, Values, delete, get, json, lines, operations, patch};
use crate::{Erased, Erasing, ErrorCode, ExportLine, Listed, Scope, ThreadRecord, UpdateThread};

/// Reasons for refusing a caller their data, besides [`ACCESS`].
const VISITOR: &[ErrorCode] =
    &[ErrorCode::ChatWorkflowIdRequired, ErrorCode::ChatWorkflowIdInvalid, ErrorCode::ChatVisitorUnknown];

operations! {
    EXPORT_OWN_DATA = get(
        "/api/chat/me/export",
        "export_own_data",
        "Exports the caller's threads with the chat of a workflow, items, feedback and files. The last line is `end`; without it, the \
         export is incomplete.",
    )
    .without_head()
    .query(CHAT_WORKFLOW)
    .answers(&[Answer::new(200, lines!(ExportLine))])
    .shared_errors(ACCESS)
    .errors(VISITOR);

    ERASE_OWN_DATA = delete(
        "/api/chat/me",
        "erase_own_data",
        "Stops the caller's turns with the chat of a workflow and erases threads, items, runs, files and feedback.",
    )
    .query(CHAT_WORKFLOW)
    .answers(&[
        Answer::new(200, json!(Erased)),
        Answer::new(202, json!(Erasing)).when("it takes longer than 5 seconds; a job completes it"),
    ])
    .shared_errors(ACCESS)
    .errors(VISITOR);

    LIST_WORKFLOW_THREADS = get(
        "/api/workflows/{ref}/chat/threads",
        "list_workflow_threads",
        "Lists the threads of the workflow's chat, the newest first. Members need the role admin or owner.",
    )
    .needs(Scope::WorkflowsWrite)
    .query(&[
        LIMIT,
        CURSOR,
        Parameter { name: "visitor", about: "Only threads of this visitor, as the list names it.", values: Values::Text },
        Parameter {
            name: "status",
            about: "Only threads with this status.",
            values: Values::OneOf(&ThreadStatus::NAMES),
        },
    ])
    .answers(&[Answer::new(200, json!(Listed<ThreadRecord>, examples::THREADS))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    LIST_WORKFLOW_ITEMS = get(
        "/api/workflows/{ref}/chat/threads/{id}/items",
        "list_workflow_items",
        "Lists the items of a thread as its visitor sees them, the oldest first. Members need the role admin or owner.",
    )
    .needs(Scope::WorkflowsWrite)
    .query(&[LIMIT, CURSOR])
    .answers(&[Answer::new(200, json!(Listed<ThreadItem>))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::ThreadNotFound]);

    CHANGE_WORKFLOW_THREAD = patch(
        "/api/workflows/{ref}/chat/threads/{id}",
        "change_workflow_thread",
        "Changes the title of a thread, locks it, closes it or reopens it. Members need the role admin or owner.",
    )
    .needs(Scope::WorkflowsWrite)
    .repeatable()
    .body(json!(UpdateThread, examples::LOCK_THREAD))
    .answers(&[Answer::new(200, json!(ThreadRecord))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::ThreadNotFound]);

    EXPORT_VISITOR = get(
        "/api/workflows/{ref}/chat/visitors/{visitor}/export",
        "export_visitor",
        "Exports the data of a visitor, as `GET /api/chat/me/export` does for the visitor. Members need the role admin or owner.",
    )
    .needs(Scope::WorkflowsWrite)
    .without_head()
    .answers(&[Answer::new(200, lines!(ExportLine))])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::ChatVisitorNotFound]);

    ERASE_VISITOR = delete(
        "/api/workflows/{ref}/chat/visitors/{visitor}",
        "erase_visitor",
        "Erases the data of a visitor, as `DELETE /api/chat/me` does for the visitor. Members need the role admin or owner.",
    )
    .needs(Scope::WorkflowsWrite)
    .answers(&[
        Answer::new(200, json!(Erased)),
        Answer::new(202, json!(Erasing)).when("it takes longer than 5 seconds; a job completes it"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound, ErrorCode::ChatVisitorNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const THREADS: &str = r#"{
  "data": [
    {
      "id": "thr_0198c2f0a1b27c4d9e6f1a2b3c4d5e6f",
      "visitor": "visitor:5f0c9c8e2d7b4a10",
      "title": "Order 7",
      "status": {"type": "locked", "reason": "We look into it."},
      "created_at": "2026-11-25T09:00:00Z",
      "last_item_at": "2026-11-25T09:01:12Z",
      "items": 4
    }
  ],
  "next_cursor": null
}"#;
    pub(super) const LOCK_THREAD: &str = r#"{"status": "locked", "reason": "We look into it."}"#;
}
