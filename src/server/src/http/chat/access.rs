//! Access to a workflow's chat.
//!
//! If a bearer is present, it alone decides: it must be a valid session token for this workflow. Otherwise, if login is
//! required, the caller is the signed-in user; else the visitor of a cookie, or an anonymous visitor.

use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header;
use actors::kinds::turn::chat::{NewTitle, Owner};
use actors::plans::{LoadedVersion, Runnable};
use auth::chat_session::ChatSession;
use auth::principal::Actor;
use auth::visitor::Visitor;
use kernel::ThreadId;
use serde_json::Value;
use store::{ChatVisitor, OwnerKind, StoredAttachment, StoredThread, StoredWorkflow, ThreadsOf};
use uuid::Uuid;
use wire::{BusyThread, ChatTitle, ErrorCode, TranscriptionSettings};

use super::cookie;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{self, Credential, credential, token_key};
use crate::http::{App, body, cors, session};

/// Reads the top-level `workflow_id` before any other check.
pub(super) fn workflow_id(document: &Value) -> ApiResult<Uuid> {
    match document.get("workflow_id") {
        None | Some(Value::Null) => Err(ApiError::new(ErrorCode::ChatWorkflowIdRequired)),
        Some(Value::String(text)) => workflow_named(Some(text)),
        Some(_) => Err(ApiError::new(ErrorCode::ChatWorkflowIdInvalid)),
    }
}

/// Reads a `workflow_id` from a query.
pub(super) fn workflow_named(id: Option<&str>) -> ApiResult<Uuid> {
    let id =
        id.filter(|id| !id.is_empty()).ok_or_else(|| ApiError::new(ErrorCode::ChatWorkflowIdRequired))?;
    Uuid::parse_str(id).map_err(|_| ApiError::new(ErrorCode::ChatWorkflowIdInvalid))
}

/// Checks that the workflow's chat is open to any caller, or to signed-in users if login is required.
pub(in crate::http) fn check_published(workflow: &StoredWorkflow, signed_in: bool) -> ApiResult<()> {
    if workflow.archived_at.is_some() {
        Err(ApiError::new(ErrorCode::WorkflowNotFound))
    } else if !workflow.is_public {
        Err(ApiError::new(ErrorCode::ChatNotPublished))
    } else if workflow.require_login && !signed_in {
        Err(ApiError::new(ErrorCode::ChatLoginRequired))
    } else {
        Ok(())
    }
}

/// The identity of a chat caller.
#[derive(Debug, Clone)]
enum Who {
    /// Unknown: no cookie.
    Anyone,
    /// An anonymous visitor.
    Visitor(Visitor),
    /// A signed-in user.
    User(String),
    /// The subject of a session token.
    Session(ChatSession),
}

/// Verifies the request's bearer as a session token; `None` without the header. If the header is present, it alone
/// decides.
async fn session_of(app: &App, request: &HttpRequest, workflow: Uuid) -> ApiResult<Option<ChatSession>> {
    if !request.headers().contains_key(header::AUTHORIZATION) {
        return Ok(None);
    }
    let refused = ErrorCode::ChatSessionInvalid;
    let Credential::Bearer(token) = credential(request.headers()) else {
        return Err(ApiError::new(refused));
    };
    let (limiter, address) = (app.gate().limiter(), app.client_address(request));
    limiter.check_address(address).await?;
    // A separate key, so that a token that is valid on other routes is not locked out there.
    let identity = format!("chat-{}", token_key(&token));
    limiter.check_identity(&identity)?;
    let sessions = app.tokens().chat.as_ref();
    let session = sessions.and_then(|sessions| sessions.verify(&token, app.clock().now()).ok());
    let session = session.filter(|session| session.workflow == workflow && is_from(request, session));
    match session {
        Some(session) => Ok(Some(session)),
        None => Err(limiter.failed(refused, address, &identity, Actor::ANONYMOUS).await),
    }
}

