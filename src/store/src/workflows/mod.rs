//! Workflows, their versions and drafts, and what a change of one does.

mod changes;
pub(crate) mod records;
mod versions;

pub use changes::{Publication, WorkflowChange};
pub use records::{NewWorkflow, StoredWorkflow, WorkflowRef};
pub use versions::{ListedVersion, NewVersion, StoredVersion};
