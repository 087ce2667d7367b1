//! Nodes that write to a run's readers.

mod annotations;
pub(crate) mod ask;
pub(crate) mod client_effect;
pub(crate) mod client_tool;
mod components;
mod content;
pub(crate) mod hidden;
mod icons;
mod image;
mod item_question;
mod key;
pub(crate) mod notice;
pub(crate) mod progress;
pub(crate) mod reply;
pub(crate) mod show;
mod sources;
pub(crate) mod thread;
pub(crate) mod widget;