/// Records the body's sender as far as it is known before the workflow. Counts no failure, since this is not an
/// attempt.
pub(super) async fn note_sender(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let name = match credential(request.headers()) {
        Credential::None => {
            session::still_signed_in(app, request).await?.map(|user| format!("user:{}", user.user))
        }
        Credential::Bearer(token) => {
            let sessions = app.tokens().chat.as_ref();
            let session = sessions.and_then(|sessions| sessions.verify(&token, app.clock().now()).ok());
            session.map(|session| format!("session:{}", session.subject))
        }
        Credential::OtherScheme | Credential::Unreadable => None,
    };
    if let Some(name) = name {
        guard::note_sender(request, name);
    }
    Ok(())
}

/// Whether the request comes from the page for which the token was issued, if any.
fn is_from(request: &HttpRequest, session: &ChatSession) -> bool {
    let Some(origin) = &session.origin else { return true };
    let mut origins = request.headers().get_all(header::ORIGIN).map(|value| value.to_str().ok());
    origins.next() == Some(Some(origin.as_str())) && origins.next().is_none()
}

/// The version of a thread, given the canary that it started with, if any.
pub(super) fn version_of(versions: &Runnable, canary: Option<i32>) -> ApiResult<Arc<LoadedVersion>> {
    versions.version_of(canary).ok_or_else(|| ApiError::new(ErrorCode::WorkflowNoVersion))
}

/// A caller who may chat with a workflow.
pub(super) struct ChatAccess {
    runnable: Runnable,
    who: Who,
    /// The signed-in user of a workflow without login. Threads from when it required login still belong to them.
    user: Option<String>,
}

impl ChatAccess {
    /// Authorizes a request for a workflow's chat.
    pub(super) async fn judge(app: &App, request: &HttpRequest, workflow: Uuid) -> ApiResult<Self> {
        let bearer = session_of(app, request, workflow).await?;
        let runnable = app.chat().runnable(workflow).await?;
        let runnable = runnable.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
        if let Some(session) = bearer {
            // A session token also opens private workflows and those that require login.
            if runnable.workflow.archived_at.is_some() {
                return Err(ApiError::new(ErrorCode::WorkflowNotFound));
            }
            return Ok(Self { runnable, who: Who::Session(session), user: None });
        }
        let user = session::signed_in(app, request).await?.map(|user| user.user.to_string());
        let (who, user) = if runnable.workflow.require_login {
            (user.map_or(Who::Anyone, Who::User), None)
        } else {
            (cookie::read(app, request).map_or(Who::Anyone, Who::Visitor), user)
        };
        check_published(&runnable.workflow, matches!(who, Who::User(_)))?;
        Ok(Self { runnable, who, user })
    }

    /// Whether the caller is unauthenticated.
    pub(super) fn is_stranger(&self) -> bool {
        matches!(self.who, Who::Anyone | Who::Visitor(_))
    }

    fn has_cookie(&self) -> bool {
        self.user.is_some() || matches!(self.who, Who::Visitor(_) | Who::User(_))
    }

    /// Refuses cookie-authenticated changes by other origins' pages and by forms.
    pub(super) fn check_write(&self, app: &App, request: &HttpRequest) -> ApiResult<()> {
        self.check_origin(app, request)?;
        if self.has_cookie() && !body::is_json(request) {
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
        }
        Ok(())
    }

    pub(super) fn check_origin(&self, app: &App, request: &HttpRequest) -> ApiResult<()> {
        if self.has_cookie() && cors::is_foreign(app, request) {
            return Err(ApiError::new(ErrorCode::OriginMismatch));
        }
        Ok(())
    }

    /// Like [`Self::thread`], for an unparsed id.
    pub(super) async fn thread_named(&self, app: &App, id: &str) -> ApiResult<StoredThread> {
        let id = ThreadId::parse(id).map_err(|_| ApiError::new(ErrorCode::ThreadNotFound))?;
        self.thread(app, id).await
    }

    /// Returns the thread, which must belong to this workflow and not to another owner.
    pub(super) async fn thread(&self, app: &App, id: ThreadId) -> ApiResult<StoredThread> {
        let thread = app.chat().thread(id).await?;
        let thread = thread.filter(|thread| thread.workflow_id == self.runnable.workflow.id);
        let thread = thread.ok_or_else(|| ApiError::new(ErrorCode::ThreadNotFound))?;
        self.check_owner(app, &thread).await?;
        Ok(thread)
    }

