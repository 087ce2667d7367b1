//! Nodes that write to the readers of a run.

pub(crate) mod client_effect;
pub(crate) mod hidden;
mod icons;
mod key;
pub(crate) mod notice;
pub(crate) mod progress;
pub(crate) mod reply;
pub(crate) mod show;
pub(crate) mod thread;
