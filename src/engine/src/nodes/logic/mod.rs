//! Nodes that shape values, branch into other nodes, or wait.

pub(crate) mod assert;
pub(crate) mod delay;
pub(crate) mod filter;
pub(crate) mod for_each;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod merge;
pub(crate) mod path;
pub(crate) mod set;
pub(crate) mod sub_workflow;
pub(crate) mod template;
pub(crate) mod transform;
pub(crate) mod wait_for_input;
