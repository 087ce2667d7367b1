//! What crosses the wire: requests, answers, events of both chat dialects, and the table of error codes.
//!
//! Source: `interface.md` and, for the chat, the public ChatKit protocol (openai-chatkit 1.6.5).

mod admin;
mod audit;
pub mod chat;
mod chat_session;
mod credential;
mod diff;
mod error;
mod error_code;
mod health;
mod index;
mod near;
mod node;
pub mod operation;
pub mod operations;
mod run;
#[cfg(feature = "schema")]
mod schema;
pub mod scope;
mod sign_in;
mod socket;
pub mod sse;
mod trigger;
mod workflow;
mod workspace;

pub use admin::{
    AuditActor, AuditObject, AuditRecord, CreateServiceToken, IssuedServiceToken, RevokeServiceToken,
    RotateServiceToken, ServiceTokenRecord,
};
pub use audit::AuditAction;
pub use chat_session::{ChatSessionAnswer, CreateChatSession};
pub use credential::{
    CreateCredential, CredentialRecord, LONGEST_CREDENTIAL_NAME, Readiness, UpdateCredential, VaultRotation,
    is_credential_name,
};
pub use diff::{Change, VersionDiff};
pub use error::{ErrorBody, ErrorDetail, FieldError, MOST_PROBLEMS, escape, shortened};
pub use error_code::ErrorCode;
pub use health::{Health, ReadinessReport, ReadyPart, TestEvent};
pub use index::IndexRecord;
pub use near::nearest;
pub use node::NodeTypeRecord;
pub use run::{
    CreateRun, DeliveryRecord, DeliveryState, InterruptedAttempt, Rerun, RunEvent, RunFrame, RunInput,
    RunProblem, RunRecord, RunState, RunSummary, RunUsage, Trace, TraceStep, WaitsFor,
};
pub use scope::Scope;
pub use sign_in::{
    LogOut, Me, Refresh, SessionRecord, SignInStarted, SignedIn, StartSignIn, TerminalCode, UserRecord,
    VerifyCode, WorkspaceRole,
};
pub use socket::{SocketFrame, SocketMessage, SocketProblem, SocketRequest};
pub use trigger::{
    CronConfig, CronRecord, MissedFires, SetWebhook, SignatureScheme, TriggerError, TriggerSkip,
    WebhookAnswer, WebhookBegun, WebhookConfig, WebhookRate, WebhookRecord,
};
pub use workflow::{
    BusyThread, ChatSettings, CheckVersion, Checked, CreateVersion, CreateWorkflow, Listed, PromoteDraft,
    PublicWorkflow, PublishRequest, Published, SaveVersion, SavedVersion, SetLive, ShownWorkflow, StopAnswer,
    StopStatus, UpdateChatSettings, UpdateWorkflow, VersionRecord, VersionSummary, WorkflowRecord,
};

/// An instant on the wire: RFC 3339, UTC, with `Z`.
pub type Timestamp = String;
pub use workspace::{
    AddMember, CreateWorkspace, MemberRecord, UpdateMember, UpdateWorkspace, WorkspaceRecord,
    WorkspaceStorage,
};
