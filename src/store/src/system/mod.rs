//! Database-wide work: migrations, roles, partitions, retention, usage.

mod inspect;
pub(crate) mod migrate;
mod open;
pub(crate) mod partitions;
pub(crate) mod requirements;
pub(crate) mod retention;
pub(crate) mod roles;
mod usage;

pub use inspect::*;
pub use partitions::*;
pub use retention::*;
pub use usage::*;