    /// Checks that a thread of this workflow has no other owner. Threads from a required login stay private to their
    /// user even after the workflow drops the requirement.
    ///
    /// Without a cookie, the id is sufficient until a request presents the visitor's cookie for this thread.
    pub(super) async fn check_owner(&self, app: &App, thread: &StoredThread) -> ApiResult<()> {
        if !self.is_owner(thread.owner_kind, thread.owner_id.as_deref(), thread.requires_cookie) {
            return Err(ApiError::new(ErrorCode::ThreadNotFound));
        }
        let presented = matches!(self.who, Who::Visitor(_)) && thread.owner_kind == OwnerKind::Visitor;
        if presented && !thread.requires_cookie {
            app.chat().require_cookie(thread.id).await?;
        }
        Ok(())
    }

    /// Checks that an attachment has no other owner. It must belong to this workflow, or to its workspace if it was
    /// uploaded without one.
    pub(super) fn owns_attachment(&self, attachment: &StoredAttachment) -> ApiResult<()> {
        let here = match attachment.workflow {
            Some(workflow) => workflow == self.workflow(),
            None => attachment.workspace == self.workspace(),
        };
        let free = attachment.workflow.is_none() && attachment.owner_kind == OwnerKind::Anyone;
        // A visitor's attachment that no message references was uploaded with the cookie. An attachment in a thread
        // follows the thread.
        let requires_cookie = attachment.thread.is_none();
        let owns =
            free || self.is_owner(attachment.owner_kind, attachment.owner_id.as_deref(), requires_cookie);
        if here && owns { Ok(()) } else { Err(ApiError::new(ErrorCode::AttachmentNotFound)) }
    }

    fn is_owner(&self, kind: OwnerKind, owner: Option<&str>, requires_cookie: bool) -> bool {
        match (&self.who, kind) {
            (Who::User(user), OwnerKind::User) => owner == Some(user),
            (_, OwnerKind::User) => self.user.is_some() && owner == self.user.as_deref(),
            // If the token's subject was generated, the id grants access to any caller with a token.
            (Who::Session(session), OwnerKind::Session) => {
                owner.is_none_or(|owner| session.named && owner == session.subject)
            }
            (Who::Visitor(visitor), OwnerKind::Visitor | OwnerKind::Anyone) => {
                owner.is_none_or(|owner| owner == visitor.id())
            }
            (Who::Anyone, OwnerKind::Visitor) => !requires_cookie,
            (Who::Anyone, OwnerKind::Anyone) => true,
            _ => false,
        }
    }

    /// Whether file uploads are enabled.
    pub(super) fn uploads(&self) -> bool {
        self.runnable.workflow.chat.uploads
    }

    /// Whether content is retained after use.
    pub(super) fn stores_content(&self) -> bool {
        self.runnable.workflow.chat.retention_days != Some(0)
    }

    /// The model for transcriptions, if configured.
    pub(super) fn transcription(&self) -> Option<&TranscriptionSettings> {
        self.runnable.workflow.chat.transcription.as_ref()
    }

    /// The stored workflow.
    pub(super) fn record(&self) -> StoredWorkflow {
        (*self.runnable.workflow).clone()
    }

    pub(super) fn workflow(&self) -> Uuid {
        self.runnable.workflow.id
    }

    /// The policy for messages that arrive during a running turn in their thread.
    pub(super) fn busy(&self) -> BusyThread {
        self.runnable.workflow.chat.busy
    }

    pub(super) fn workspace(&self) -> Uuid {
        self.runnable.workflow.workspace_id
    }

    /// The owner of the caller's threads.
    pub(super) fn owner(&self) -> Option<(OwnerKind, &str)> {
        match &self.who {
            Who::Anyone => None,
            Who::Visitor(visitor) => Some((OwnerKind::Visitor, visitor.id())),
            Who::User(user) => Some((OwnerKind::User, user)),
            Who::Session(session) => session.named.then_some((OwnerKind::Session, session.subject.as_str())),
        }
    }

