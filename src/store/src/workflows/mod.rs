//! Workflows, their versions and drafts, and what a change of one does.

mod changes;
pub(crate) mod records;
mod versions;

pub use changes::*;
pub use records::*;
pub use versions::*;
