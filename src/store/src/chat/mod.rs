//! Chat threads, their turns, and what readers think of replies.

mod feedback;
mod owner;
mod threads;
pub(crate) mod turns;

pub use feedback::Feedback;
pub use owner::OwnerKind;
pub use threads::{Slice, StoredItem, StoredThread, ThreadsOf};
pub use turns::{TurnStart, TurnsToStop, UnfinishedTurn};
