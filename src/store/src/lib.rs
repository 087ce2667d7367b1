//! The only place with SQL: queries, pool, migrations and the embedded PostgreSQL.
//!
//! A folder for each aggregate, in it one file for each noun. Reads and rare writes go through [`Store`] and its pool;
//! everything on the path of a turn goes through the lanes, which commit a [`batch::Batch`] in one statement on a
//! connection of their own.
//!
//! A statement is written in diesel's DSL unless it needs what the DSL cannot say: a common table expression that writes,
//! `unnest` of arrays, `SKIP LOCKED` in a subquery that is updated, advisory locks, catalogue views, partitions, or a
//! comparison of rows.

pub mod batch;
mod blobs;
mod chat;
pub mod data_dir;
mod database;
pub mod embedded;
mod error;
mod people;
mod runs;
mod schema;
mod search;
mod system;
#[cfg(feature = "test-util")]
pub mod testing;
mod triggers;
mod vault;
mod workflows;

pub use batch::{LaneConnection, LaneError};
pub use blobs::{BlobReader, BlobUse, BlobWriter};
pub use chat::{
    Feedback, OwnerKind, Slice, StoredItem, StoredThread, ThreadsOf, TurnStart, TurnsToStop, UnfinishedTurn,
};
pub use database::{
    Begun, Changes, DatabaseRuntime, Foreign, ForeignError, ForeignQuery, ForeignRows, Options, RequestKey,
    Reservation, Reserved, Store, StoredAnswer,
};
pub use error::StoreError;
pub use people::{
    Added, AddedMember, AuditEntry, AuditFilter, AuditTarget, BrowserSession, Cause, CauseSearch, Caused,
    CausedSecret, DEFAULT_WORKSPACE, FailureVerdict, InvitationState, Joined, LinkUse, Membership,
    NewIdentity, NewMail, NewMember, NewOidcSignIn, NewServiceToken, NewSession, NewSignIn, NewWorkspace,
    OidcReturn, OpenedSession, Outcome, OutgoingMail, Proven, Refreshed, Revoked, ServiceTokenStatus,
    ShownCode, StoredAudit, StoredMember, StoredServiceToken, StoredSession, StoredUser, StoredWorkspace,
    TokenLookup,
};
pub use runs::{
    Answered, ClaimFailed, ClaimedDelivery, InterruptedAttempt, JournalPage, LEASE_SECONDS, Lease, LeftRun,
    ListedRun, OpenQuestion, OwnershipScan, QuestionKey, RunFilter, RunState, RunsFilter, RunsPage, SeenRun,
    StepPlace, StopRequest, StoredAnswerOf, StoredDelivery, StoredFrames, StoredRun, StoredStep,
    StoredStream, StreamNews, UnfinishedRun,
};
pub use search::{
    ChunkPlace, IndexRefusal, MOST_INDEXED_CHUNKS, NamedIndex, NewChunk, StoredChunk, StoredIndex,
};
pub use system::{
    Connections, EVENTS_KEPT, Fitness, Inspection, LookedAt, PARTITIONS_AHEAD, WorkspaceUsage, day_of,
    inspect,
};
pub use triggers::{CronSettings, FiredCron, MissedFires, PlannedFire, StoredCron, StoredWebhook};
pub use vault::{
    CredentialChange, NewCredential, SealedCredential, SealedSecret, StoredCredential, first_place,
};
pub use workflows::{
    ListedVersion, NewVersion, NewWorkflow, Publication, StoredVersion, StoredWorkflow, WorkflowChange,
    WorkflowRef,
};
