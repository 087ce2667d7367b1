//! Workflows, their versions and drafts, and the effects of changing them.

mod changes;
pub(crate) mod records;
mod uses;
mod versions;

pub use changes::*;
pub use records::*;
pub use uses::*;
pub use versions::*;
