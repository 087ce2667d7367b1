//! The one table of error codes: code, HTTP status, public message, and what to do about it.

/// Declares the table; each row is `Variant, "code", status, "public message", "what to do";`.
macro_rules! error_codes {
    ($($variant:ident, $code:literal, $status:literal, $message:literal, $help:literal;)*) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $message] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The dotted code that programs compare.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The HTTP status it is answered with; 200 for codes that only appear inside a stream or a record.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// The public message; never holds inner text.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }

            /// What the reader of the error can do.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

error_codes! {
    InvalidJson, "request.invalid_json", 400, "The request body is not valid JSON.",
        "Send one JSON document in UTF-8, at most 128 levels deep. The message names line and column.";
    InvalidRequest, "request.invalid", 422, "The request does not validate.",
        "`detail.errors` lists each problem with a JSON pointer to its place.";
    TooLarge, "request.too_large", 413, "The request body is too large.",
        "1 MiB is the limit of a request body, 8 MiB that of a workflow version.";
    UnsupportedMediaType, "request.unsupported_media_type", 415, "The request body must be application/json.",
        "Set the header `Content-Type: application/json`.";
    RouteNotFound, "request.not_found", 404, "There is nothing at this path.",
        "Compare the path with `docs/PROTOCOL.md`.";
    MethodNotAllowed, "request.method_not_allowed", 405, "This path does not take this method.",
        "The header `Allow` names the methods it takes.";
    RequestTimeout, "request.timeout", 408, "The request body did not arrive in time.",
        "Send the request again; the body has to arrive within 30 seconds.";
    IdempotencyKeyInvalid, "idempotency.key_invalid", 400, "The Idempotency-Key header is not valid.",
        "Send the header once, with 1 to 255 visible ASCII characters.";
    IdempotencyKeyReused, "idempotency.key_reused", 422,
        "This Idempotency-Key was already used with another request body.",
        "Make a new key for each new request; repeat a key only with exactly the same body.";
    OriginMismatch, "auth.origin_mismatch", 403, "This origin may not make this request.",
        "Add the page's scheme, host and port to SERVICE_CORS_ALLOW_ORIGINS.";

    HostMismatch, "auth.host_mismatch", 403, "This service is not known under this host name.",
        "A service on loopback without authentication answers the API only as localhost, so that no web page can \
         reach it under a name of its own. Set SERVICE_PUBLIC_BASE_URL to the name it shall have.";

    ChatWorkflowIdRequired, "chat.workflow_id_required", 400, "workflow_id is required.",
        "Put `workflow_id` at the top level of the chat request.";
    ChatWorkflowIdInvalid, "chat.workflow_id_invalid", 400, "workflow_id must be a valid UUID.",
        "Use the workflow's id, the last segment of its share URL; a handle does not do here.";
    ChatNotPublished, "chat.not_published", 403,
        "Publish authentication failed: workflow is not published.",
        "Publish the workflow, or send a session token for it.";
    ChatLoginRequired, "chat.login_required", 401,
        "Publish authentication failed: OAuth login is required to access this workflow.",
        "Sign in and send the session cookie with the request.";
    ChatSessionInvalid, "chat.session_invalid", 401, "Chat session token authentication failed",
        "Get a fresh token from `POST /api/chat/session` for exactly this workflow.";
    ChatInvalidRequest, "chat.invalid_request", 422, "The chat request does not validate.",
        "`detail.errors` lists each problem with a JSON pointer to its place.";
    ChatThreadBusy, "chat.thread_busy", 429, "Too many messages wait in this thread.",
        "At most 32 messages wait for the running turn; wait for its end and send again.";
    ChatNoReply, "chat.no_reply", 200, "The workflow ended without a reply.",
        "Give the graph a `reply` node, or an `output` with the member `reply`.";
    ThreadNotFound, "thread.not_found", 404, "There is no such thread.",
        "The thread may belong to another workflow or to another visitor.";
    StreamNotFound, "stream.not_found", 404, "There is no such stream.",
        "Streams are kept for 24 hours after they ended.";
    AttachmentNotFound, "attachment.not_found", 404, "There is no such attachment.",
        "Upload the file first and send the id that the upload answered.";

    WorkflowNotFound, "workflow.not_found", 404, "There is no such workflow.",
        "List the workflows with `GET /api/workflows`.";
    WorkflowHandleTaken, "workflow.handle_taken", 409, "Another workflow has this handle.",
        "Choose another handle, or leave it out and one is made from the name.";
    WorkflowArchived, "workflow.archived", 409, "The workflow is archived.",
        "Archived workflows can be read, but neither changed, published nor run.";
    WorkflowNoVersion, "workflow.no_version", 409, "The workflow has no version yet.",
        "Save one with `POST /api/workflows/{ref}/versions`.";
    VersionNotFound, "version.not_found", 404, "There is no such version.",
        "`latest_version` of the workflow names the newest.";
    GraphInvalid, "graph.invalid", 422, "The graph does not check.",
        "`detail.errors` lists every problem with a JSON pointer, a code and a suggestion.";

    RunTimeout, "run.timeout", 200, "The run took longer than its limit.",
        "Raise the limit or split the workflow.";
    RunRecursionLimit, "run.recursion_limit", 200, "The run took more steps than its recursion limit.",
        "Raise `recursion_limit` in the runnable config (at most 250), or end the loop earlier.";
    RunCancelled, "run.cancelled", 200, "The run was stopped.",
        "Nothing: somebody asked for it.";
    RunAbandoned, "run.abandoned", 200, "The turn was stopped because its last reader had gone.",
        "SERVICE_CHAT_DISCONNECT_GRACE says how long a turn goes on without a reader.";
    NodeFailed, "node.failed", 200, "A step of the workflow failed.",
        "The run's record names the node and the reason.";
    NodeTimeout, "node.timeout", 200, "A step of the workflow took longer than its limit.",
        "Raise `timeout_seconds` of the node.";
    NodeResultTooLarge, "node.result_too_large", 200, "A step's result is larger than 8 MiB.",
        "Let the step keep less, or cut the value into parts.";
    NodeOutcomeUnknown, "node.outcome_unknown", 200,
        "The service ended while a step was at work, and it must not be done twice.",
        "See what the step has done, then start another run; `on_unknown` or `idempotent` of the node say otherwise.";
    RunNotFound, "run.not_found", 404, "There is no such run.",
        "List a workflow's runs with `GET /api/workflows/{ref}/runs`.";
    RunInputsInvalid, "run.inputs_invalid", 422, "The inputs do not fit the workflow.",
        "`detail.errors` lists what the graph's `inputs` schema asks for. No run was begun.";
    ModelNotConfigured, "model.not_configured", 200, "The model is not configured.",
        "Name a provider that there is, and set SERVICE_MODEL_BASE_URL and SERVICE_MODEL_API_KEY for it.";
    ModelRateLimited, "model.rate_limited", 200, "The model's endpoint takes no more requests now.",
        "Try again later, or raise the limit at the provider.";
    ModelUnavailable, "model.unavailable", 200, "The model's endpoint cannot be reached.",
        "Try again later; the run's record holds what the endpoint said.";
    ModelRejected, "model.rejected", 200, "The model's endpoint refused the request.",
        "The run's record holds what the endpoint said.";
    ModelBadAnswer, "model.bad_answer", 200, "The model's answer cannot be used.",
        "The run's record says why; with a `response_schema` the answer has to fit it.";
    EgressRefused, "egress.refused", 200, "The address may not be called from a workflow.",
        "Only public addresses may be called; SERVICE_EGRESS_ALLOW names exceptions as host:port.";
    ActorFailed, "run.actor_failed", 200, "The turn failed too often and was given up.",
        "Send the message again; the log names the cause.";

    Overloaded, "service.overloaded", 503, "The service is busy; try again shortly.",
        "Wait the seconds of `Retry-After`, then send the same request again.";
    Draining, "service.draining", 503, "The service is shutting down.",
        "Send the request again; another instance or the restarted one answers it.";
    DatabaseUnavailable, "service.database_unavailable", 503, "The database cannot be reached.",
        "Wait the seconds of `Retry-After`; `GET /readyz` says what is wrong.";
    StorageFull, "service.storage_full", 507, "The database has no space left.",
        "Free space on the database's disk; no restart is needed.";
    Internal, "service.internal", 500, "Something went wrong on our side.",
        "Quote `request_id` to whoever runs the service; the log has the cause under it.";
}

impl ErrorCode {
    /// The code with this text.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_dotted_and_found_again() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_code(code.as_str()), Some(*code), "{} stands twice", code.as_str());
            assert!(code.as_str().split_once('.').is_some_and(|(group, name)| {
                let plain = |c: char| c.is_ascii_lowercase() || c == '_';
                !group.is_empty() && !name.is_empty() && group.chars().all(plain) && name.chars().all(plain)
            }));
        }
    }

    #[test]
    fn the_interface_texts_are_verbatim() {
        let text = |code: &str| ErrorCode::from_code(code).map(|c| (c.status(), c.message()));
        assert_eq!(text("chat.workflow_id_required"), Some((400, "workflow_id is required.")));
        assert_eq!(text("chat.workflow_id_invalid"), Some((400, "workflow_id must be a valid UUID.")));
        assert_eq!(
            text("chat.not_published"),
            Some((403, "Publish authentication failed: workflow is not published."))
        );
        assert_eq!(
            text("chat.login_required"),
            Some((401, "Publish authentication failed: OAuth login is required to access this workflow."))
        );
        assert_eq!(text("chat.session_invalid"), Some((401, "Chat session token authentication failed")));
    }
}
