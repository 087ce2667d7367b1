//! Every node type of the catalogue: fields, results, errors, limits.

mod agent;
mod chat;
mod delay;
mod for_each;
mod llm;
mod logic;
mod mcp_call;
mod models;
mod sub_workflow;
