//! Nodes that write to the readers of a run.

pub(crate) mod notice;
pub(crate) mod progress;
pub(crate) mod reply;
