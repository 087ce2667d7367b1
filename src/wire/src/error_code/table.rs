//! The one table of error codes: code, HTTP status, public message, when it happens, and what to do about it.

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

            /// Whether the same request may succeed a little later, without anybody changing anything.
            #[must_use]
            pub const fn retry_may_help(self) -> bool {
                match self { $(Self::$variant => $retry,)* }
            }

            /// The public message; never holds inner text.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self { $(Self::$variant => $message,)* }
            }

            /// When it happens.
            #[must_use]
            pub const fn when(self) -> &'static str {
                match self { $(Self::$variant => $when,)* }
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
    InvalidHost, "request.invalid_host", 400, false,
        "The header `Host` must be a host and an optional port.",
        "The header `Host` is missing, is there twice, has more than a host and a port, or differs from the host in the \
         request's target.",
        "Send one `Host`, such as `desk.example.org` or `127.0.0.1:8000`.";
    InvalidJson, "request.invalid_json", 400, false,
        "The request body is not valid JSON.",
        "The body is empty where one is needed, is not one JSON document in UTF-8, has more than 128 \
         levels, or broke off.",
        "The message names line and column. Send one document and nothing behind it.";
    InvalidRequest, "request.invalid", 422, false,
        "The request does not validate.",
        "A member of the body or a parameter of the query is missing, unknown, of the wrong type or out of \
         bounds.",
        "`detail.errors` lists every problem with a JSON pointer to its place and, where one can tell, what \
         to write instead.";
    TooLarge, "request.too_large", 413, false,
        "The request body is too large.",
        "The body has more than 1 MiB, or, where a workflow version is saved or checked, more than 8 MiB.",
        "Send less.";
    UnsupportedMediaType, "request.unsupported_media_type", 415, false,
        "The request body must be application/json.",
        "A body came with another content type, with two, with none, or compressed. The chat looks at the type \
         only of requests with a visitor's cookie.",
        "Set the header `Content-Type: application/json`; `curl -d` sends another one by itself.";
    RouteNotFound, "request.not_found", 404, false,
        "There is nothing at this path.",
        "No route has this path. Paths are compared letter by letter: a slash at the end, a double slash or \
         a capital makes another.",
        "The message names the path that was probably meant; `docs/PROTOCOL.md` has all of them.";
    MethodNotAllowed, "request.method_not_allowed", 405, false,
        "This path does not take this method.",
        "The path exists, and the method is none of its own.",
        "The header `Allow` names the methods it takes.";
    RequestTimeout, "request.timeout", 408, true,
        "The request body did not arrive in time.",
        "The body was not complete after 30 seconds.",
        "Send the request again.";
    IdempotencyKeyInvalid, "idempotency.key_invalid", 400, false,
        "The Idempotency-Key header is not valid.",
        "The header came twice, is empty, is longer than 255 characters, or holds \
         white space or something other than ASCII.",
        "Send it once, with 1 to 255 visible ASCII characters; a UUID does well.";
    IdempotencyKeyReused, "idempotency.key_reused", 422, false,
        "This Idempotency-Key was already used with another request body.",
        "The same caller sent the same key to the same path within 24 hours, was not refused, and the bodies \
         differ in at least one byte.",
        "Make a new key for each new request; repeat a key only with exactly the same body.";
    IdempotencyInProgress, "idempotency.in_progress", 409, true,
        "A request with this Idempotency-Key is still at work.",
        "The same caller sent the same key to the same path, and the first request has not ended. One whose \
         connection was lost in the middle counts as at work until the database has noticed, at most 30 seconds.",
        "Send the same request again after `Retry-After`: it is answered as the first one was, or done then.";
    OriginMismatch, "auth.origin_mismatch", 403, false,
        "This origin may not make this request.",
        "A page of an origin that is not listed asked in a preflight, wanted to change a workflow, used \
         a visitor's cookie in the chat, or wanted to open a websocket, for which a list of `*` lists nobody.",
        "Add the page's scheme, host and port to SERVICE_CORS_ALLOW_ORIGINS.";

    SessionNotFound, "auth.session_not_found", 404, false,
        "You have no sign-in with this id.",
        "The id in the path is not of a sign-in of the caller.",
        "`GET /api/auth/me` lists your sign-ins.";
    PublicBaseMissing, "auth.public_base_missing", 503, false,
        "Sign-in by a provider is not available under this address.",
        "The provider has to be told where to send the browser back, SERVICE_PUBLIC_BASE_URL is not set, and the \
         request does not come from this machine under a loopback name.",
        "Set SERVICE_PUBLIC_BASE_URL to the address under which people open the service.";
    HostMismatch, "auth.host_mismatch", 403, false,
        "This service is not known under this host name.",
        "A service on loopback without authentication was asked for its API under a name other than \
         localhost, as a web page could do that points a name of its own there.",
        "Ask for it as localhost, or set SERVICE_PUBLIC_BASE_URL to the name it shall have.";

    MissingToken, "auth.missing_token", 401, false,
        "Missing bearer token",
        "The service asks for a credential, and the request has no header `Authorization`, or nothing behind \
         `Bearer`.",
        "Send `Authorization: Bearer <token>`; the command line takes it from SERVICE_SERVICE_TOKEN or a profile.";
    InvalidScheme, "auth.invalid_scheme", 401, false,
        "Authorization header must use the Bearer scheme",
        "The header `Authorization` is there and does not begin with `Bearer`.",
        "Send `Authorization: Bearer <token>`.";
    InvalidToken, "auth.invalid_token", 401, false,
        "Invalid bearer token",
        "The token is malformed, unknown or revoked, or a JWT with a bad signature, an unknown key, or claims of \
         the wrong form; or the query of a websocket holds two that differ. Which of them is not told.",
        "Check that the whole token was sent. `callboard token list` shows which service tokens are active.";
    TokenExpired, "auth.token_expired", 401, false,
        "Bearer token has expired",
        "The `exp` of a JWT, the expiry of a service token, the overlap of a rotated secret, or \
         SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT has passed.",
        "Get a new token: sign in again, or let somebody with `admin:tokens:write` create or rotate one.";
    UnsupportedAlgorithm, "auth.unsupported_algorithm", 401, false,
        "Bearer token is signed with an unsupported algorithm",
        "A JWT names an algorithm that SERVICE_AUTH_ALLOWED_ALGORITHMS leaves out or for which no key is configured.",
        "Sign with HS256 or RS256, as the service is configured.";
    InvalidAudience, "auth.invalid_audience", 401, false,
        "Bearer token has an invalid audience",
        "SERVICE_AUTH_AUDIENCE is set, and the JWT's `aud` names none of it.",
        "Let the identity provider issue the token for this audience.";
    InvalidIssuer, "auth.invalid_issuer", 401, false,
        "Bearer token has an invalid issuer",
        "SERVICE_AUTH_ISSUER is set, and the JWT's `iss` is another.",
        "Compare both letter by letter; a slash at the end counts.";
    KeyUnavailable, "auth.key_unavailable", 503, true,
        "Unable to resolve signing key for bearer token",
        "SERVICE_AUTH_JWKS_URL does not answer with a key set, and there is none in the cache that is younger than \
         24 hours.",
        "Wait the seconds of `Retry-After`; the log says what the address answered.";
    MissingScope, "auth.missing_scope", 403, false,
        "Missing required scopes",
        "The credential is good and does not carry the scope that the route asks for; for a member of a workspace, \
         the role does not. The message names what is missing. `POST /api/chat/session` answers it with 401.",
        "Use a token with the scope, or let an administrator of the workspace give you a role that has it.";
    WorkspaceForbidden, "auth.workspace_forbidden", 403, false,
        "Workspace access denied",
        "The credential is restricted to other workspaces, or `X-Workspace` names one that the caller is no member \
         of, or that is not there.",
        "Use a token for the workspace, or ask one of its administrators in. `GET /api/auth/me` lists the workspaces of \
         whoever is signed in.";
    AuthRateLimited, "auth.rate_limited", 429, true,
        "Too many authentication attempts",
        "Within SERVICE_AUTH_RATE_LIMIT_INTERVAL more requests from this address or for this identity failed than \
         SERVICE_AUTH_RATE_LIMIT_IP or SERVICE_AUTH_RATE_LIMIT_IDENTITY allow. Good credentials are refused too.",
        "Wait the seconds of `Retry-After`, and stop whatever sends the bad credential.";
    WorkspaceRequired, "workspace.required", 400, false,
        "The header X-Workspace is required.",
        "The caller belongs to several workspaces, and the request names none.",
        "Send `X-Workspace: <slug>`.";
    WorkspaceNotFound, "workspace.not_found", 404, false,
        "There is no such workspace.",
        "No workspace has this id or slug, or it was deleted. Who may see some workspaces only is answered \
         `auth.workspace_forbidden` instead.",
        "List them with `callboard workspace list` or `GET /api/workspaces`.";
    WorkspaceSlugTaken, "workspace.slug_taken", 409, false,
        "The slug is taken.",
        "A workspace has this slug, or had it: a slug never comes to mean another workspace.",
        "Choose another one. The name that people see need not be unique.";
    WorkspaceIsDefault, "workspace.is_default", 409, false,
        "The workspace `default` cannot be deleted.",
        "Requests that name no workspace work in `default`, so it is always there.",
        "Archive its workflows instead.";
    MemberNotFound, "workspace.member_not_found", 404, false,
        "The workspace has no such member.",
        "Nobody with this user id belongs to the workspace or is invited to it.",
        "List them with `callboard workspace members` or `GET /api/workspaces/{id}/members`.";
    MemberHasOtherRole, "workspace.member_has_other_role", 409, false,
        "They belong to the workspace, or are invited to it, with another role.",
        "Somebody is added who is a member, or invited, with another role.",
        "Change the role: `callboard workspace role`, or `PATCH /api/workspaces/{id}/members/{user_id}`.";
    LastOwner, "workspace.last_owner", 409, false,
        "The workspace would have no owner.",
        "The only owner is to be removed, or to be given another role. An invitation that nobody has taken up is no \
         owner yet.",
        "Make somebody else an owner first.";
    TooManyInvitations, "workspace.too_many_invitations", 429, true,
        "Too many invitations were sent.",
        "Within an hour 100 people were added to the workspace, or by this caller, or the same person five times: each of \
         them is sent a mail.",
        "Wait the seconds of `Retry-After`.";
    WorkspaceFull, "workspace.storage_full", 507, false,
        "The workspace keeps as much as it may.",
        "It has reached SERVICE_WORKSPACE_STORAGE_BYTES with its runs, events, messages and search indexes. It begins no runs and \
         takes no messages; what had begun goes on, but `index_upsert` fails with this code. `callboard workspace show` has the \
         figures, as has `GET /api/workspaces/{id}`.",
        "Delete threads and search indexes (`callboard index delete`), or let whoever runs the service keep runs for fewer days or allow for more. Indexes \
         count no more at the next measurement, which comes every five minutes; what was in threads is erased a day after they were deleted.";
    ServiceTokenNotFound, "service_token.not_found", 404, false,
        "There is no such service token.",
        "No stored service token has this id. The bootstrap token is not stored.",
        "List them with `callboard token list` or `GET /api/admin/service-tokens`.";
    ServiceTokenNotActive, "service_token.not_active", 409, false,
        "The service token is no longer active.",
        "A token that was revoked or has expired is to be rotated.",
        "Create a new one.";
    VaultKeyMissing, "vault.key_missing", 503, false,
        "The vault has no key.",
        "The service has an outside database and no SERVICE_VAULT_KEYS, or not the key that a secret was sealed under. The \
         message names the key, `/readyz` and `callboard doctor` too.",
        "Whoever runs the service sets SERVICE_VAULT_KEYS, or puts the named key back into it.";
    CredentialNotFound, "credential.not_found", 404, false,
        "There is no such credential.",
        "No credential has this id, or it was deleted.",
        "List them with `callboard credential list` or `GET /api/credentials`.";
    CredentialNameTaken, "credential.name_taken", 409, false,
        "A credential has this name already.",
        "Names are unique in a workspace: graphs say `[[name]]`.",
        "Choose another name, or give the credential that has it a new secret: `PATCH /api/credentials/{id}`.";
    CredentialMissing, "credential.missing", 200, false,
        "A credential that the step needs is not there.",
        "A node names `[[name]]`, and the workspace has no credential of this name now. It was deleted after the version \
         was saved.",
        "Make it again under the same name; `GET /api/workflows/{ref}` lists what is missing in `readiness`.";
    CodeInvalid, "auth.code_invalid", 401, false,
        "The code or link is not valid.",
        "The code is wrong, or it or the link is used, older than 10 minutes, replaced by a newer one, burnt by \
         5 wrong codes, or was asked for by another browser. Which of these it is is not told.",
        "Type the newest code where it was asked for, or ask for another one with `POST /api/auth/email/start`.";
    RefreshInvalid, "auth.refresh_invalid", 401, false,
        "The refresh token is not valid.",
        "Nobody knows it, its sign-in is over, or it was used before. A refresh token is good once: one that comes a \
         second time ends its sign-in, because two have it.",
        "Sign in again. Refresh in one place only, and keep the new token before the old one is forgotten.";
    TlsRequired, "auth.tls_required", 403, false,
        "Browsers can sign in over https only.",
        "A page asks for a sign-in over plain http on a host that is not loopback. The browser would not keep the \
         cookie.",
        "Put a proxy with TLS in front, and set SERVICE_PUBLIC_BASE_URL to its https address.";

    EmailSignInOff, "auth.email_sign_in_off", 404, false,
        "Email sign-in is not enabled.",
        "SERVICE_SMTP_URL names no mail server, so codes would go to the log, and either an OpenID provider replaces \
         sign-in by mail (SERVICE_OIDC_ISSUER), or others can reach the service and SERVICE_PUBLIC_BASE_URL is not set.",
        "Sign in on the page `/login`, or use a service token. To enable it, the operator sets SERVICE_SMTP_URL and \
         SERVICE_PUBLIC_BASE_URL.";
    OidcOff, "auth.oidc_off", 404, false,
        "Nobody signs in by a provider here.",
        "SERVICE_OIDC_ISSUER is not set.",
        "Sign in on the page `/login`.";
    OidcFailed, "auth.oidc_failed", 401, false,
        "The sign-in was not completed.",
        "Somebody comes back from the OpenID provider in another browser than they left in, a second time, after 10 \
         minutes, or with what the provider did not send; the provider says no; or its identity token is not for this \
         sign-in. The log says which.",
        "Begin again on the page `/login`, in one browser.";
    OidcUnverified, "auth.oidc_unverified", 403, false,
        "The provider does not vouch for your mail address.",
        "Neither the identity token nor the userinfo endpoint has an `email` with an `email_verified` that is true.",
        "Verify your mail address at the provider; or let it send both claims for the scope `email`.";
    OidcRefused, "auth.oidc_refused", 403, false,
        "You may not sign in here with this account.",
        "SERVICE_SIGNUP is `members` and the account belongs to no workspace, or its mail address is that of an account \
         here that another account of the provider signs in to.",
        "Ask an administrator of a workspace to invite you, or sign in with the provider's account that you used before.";
    OidcUnavailable, "auth.oidc_unavailable", 503, true,
        "The provider does not answer.",
        "The OpenID provider's description, its keys or its token endpoint cannot be had, or its description is none \
         that can be signed in by.",
        "Try again in a moment; the log says what the provider answered.";

    ChatWorkflowIdRequired, "chat.workflow_id_required", 400, false,
        "workflow_id is required.",
        "The body of a chat request is no object, or its top level has no `workflow_id`, or an empty one. \
         One inside `metadata` does not count.",
        "Put `workflow_id` at the top level of the chat request.";
    ChatWorkflowIdInvalid, "chat.workflow_id_invalid", 400, false,
        "workflow_id must be a valid UUID.",
        "`workflow_id` is there and is no UUID.",
        "Use the workflow's id, the last segment of its share URL; a handle does not do here.";
    ChatNotPublished, "chat.not_published", 403, false,
        "Publish authentication failed: workflow is not published.",
        "The workflow of a chat request or of a stream is private.",
        "Publish it with `POST /api/workflows/{ref}/publish`.";
    ChatLoginRequired, "chat.login_required", 401, false,
        "Publish authentication failed: OAuth login is required to access this workflow.",
        "The workflow is published with `require_login`, and the request has no cookie of somebody who is signed in.",
        "Sign in on the page `/login`; the workflow's own page leads there by itself.";
    ChatSessionInvalid, "chat.session_invalid", 401, false,
        "Chat session token authentication failed",
        "The request has the header `Authorization`, which is judged alone, and it holds no good session \
         token for this workflow: it is no session token, has ended, is for another workflow, or is used from another page \
         than its `origin`. Service tokens and access tokens are none.",
        "Get a new one with `POST /api/chat/session`, or leave the header out: a published workflow needs none.";
    ChatSigningKeyMissing, "chat.signing_key_missing", 500, false,
        "Chat session tokens cannot be issued: CHAT_TOKEN_SIGNING_KEY is not set.",
        "A session token is asked for, and the service has no key to sign it with.",
        "Set CHAT_TOKEN_SIGNING_KEY to at least 32 random bytes and start the service again.";
    ChatRateLimitedAddress, "chat.rate_limited.address", 429, true,
        "Too many chat requests from this address.",
        "More requests came from one address within SERVICE_CHAT_RATE_LIMIT_INTERVAL than SERVICE_CHAT_RATE_LIMIT_IP \
         allows.",
        "Wait the seconds of `Retry-After`.";
    ChatRateLimitedWorkflow, "chat.rate_limited.workflow", 429, true,
        "Too many chat requests to this workflow.",
        "More requests came to one workflow within SERVICE_CHAT_RATE_LIMIT_INTERVAL than \
         SERVICE_CHAT_RATE_LIMIT_WORKFLOW allows.",
        "Wait the seconds of `Retry-After`.";
    ChatRateLimitedSession, "chat.rate_limited.session", 429, true,
        "Too many chat requests in this session.",
        "More requests came in one session (session token, login, visitor, or thread where there is none of these) \
         within SERVICE_CHAT_RATE_LIMIT_INTERVAL than SERVICE_CHAT_RATE_LIMIT_SESSION allows.",
        "Wait the seconds of `Retry-After`.";
    ChatRateLimitedStreams, "chat.rate_limited.streams", 429, true,
        "Too many streams are open in this session.",
        "One session reads SERVICE_CHAT_MAX_STREAMS streams already.",
        "Close a stream, or wait until one ends.";
    ChatInvalidRequest, "chat.invalid_request", 422, false,
        "The chat request does not validate.",
        "The caller may chat with the workflow, and the rest of the request is wrong. Members that nobody \
         knows are ignored here.",
        "`detail.errors` lists every problem with a JSON pointer to its place.";
    ChatTypeUnsupported, "chat.type_unsupported", 422, false,
        "This version of the service does not do that yet.",
        "The `type` of a chat request is one of the protocol's that this version does not serve: those of widgets, \
         attachments, dictation, client tools and structured input.",
        "Leave out what asks for it; `PROTOCOL.md` lists the types that are served.";
    ChatThreadBusy, "chat.thread_busy", 429, true,
        "Too many messages wait in this thread.",
        "A turn runs in the thread and 32 messages wait behind it.",
        "Wait for the end of the running turn and send the message again.";
    ChatTurnRunning, "chat.turn_running", 409, true,
        "Another answer is being written in this thread.",
        "The workflow takes no second message while one is being answered: `chat.busy` of its record is `reject`.",
        "Send the message again when the answer is there, or stop the answer first.";
    ChatNoReply, "chat.no_reply", 200, false,
        "The workflow ended without a reply.",
        "The graph came to its end, no `reply` node had written anything, and its `output` has no text.",
        "Give the graph a `reply` node, or an `output` with the member `reply`.";
    ThreadNotFound, "thread.not_found", 404, false,
        "There is no such thread.",
        "No thread has this id, it was deleted, or it belongs to another workflow or to the visitor of another \
         cookie.",
        "Take `thread.id` of the event `thread.created`, and send the cookie that came with it or none.";
    ItemNotFound, "item.not_found", 404, false,
        "There is no such item in the thread.",
        "No item of the thread has this id, or a retry has taken it out of the thread.",
        "Take the ids from `items.list`.";
    StreamNotFound, "stream.not_found", 404, false,
        "There is no such stream.",
        "No stream has this id, it ended more than 24 hours ago, or it belongs to the thread of another \
         visitor.",
        "Take the id from the header `X-Chat-Stream-Id` of the answer that began the turn.";
    AttachmentNotFound, "attachment.not_found", 404, false,
        "There is no such attachment.",
        "A message names an attachment. This version cannot take any yet, so none is there.",
        "Send the message without attachments.";

    WorkflowNotFound, "workflow.not_found", 404, false,
        "There is no such workflow.",
        "No workflow has this id or handle. For the chat and the public record, an archived one is not \
         there either; for the public record, nor is a private one.",
        "List the workflows with `GET /api/workflows`; `?include_archived=true` shows archived ones too.";
    WorkflowHandleTaken, "workflow.handle_taken", 409, false,
        "Another workflow has this handle.",
        "A workflow is made with a handle that another one has, or given it; an archived one keeps its own.",
        "Choose another handle. Where a workflow is made, one is made from its name when there is none.";
    WorkflowArchived, "workflow.archived", 409, false,
        "The workflow is archived.",
        "An archived workflow is to be changed, published, run or given a new version.",
        "Make a new workflow; what the archived one held can still be read.";
    WorkflowNoVersion, "workflow.no_version", 409, false,
        "The workflow has no version yet.",
        "Somebody chats with a workflow that was published before its first version was saved.",
        "Save one with `POST /api/workflows/{ref}/versions`.";
    VersionNotFound, "version.not_found", 404, false,
        "There is no such version.",
        "The workflow is there and has no version of this number.",
        "`latest_version` of the workflow names the newest; numbers count from 1.";
    TriggerNotFound, "trigger.not_found", 404, false,
        "There is no such trigger.",
        "A trigger is read, removed or called that nobody has configured. The address of a webhook says the same of a \
         workflow that is not there.",
        "Configure it with `PUT /api/workflows/{ref}/triggers/cron` or `…/triggers/webhook/config`.";
    WebhookSecretInvalid, "webhook.secret_invalid", 401, false,
        "The call's secret is missing or wrong.",
        "A webhook asks for a shared secret, and the call does not bring it in the configured header.",
        "Send the secret as it was configured.";
    WebhookSignatureInvalid, "webhook.signature_invalid", 401, false,
        "The call's signature is missing or wrong.",
        "A webhook asks for a signature, and that of the call does not fit its bytes.",
        "Sign the bytes that are sent, with the timestamp where one is configured, and send the signature as hexadecimal.";
    WebhookStale, "webhook.stale", 401, false,
        "The call's timestamp is missing or too far away.",
        "The timestamp of a signed call is not in Unix seconds, or farther away than `hmac_tolerance_seconds`.",
        "Sign with the time at which the call is sent, and set the sender's clock.";
    WebhookReplayed, "webhook.replayed", 401, false,
        "The call was taken before.",
        "A signed call with this timestamp and signature has begun a run already.",
        "Nothing, if it was sent twice; else sign with another timestamp.";
    WebhookRateLimited, "webhook.rate_limited", 429, true,
        "The webhook is called too often.",
        "More calls came than the webhook's `rate_limit` allows.",
        "Wait the seconds of `Retry-After`.";
    NodeTypeNotFound, "node_type.not_found", 404, false,
        "There is no such type of node.",
        "The node catalogue is asked for a type that it does not have, or for one that the format knows and this \
         version does not execute yet.",
        "List the types with `GET /api/nodes` or `callboard node list`.";
    DiagramTooLarge, "diagram.too_large", 422, false,
        "The graph is too large to be drawn.",
        "A picture is asked for of a graph with more than 600 nodes and conditions, or with very many long edges.",
        "Take the Mermaid text, `diagram.mmd`, which has no limit, or split the workflow with `sub_workflow`.";
    GraphInvalid, "graph.invalid", 422, false,
        "The graph does not check.",
        "A version is saved whose graph has a mistake.",
        "`detail.errors` lists every problem with a code, a suggestion and a JSON pointer that begins at \
         the graph.";

    RunTimeout, "run.timeout", 200, true,
        "The run took longer than its limit.",
        "A run with a time limit of its own reached it. Turns of the chat have none in this version; their \
         nodes may.",
        "Raise the limit or split the workflow.";
    RunRecursionLimit, "run.recursion_limit", 200, false,
        "The run took more steps than its recursion limit.",
        "A graph went on for more super-steps than `recursion_limit` of its runnable config allows, 50 \
         unless it says otherwise. Most often a loop does not end.",
        "End the loop earlier, or raise `recursion_limit` (at most 250) and save the version.";
    RunStepLimit, "run.step_limit", 200, false,
        "The run took more steps than a run may.",
        "The nodes of a run were attempted more than 100,000 times altogether, nested ones included. Most often workflows call \
         themselves, or lists inside lists are larger than expected.",
        "Do less in one run: begin several runs, or give nodes larger parts of the work.";
    RunNodesLimit, "run.nodes_limit", 200, false,
        "The run had more nested nodes in progress than a run may.",
        "More than 1,024 nodes with others inside (`for_each`, `sub_workflow`, `agent`) were in progress at the same time.",
        "Lower `concurrency` of the outer ones.";
    RunBytesLimit, "run.bytes_limit", 200, false,
        "The run used more bytes than a run may.",
        "The results of a run have more than 512 MiB altogether, or the inputs of its nodes in progress more than 256 MiB.",
        "Hand smaller values from node to node, and fewer at the same time.";
    RunCancelled, "run.cancelled", 200, false,
        "The run was stopped.",
        "Somebody stopped the turn. It stands in the run's record; the stream ends with a notice or with \
         the text so far.",
        "Nothing: somebody asked for it.";
    RunAbandoned, "run.abandoned", 200, true,
        "The turn was stopped because its last reader had gone.",
        "Nobody read the stream for SERVICE_CHAT_DISCONNECT_GRACE seconds. It stands in the run's record; \
         the stream ends as if it had been stopped.",
        "Send the message again and read its stream, or raise SERVICE_CHAT_DISCONNECT_GRACE.";
    NodeFailed, "node.failed", 200, true,
        "A step of the workflow failed.",
        "A node could not do its work, for example because a template names something that is not there or \
         a server it asked failed.",
        "The column `error` of the run's row names the node and the reason; clients are not told, because \
         it may hold anything.";
    NodeTimeout, "node.timeout", 200, true,
        "A step of the workflow took longer than its limit.",
        "A node ran for longer than its `timeout_seconds`.",
        "Raise `timeout_seconds` of the node.";
    NodeResultTooLarge, "node.result_too_large", 200, false,
        "A step's result is larger than 8 MiB.",
        "A node's result, or the run's output, has more than 8 MiB as JSON.",
        "Let the step keep less, or cut the value into parts.";
    CodeFailed, "code.failed", 200, false,
        "Code of the workflow failed.",
        "The code of a `code` node raised an error that nothing caught, or returned a value that is not JSON.",
        "The run's error names the module, the line and what the code said. Mend it and save a new version.";
    CodeTimeout, "code.timeout", 200, true,
        "Code of the workflow ran for longer than it may.",
        "The code of a `code` node was still at work after the node's `timeout_seconds` (10 when it has none). It was \
         ended.",
        "Look for a loop without an end. If the code only needs longer, raise `timeout_seconds` of the node, up to 300.";
    CodeMemory, "code.memory", 200, false,
        "Code of the workflow wanted more memory than it may have.",
        "The code of a `code` node passed SERVICE_SANDBOX_MEMORY_BYTES. It was ended.",
        "Let the code hold less at the same time, or raise SERVICE_SANDBOX_MEMORY_BYTES.";
    CodeOutputTooLarge, "code.output_too_large", 200, false,
        "What code of the workflow returned is too large.",
        "The value that the code of a `code` node returned has more than 1 MiB as JSON.",
        "Let the code return less, or cut the value into parts.";
    CodeCrashed, "code.crashed", 200, true,
        "The process that ran code of the workflow died.",
        "The interpreter that ran a `code` node ended without a result, or somebody ended its process, as a \
         machine does that is out of memory.",
        "Try again. If the same code does it every time, please report it with the code.";
    CodeBusy, "code.busy", 200, true,
        "No process was free for code of the workflow.",
        "All processes that run code, or the share of them that one workspace may use, were busy for as long as the \
         code may run (at least 30 s), or too many calls waited for one. The message says how long the call has waited.",
        "Try again later. Give code that may loop a short `timeout_seconds`. Raise SERVICE_SANDBOX_WORKERS if the \
         machine has memory to spare.";
    CodeUnavailable, "code.unavailable", 503, true,
        "Code cannot be run or looked at now.",
        "No process can be started for the code of a workflow.",
        "The service's log says why, at the level `error`. It has to be able to start its own program, which SERVICE_SANDBOX_PROGRAM may name.";
    NodeOutcomeUnknown, "node.outcome_unknown", 200, false,
        "The service ended while a step was at work, and it must not be done twice.",
        "A crash left open whether the step had done its work, and its `on_unknown` is `fail`.",
        "See what the step has done, then start another run; `on_unknown` of the node says otherwise.";
    NodeInputExpired, "node.input_expired", 200, false,
        "Nobody has answered in time.",
        "A `wait_for_input` has waited for its `expires_seconds`.",
        "Give it more time, or say with `on_error` of the node what follows when nobody answers.";
    IndexNotFound, "index.not_found", 404, false,
        "There is no such search index.",
        "An `index_search` or a request names an index that this workspace does not have: no `index_upsert` has made it yet, or \
         it was deleted.",
        "Compare the names with `callboard index list` or `GET /api/indexes`, or put a document into it first.";
    IndexFull, "index.full", 200, false,
        "The search index has no room for more chunks.",
        "An `index_upsert` would have left more than 50,000 chunks in the index. Nothing of the document was changed.",
        "Delete documents with an empty list of chunks, make larger chunks, or use several indexes.";
    IndexDimensions, "index.dimensions", 200, false,
        "The vector has another length than those of the search index.",
        "An `index_upsert` or `index_search` was given a vector of another model than those that the index holds.",
        "Embed all texts of an index, and what is looked for in it, with one model and one number of dimensions.";
    DocumentUnsupported, "document.unsupported", 200, false,
        "The document is of a kind that cannot be read.",
        "A `document_read` has fetched an image, an archive or something else that is no text, Markdown, CSV, HTML, PDF or DOCX.",
        "Give it a document of one of these kinds. If its server says something wrong of it, say `format` in the node.";
    DocumentDamaged, "document.damaged", 200, false,
        "The document cannot be read.",
        "It is damaged or cut short, opens with a password only, or is something else than it is said to be, such as a page where \
         `rss_read` expects a feed.",
        "The run's error says what its reader has met. Open the document yourself, and save it again without a password.";
    DocumentTooLarge, "document.too_large", 200, false,
        "The document is too large.",
        "It has more than 10 MiB, 2,000 pages or 4 MiB of text, something in it is too large when it is unpacked, or reading \
         it takes more memory than SERVICE_SANDBOX_MEMORY_BYTES.",
        "Cut it into parts, and read them one by one.";
    PostgresUnreachable, "postgres.unreachable", 200, true,
        "The database does not answer.",
        "A `postgres_query` could not reach the database, or the connection ended; or it offers no TLS, or a certificate \
         that nobody vouches for.",
        "Try again later. Without `sslmode` in the dsn the server's certificate is checked: `sslmode=require` encrypts without \
         a check.";
    PostgresRefused, "postgres.refused", 200, false,
        "The database does not let the workflow in.",
        "User, password or database of the dsn are not those that the server of a `postgres_query` knows.",
        "Give the credential the dsn that the database takes today.";
    PostgresFailed, "postgres.failed", 200, false,
        "The database has refused the statement.",
        "The statement of a `postgres_query` is wrong, breaks a rule of the database, or wants to change something in the mode \
         `read`. Nothing was changed.",
        "The run's error has what the database said, and its SQLSTATE. Mend the statement, or set `mode` to `write`.";
    PostgresTooLarge, "postgres.too_large", 200, false,
        "The database answers with more than the step may take.",
        "The statement of a `postgres_query` has more rows than `max_rows`, or more than 4 MiB of them. Nothing was changed.",
        "Ask for less with WHERE and LIMIT, or raise `max_rows`, up to 10,000.";
    RunNotFound, "run.not_found", 404, false,
        "There is no such run.",
        "No run that the caller may see has this id.",
        "List a workflow's runs with `GET /api/workflows/{ref}/runs`.";
    RunInputsInvalid, "run.inputs_invalid", 422, false,
        "The inputs do not fit the workflow.",
        "The inputs of a run, or of a sub-workflow, do not fit the `inputs` schema of the graph. Asked for over \
         HTTP, no run was begun.",
        "`detail.errors` lists what the schema asks for.";
    RunNotActive, "run.not_active", 409, false,
        "The run has ended.",
        "A run that has ended is to be stopped over the websocket.",
        "Nothing: it is over. Its record says how it ended.";
    RunNotWaiting, "run.not_waiting", 409, false,
        "The run does not wait for this input.",
        "An answer names an input that the run does not wait for: it has been answered, has expired, or was never \
         asked for.",
        "`GET /api/runs/{id}` lists in `waits_for` what the run waits for.";
    RunInputInvalid, "run.input_invalid", 422, false,
        "The answer does not fit what was asked for.",
        "An answer to a run that waits does not fit the schema of the `wait_for_input`.",
        "Send a value that fits; `waits_for` of the run's record has the schema.";
    RunInputForbidden, "run.input_forbidden", 403, false,
        "The answer is asked of others.",
        "The `wait_for_input` names an `audience`, and whoever answers is not of it.",
        "Let one of those answer who stand in `waits_for` of the run's record.";
    RunNotRepeatable, "run.not_repeatable", 409, false,
        "The run cannot be repeated.",
        "A turn of a chat, or a run whose version cannot be read any more, is to be repeated from a step on.",
        "Answer a chat's message again with `threads.retry_after_item`; start a new run otherwise.";
    SocketUpgradeRequired, "ws.upgrade_required", 426, false,
        "This path is a websocket.",
        "The request is no handshake of a websocket: the headers `Upgrade: websocket`, `Connection: Upgrade`, \
         `Sec-WebSocket-Version: 13` or `Sec-WebSocket-Key` are missing or wrong. A proxy may have taken them away.",
        "Connect with a websocket client, and let the proxy pass these headers on.";
    SocketTypeUnknown, "ws.type_unknown", 200, false,
        "There is no such type of message.",
        "A message on the websocket has a `type` that the protocol does not know.",
        "`PROTOCOL.md` lists the types.";
    SocketTypeUnsupported, "ws.type_unsupported", 200, false,
        "This version of the service does not do that yet.",
        "The `type` of a message on the websocket is one of the protocol's that this version does not serve.",
        "Begin runs with `POST /api/workflows/{ref}/runs`; `PROTOCOL.md` lists the types that are served.";
    SocketBinary, "ws.binary_unsupported", 200, false,
        "Messages are JSON in text frames.",
        "A binary message came over the websocket.",
        "Send the same as text.";
    SocketSubscribed, "ws.already_subscribed", 200, false,
        "This socket reads the run already.",
        "`subscribe` names a run whose events this socket is being sent, and would get twice.",
        "Read on, or subscribe again once the run's last event has come.";
    SocketTooManyRuns, "ws.too_many_subscriptions", 200, false,
        "This socket reads too many runs.",
        "A socket reads the events of 64 runs that have not ended, and asks for another.",
        "Open another socket.";
    SocketMessageTooLarge, "ws.message_too_large", 200, false,
        "The message is too large.",
        "A message on the websocket has more bytes than SERVICE_WS_MAX_MESSAGE_BYTES, in one frame or in several. It \
         is the reason with which the socket is closed, with code 1009.",
        "Send less, or raise the variable.";
    SocketProtocol, "ws.protocol_error", 200, false,
        "The client broke the rules of the websocket protocol.",
        "A frame without a mask, in a wrong order or of an unknown kind (closed with code 1002), or a text that is no \
         UTF-8 (1007). It is the reason with which the socket is closed.",
        "Use a websocket library; a proxy that changes frames breaks them.";
    SocketIdle, "ws.idle", 200, true,
        "The client has gone silent.",
        "Nothing came from the client for 60 seconds, not even answers to pings, or it did not read for as long. It is \
         the reason with which the socket is closed, with code 4408.",
        "Connect again and go on with `subscribe` and `after_seq`. Libraries answer pings by themselves, as long as \
         the program reads.";
    ModelNotConfigured, "model.not_configured", 200, false,
        "The model is not configured.",
        "A node names a model of a provider that is not there, or that has no address or key.",
        "Name a provider that there is, and set its variables: SERVICE_MODEL_BASE_URL and SERVICE_MODEL_API_KEY, \
         SERVICE_ANTHROPIC_API_KEY, SERVICE_GEMINI_API_KEY.";
    ModelRateLimited, "model.rate_limited", 200, true,
        "The model's endpoint takes no more requests now.",
        "The endpoint answered 429, and went on doing so through all attempts of the node.",
        "Try again later, or raise the limit at the provider.";
    ModelUnavailable, "model.unavailable", 200, true,
        "The model's endpoint cannot be reached.",
        "The endpoint could not be reached, broke off or answered with a server error, through all attempts of \
         the node.",
        "Try again later; the run's record holds what the endpoint said.";
    ModelRejected, "model.rejected", 200, false,
        "The model's endpoint refused the request.",
        "The endpoint answered that the request, the model's name or the key is wrong.",
        "The run's record holds what the endpoint said.";
    ModelBadAnswer, "model.bad_answer", 200, true,
        "The model's answer cannot be used.",
        "The answer is none that can be read, or it does not fit the node's `response_schema`.",
        "The run's record says why; another answer may be better.";
    EgressRefused, "egress.refused", 200, false,
        "The address may not be called from a workflow.",
        "A node wanted to call an address that is not public.",
        "Only public addresses may be called; SERVICE_EGRESS_ALLOW names exceptions as host:port.";
    ActorFailed, "run.actor_failed", 200, true,
        "The turn failed too often and was given up.",
        "The part of the service that runs a thread's turns failed more than five times in a minute.",
        "Send the message again; the log names the cause.";

    Overloaded, "service.overloaded", 503, true,
        "The service is busy; try again shortly.",
        "More waits to be written than the service takes at a time.",
        "Wait the seconds of `Retry-After`, then send the same request again.";
    Draining, "service.draining", 503, true,
        "The service is shutting down.",
        "The service takes no new turns because it is about to stop, or another instance has taken over its \
         work.",
        "Send the request again; another instance or the restarted one answers it.";
    DatabaseUnavailable, "service.database_unavailable", 503, true,
        "The database cannot be reached.",
        "No connection to PostgreSQL could be had or it broke, or a write was not acknowledged in time.",
        "Wait the seconds of `Retry-After`; `GET /readyz` says what is wrong. A chat message may have been \
         taken all the same: send it again with the same `Idempotency-Key`.";
    StorageFull, "service.storage_full", 507, false,
        "The database has no space left.",
        "PostgreSQL could not write because its disk is full.",
        "Free space on the database's disk; no restart is needed.";
    Internal, "service.internal", 500, true,
        "Something went wrong on our side.",
        "A defect, or something that nobody expected. Inside a stream the event has no message, and its \
         `code` is `stream.error`.",
        "Quote `request_id` to whoever runs the service; the log has the cause under it.";
}
