//! Nodes that call language models.

pub(crate) mod agent;
pub(crate) mod asking;
pub(crate) mod classify;
pub(crate) mod demos;
pub(crate) mod embed;
pub(crate) mod extract;
pub(crate) mod files;
pub(crate) mod judge;
pub(crate) mod llm;
pub(crate) mod target;
