//! Hosted apps and their deployments.

mod records;
mod retention;

pub use records::*;
pub use retention::ALIAS_HELD;
