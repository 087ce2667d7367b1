//! Every node type of the catalogue: fields, results, errors, limits.

mod chat;
mod code;
mod delay;
mod for_each;
mod http_request;
mod llm;
mod logic;
mod slack_message;
mod sub_workflow;
mod wait_for_input;
mod webhook_send;
