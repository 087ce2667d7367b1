//! Runs: their rows, journal, streams, queue, owners, questions and outgoing requests.

mod continuations;
mod crashes;
mod due_turns;
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
mod take_over;
mod trace;
mod usage;

pub use continuations::*;
pub use crashes::*;
pub use due_turns::*;
pub use interrupted::*;
pub use journal::*;
pub use leases::*;
pub use list::*;
pub use outbox::*;
pub use questions::*;
pub use queue::*;
pub use records::*;
pub use stops::*;
pub use streams::*;
pub use take_over::*;
pub use trace::*;
pub use usage::*;
pub use wire::RunState;
