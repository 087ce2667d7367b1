//! The actor of a chat thread: one turn at a time, the others wait in order.

mod actor;
pub(crate) mod registry;
mod state;

pub(crate) use registry::{Accepted, Slot};
pub use registry::{Busy, Threads};

/// Turns that may wait behind the running one.
pub const WAITING_TURNS: usize = 32;
