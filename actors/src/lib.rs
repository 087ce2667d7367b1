//! The actor runtime and the actors.
//!
//! Every long-lived thing is a supervised actor. [`runtime`] has the guardian, the handle and the policy table;
//! [`lanes`] write to the database; [`streams`] has the topics that readers read from; `run` is the core of every run,
//! and [`kinds`] has a folder for each run kind; `jobs` has the periodic work; [`delivery`] sends mail and events from
//! their queues. [`System`] assembles them.

// The test support uses this package's name like any other package.
#[cfg(test)]
extern crate self as actors;

mod clock_watch;
pub mod delivery;
pub mod encodings;
mod jobs;
pub mod kinds;
pub mod lanes;
pub mod plans;
mod run;
pub mod runtime;
pub mod streams;
#[cfg(test)]
#[path = "../tests/all/support/mod.rs"]
#[allow(
    dead_code,
    clippy::as_conversions,
    clippy::unwrap_used,
    clippy::panic,
    reason = "shared with the tests outside the package"
)]
mod support;
mod system;
mod text;
pub mod triggers;

pub use kinds::turn::Grace;
pub use run::{ImageLinks, SharePermit, WorkspaceShare, WorkspaceShares};
pub use system::{Settings, System};
