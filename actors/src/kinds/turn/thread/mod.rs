//! A chat thread's actor: executes one turn at a time; the others wait in order.

mod actor;
pub(crate) mod registry;
mod slots;
mod state;

pub(crate) use registry::AcceptedTurn;
pub use registry::Threads;
pub use slots::Busy;
pub(crate) use slots::Slot;

/// Maximum turns that wait for the running one.
pub const WAITING_TURNS: usize = 32;
