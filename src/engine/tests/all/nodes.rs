//! Every node type of the catalogue: fields, results, errors, limits.

mod chat;
mod delay;
mod for_each;
mod http_request;
mod llm;
mod logic;
mod slack_message;
mod sub_workflow;
mod webhook_send;
