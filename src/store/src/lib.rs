//! The only place with SQL: queries, pool, migrations and the embedded PostgreSQL.
//!
//! One file for each noun. Reads and rare writes go through [`Store`] and its pool; everything on the path of a
//! turn goes through the lanes, which commit a [`batch::Batch`] in one statement on a connection of their own.

mod audit;
mod auth_failures;
pub mod batch;
mod blob_streams;
mod blob_uses;
mod blobs;
mod changes;
mod clock;
mod committed;
mod connect;
mod credentials;
pub mod data_dir;
pub mod embedded;
mod error;
mod feedback;
mod foreign;
mod foreign_rows;
mod idempotency;
mod indexes;
mod inspect;
mod interrupted;
mod journal;
mod keys;
mod leases;
mod members;
mod migrate;
mod outbox;
mod parameter;
mod partitions;
mod pool;
mod presence;
mod put_back;
mod questions;
mod requirements;
mod retention;
mod roles;
mod run_list;
mod run_queue;
mod runs;
mod runtime;
mod schema;
mod search;
mod service_tokens;
mod sign_in;
mod stops;
mod streams;
#[cfg(feature = "test-util")]
pub mod testing;
mod threads;
mod token_causes;
mod token_lookup;
mod trace;
mod triggers;
mod turns;
mod unreachable;
mod usage;
mod versions;
mod workflow_changes;
mod workflows;
mod workspaces;

pub use audit::{AuditEntry, AuditFilter, AuditTarget, Outcome, StoredAudit};
pub use auth_failures::FailureVerdict;
pub use batch::{LaneConnection, LaneError};
pub use blob_streams::{BlobReader, BlobWriter};
pub use blob_uses::BlobUse;
pub use changes::{Begun, Changes, RequestKey, StoredAnswer};
pub use clock::PlannedFire;
pub use credentials::{
    CredentialChange, NewCredential, SealedCredential, SealedSecret, StoredCredential, first_place,
};
pub use error::StoreError;
pub use feedback::Feedback;
pub use foreign::{Foreign, ForeignError, ForeignQuery, ForeignRows};
pub use idempotency::{Reservation, Reserved};
pub use indexes::NamedIndex;
pub use inspect::{Connections, Fitness, Inspection, inspect};
pub use interrupted::InterruptedAttempt;
pub use journal::StoredStep;
pub use leases::{LEASE_SECONDS, Lease};
pub use members::{Added, AddedMember, InvitationState, Joined, NewMember, StoredMember};
pub use outbox::{ClaimedDelivery, StoredDelivery};
pub use partitions::{EVENTS_KEPT, PARTITIONS_AHEAD};
pub use pool::{Options, Store};
pub use questions::{Answered, OpenQuestion, QuestionKey, StoredAnswerOf};
pub use retention::LookedAt;
pub use run_list::{ListedRun, RunsFilter, RunsPage};
pub use run_queue::{ClaimFailed, OwnershipScan, SeenRun};
pub use runs::{LeftRun, RunFilter, RunStatus, StoredRun, UnfinishedRun};
pub use runtime::DatabaseRuntime;
pub use search::{ChunkPlace, IndexRefusal, MOST_INDEXED_CHUNKS, NewChunk, StoredChunk, StoredIndex};
pub use service_tokens::{Cause, NewServiceToken, ServiceTokenStatus, StoredServiceToken};
pub use sign_in::{
    BrowserSession, LinkUse, Membership, NewIdentity, NewMail, NewOidcSignIn, NewSession, NewSignIn,
    OidcReturn, OpenedSession, OutgoingMail, Proven, Refreshed, Revoked, ShownCode, StoredSession,
    StoredUser,
};
pub use stops::StopRequest;
pub use streams::{StoredFrames, StoredStream, StreamNews};
pub use threads::{Slice, StoredItem, StoredThread, ThreadsOf};
pub use token_causes::{CauseSearch, Caused, CausedSecret};
pub use token_lookup::TokenLookup;
pub use trace::{JournalPage, StepPlace};
pub use triggers::{CronSettings, FiredCron, MissedFires, StoredCron, StoredWebhook};
pub use turns::{TurnStart, TurnsToStop, UnfinishedTurn};
pub use usage::WorkspaceUsage;
pub use versions::{ListedVersion, NewVersion, StoredVersion};
pub use workflow_changes::{Publication, WorkflowChange};
pub use workflows::{NewWorkflow, StoredWorkflow, WorkflowRef};
pub use workspaces::{DEFAULT_WORKSPACE, NewWorkspace, StoredWorkspace};
