//! Workflows, their versions and drafts, and what a change of one does.

mod changes;
pub(crate) mod records;
mod uses;
mod versions;

pub use changes::*;
pub use records::*;
pub use uses::*;
pub use versions::*;
