//! Hosted apps and their deployments.

mod applied;
mod deployments;
mod drafts;
mod records;
mod releases;
mod retention;

pub use applied::*;
pub use deployments::*;
pub use drafts::*;
pub use records::*;
pub use releases::*;
pub use retention::ALIAS_HELD;

/// The kind of uses by which deployments keep their files.
const FILE_USE: &str = "app_file";
