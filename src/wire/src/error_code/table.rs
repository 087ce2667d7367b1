//! The only table of error codes: code, HTTP status, public message, occurrence and remedy.

/// Declares the table; each row is
/// `Variant, "code", status, whether a retry may help, "public message", "when", "what to do";`.
macro_rules! error_codes {
    ($($variant:ident, $code:literal, $status:literal, $retry:literal, $message:literal, $when:literal, $help:literal;)*) => {
        /// A stable error code.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $(#[doc = $message] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The code that programs compare. Codes for hosted apps have no dot.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The HTTP status; 200 for codes that only appear inside a stream or a record.
            #[must_use]
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// Whether the same request may succeed a little later without any other change.
            #[must_use]
            pub const fn retry_may_help(self) -> bool {
                match self { $(Self::$variant => $retry,)* }
            }

            /// The public message; never contains internal text.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }

            /// The condition that causes it.
            #[must_use]
            pub const fn when(self) -> &'static str {
                match self { $(Self::$variant => $when,)* }
            }

            /// The remedy for the reader.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

error_codes! {
    InvalidHost, "request.invalid_host", 400, false,
        "The header `Host` must be a host and an optional port.",
        "The header `Host` is missing or repeated, has more than a host and a port, or differs from the host in the \
         request's target.",
        "Send one `Host`, such as `desk.example.org` or `127.0.0.1:8000`.";
    InvalidJson, "request.invalid_json", 400, false,
        "The request body is not valid JSON.",
        "The body is empty where one is required, is not one JSON document in UTF-8, has more than \
         128 levels, or is cut short.",
        "The message names the line and the column. Send one document and nothing after it.";
    InvalidRequest, "request.invalid", 422, false,
        "The request does not validate.",
        "A member of the body or a parameter of the query is missing, unknown, of the wrong type or out of \
         bounds.",
        "`detail.errors` lists every problem with a JSON pointer to the value and, if possible, a \
         suggestion.";
    TooLarge, "request.too_large", 413, false,
        "The request body is too large.",
        "The body is larger than 1 MiB, or larger than 8 MiB if a workflow version is saved or checked.",
        "Send less.";
    UnsupportedMediaType, "request.unsupported_media_type", 415, false,
        "The request body must be application/json.",
        "The body has another content type, two, or none, or is compressed. The chat checks the type only of \
         requests with a visitor's cookie.",
        "Set the header `Content-Type: application/json`; `curl -d` sends another one by default.";
    RouteNotFound, "request.not_found", 404, false,
        "There is nothing at this path.",
        "No route has this path. Paths are compared exactly: a trailing slash, a double slash or a capital \
         letter makes another path.",
        "The message names the most similar path; `docs/PROTOCOL.md` lists all paths.";
    MethodNotAllowed, "request.method_not_allowed", 405, false,
        "This path does not support this method.",
        "The path exists, but does not support the method.",
        "The header `Allow` lists the supported methods.";
    RequestTimeout, "request.timeout", 408, true,
        "The request body did not arrive in time.",
        "The body was not complete after 30 seconds.",
        "Send the request again.";
    IdempotencyKeyInvalid, "idempotency.key_invalid", 400, false,
        "The Idempotency-Key header is not valid.",
        "The header is repeated, empty, longer than 255 characters, or contains \
         white space or non-ASCII characters.",
        "Send it once, with 1 to 255 visible ASCII characters, for example a UUID.";
    IdempotencyKeyReused, "idempotency.key_reused", 422, false,
        "This Idempotency-Key was already used with another request body.",
        "The same caller sent the same key to the same path within 24 hours, the service accepted it, and the \
         bodies differ in at least one byte.",
        "Create a new key for each new request; repeat a key only with exactly the same body.";
    IdempotencyInProgress, "idempotency.in_progress", 409, true,
        "A request with this Idempotency-Key is still in progress.",
        "The same caller sent the same key to the same path, and the first request has not ended. A request \
         whose connection was lost counts as in progress until the database detects it, at most 30 seconds.",
        "Send the same request again after `Retry-After`: it receives the response of the first one, or is processed then.";
    OriginMismatch, "auth.origin_mismatch", 403, false,
        "This origin may not make this request.",
        "A page of an origin that is not listed sent a preflight, tried to change a workflow, used a \
         visitor's cookie in the chat, or tried to open a websocket (for websockets `*` does not match any origin).",
        "Add the page's scheme, host and port to SERVICE_CORS_ALLOW_ORIGINS.";

    SessionNotFound, "auth.session_not_found", 404, false,
        "You have no sign-in with this id.",
        "The id in the path is not the id of one of the caller's sign-ins.",
        "`GET /api/auth/me` lists your sign-ins.";
    PublicBaseMissing, "auth.public_base_missing", 503, false,
        "Sign-in with a provider is not available at this address.",
        "The provider needs an address to redirect the browser to, SERVICE_PUBLIC_BASE_URL is not set, and the \
         request does not come from this machine with a loopback host name.",
        "Set SERVICE_PUBLIC_BASE_URL to the address at which people open the service.";
    HostMismatch, "auth.host_mismatch", 403, false,
        "This service does not accept this host name.",
        "A service on loopback without authentication received an API request for a host name other \
         than localhost. A web page could send such a request with DNS rebinding.",
        "Use localhost, or set SERVICE_PUBLIC_BASE_URL to the service's host name.";

    MissingToken, "auth.missing_token", 401, false,
        "Missing bearer token",
        "The service requires a credential, and the request has no header `Authorization`, or nothing after \
         `Bearer`.",
        "Send `Authorization: Bearer <token>`; the CLI reads it from SERVICE_SERVICE_TOKEN or a profile.";
    InvalidScheme, "auth.invalid_scheme", 401, false,
        "Authorization header must use the Bearer scheme",
        "The header `Authorization` does not begin with `Bearer`.",
        "Send `Authorization: Bearer <token>`.";
    InvalidToken, "auth.invalid_token", 401, false,
        "Invalid bearer token",
        "The token is malformed, unknown or revoked, or a JWT with a bad signature, an unknown key, or malformed \
         claims; or the query of a websocket has two different tokens. The response does not say which.",
        "Check that the whole token was sent. `callboard token list` shows which service tokens are active.";
    TokenExpired, "auth.token_expired", 401, false,
        "Bearer token has expired",
        "The `exp` of a JWT, the expiry of a service token, the overlap of a rotated secret, or \
         SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT has passed.",
        "Get a new token: sign in again, or ask a user with the scope `admin:tokens:write` to create or rotate one.";
    UnsupportedAlgorithm, "auth.unsupported_algorithm", 401, false,
        "Bearer token is signed with an unsupported algorithm",
        "A JWT names an algorithm that is not in SERVICE_AUTH_ALLOWED_ALGORITHMS or for which no key is configured.",
        "Sign with HS256 or RS256, as the service is configured.";
    InvalidAudience, "auth.invalid_audience", 401, false,
        "Bearer token has an invalid audience",
        "SERVICE_AUTH_AUDIENCE is set, and the JWT's `aud` contains none of its values.",
        "Configure the identity provider to issue tokens for this audience.";
    InvalidIssuer, "auth.invalid_issuer", 401, false,
        "Bearer token has an invalid issuer",
        "SERVICE_AUTH_ISSUER is set, and the JWT's `iss` differs.",
        "Both must be equal; a trailing slash counts.";
    KeyUnavailable, "auth.key_unavailable", 503, true,
        "Unable to resolve signing key for bearer token",
        "SERVICE_AUTH_JWKS_URL does not return a key set, and the cache has none that is younger than 24 \
         hours.",
        "Wait for the seconds in `Retry-After`; the log has the response of the address.";
    MissingScope, "auth.missing_scope", 403, false,
        "Missing required scopes",
        "The credential is valid, but it, or the member's role in the workspace, does not include the scope that \
         the route requires. The message names the missing scopes. `POST /api/chat/session` returns 401 instead.",
        "Use a token with the scope, or ask an administrator of the workspace for a role that has it.";
    WorkspaceForbidden, "auth.workspace_forbidden", 403, false,
        "Workspace access denied",
        "The credential is restricted to other workspaces, or `X-Workspace` names one that does not exist or that \
         the caller does not belong to.",
        "Use a token for the workspace, or ask one of its administrators for an invitation. `GET /api/auth/me` lists the \
         workspaces of the signed-in user.";
    AuthRateLimited, "auth.rate_limited", 429, true,
        "Too many authentication attempts",
        "Within SERVICE_AUTH_RATE_LIMIT_INTERVAL more requests from this address or for this identity failed than \
         SERVICE_AUTH_RATE_LIMIT_IP or SERVICE_AUTH_RATE_LIMIT_IDENTITY allow. Valid credentials are rejected too.",
        "Wait for the seconds in `Retry-After`, and stop the client that sends the bad credential.";
    WorkspaceRequired, "workspace.required", 400, false,
        "The header X-Workspace is required.",
        "The caller belongs to several workspaces, and the request names none.",
        "Send `X-Workspace: <slug>`.";
    WorkspaceNotFound, "workspace.not_found", 404, false,
        "Workspace not found.",
        "No workspace has this id or slug, or it was deleted. Callers who may see only some workspaces \
         receive `auth.workspace_forbidden` instead.",
        "List them with `callboard workspace list` or `GET /api/workspaces`.";
    WorkspaceSlugTaken, "workspace.slug_taken", 409, false,
        "The slug is taken.",
        "A workspace has this slug, or had it: a slug is never reused for another workspace.",
        "Choose another one. The display name need not be unique.";
    WorkspaceIsDefault, "workspace.is_default", 409, false,
        "The workspace `default` cannot be deleted.",
        "Requests that name no workspace use `default`, so it always exists.",
        "Archive its workflows instead.";
    MemberNotFound, "workspace.member_not_found", 404, false,
        "Member not found in the workspace.",
        "No user with this id belongs to the workspace or is invited to it.",
        "List them with `callboard workspace members` or `GET /api/workspaces/{id}/members`.";
    MemberHasOtherRole, "workspace.member_has_other_role", 409, false,
        "The user is already a member, or invited, with another role.",
        "The request adds a user who is already a member, or invited, with another role.",
        "Change the role: `callboard workspace role`, or `PATCH /api/workspaces/{id}/members/{user_id}`.";
    LastOwner, "workspace.last_owner", 409, false,
        "The workspace would have no owner.",
        "The request removes the only owner, or changes their role. An invited owner counts only after accepting the \
         invitation.",
        "Make another member an owner first.";
    TooManyInvitations, "workspace.too_many_invitations", 429, true,
        "Too many invitations were sent.",
        "Within an hour, 100 people were added to the workspace or by this caller, or the same person five times. Each \
         invitation sends an email.",
        "Wait for the seconds in `Retry-After`.";
    WorkspaceFull, "workspace.storage_full", 507, false,
        "The workspace has reached its storage quota.",
        "Its runs, events, messages and search indexes have reached SERVICE_WORKSPACE_STORAGE_BYTES. It starts no \
         runs and accepts no messages; started runs continue, but `index_upsert` fails with this code. `callboard \
         workspace show` and `GET /api/workspaces/{id}` return the figures.",
        "Delete threads and search indexes (`callboard index delete`), or ask the operator to shorten the retention \
         of runs or to raise the quota. Deleted indexes no longer count after the next measurement (every five \
         minutes); deleted threads are erased after a day.";
    ServiceTokenNotFound, "service_token.not_found", 404, false,
        "Service token not found.",
        "No stored service token has this id. The bootstrap token is not stored.",
        "List them with `callboard token list` or `GET /api/admin/service-tokens`.";
    ServiceTokenNotActive, "service_token.not_active", 409, false,
        "The service token is no longer active.",
        "The request rotates a token that was revoked or has expired.",
        "Create a new one.";
    VaultKeyMissing, "vault.key_missing", 503, false,
        "The vault has no key.",
        "The service uses an external database and SERVICE_VAULT_KEYS is not set, or does not contain the key that a secret \
         was encrypted with. The message, `/readyz` and `callboard doctor` name the key.",
        "The operator sets SERVICE_VAULT_KEYS, or adds the named key to it again.";
    CredentialNotFound, "credential.not_found", 404, false,
        "Credential not found.",
        "No credential has this id, or it was deleted.",
        "List them with `callboard credential list` or `GET /api/credentials`.";
    CredentialNameTaken, "credential.name_taken", 409, false,
        "A credential has this name already.",
        "Names are unique in a workspace, because graphs refer to credentials as `[[name]]`.",
        "Choose another name, or replace the secret of the existing credential: `PATCH /api/credentials/{id}`.";
    CredentialMissing, "credential.missing", 200, false,
        "A credential that the step needs was not found.",
        "A node names `[[name]]`, but the workspace no longer has a credential with this name. It was deleted after the \
         version was saved.",
        "Create it again with the same name; `GET /api/workflows/{ref}` lists missing credentials in `readiness`.";
    CodeInvalid, "auth.code_invalid", 401, false,
        "The code or link is not valid.",
        "The code is wrong; or the code or link was already used, is older than 10 minutes, was replaced by a \
         newer one, was invalidated by 5 wrong codes, or was requested by another browser. The response does not say which.",
        "Enter the newest code in the browser that requested it, or request another one with `POST /api/auth/email/start`.";
    RefreshInvalid, "auth.refresh_invalid", 401, false,
        "The refresh token is not valid.",
        "It is unknown, its sign-in has ended, or it was used before. A refresh token can be used once: a second use \
         ends its sign-in, because the token may be stolen.",
        "Sign in again. Refresh in one process only, and save the new token before you discard the old one.";
    TlsRequired, "auth.tls_required", 403, false,
        "Browsers can sign in over https only.",
        "A page requests a sign-in over plain http on a host that is not loopback. The browser would not store the \
         cookie.",
        "Put a proxy with TLS in front, and set SERVICE_PUBLIC_BASE_URL to its https address.";

    EmailSignInOff, "auth.email_sign_in_off", 404, false,
        "Email sign-in is not enabled.",
        "SERVICE_SMTP_URL names no mail server, so codes would go to the log, and either an OpenID provider replaces \
         sign-in by mail (SERVICE_OIDC_ISSUER), or others can reach the service and SERVICE_PUBLIC_BASE_URL is not set.",
        "Sign in on the page `/login`, or use a service token. To enable it, the operator sets SERVICE_SMTP_URL and \
         SERVICE_PUBLIC_BASE_URL.";
    OidcOff, "auth.oidc_off", 404, false,
        "Sign-in with a provider is not enabled.",
        "SERVICE_OIDC_ISSUER is not set.",
        "Sign in on the page `/login`.";
    OidcFailed, "auth.oidc_failed", 401, false,
        "The sign-in was not completed.",
        "The browser that returns from the OpenID provider is not the one that started the sign-in, returns a second \
         time or after 10 minutes, or sends parameters that the provider did not send; the provider rejected the \
         sign-in; or its identity token is not for this sign-in. The log says which.",
        "Start again on the page `/login`, in one browser.";
    OidcUnverified, "auth.oidc_unverified", 403, false,
        "The provider has not verified your email address.",
        "Neither the identity token nor the userinfo endpoint has an `email` with an `email_verified` that is true.",
        "Verify your email address at the provider, or configure the provider to send both claims for the scope `email`.";
    OidcRefused, "auth.oidc_refused", 403, false,
        "You may not sign in here with this account.",
        "SERVICE_SIGNUP is `members` and the account belongs to no workspace, or its email address belongs to an account \
         that is linked to another account of the provider.",
        "Ask an administrator of a workspace to invite you, or sign in with the provider's account that you used before.";
    OidcUnavailable, "auth.oidc_unavailable", 503, true,
        "The provider does not answer.",
        "The OpenID provider's metadata, keys or token endpoint cannot be reached, or its metadata is not valid for \
         sign-in.",
        "Try again in a moment; the log has the provider's response.";

    ChatWorkflowIdRequired, "chat.workflow_id_required", 400, false,
        "workflow_id is required.",
        "The body of a chat request is not an object, or its top level has no `workflow_id` or an empty \
         one. A `workflow_id` inside `metadata` is ignored.",
        "Put `workflow_id` at the top level of the chat request.";
    ChatWorkflowIdInvalid, "chat.workflow_id_invalid", 400, false,
        "workflow_id must be a valid UUID.",
        "`workflow_id` is not a UUID.",
        "Use the workflow's id, the last segment of its share URL; a handle is not accepted here.";
    ChatNotPublished, "chat.not_published", 403, false,
        "Publish authentication failed: workflow is not published.",
        "The workflow of a chat request or of a stream is private.",
        "Publish it with `POST /api/workflows/{ref}/publish`.";
    ChatLoginRequired, "chat.login_required", 401, false,
        "Publish authentication failed: OAuth login is required to access this workflow.",
        "The workflow is published with `require_login`, and the request has no cookie of a signed-in user.",
        "Sign in on the page `/login`; the workflow's own page redirects there.";
    ChatSessionInvalid, "chat.session_invalid", 401, false,
        "Chat session token authentication failed",
        "The request has the header `Authorization`, so the cookie is ignored, and the header has no valid \
         session token for this workflow: the token is not a session token, has expired, is for another workflow, or is \
         used from a page that is not its `origin`. Service tokens and access tokens are not session tokens.",
        "Get a new one with `POST /api/chat/session`, or omit the header: a published workflow does not require it.";
    ChatVisitorUnknown, "chat.visitor_unknown", 401, false,
        "The visitor is unknown.",
        "The request has no cookie of the chat, no login and no session token for a named user, so the service cannot \
         identify the visitor.",
        "Send the request from the browser or with the token that the visitor chats with.";
    ChatVisitorNotFound, "chat.visitor_not_found", 404, false,
        "The visitor was not found.",
        "The visitor in the path is not written as in the list of threads.",
        "Use `visitor` of `GET /api/workflows/{ref}/chat/threads`, such as `visitor:5f0c…`.";
    ChatSigningKeyMissing, "chat.signing_key_missing", 500, false,
        "Chat session tokens cannot be issued: CHAT_TOKEN_SIGNING_KEY is not set.",
        "A session token is requested, and the service has no key to sign it with.",
        "Set CHAT_TOKEN_SIGNING_KEY to at least 32 random bytes and start the service again.";
    ChatRateLimitedAddress, "chat.rate_limited.address", 429, true,
        "Too many chat requests from this address.",
        "More requests came from one address within SERVICE_CHAT_RATE_LIMIT_INTERVAL than SERVICE_CHAT_RATE_LIMIT_IP \
         allows.",
        "Wait for the seconds in `Retry-After`.";
    ChatRateLimitedWorkflow, "chat.rate_limited.workflow", 429, true,
        "Too many chat requests to this workflow.",
        "More requests came to one workflow within SERVICE_CHAT_RATE_LIMIT_INTERVAL than \
         SERVICE_CHAT_RATE_LIMIT_WORKFLOW allows.",
        "Wait for the seconds in `Retry-After`.";
    ChatRateLimitedSession, "chat.rate_limited.session", 429, true,
        "Too many chat requests in this session.",
        "More requests came in one session (session token, login, visitor, or else thread) \
         within SERVICE_CHAT_RATE_LIMIT_INTERVAL than SERVICE_CHAT_RATE_LIMIT_SESSION allows.",
        "Wait for the seconds in `Retry-After`.";
    ChatRateLimitedStreams, "chat.rate_limited.streams", 429, true,
        "Too many streams are open in this session.",
        "One session reads SERVICE_CHAT_MAX_STREAMS streams already.",
        "Close a stream, or wait until one ends.";
    ChatBudgetSession, "chat.budget.session", 429, true,
        "The limit for today is reached.",
        "The models of the chat have used what `chat.limits` of the workflow allows one session on a UTC day, or a call would exceed that.",
        "Continue tomorrow (`Retry-After`), or ask the owner of the workflow to raise the limit.";
    ChatBudgetWorkflow, "chat.budget.workflow", 429, true,
        "The chat's limit for today is reached.",
        "The models of the chat have used what `chat.limits` of the workflow allows on a UTC day, or a call would exceed that.",
        "Continue tomorrow (`Retry-After`); the owner of the workflow can raise the limit.";
    ChatRateLimitedUploads, "chat.rate_limited.uploads", 429, true,
        "Too many uploads.",
        "Two files of the session, four of its network or workspace, or eight of the instance are being uploaded; or four \
         recordings of the network or workspace, or eight of the instance, are being transcribed; or the session has uploaded \
         SERVICE_CHAT_UPLOAD_DAILY_BYTES on this UTC day, or its network ten times that.",
        "Wait for the time in `Retry-After`.";
    ChatActionUnhandled, "chat.action_unhandled", 422, false,
        "The workflow has no action of this type.",
        "No template and no condition of the workflow's graph names `inputs.action`. In a stream it is an `error`.",
        "Add a case such as `inputs.action and inputs.action.type == 'order.cancel'` to an edge of the graph.";
    ChatActionFailed, "chat.action_failed", 502, false,
        "The action failed.",
        "The run of an action that only changes its widget failed, or would have waited. The widget is unchanged.",
        "The trace of the run has the cause.";
    ChatActionTimeout, "chat.action_timeout", 504, false,
        "The action took too long.",
        "The run of an action that only changes its widget did not end within 30 seconds. The widget is unchanged.",
        "Send it as `threads.custom_action`, which has no such limit.";
    ChatWidgetUnavailable, "chat.widget_unavailable", 502, false,
        "The script of the chat widget is not available.",
        "The CDN at `SERVICE_CHAT_CDN_BASE_URL` did not answer with the script within 10 seconds, and no copy from the last 24 hours \
         is cached. The log has the cause.",
        "Try again later, or use the built-in chat, which needs no CDN: `/api/chat/assets/element.js`.";
    ChatTranscriptionOff, "chat.transcription_off", 404, false,
        "This chat has no dictation.",
        "`chat.transcription` of the workflow is not set.",
        "Type the message, or set `chat.transcription` with `PUT /api/workflows/{ref}`.";
    ChatTranscriptionFailed, "chat.transcription_failed", 502, false,
        "The recording was not transcribed.",
        "The model rejected the recording, could not be reached or returned an answer that cannot be read; or its credential \
         cannot be read. After 60 seconds without an answer the status is 504.",
        "Record it again. The log has the cause.";
    ChatInvalidRequest, "chat.invalid_request", 422, false,
        "The chat request does not validate.",
        "The caller may chat with the workflow, but the rest of the request is not valid. Unknown members \
         are ignored here.",
        "`detail.errors` lists every problem with a JSON pointer to the value.";
    ChatThreadBusy, "chat.thread_busy", 429, true,
        "Too many messages wait in this thread.",
        "A turn runs in the thread and 32 messages wait for it.",
        "Wait until the running turn ends, then send the message again.";
    ChatTurnRunning, "chat.turn_running", 409, true,
        "Another answer is being written in this thread.",
        "The workflow accepts no second message while it answers one: `chat.busy` of its record is `reject`.",
        "Send the message again after the answer is complete, or stop the answer first.";
    ChatNoReply, "chat.no_reply", 200, false,
        "The workflow ended without a reply.",
        "The graph ended, no `reply` node wrote anything, and its `output` has no text.",
        "Give the graph a `reply` node, or an `output` with the member `reply`.";
    ThreadNotFound, "thread.not_found", 404, false,
        "Thread not found.",
        "No thread has this id, it was deleted, or it belongs to another workflow or to the visitor of another \
         cookie.",
        "Use `thread.id` of the event `thread.created`, and send the cookie that you received with it, or none.";
    ThreadLocked, "thread.locked", 409, false,
        "The thread accepts no messages at present.",
        "The workflow has locked the thread: its `status` is `locked`, with a `reason` for people if the workflow gives one.",
        "Read the thread with `threads.get_by_id`, and send the message when its status is `active` again.";
    ThreadClosed, "thread.closed", 409, false,
        "The thread is closed.",
        "The workflow has closed the thread: its `status` is `closed`, with a `reason` for people if the workflow gives one.",
        "Start another thread with `threads.create`.";
    ItemNotFound, "item.not_found", 404, false,
        "Item not found in the thread.",
        "No item of the thread has this id, or a retry has removed it from the thread.",
        "Use the ids from `items.list`.";
    ItemNotPending, "item.not_pending", 409, false,
        "The item does not wait for an answer.",
        "Its questions were answered, skipped or have expired, or the client tool call has its output. `detail.stream_id` names the \
         stream of the turn that continues with the answer, as long as the stream is stored; an expired question has none.",
        "Read the stream in `detail.stream_id`, or the thread with `threads.get_by_id`.";
    StreamNotFound, "stream.not_found", 404, false,
        "Stream not found.",
        "No stream has this id, it ended more than 24 hours ago, or it belongs to the thread of another \
         visitor.",
        "Use the id from the header `X-Chat-Stream-Id` of the response that started the turn.";
    AttachmentNotFound, "attachment.not_found", 404, false,
        "Attachment not found.",
        "No attachment has this id; it belongs to another caller or workflow; or it was deleted: an attachment that \
         no message contains is deleted after 24 hours. A node `document_read` reads only attachments of the run's thread.",
        "Upload the file with `POST /api/chat/upload`, and use the id of the answer.";
    AttachmentNotUploaded, "attachment.not_uploaded", 409, false,
        "The attachment has no bytes yet.",
        "A message names an attachment that `attachments.create` has announced and whose bytes were not sent.",
        "Send the bytes to `upload_descriptor.url`, then the message.";
    AttachmentInUse, "attachment.in_use", 409, false,
        "The attachment is in use.",
        "A message of another thread contains the attachment; or the request deletes an attachment that a message contains; or \
         other bytes were uploaded for it.",
        "Upload the file again. A message is deleted with its thread.";
    AttachmentTooLarge, "attachment.too_large", 413, false,
        "The file is too large.",
        "A file has more than SERVICE_CHAT_UPLOAD_MAX_BYTES, or an image more than 16 MiB.",
        "Send a smaller file, or raise the limit.";
    AttachmentTypeNotAllowed, "attachment.type_not_allowed", 415, false,
        "Files of this type are not accepted.",
        "The content is not one of the accepted types, whatever the file's name says: text in UTF-8, JSON, CSV, Markdown, PDF, \
         PNG, JPEG, GIF, WebP, audio (WebM, MP4, Ogg, MP3, WAV, FLAC), DOCX, XLSX, PPTX, ODT. HTML and SVG are not accepted. A \
         recording to transcribe is `audio/webm`, `audio/mp4`, `audio/ogg`, `audio/mpeg` or `audio/wav`.",
        "Convert the file.";
    AttachmentSizeMismatch, "attachment.size_mismatch", 422, false,
        "The file does not have the announced size.",
        "The file is empty, or its bytes are more or fewer than `attachments.create` has announced.",
        "Send the whole file, or announce it again.";
    AttachmentDamaged, "attachment.damaged", 422, false,
        "The image cannot be decoded.",
        "An image is damaged, is not what its first bytes say, or has more than 40 million pixels.",
        "Open and save the image with another program, or scale it down.";
    AttachmentLinkInvalid, "attachment.link_invalid", 403, false,
        "The link is not valid.",
        "The signature of an address of an attachment is wrong, or the address has expired.",
        "Read the thread again for a new preview address; announce the file again for a new upload address.";
    AttachmentUploadsOff, "attachment.uploads_off", 403, false,
        "This chat accepts no files.",
        "`chat.uploads` of the workflow is false.",
        "Send the message without attachments.";

    WorkflowNotFound, "workflow.not_found", 404, false,
        "Workflow not found.",
        "No workflow has this id or handle. The chat and the public record do not find archived workflows; \
         the public record does not find private ones either.",
        "List the workflows with `GET /api/workflows`; `?include_archived=true` includes archived ones.";
    WorkflowHandleTaken, "workflow.handle_taken", 409, false,
        "Another workflow has this handle.",
        "The request creates a workflow with, or changes its handle to, a handle that another workflow has. Archived \
         workflows keep their handles.",
        "Choose another handle. If you create a workflow without a handle, the service derives one from its name.";
    WorkflowArchived, "workflow.archived", 409, false,
        "The workflow is archived.",
        "The request changes, publishes or runs an archived workflow, or saves a version of it.",
        "Restore it with `POST /api/workflows/{ref}/restore`. An archived workflow can still be read.";
    WorkflowNoVersion, "workflow.no_version", 409, false,
        "The workflow has no live version.",
        "A request without a version runs a workflow that has no version yet, or none of whose versions has passed its gate.",
        "Save a version with `POST /api/workflows/{ref}/versions`; if a gate holds it back, read `gate` of the version.";
    VersionNotFound, "version.not_found", 404, false,
        "Version not found.",
        "The workflow exists, but has no version with this number.",
        "`latest_version` of the workflow names the latest one; numbers count from 1.";
    VersionGateFailed, "version.gate_failed", 409, false,
        "The version has not passed its gate.",
        "A version that has failed its gate is made live or a canary without `force`, or a workflow is published of which no \
         version is live.",
        "Read `gate` of the version, improve it and save the next one; or send `{\"force\": true}` to \
         `POST /api/workflows/{ref}/versions/{number}/live`.";
    TriggerNotFound, "trigger.not_found", 404, false,
        "Trigger not found.",
        "The request reads, removes or calls a trigger that is not configured. A webhook's address returns the same if \
         the workflow does not exist.",
        "Configure it with `PUT /api/workflows/{ref}/triggers/cron` or `…/triggers/webhook/config`.";
    WebhookSecretInvalid, "webhook.secret_invalid", 401, false,
        "The call's secret is missing or wrong.",
        "The webhook requires a shared secret, and the configured header of the call does not contain it.",
        "Send the configured secret.";
    WebhookSignatureInvalid, "webhook.signature_invalid", 401, false,
        "The call's signature is missing or wrong.",
        "The webhook requires a signature, and the call's signature does not match its bytes.",
        "Sign the bytes that you send, with the timestamp if one is configured, and send the signature in hexadecimal.";
    WebhookStale, "webhook.stale", 401, false,
        "The call's timestamp is missing or too far from the current time.",
        "The timestamp of a signed call is not in Unix seconds, or differs from the current time by more than \
         `hmac_tolerance_seconds`.",
        "Sign with the time at which you send the call, and synchronise the sender's clock.";
    WebhookReplayed, "webhook.replayed", 401, false,
        "The call was already accepted.",
        "A signed call with this timestamp and signature has already started a run.",
        "If it was sent twice, nothing. Otherwise sign with another timestamp.";
    WebhookRateLimited, "webhook.rate_limited", 429, true,
        "The webhook is called too often.",
        "The webhook received more calls than its `rate_limit` allows.",
        "Wait for the seconds in `Retry-After`.";
    NodeTypeNotFound, "node_type.not_found", 404, false,
        "Node type not found.",
        "The node catalogue does not have the requested type, or the type is part of the format but this version \
         does not execute it yet.",
        "List the types with `GET /api/nodes` or `callboard node list`.";
    DiagramTooLarge, "diagram.too_large", 422, false,
        "The graph is too large to draw.",
        "The request is for a picture of a graph with more than 600 nodes and conditions, or with very many long edges.",
        "Use the Mermaid text, `diagram.mmd`, which has no limit, or split the workflow with `sub_workflow`.";
    GraphInvalid, "graph.invalid", 422, false,
        "The graph is not valid.",
        "The request saves a version whose graph has an error.",
        "`detail.errors` lists every problem with a code, a suggestion and a JSON pointer relative to the \
         graph. `too_slow` means that the check took longer than 5 s; split the workflow.";

    RunTimeout, "run.timeout", 200, true,
        "The run took longer than its limit.",
        "A run reached its time limit. Chat turns have no time limit in this version; their nodes can have \
         one.",
        "Raise the limit or split the workflow.";
    RunRecursionLimit, "run.recursion_limit", 200, false,
        "The run took more steps than its recursion limit.",
        "The graph executed more super-steps than `recursion_limit` of its runnable config allows \
         (default: 50). Most often a loop does not end.",
        "End the loop earlier, or raise `recursion_limit` (at most 250) and save the version.";
    RunStepLimit, "run.step_limit", 200, false,
        "The run executed more steps than the limit.",
        "The run made more than 100,000 node attempts in total, including nested nodes. Most often workflows call themselves, \
         or nested lists are larger than expected.",
        "Do less in one run: start several runs, or let each node process larger batches.";
    RunNodesLimit, "run.nodes_limit", 200, false,
        "The run had more nested nodes in progress than the limit.",
        "More than 1,024 nodes with others inside (`for_each`, `sub_workflow`, `agent`) were in progress at the same time.",
        "Lower `concurrency` of the outer ones.";
    RunBytesLimit, "run.bytes_limit", 200, false,
        "The run used more bytes than the limit.",
        "The results of the run exceed 512 MiB in total, or the inputs of its nodes in progress exceed 256 MiB.",
        "Pass smaller values between nodes, and fewer at the same time.";
    RunIncomplete, "run.incomplete", 200, false,
        "The run ended before all of its branches did.",
        "A warning of a run that succeeded. A join was not met, or not again in a later round of a loop: some of its sources ran, and others did not, so nothing after the join ran either. Or no branch reached END although the graph leads there. The message names the nodes.",
        "Lead every case of a choice, and `on_error`, to the nodes that the join waits for, or use one edge from each source instead of a join. Give a choice without `else` an `else`.";
    RunCancelled, "run.cancelled", 200, false,
        "The run was stopped.",
        "A request stopped the turn. The code is in the run's record; the stream ends with a notice or \
         with the text so far.",
        "Nothing: the stop was requested.";
    RunAbandoned, "run.abandoned", 200, true,
        "The turn was stopped because its last reader disconnected.",
        "The stream had no reader for SERVICE_CHAT_DISCONNECT_GRACE seconds. The code is in the run's \
         record; the stream ends as if a request had stopped it.",
        "Send the message again and read its stream, or raise SERVICE_CHAT_DISCONNECT_GRACE.";
    RunCrashed, "run.crashed", 200, false,
        "The run was ended because the service crashed each time it executed it.",
        "The process ended three times in a row without a shutdown, and the run stored no result of a step in \
         between; the last time it executed while no other such run did.",
        "Look in the run's trace for the step after the last result, and in the service's log for the reason of the \
         end, such as too little memory. Change that step, then start another run.";
    NodeFailed, "node.failed", 200, true,
        "A step of the workflow failed.",
        "A node failed, for example because a template names a value that does not exist, or because a server \
         returned an error.",
        "The column `error` of the run's row names the node and the reason; clients do not receive it, \
         because it may contain any data.";
    NodeTimeout, "node.timeout", 200, true,
        "A step of the workflow took longer than its limit.",
        "A node ran for longer than its `timeout_seconds`.",
        "Raise `timeout_seconds` of the node.";
    NodeResultTooLarge, "node.result_too_large", 200, false,
        "A step's result is larger than 8 MiB.",
        "A node's result, or the run's output, is larger than 8 MiB as JSON.",
        "Return less from the step, or split the value.";
    CodeFailed, "code.failed", 200, false,
        "Code of the workflow failed.",
        "The code of a `code` node raised an uncaught error, or returned a value that is not JSON.",
        "The run's error names the module, the line and the code's message. Fix the code and save a new version.";
    CodeTimeout, "code.timeout", 200, true,
        "The workflow's code exceeded its time limit.",
        "The code of a `code` node did not end within the node's `timeout_seconds` (default: 10) and was \
         terminated.",
        "Look for an endless loop. If the code needs more time, raise `timeout_seconds` of the node, up to 300.";
    CodeMemory, "code.memory", 200, false,
        "The workflow's code exceeded its memory limit.",
        "The code of a `code` node exceeded SERVICE_SANDBOX_MEMORY_BYTES and was terminated.",
        "Keep less in memory at the same time, or raise SERVICE_SANDBOX_MEMORY_BYTES.";
    CodeOutputTooLarge, "code.output_too_large", 200, false,
        "The value that the workflow's code returned is too large.",
        "The value that the code of a `code` node returned is larger than 1 MiB as JSON.",
        "Return less, or split the value.";
    CodeCrashed, "code.crashed", 200, true,
        "The process that ran the workflow's code died.",
        "The interpreter that ran a `code` node ended without a result, or its process was killed, for example \
         because the machine was out of memory.",
        "Try again. If it happens with the same code every time, please report it with the code.";
    CodeBusy, "code.busy", 200, true,
        "No process was free for the workflow's code.",
        "All processes that run code, or the share of one workspace, were busy for the time limit of the code (at \
         least 30 s), or too many calls were waiting. The message says how long the call waited.",
        "Try again later. Give code that may loop a short `timeout_seconds`. Raise SERVICE_SANDBOX_WORKERS if the \
         machine has memory to spare.";
    CodeUnavailable, "code.unavailable", 503, true,
        "Code cannot be run or checked now.",
        "The service cannot start a process for the workflow's code, or no thread or process was free to check a graph \
         within 5 s.",
        "Try again later. The service's log says why, at the level `error`. The service must be able to start its own \
         program; SERVICE_SANDBOX_PROGRAM can name it.";
    NodeOutcomeUnknown, "node.outcome_unknown", 200, false,
        "The service stopped while a step was in progress, and the step must not be repeated.",
        "After a crash it is unknown whether the step was completed, and its `on_unknown` is `fail`.",
        "Check what the step did, then start another run; or set another `on_unknown` of the node.";
    NodeInputExpired, "node.input_expired", 200, false,
        "The input was not provided in time.",
        "A `wait_for_input`, `ask` or `client_tool` received no answer within its `expires_seconds`.",
        "Raise `expires_seconds`, or set `on_error` of the node to define what happens without an answer.";
    IndexNotFound, "index.not_found", 404, false,
        "Search index not found.",
        "An `index_search` or a request names an index that this workspace does not have: no `index_upsert` has \
         created it yet, or it was deleted.",
        "Compare the names with `callboard index list` or `GET /api/indexes`, or add a document to it first.";
    IndexFull, "index.full", 200, false,
        "The search index is full.",
        "An `index_upsert` would have left more than 50,000 chunks in the index. Nothing of the document was changed.",
        "Delete documents with an empty list of chunks, make larger chunks, or use several indexes.";
    IndexDimensions, "index.dimensions", 200, false,
        "The vector's length differs from the length in the search index.",
        "An `index_upsert` or `index_search` received a vector of a different model from those in the index.",
        "Embed all texts and queries of an index with the same model and number of dimensions.";
    DocumentUnsupported, "document.unsupported", 200, false,
        "The document's type is not supported.",
        "A `document_read` fetched an image, an archive or another document that is not text, Markdown, CSV, HTML, PDF or DOCX.",
        "Use a document of one of these types. If its server sends a wrong content type, set `format` of the node.";
    DocumentDamaged, "document.damaged", 200, false,
        "The document cannot be read.",
        "It is damaged or cut short, requires a password, or is not of the stated type, such as a page where \
         `rss_read` expects a feed.",
        "The run's error says what is wrong. Open the document yourself, and save it again without a password.";
    DocumentTooLarge, "document.too_large", 200, false,
        "The document is too large.",
        "It has more than 10 MiB, 2,000 pages or 4 MiB of text, a part of it is too large after decompression, or reading it \
         takes more memory than SERVICE_SANDBOX_MEMORY_BYTES.",
        "Split it, and read the parts one by one.";
    PostgresUnreachable, "postgres.unreachable", 200, true,
        "The database does not answer.",
        "A `postgres_query` could not reach the database, or the connection ended; or the database offers no TLS or an \
         untrusted certificate.",
        "Try again later. Without `sslmode` in the dsn the server's certificate is verified; `sslmode=require` \
         encrypts without verification.";
    PostgresRefused, "postgres.refused", 200, false,
        "The database rejected the login.",
        "The database server of a `postgres_query` does not accept the user, password or database in the dsn.",
        "Update the dsn in the credential.";
    PostgresFailed, "postgres.failed", 200, false,
        "The database rejected the statement.",
        "The statement of a `postgres_query` is not valid, violates a constraint of the database, or changes data in the mode \
         `read`. Nothing was changed.",
        "The run's error has the database's message and SQLSTATE. Fix the statement, or set `mode` to `write`.";
    PostgresTooLarge, "postgres.too_large", 200, false,
        "The database returned more than the step's limit.",
        "The statement of a `postgres_query` returns more rows than `max_rows`, or more than 4 MiB. Nothing was changed.",
        "Select less with WHERE and LIMIT, or raise `max_rows`, up to 10,000.";
    RunNotFound, "run.not_found", 404, false,
        "Run not found.",
        "No run that the caller may see has this id.",
        "List a workflow's runs with `GET /api/workflows/{ref}/runs`.";
    CheckpointNotFound, "checkpoint.not_found", 404, false,
        "Checkpoint not found.",
        "The workflow has no checkpoint with this id.",
        "List its checkpoints with `GET /api/workflows/{ref}/trainer/checkpoints`.";
    DatasetNotFound, "dataset.not_found", 404, false,
        "Dataset not found.",
        "No dataset of the workflow has this id or name, or the dataset does not have this version.",
        "List its datasets with `callboard dataset list` or `GET /api/workflows/{ref}/datasets`.";
    DatasetNameTaken, "dataset.name_taken", 409, false,
        "Another dataset of the workflow has this name.",
        "Names of datasets are unique within a workflow.",
        "Use another name, or add a version: `POST /api/workflows/{ref}/datasets/{id}/versions`.";
    RunNotEnded, "run.not_ended", 409, false,
        "The run has not ended.",
        "Only a run that has ended has results that can be kept or judged again.",
        "Wait for its end, or cancel it.";
    RunContentErased, "run.content_erased", 409, false,
        "The content of the run was erased.",
        "Its retention has ended, or the data of its visitor were erased: inputs, outputs and results of nodes no longer exist.",
        "Use a newer run.";
    RunInputsInvalid, "run.inputs_invalid", 422, false,
        "The inputs do not match the workflow's schema.",
        "The inputs of a run, or of a sub-workflow, do not match the `inputs` schema of the graph. A request over \
         HTTP has started no run.",
        "`detail.errors` lists what the schema requires.";
    RunNotActive, "run.not_active", 409, false,
        "The run has ended.",
        "A websocket message stops a run that has ended.",
        "Nothing. The run's record says how it ended.";
    RunNotWaiting, "run.not_waiting", 409, false,
        "The run does not wait for this input.",
        "An answer names an input that the run does not wait for: it was already answered, has expired, or was \
         never requested.",
        "`GET /api/runs/{id}` lists in `waits_for` what the run waits for.";
    RunInputInvalid, "run.input_invalid", 422, false,
        "The answer does not match the schema of the input.",
        "An answer to a waiting run does not match the `schema` of the input.",
        "Send a value that matches; `waits_for` of the run's record has the schema.";
    RunInputForbidden, "run.input_forbidden", 403, false,
        "You may not answer this input.",
        "The `wait_for_input` names an `audience`, and the caller does not belong to it.",
        "Ask one of the people in `waits_for` of the run's record to answer.";
    RunNotRepeatable, "run.not_repeatable", 409, false,
        "The run cannot be repeated.",
        "The request repeats a chat turn, or a run whose version can no longer be read.",
        "For a chat message use `threads.retry_after_item`; otherwise start a new run.";
    SocketUpgradeRequired, "ws.upgrade_required", 426, false,
        "This path is a websocket.",
        "The request is not a websocket handshake: the headers `Upgrade: websocket`, `Connection: Upgrade`, \
         `Sec-WebSocket-Version: 13` or `Sec-WebSocket-Key` are missing or wrong. A proxy may have removed them.",
        "Connect with a websocket client, and configure the proxy to forward these headers.";
    SocketTypeUnknown, "ws.type_unknown", 200, false,
        "Unknown message type.",
        "A message on the websocket has a `type` that is not part of the protocol.",
        "`PROTOCOL.md` lists all types.";
    SocketBinary, "ws.binary_unsupported", 200, false,
        "Messages are JSON in text frames.",
        "The client sent a binary message over the websocket.",
        "Send it as text.";
    SocketSubscribed, "ws.already_subscribed", 200, false,
        "This socket is already subscribed to the run.",
        "`subscribe` names a run whose events this socket already receives.",
        "Continue reading, or subscribe again after the run's last event.";
    SocketTooManyRuns, "ws.too_many_subscriptions", 200, false,
        "This socket is subscribed to too many runs.",
        "The socket receives the events of 64 unfinished runs, and subscribes to another.",
        "Open another socket.";
    SocketMessageTooLarge, "ws.message_too_large", 200, false,
        "The message is too large.",
        "A message on the websocket has more bytes than SERVICE_WS_MAX_MESSAGE_BYTES, in one frame or in several. The \
         socket is closed with this reason and code 1009.",
        "Send less, or raise the variable.";
    SocketProtocol, "ws.protocol_error", 200, false,
        "The client violated the websocket protocol.",
        "A frame without a mask, in a wrong order or of an unknown kind (closed with code 1002), or a text that is not \
         UTF-8 (1007). The socket is closed with this reason.",
        "Use a websocket library; a proxy that changes frames breaks them.";
    SocketIdle, "ws.idle", 200, true,
        "The client did not respond.",
        "The client sent nothing for 60 seconds, not even pongs, or did not read for 60 seconds. The socket is closed \
         with this reason and code 4408.",
        "Connect again and resume with `subscribe` and `after_seq`. Libraries answer pings automatically while the \
         program reads.";
    ModelNotConfigured, "model.not_configured", 200, false,
        "The model is not configured.",
        "A node names a model of a provider that does not exist, or that has no address or key.",
        "Name an existing provider, and set its variables: SERVICE_MODEL_BASE_URL and SERVICE_MODEL_API_KEY, \
         SERVICE_ANTHROPIC_API_KEY, SERVICE_GEMINI_API_KEY.";
    ModelRateLimited, "model.rate_limited", 200, true,
        "The model's endpoint is rate-limiting requests.",
        "The endpoint returned 429 to all attempts of the node.",
        "Try again later, or raise the limit at the provider.";
    ModelUnavailable, "model.unavailable", 200, true,
        "The model's endpoint cannot be reached.",
        "The endpoint could not be reached, closed the connection or returned a server error in all attempts of \
         the node.",
        "Try again later; the run's record has the endpoint's message.";
    ModelRejected, "model.rejected", 200, false,
        "The model's endpoint rejected the request.",
        "The endpoint reported that the request, the model's name or the key is wrong.",
        "The run's record has the endpoint's message.";
    ModelBadAnswer, "model.bad_answer", 200, true,
        "The model's answer cannot be used.",
        "The answer cannot be parsed, or it does not match the node's `response_schema`.",
        "The run's record says why; a retry may return a better answer.";
    EgressRefused, "egress.refused", 200, false,
        "The address may not be called from a workflow.",
        "A node tried to call an address that is not public.",
        "Only public addresses may be called; SERVICE_EGRESS_ALLOW names exceptions as host:port.";
    ActorFailed, "run.actor_failed", 200, true,
        "The turn failed too often and was abandoned.",
        "The component that runs a thread's turns failed more than five times in a minute.",
        "Send the message again; the log names the cause.";

    CollectionNoApp, "collection.no_app", 200, false,
        "The run belongs to no app.",
        "A node of collections is executed in a run that no page of an app has started, such as a test.",
        "Start the workflow from an app whose release has the collection, or replace the node's result in an evaluation.";
    CollectionNoOwner, "collection.no_owner", 200, false,
        "The records belong to members, and the run was started by a visitor who is not signed in.",
        "A node names a collection of the kind `user` in a run without a member.",
        "Set `access_mode` of the binding to `authenticated`, or use a collection of the kind `shared`.";
    CollectionUnknown, "collection.not_found", 200, false,
        "The release of the app has no such collection.",
        "A node names a collection that the release does not have, or that was deleted since.",
        "Add the collection to the manifest or the app, and publish.";
    CollectionRecordNotFound, "collection.record_not_found", 200, false,
        "The collection has no such record.",
        "A `collection_put` names a record that does not exist, is deleted, or belongs to another member.",
        "Omit `id` to create a record.";
    CollectionRecordConflict, "collection.version_conflict", 200, false,
        "The record has changed.",
        "The `version` of a `collection_put` differs from the version of the record.",
        "Read the record again, for example with `on_error` that leads back to the `collection_get`.";
    CollectionRecordInvalid, "collection.record_invalid", 200, false,
        "The record is not valid.",
        "Data of a `collection_put` has more than 64 KiB or 32 levels, contains U+0000, or does not match the schema of the collection.",
        "The run's record says what is wrong.";
    CollectionNoRoom, "collection.full", 200, false,
        "The collection is full.",
        "A node would have stored more than 10,000 records or 64 MiB in a collection.",
        "Delete records.";

    AppNotFound, "app_not_found", 404, false,
        "App not found.",
        "No app has this id or alias, or it was deleted.",
        "List them with `callboard app list` or `GET /api/apps`.";
    AliasTaken, "alias_taken", 409, false,
        "The alias is taken.",
        "Another app of the installation has this alias, or one that was deleted less than 30 days ago had it.",
        "Choose another alias.";
    DeploymentNotFound, "deployment_not_found", 404, false,
        "Deployment not found.",
        "The app has no deployment with this id.",
        "List them with `callboard app deployments` or `GET /api/apps/{app}/deployments`.";
    DeploymentReleased, "deployment_released", 409, false,
        "The deployment was published.",
        "A release has the deployment that the request would delete.",
        "Publish another deployment; its files are deleted when recent releases no longer serve them.";
    BindingNotFound, "binding_not_found", 404, false,
        "Binding not found.",
        "The app has no binding of this name. Those of a manifest belong to its deployment.",
        "List them with `callboard app bindings` or `GET /api/apps/{app}/bindings`.";
    CollectionNotFound, "collection_not_found", 404, false,
        "Collection not found.",
        "The app has no collection of this name. Those of a manifest belong to its deployment.",
        "List them with `callboard app collections` or `GET /api/apps/{app}/collections`.";
    CollectionTaken, "collection_taken", 409, false,
        "The app has a collection of this name.",
        "Names of collections are unique in an app.",
        "Choose another name, or delete the collection with its records first.";
    BundlePartInvalid, "bundle_part_invalid", 422, false,
        "The form must have exactly one part, `bundle`.",
        "The upload is a form with another part, with several, with none, or that cannot be read.",
        "Send the archive as the part `bundle` and nothing else, or as a body of the type application/zip.";
    WorkflowPreflightFailed, "workflow_preflight_failed", 422, false,
        "A workflow of the app cannot run there.",
        "A binding names a workflow or a version that does not exist, that is archived or does not compile; a credential is missing; a \
         node waits for a person or a page; or a workflow inside it has no fixed version.",
        "Each finding names the binding, the workflow and the node. Correct the workflow, save a version, and bind that.";
    ValidationBusy, "validation_busy", 503, true,
        "Other bundles are being checked; try again shortly.",
        "An instance checks two bundles at once, one of each workspace, and no check ended within 10 seconds; the check of this \
         bundle took more than 10 seconds; or the caller uploads four bundles already, or has too many bytes of unfinished bodies.",
        "Wait for the seconds in `Retry-After`, then upload again. If it always takes too long, make the documents smaller.";
    NotAZip, "not_a_zip", 422, false,
        "The file is not a ZIP archive.",
        "The upload is empty, cut short, or another kind of archive.",
        "Upload a complete ZIP archive.";
    ZipMalformed, "zip_malformed", 422, false,
        "The archive does not have exactly one meaning.",
        "Readers could disagree about the archive: it has a comment, ZIP64 records, several disks, unlisted or differing headers, or bytes before, between or after its entries.",
        "Create the archive again with a common tool, without comments, ZIP64 records or data before or after it.";
    ZipOverlap, "zip_overlap", 422, false,
        "Two entries of the archive share bytes.",
        "Entries of the archive contain each other or share data.",
        "Create the archive again with a common tool.";
    EncryptedEntry, "encrypted_entry", 422, false,
        "An entry of the archive is encrypted.",
        "The archive or an entry was made with a password.",
        "Create the archive without a password.";
    UnsupportedCompression, "unsupported_compression", 422, false,
        "An entry is compressed with a method other than deflate.",
        "An entry uses a method such as deflate64, bzip2, lzma, xz or zstd.",
        "Create the archive with the methods \"store\" or \"deflate\".";
    CrcMismatch, "crc_mismatch", 422, false,
        "The content of an entry is damaged.",
        "The checksum of an entry does not fit its content.",
        "Create the archive again.";
    SizeMismatch, "size_mismatch", 422, false,
        "An entry has another size than the archive says.",
        "An entry inflates to fewer or more bytes than the archive declares.",
        "Create the archive again.";
    BundleTooLarge, "bundle_too_large", 413, false,
        "The archive is too large.",
        "The archive has more bytes than SERVICE_APPS_MAX_COMPRESSED_BYTES.",
        "Remove files that the app does not use.";
    ExpandedTooLarge, "expanded_too_large", 422, false,
        "The files of the bundle are too large together.",
        "The files have more bytes together than SERVICE_APPS_MAX_EXPANDED_BYTES.",
        "Remove files that the app does not use, such as source maps.";
    TooManyFiles, "too_many_files", 422, false,
        "The bundle has too many files.",
        "The archive has more files than SERVICE_APPS_MAX_FILES.",
        "Bundle the modules of the app, and remove files that the app does not use.";
    FileTooLarge, "file_too_large", 422, false,
        "A file of the bundle is too large.",
        "A file has more bytes than SERVICE_APPS_MAX_FILE_BYTES.",
        "Make the file smaller, or host it elsewhere.";
    PathTooDeep, "path_too_deep", 422, false,
        "A path has too many folders.",
        "A path has more names than SERVICE_APPS_MAX_DEPTH.",
        "Move the file to a folder nearer to the root.";
    PathTooLong, "path_too_long", 422, false,
        "A path, or a name in it, is too long.",
        "A path has more than 1,024 bytes, or a name in it more than 255.",
        "Use shorter names.";
    DirectoryTooLarge, "directory_too_large", 422, false,
        "The directory of the archive is too large.",
        "The central directory has more than 8 MiB.",
        "Use fewer files and shorter names.";
    UnsafePath, "unsafe_path", 422, false,
        "A path could leave its folder, or means different files on different systems.",
        "A path is absolute, contains `..`, `\\`, control or reserved characters, or is a device name of another system.",
        "Use relative paths with plain names and `/` between them.";
    NameNotUtf8, "name_not_utf8", 422, false,
        "A name is not UTF-8, or is not marked as UTF-8.",
        "The bytes of a name are not UTF-8, or a name beyond ASCII lacks the flag for UTF-8.",
        "Create the archive with a tool that writes names as UTF-8, or use ASCII names.";
    PathCollision, "path_collision", 422, false,
        "Two paths are the same on some systems.",
        "Two paths are equal without regard to case or Unicode form, or a file is also a folder.",
        "Rename one of the two files.";
    PathNotNormalized, "path_not_normalized", 422, false,
        "A path is not in the Unicode form NFC.",
        "A path contains characters in a decomposed Unicode form.",
        "Rename the file; archives made on macOS may need a tool that writes NFC.";
    Symlink, "symlink", 422, false,
        "An entry is a link.",
        "An entry is a symbolic or a hard link.",
        "Replace the link by the file.";
    SpecialFile, "special_file", 422, false,
        "An entry is neither a plain file nor a plain folder.",
        "An entry is a device, a pipe or a socket, has special mode bits, or is a folder with data.",
        "Remove the entry, or clear its special mode bits.";
    ReservedPath, "reserved_path", 422, false,
        "The path is reserved.",
        "A path begins with `__service` or `.well-known`, or is a file that other hosts interpret.",
        "Rename or remove the file.";
    IndexMissing, "index_missing", 422, false,
        "The bundle has no `index.html` at its root.",
        "No file has exactly this path.",
        "Archive the content of the build folder, not the folder itself.";
    SensitiveFile, "sensitive_file", 422, false,
        "The file is hidden or holds a secret, and would be public.",
        "A name begins with a dot, or is that of a private key.",
        "Remove the file from the bundle.";
    NestedArchive, "nested_archive", 422, false,
        "A file is an archive or contains one.",
        "The content or the name of a file is that of an archive.",
        "Remove the file. The service compresses files itself; it needs no `.gz` files.";
    Executable, "executable", 422, false,
        "A file is a program.",
        "The content or the name of a file is that of a program or a script of a shell. WebAssembly is allowed.",
        "Remove the file.";
    NotUtf8, "not_utf8", 422, false,
        "A document is not UTF-8, or declares another encoding.",
        "An HTML, SVG or XML file, or the manifest, is not valid UTF-8 or declares something else.",
        "Save the file as UTF-8, and declare no other encoding.";
    HtmlParseLimit, "html_parse_limit", 422, false,
        "A document is too large or too complex to check.",
        "A document has more than 5 MiB, too many elements, attributes, levels or inline scripts, or takes more than two seconds.",
        "Make the document smaller: move data and scripts to other files.";
    InlineEventHandler, "inline_event_handler", 422, false,
        "An attribute contains a script.",
        "An HTML or SVG element has an attribute such as `onclick`.",
        "Move the script to a file and use `addEventListener`.";
    JavascriptUrl, "javascript_url", 422, false,
        "An address runs a script.",
        "An attribute with an address begins with `javascript:`, `vbscript:` or a `data:` document.",
        "Use a button with an event listener, or an address of the app.";
    UnsupportedScriptType, "unsupported_script_type", 422, false,
        "A script has a type that the app cannot use.",
        "A script has an unknown type or `speculationrules`, both `src` and content, or is a second import map.",
        "Compile the script to JavaScript, and keep either `src` or an inline script.";
    ExternalScript, "external_script", 422, false,
        "A script comes from another origin, and the policy of the app would block it.",
        "`src` of a script, a module preload or an import map leads to another origin.",
        "Copy the script into the bundle and use a relative address.";
    UnsupportedElement, "unsupported_element", 422, false,
        "A document has an element that the app cannot use.",
        "A document has `object`, `embed`, `applet`, `frameset`, `iframe srcdoc`, or a `base` or `meta` that leads elsewhere.",
        "Remove the element.";
    SvgScript, "svg_script", 422, false,
        "An SVG or XML file has a script, an entity or a style sheet instruction.",
        "An SVG or XML file contains something that runs or loads.",
        "Remove it from the file; optimizers of SVG files do so.";
    CspTooLarge, "csp_too_large", 422, false,
        "The policy of a document is too long.",
        "A document has more than 100 different inline scripts, its content security policy has more than 8 KiB, or those of all documents have more than 16 MiB.",
        "Move inline scripts to files, and name fewer frame ancestors.";
    ManifestInvalid, "manifest_invalid", 422, false,
        "The manifest `service.app.json` does not follow its rules.",
        "The manifest is not JSON, has duplicate or unknown members, or a value that is not allowed.",
        "Correct the member that the finding names.";
    SchemaInvalid, "schema_invalid", 422, false,
        "A schema of the manifest is not valid, or refers outside itself.",
        "An input or collection schema does not validate, has more than 64 KiB, remote or circular references, or patterns that are not linear or too large.",
        "Use JSON Schema with local `#` references and plain patterns without large repetitions.";

    ReleaseNotFound, "release_not_found", 404, false,
        "Release not found.",
        "The app has no release with this id.",
        "List them with `callboard app releases` or `GET /api/apps/{app}/releases`.";
    PermissionRevisionStale, "permission_revision_stale", 409, false,
        "The permissions of the deployment have changed.",
        "The acknowledged revision differs from the deployment's current one: a workflow or a binding has changed since it was read.",
        "Read the permissions again, and acknowledge the current revision.";
    PermissionAckRequired, "permission_ack_required", 409, false,
        "The permissions of the deployment are not acknowledged.",
        "No administrator has acknowledged the current permissions of the deployment.",
        "Read its permissions with `callboard app permissions`, then acknowledge them.";
    DeploymentStale, "deployment_stale", 409, false,
        "The files of the deployment were deleted.",
        "Only the newest deployments of an app, and those of its last releases, keep their files.",
        "Deploy the bundle again.";
    AppBadRequest, "bad_request", 400, false,
        "The request is not valid.",
        "The request is not HTTP/1.1 with one `Host`; its head is too large (431) or late (408); the path or the query does not decode; or the framing of the body is broken.",
        "Send one header `Host`, at most 128 KiB of headers, and the path as UTF-8 with percent signs.";
    AppInvalidJson, "invalid_json", 400, false,
        "The body is not valid JSON.",
        "The body of a request to an app is not JSON, is deeper than 128 levels or has a lone surrogate.",
        "Send JSON.";
    IdempotencyKeyRequired, "idempotency_key_required", 400, false,
        "The header Idempotency-Key is required.",
        "A run of an app was started without a key.",
        "Send a key, and the same key if you send the request again.";
    AppIdempotencyKeyInvalid, "idempotency_key_invalid", 400, false,
        "The header Idempotency-Key is not valid.",
        "The key is empty, longer than 255 characters, has white space or characters outside ASCII, or was sent twice.",
        "Send one key of 1 to 255 visible ASCII characters.";
    CursorInvalid, "cursor_invalid", 400, false,
        "The cursor is not valid.",
        "The cursor of a list of records was changed, is older than 24 hours, or belongs to another list.",
        "Read the list from its beginning.";
    VersionAmbiguous, "version_ambiguous", 400, false,
        "If-Match and version differ.",
        "A record was replaced with two versions.",
        "Send one of them.";
    LoginFailed, "login_failed", 400, false,
        "The sign-in failed.",
        "A sign-in to an app returned too late, or with a state, an issuer or a code that is not valid.",
        "Sign in again.";
    LoginRequired, "login_required", 401, false,
        "Sign in to use this app.",
        "The app, the binding or the record is for members who are signed in.",
        "Open `/__service/auth/login` in the browser.";
    AppForbidden, "forbidden", 403, false,
        "This is not allowed.",
        "The release allows it to neither visitors nor members, or not to members.",
        "Change the capabilities of the collection, and publish.";
    AppOriginMismatch, "origin_mismatch", 403, false,
        "The request comes from another origin.",
        "A request that changes something has no `Origin` of the app, or comes from another site.",
        "Send it from a page of the app.";
    WorkerRefused, "worker_refused", 403, false,
        "Workers are not available to apps.",
        "A page of an app requested the script of a worker.",
        "Run the code in the page.";
    AppTlsRequired, "tls_required", 403, false,
        "Sign-in needs https.",
        "A sign-in to an app was started over plain http on a host that is not loopback.",
        "Serve apps over https.";
    AppPathNotFound, "not_found", 404, false,
        "Not found.",
        "An app has no such route, binding, run, collection or record, or it belongs to another member.",
        "Check the name.";
    AppMethodNotAllowed, "method_not_allowed", 405, false,
        "The method is not allowed here.",
        "A path of an app does not have this method.",
        "Use a method of the header `Allow`.";
    CollectionGone, "collection_gone", 410, false,
        "The collection was deleted.",
        "The collection of the active release was deleted since it was published.",
        "Publish a release with another collection.";
    VersionConflict, "version_conflict", 412, false,
        "The record has changed.",
        "The version in `If-Match` or `version` is outdated; `current_version` is the record's version.",
        "Read the record, apply the change again and send its version.";
    InputTooLarge, "input_too_large", 413, false,
        "The input is too large.",
        "The input of a run of an app has more than 64 KiB.",
        "Send less.";
    RecordTooLarge, "record_too_large", 413, false,
        "The record is too large.",
        "A record has more than 64 KiB.",
        "Store less in a record.";
    AppUnsupportedMediaType, "unsupported_media_type", 415, false,
        "The content type is not supported.",
        "A request to an app has a body that is not `application/json`, or for PATCH `application/merge-patch+json`.",
        "Send JSON with its content type.";
    AppKeyReused, "idempotency_key_reused", 422, false,
        "The Idempotency-Key was used for another request.",
        "The same key came with another body.",
        "Use a new key for another request.";
    InputInvalid, "input_invalid", 422, false,
        "The input is not valid.",
        "The input of a run is not an object or does not follow the schema of its binding.",
        "Correct what `errors` name.";
    RecordInvalid, "record_invalid", 422, false,
        "The record is not valid.",
        "A record is not an object, is deeper than 32 levels, has a NUL character or does not follow the schema of its collection.",
        "Correct what `errors` name.";
    QueryInvalid, "query_invalid", 422, false,
        "The query is not valid.",
        "A parameter of a list of records is unknown or out of its bounds.",
        "Correct what `errors` name.";
    VersionRequired, "version_required", 428, false,
        "The version of the record is required.",
        "A record was changed or deleted without `If-Match`.",
        "Send the version that was read.";
    AppRateLimited, "rate_limited", 429, true,
        "Too many requests; try again later.",
        "A visitor or all visitors of an app have reached a limit.",
        "Wait for the seconds in `Retry-After`.";
    AppInternal, "internal", 500, true,
        "Something went wrong.",
        "A defect or an unexpected condition in a request to an app.",
        "Give `request_id` to the operator; the log has the cause under this id: one line per code and minute, and every \
         line at the level `debug`.";
    LoginNotConfigured, "login_not_configured", 503, false,
        "Sign-in is not configured.",
        "Apps need the service's own address to sign members in.",
        "Set `SERVICE_PUBLIC_BASE_URL`.";
    AppUnavailable, "unavailable", 503, true,
        "The service is not available; try again shortly.",
        "The database cannot be reached, the service is busy or shutting down.",
        "Wait for the seconds in `Retry-After`.";
    CollectionFull, "collection_full", 507, false,
        "The collection is full.",
        "A collection has 10,000 records or 64 MiB.",
        "Delete records.";
    AppStorageFull, "storage_full", 507, false,
        "The storage is full.",
        "The workspace of the app has no storage left, or the database's disk is full.",
        "Delete what is not needed, or raise the limit.";
    NotAMember, "not_a_member", 403, false,
        "You are not a member of the workspace of this app.",
        "A user who is signed in opened the sign-in of an app of another workspace.",
        "Ask an owner of the workspace to add you.";

    Overloaded, "service.overloaded", 503, true,
        "The service is busy; try again shortly.",
        "The service's write queue is full, or too many bytes of requests that have not ended are in memory: at most 32 MiB of a \
         caller, 128 MiB of all callers without a credential, 256 MiB of all. A websocket is closed with this reason and code 1013.",
        "Wait for the seconds in `Retry-After`, then send the same request again.";
    Draining, "service.draining", 503, true,
        "The service is shutting down.",
        "The service accepts no new turns because it is shutting down, or another instance has taken over \
         its work.",
        "Send the request again; another instance or the restarted one processes it.";
    DatabaseUnavailable, "service.database_unavailable", 503, true,
        "The database cannot be reached.",
        "The service could not connect to PostgreSQL, the connection broke, or a write was not acknowledged in time.",
        "Wait for the seconds in `Retry-After`; `GET /readyz` says what is wrong. A chat message may have been \
         accepted nevertheless: send it again with the same `Idempotency-Key`.";
    StorageFull, "service.storage_full", 507, false,
        "The database has no space left.",
        "PostgreSQL could not write because its disk is full.",
        "Free space on the database's disk; no restart is needed.";
    Internal, "service.internal", 500, true,
        "Something went wrong on our side.",
        "A defect or an unexpected condition. Inside a stream the event has no message, and its \
         `code` is `stream.error`.",
        "Give `request_id` to the operator; the log has the cause under this id: one line per code and minute, and every \
         line at the level `debug`.";
}
