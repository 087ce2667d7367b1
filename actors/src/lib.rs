//! The actor runtime and the actors.
//!
//! Every long-lived thing is a supervised actor: [`runtime`] holds the guardian, the handle and the policy table;
//! [`db`] the lanes; [`publish`] the topics that streams are read from; [`thread`] orders the turns of a chat thread
//! and `turn` runs one, [`runs`] runs workflows by themselves; `run` is what both stand on; [`mail`] sends what waits in
//! the mail queue. [`System`] puts them together.

mod begin;
mod cancel;
pub mod chat;
mod clock_leaps;
mod clock_watch;
pub mod db;
mod join;
mod lease;
pub mod mail;
mod maintenance;
mod outbox;
pub mod plans;
pub mod publish;
mod quota;
mod recovery;
mod run;
pub mod runs;
pub mod runtime;
mod sending;
mod system;
pub mod thread;
mod tidying;
pub mod triggers;
mod turn;

pub use system::{Settings, System};
pub use turn::Grace;
