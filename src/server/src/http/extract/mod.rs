//! Who may do what: the only ways to the store.

mod caller;

pub(super) use caller::{Caller, WorkflowsExecute, WorkflowsRead, WorkflowsWrite};
