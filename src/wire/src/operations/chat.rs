//! The chat and its session tokens.

use super::parameters::AFTER;
use crate::chat::{ChatAnswer, ChatCall, ChatEvent};
use crate::operation::{Answer, events, get, json, operations, post};
use crate::{ChatSessionAnswer, CreateChatSession, ErrorCode, Scope, StopAnswer};

/// Why a caller may not chat with a workflow.
const ACCESS: &[ErrorCode] = &[
    ErrorCode::WorkflowNotFound,
    ErrorCode::ThreadNotFound,
    ErrorCode::ChatNotPublished,
    ErrorCode::ChatLoginRequired,
    ErrorCode::ChatSessionInvalid,
    ErrorCode::OriginMismatch,
    ErrorCode::AuthRateLimited,
    ErrorCode::ChatRateLimitedAddress,
    ErrorCode::ChatRateLimitedWorkflow,
    ErrorCode::ChatRateLimitedSession,
    ErrorCode::ChatRateLimitedStreams,
];

operations! {
    CHAT = post(
        "/api/chat",
        "chat",
        "Starts a turn and streams it; other values of `type` read and change threads and return JSON.",
    )
    .body(json!(ChatCall, examples::CREATE_THREAD))
    .answers(&[
        Answer::of(200, events!(ChatEvent)).when("`type` starts a turn"),
        Answer::of(200, json!(ChatAnswer)).when("`type` reads or changes threads"),
    ])
    .shared_errors(ACCESS)
    .errors(&[
        ErrorCode::ChatWorkflowIdRequired,
        ErrorCode::ChatWorkflowIdInvalid,
        ErrorCode::ChatInvalidRequest,
        ErrorCode::ChatTypeUnsupported,
        ErrorCode::ChatThreadBusy,
        ErrorCode::ChatTurnRunning,
        ErrorCode::ThreadLocked,
        ErrorCode::ThreadClosed,
        ErrorCode::ItemNotFound,
        ErrorCode::AttachmentNotFound,
        ErrorCode::WorkflowNoVersion,
        ErrorCode::WorkspaceFull,
        ErrorCode::IdempotencyKeyInvalid,
        ErrorCode::IdempotencyKeyReused,
        ErrorCode::IdempotencyInProgress,
    ]);

    CREATE_SESSION = post(
        "/api/chat/session",
        "create_chat_session",
        "Creates a session token for a page, for servers. A missing scope is 401 here.",
    )
    .needs(Scope::ChatSession)
    .except(ErrorCode::MissingScope, 401)
    .body(json!(CreateChatSession, examples::CREATE_SESSION))
    .answers(&[Answer::of(200, json!(ChatSessionAnswer, examples::SESSION))])
    .errors(&[
        ErrorCode::ChatSigningKeyMissing,
        ErrorCode::ChatWorkflowIdRequired,
        ErrorCode::ChatWorkflowIdInvalid,
        ErrorCode::WorkflowNotFound,
    ]);

    CREATE_OWN_SESSION = post(
        "/api/workflows/{ref}/chat/session",
        "create_own_chat_session",
        "Creates a session token for the caller's own use; the caller needs `workflows:read` too.",
    )
    .needs(Scope::WorkflowsExecute)
    .answers(&[Answer::of(200, json!(ChatSessionAnswer))])
    .errors(&[ErrorCode::ChatSigningKeyMissing, ErrorCode::WorkflowNotFound]);

    JOIN = get("/api/chat/threads/{id}/stream", "join_turn", "Joins the turn that runs in a thread.")
        .without_head()
        .query(&[AFTER])
        .answers(&[
            Answer::of(200, events!(ChatEvent)),
            Answer::empty(204).when("no turn runs"),
        ])
        .shared_errors(ACCESS);

    RESUME = get("/api/chat/streams/{id}", "resume_stream", "Resumes a stream after an event.")
        .without_head()
        .query(&[AFTER])
        .answers(&[
            Answer::of(200, events!(ChatEvent)),
            Answer::empty(204).when("the client has read all events and the turn has ended"),
        ])
        .shared_errors(ACCESS)
        .errors(&[ErrorCode::StreamNotFound]);

    STOP = post("/api/chat/streams/{id}/stop", "stop_turn", "Stops the turn of a stream.")
        .answers(&[Answer::of(200, json!(StopAnswer, examples::STOPPING))])
        .shared_errors(ACCESS)
        .errors(&[ErrorCode::StreamNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE_THREAD: &str = r#"{
  "workflow_id": "0198c2e7-0b1c-7f3a-9a52-3f6d1e0b8a47",
  "type": "threads.create",
  "params": {
    "input": {
      "content": [
        {
          "type": "input_text",
          "text": "Where is order 7?"
        }
      ],
      "attachments": [],
      "quoted_text": null,
      "inference_options": {}
    }
  },
  "metadata": {}
}"#;

    pub(super) const CREATE_SESSION: &str = r#"{
  "workflow_id": "0198c2e7-0b1c-7f3a-9a52-3f6d1e0b8a47",
  "user": "customer-17",
  "origin": "https://shop.example.com"
}"#;

    pub(super) const SESSION: &str = r#"{
  "client_secret": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9…",
  "expires_at": "2026-11-22T09:05:00.000000Z"
}"#;

    pub(super) const STOPPING: &str = r#"{
  "status": "stopping"
}"#;
}
