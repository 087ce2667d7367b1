//! What the service does to its database as a whole: migrations, roles, partitions, deletion by age, usage.

mod inspect;
pub(crate) mod migrate;
mod open;
pub(crate) mod partitions;
pub(crate) mod requirements;
mod retention;
pub(crate) mod roles;
mod usage;

pub use inspect::{Connections, Fitness, Inspection, inspect};
pub use partitions::{EVENTS_KEPT, PARTITIONS_AHEAD, day_of};
pub use retention::LookedAt;
pub use usage::WorkspaceUsage;
