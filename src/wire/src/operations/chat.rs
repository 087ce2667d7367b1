//! The chat and its session tokens.

use super::parameters::{AFTER, CURSOR, LIMIT};
use crate::chat::{Attachment, ChatAnswer, ChatCall, ChatEvent};
use crate::operation::{
    Answer, CREDENTIAL, Parameter, Values, binary, events, file_form, get, json, lines, operations, post, put,
};
use crate::{
    ChatSessionAnswer, ChatUsageRecord, CreateChatSession, ErrorCode, FeedbackCase, FeedbackRecord, Listed,
    PublicWorkflow, Scope, StopAnswer,
};

/// Reasons for refusing a chat to a caller.
pub(super) const ACCESS: &[ErrorCode] = &[
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

/// Reasons for rejecting an announced file's bytes, besides [`FILE`].
const ANNOUNCED_FILE: &[ErrorCode] = &[
    ErrorCode::ChatRateLimitedAddress,
    ErrorCode::AttachmentLinkInvalid,
    ErrorCode::AttachmentNotFound,
    ErrorCode::AttachmentInUse,
];

/// Reasons for rejecting a file's bytes.
const FILE: &[ErrorCode] = &[
    ErrorCode::ChatInvalidRequest,
    ErrorCode::ChatRateLimitedUploads,
    ErrorCode::AttachmentTooLarge,
    ErrorCode::AttachmentTypeNotAllowed,
    ErrorCode::AttachmentSizeMismatch,
    ErrorCode::AttachmentDamaged,
    ErrorCode::WorkspaceFull,
    ErrorCode::Overloaded,
];

const WORKFLOW: Parameter = Parameter {
    name: "workflow_id",
    about: "The workflow of the chat, a UUID. The header `X-Workflow-Id` names it, too.",
    values: Values::Text,
};

/// The requesting visitor's chat.
pub(super) const CHAT_WORKFLOW: &[Parameter] =
    &[Parameter { name: "workflow_id", about: "The workflow of the chat, a UUID.", values: Values::Text }];

/// An address signature.
const SIGNED: &[Parameter] = &[
    Parameter { name: "exp", about: "When the address expires.", values: Values::Text },
    Parameter { name: "sig", about: "The signature of the address.", values: Values::Text },
];

operations! {
    CHAT = post(
        "/api/chat",
        "chat",
        "Starts or continues a turn and streams it; other values of `type` read and change threads and return JSON.",
    )
    .body(json!(ChatCall, examples::CREATE_THREAD))
    .answers(&[
        Answer::new(200, events!(ChatEvent)).when("`type` starts or continues a turn"),
        Answer::new(200, json!(ChatAnswer)).when("`type` reads or changes threads"),
    ])
    .shared_errors(ACCESS)
    .errors(&[
        ErrorCode::ChatWorkflowIdRequired,
        ErrorCode::ChatWorkflowIdInvalid,
        ErrorCode::ChatInvalidRequest,
        ErrorCode::ItemNotPending,
        ErrorCode::ChatBudgetSession,
        ErrorCode::ChatBudgetWorkflow,
        ErrorCode::ChatThreadBusy,
        ErrorCode::ChatTurnRunning,
        ErrorCode::ThreadLocked,
        ErrorCode::ThreadClosed,
        ErrorCode::ItemNotFound,
        ErrorCode::AttachmentNotFound,
        ErrorCode::AttachmentNotUploaded,
        ErrorCode::AttachmentInUse,
        ErrorCode::AttachmentUploadsOff,
        ErrorCode::AttachmentTooLarge,
        ErrorCode::AttachmentTypeNotAllowed,
        ErrorCode::ChatRateLimitedUploads,
        ErrorCode::ChatActionUnhandled,
        ErrorCode::ChatActionFailed,
        ErrorCode::ChatActionTimeout,
        ErrorCode::ChatTranscriptionOff,
        ErrorCode::ChatTranscriptionFailed,
        ErrorCode::WorkflowNoVersion,
        ErrorCode::WorkspaceFull,
        ErrorCode::IdempotencyKeyInvalid,
        ErrorCode::IdempotencyKeyReused,
        ErrorCode::IdempotencyInProgress,
    ])
    .also(ErrorCode::ChatTranscriptionFailed, 504);

    READ_CHAT_WORKFLOW = get(
        "/api/chat/workflow",
        "read_chat_workflow",
        "Returns the public record of a workflow to callers who may chat with it.",
    )
    .query(CHAT_WORKFLOW)
    .answers(&[Answer::new(200, json!(PublicWorkflow))])
    .shared_errors(ACCESS)
    .errors(&[ErrorCode::ChatWorkflowIdRequired, ErrorCode::ChatWorkflowIdInvalid]);

    UPLOAD = post(
        "/api/chat/upload",
        "upload_attachment",
        "Uploads a file as the part `file` of a form. With a workflow, by the rules of its chat; without one, for callers with a \
         token or a cookie, and for all callers of an open service.",
    )
    .query(&[WORKFLOW])
    .body(file_form!())
    .answers(&[Answer::new(200, json!(Attachment))])
    .shared_errors(CREDENTIAL)
    .errors(&[
        ErrorCode::ChatInvalidRequest,
        ErrorCode::ChatWorkflowIdRequired,
        ErrorCode::ChatWorkflowIdInvalid,
        ErrorCode::WorkflowNotFound,
        ErrorCode::ChatNotPublished,
        ErrorCode::ChatLoginRequired,
        ErrorCode::ChatSessionInvalid,
        ErrorCode::ChatRateLimitedAddress,
        ErrorCode::ChatRateLimitedWorkflow,
        ErrorCode::ChatRateLimitedSession,
        ErrorCode::ChatRateLimitedUploads,
        ErrorCode::AttachmentUploadsOff,
        ErrorCode::AttachmentTooLarge,
        ErrorCode::AttachmentTypeNotAllowed,
        ErrorCode::AttachmentSizeMismatch,
        ErrorCode::AttachmentDamaged,
        ErrorCode::WorkspaceFull,
        ErrorCode::Overloaded,
    ]);

    SEND_ATTACHMENT = put(
        "/api/chat/attachments/{id}",
        "send_attachment",
        "Sends the bytes of an attachment that `attachments.create` has announced, to its `upload_descriptor.url`, raw or as the part \
         `file` of a form. The same bytes sent again change nothing.",
    )
    .query(SIGNED)
    .body(binary!("application/octet-stream"))
    .answers(&[Answer::new(200, json!(Attachment))])
    .shared_errors(FILE)
    .errors(ANNOUNCED_FILE);

    SEND_ATTACHMENT_AS_FORM = post(
        "/api/chat/attachments/{id}",
        "send_attachment_as_form",
        "As PUT, for clients that send forms.",
    )
    .query(SIGNED)
    .body(file_form!())
    .answers(&[Answer::new(200, json!(Attachment))])
    .shared_errors(FILE)
    .errors(ANNOUNCED_FILE);

    PREVIEW = get(
        "/api/chat/attachments/{id}/preview",
        "preview_attachment",
        "Returns an image. One that was uploaded is scaled down to 1,024 pixels if it is large; one that a workflow has made is returned as it is. The \
         address is the `preview_url` of an attachment, or the `url` of a generated image.",
    )
    .query(SIGNED)
    .answers(&[
        Answer::new(200, binary!("image/png")).when("the image is small, and a PNG"),
        Answer::new(200, binary!("image/jpeg")).when("it is a small JPEG"),
        Answer::new(200, binary!("image/gif")).when("it is a small GIF"),
        Answer::new(200, binary!("image/webp")).when("it is a small WebP, or large"),
    ])
    .errors(&[ErrorCode::AttachmentLinkInvalid, ErrorCode::AttachmentNotFound]);

    CREATE_SESSION = post(
        "/api/chat/session",
        "create_chat_session",
        "Creates a session token for a page, for servers. A missing scope is 401 here.",
    )
    .needs(Scope::ChatSession)
    .except(ErrorCode::MissingScope, 401)
    .body(json!(CreateChatSession, examples::CREATE_SESSION))
    .answers(&[Answer::new(200, json!(ChatSessionAnswer, examples::SESSION))])
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
    .answers(&[Answer::new(200, json!(ChatSessionAnswer))])
    .errors(&[ErrorCode::ChatSigningKeyMissing, ErrorCode::WorkflowNotFound]);

    JOIN = get("/api/chat/threads/{id}/stream", "join_turn", "Joins the turn that runs in a thread.")
        .without_head()
        .query(&[AFTER])
        .answers(&[
            Answer::new(200, events!(ChatEvent)),
            Answer::empty(204).when("no turn runs"),
        ])
        .shared_errors(ACCESS);

    RESUME = get("/api/chat/streams/{id}", "resume_stream", "Resumes a stream after an event.")
        .without_head()
        .query(&[AFTER])
        .answers(&[
            Answer::new(200, events!(ChatEvent)),
            Answer::empty(204).when("the client has read all events and the turn has ended"),
        ])
        .shared_errors(ACCESS)
        .errors(&[ErrorCode::StreamNotFound]);

    STOP = post("/api/chat/streams/{id}/stop", "stop_turn", "Stops the turn of a stream.")
        .answers(&[Answer::new(200, json!(StopAnswer, examples::STOPPING))])
        .shared_errors(ACCESS)
        .errors(&[ErrorCode::StreamNotFound]);

    CHAT_USAGE = get(
        "/api/workflows/{ref}/chat/usage",
        "get_chat_usage",
        "Returns what the models of the workflow's chat have used on each UTC day, the latest first; of the last 35 days.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[
        Parameter { name: "from", about: "Only days on or after the UTC day of this time.", values: Values::Time },
        Parameter { name: "to", about: "Only days on or before the UTC day of this time.", values: Values::Time },
    ])
    .answers(&[Answer::new(200, json!(Listed<ChatUsageRecord>, examples::USAGE))])
    .errors(&[ErrorCode::WorkflowNotFound]);

    LIST_FEEDBACK = get(
        "/api/workflows/{ref}/feedback",
        "list_feedback",
        "Lists the feedback of the workflow's visitors, the newest first, with copies of the turns.",
    )
    .needs(Scope::WorkflowsRead)
    .query(&[
        LIMIT,
        CURSOR,
        Parameter { name: "kind", about: "Only this kind.", values: Values::OneOf(&["positive", "negative"]) },
        Parameter { name: "from", about: "Only feedback given at this time or later.", values: Values::Time },
        Parameter { name: "to", about: "Only feedback given before this time.", values: Values::Time },
        Parameter {
            name: "version",
            about: "Only feedback on turns of the version with this number.",
            values: Values::Integer(1, 2_147_483_647),
        },
        Parameter {
            name: "format",
            about: "`jsonl` streams all of it as cases of a dataset, one per line; `limit` is ignored.",
            values: Values::OneOf(&["json", "jsonl"]),
        },
    ])
    .answers(&[
        Answer::new(200, json!(Listed<FeedbackRecord>, examples::FEEDBACK)),
        Answer::new(200, lines!(FeedbackCase)).when("`format` is `jsonl`"),
    ])
    .errors(&[ErrorCode::WorkflowNotFound]);
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

    pub(super) const USAGE: &str = r#"{
  "data": [
    {
      "day": "2026-01-01",
      "sessions": 12,
      "turns": 40,
      "calls": 66,
      "input_tokens": 51200,
      "output_tokens": 9800,
      "usd": 0.0361
    }
  ],
  "next_cursor": null
}"#;

    pub(super) const FEEDBACK: &str = r#"{
  "data": [
    {
      "id": "0198c2f4-5a10-7c3e-8d21-6f7a8b9c0d1e",
      "at": "2026-01-01T12:00:30.000Z",
      "kind": "negative",
      "comment": "It was order 8.",
      "thread_id": "thr_6f1d2c3b4a5948372615f4e3d2c1b0a9",
      "item_id": "msg_0198c2f05a1071e2b3c4d5e6f708192a3b4c5d6e",
      "run_id": "0198c2f0-1b22-7d33-9e44-5f6a7b8c9d0e",
      "version": 3,
      "author": {
        "kind": "session",
        "id": "customer-17"
      },
      "inputs": {
        "message": "Where is my order?"
      },
      "messages": [
        {
          "role": "user",
          "content": "Where is my order?"
        }
      ],
      "output": {
        "text": "Order 7 is on its way."
      },
      "output_text": "Order 7 is on its way."
    }
  ],
  "next_cursor": null
}"#;

    pub(super) const STOPPING: &str = r#"{
  "status": "stopping"
}"#;
}
