//! The actor of a chat thread: one turn at a time, the others wait in order.

mod actor;
pub(crate) mod registry;
mod slots;
mod state;

pub(crate) use registry::AcceptedTurn;
pub use registry::Threads;
pub use slots::Busy;
pub(crate) use slots::Slot;

/// Turns that may wait behind the running one.
pub const WAITING_TURNS: usize = 32;
