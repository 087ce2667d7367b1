//! Hosted apps and their deployments.

mod admission;
mod applied;
mod deployments;
mod drafts;
mod records;
mod releases;
mod retention;
mod runs;

pub use admission::*;
pub use applied::*;
pub use deployments::*;
pub use drafts::*;
pub use records::*;
pub use releases::*;
pub use retention::ALIAS_HELD;
pub use runs::*;

/// The kind of uses by which deployments keep their files.
const FILE_USE: &str = "app_file";