    /// The caller as visitors: several if both a cookie and a login identify them, empty if unknown.
    pub(super) fn visitors(&self) -> Vec<ChatVisitor> {
        let workflow = self.workflow();
        let user = self.user.as_deref().map(|user| (OwnerKind::User, user));
        let names = self.owner().into_iter().chain(user);
        names.map(|(kind, id)| ChatVisitor { workflow, kind, id: id.to_owned() }).collect()
    }

    /// The selection of threads that the caller can list.
    pub(super) fn threads(&self) -> Option<ThreadsOf<'_>> {
        let (workflow, user) = (self.workflow(), self.user.as_deref());
        match (self.owner(), user) {
            (Some((owner_kind, owner_id)), user) => Some(ThreadsOf { workflow, owner_kind, owner_id, user }),
            (None, Some(owner_id)) => {
                Some(ThreadsOf { workflow, owner_kind: OwnerKind::User, owner_id, user: None })
            }
            (None, None) => None,
        }
    }

    /// The owner of a new thread; `None` if the caller must first get a cookie.
    pub(super) fn new_owner(&self) -> Option<Owner> {
        if let Who::Session(session) = &self.who {
            return Some(Owner {
                kind: OwnerKind::Session,
                id: session.named.then(|| session.subject.clone()),
                has_cookie: false,
            });
        }
        let has_cookie = matches!(self.who, Who::Visitor(_));
        self.owner().map(|(kind, id)| Owner { kind, id: Some(id.to_owned()), has_cookie })
    }

    /// An identifier of the caller, if one is known.
    pub(super) fn name(&self) -> Option<String> {
        match &self.who {
            Who::Session(session) => Some(format!("session:{}", session.subject)),
            _ => self.owner().map(|(kind, id)| format!("{}:{id}", kind.as_str())),
        }
    }

    /// The key for session limits: the caller, or the thread if the caller is unknown.
    pub(super) fn session(&self, thread: Option<&str>) -> Option<String> {
        let name = self.name().or_else(|| thread.map(|thread| format!("thread:{thread}")))?;
        Some(format!("{}|{name}", self.workflow()))
    }

    /// The session that usage is charged to: the caller, or the thread if the caller is unknown.
    pub(super) fn budget_session(&self, thread: Option<ThreadId>) -> Option<String> {
        self.name().or_else(|| thread.map(|thread| format!("thread:{thread}")))
    }

    /// Model settings for new thread titles; `None` if titles use the first words.
    pub(super) fn title(&self, session: Option<String>) -> Option<NewTitle> {
        match &self.runnable.workflow.chat.title {
            ChatTitle::Words(_) => None,
            ChatTitle::Model(settings) => Some(NewTitle { settings: settings.clone(), session }),
        }
    }

    /// Whether the chat's model usage is limited.
    pub(super) fn has_limits(&self) -> bool {
        !self.runnable.workflow.chat.limits.is_empty()
    }

    /// Refuses a turn if its version may use models and the workflow's daily budget is exhausted.
    pub(super) async fn check_budget_of(
        &self,
        app: &App,
        version: &LoadedVersion,
        session: Option<&str>,
    ) -> ApiResult<()> {
        if version.plan.may_use_models() { self.check_budget(app, session).await } else { Ok(()) }
    }

    /// Refuses model usage if the workflow's daily budget is exhausted.
    pub(super) async fn check_budget(&self, app: &App, session: Option<&str>) -> ApiResult<()> {
        if !self.has_limits() {
            return Ok(());
        }
        let limits = &self.runnable.workflow.chat.limits;
        match app.chat().check_budget(self.workflow(), session, limits).await? {
            None => Ok(()),
            Some(spent) => {
                let left = spent.until - app.clock().now();
                Err(ApiError::new(spent.code).retry_after(left.num_seconds().saturating_add(1)))
            }
        }
    }

    /// The versions that the chat currently uses.
    pub(super) async fn versions(&self, app: &App) -> ApiResult<Runnable> {
        Ok(app.chat().current(self.runnable.clone()).await?)
    }

    /// The current version for a thread.
    pub(super) async fn version_of(&self, app: &App, thread: &StoredThread) -> ApiResult<Arc<LoadedVersion>> {
        version_of(&self.versions(app).await?, thread.canary)
    }
}
