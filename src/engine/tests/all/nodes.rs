//! Every node type of the catalogue: fields, results, errors, limits.

mod chat;
mod code;
mod delay;
mod for_each;
mod llm;
mod logic;
mod sub_workflow;
mod wait_for_input;
