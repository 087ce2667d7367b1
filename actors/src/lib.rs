//! The actor runtime and the actors.
//!
//! Every long-lived thing is a supervised actor. [`runtime`] has the guardian, the handle and the policy table; [`lanes`]
//! write to the database; [`streams`] has the topics that readers read from; `run` is the core of every run, and [`kinds`]
//! has a folder for each kind of run; `jobs` has the periodic work; [`delivery`] sends mail and events from their queues.
//! [`System`] assembles them.

mod clock_watch;
pub mod delivery;
mod jobs;
pub mod kinds;
pub mod lanes;
pub mod plans;
mod run;
pub mod runtime;
pub mod streams;
mod system;
mod text;
pub mod triggers;

pub use kinds::turn::Grace;
pub use system::{Settings, System};
