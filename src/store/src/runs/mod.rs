//! Runs: their rows, journal, streams, queue, owners, questions and outgoing requests.

mod interrupted;
pub(crate) mod journal;
mod leases;
mod list;
mod outbox;
mod presence;
mod put_back;
mod questions;
pub(crate) mod queue;
pub(crate) mod records;
pub(crate) mod stops;
pub(crate) mod streams;
mod trace;

pub use interrupted::InterruptedAttempt;
pub use journal::StoredStep;
pub use leases::{LEASE_SECONDS, Lease};
pub use list::{ListedRun, RunsFilter, RunsPage};
pub use outbox::{ClaimedDelivery, StoredDelivery};
pub use questions::{Answered, OpenQuestion, QuestionKey, StoredAnswerOf};
pub use queue::{ClaimFailed, OwnershipScan, SeenRun};
pub use records::{LeftRun, RunFilter, StoredRun, UnfinishedRun};
pub use stops::StopRequest;
pub use streams::{StoredFrames, StoredStream, StreamNews};
pub use trace::{JournalPage, StepPlace};
pub use wire::RunState;
