//! Every node type of the catalogue: fields, results, errors, limits.

mod agent;
mod agent_retry;
mod chat;
mod chunk;
mod code;
mod delay;
mod discord_message;
mod document_read;
mod email_send;
mod files;
mod for_each;
mod http_request;
mod index;
mod llm;
mod logic;
mod mcp_call;
mod models;
mod own_endpoint;
mod postgres_query;
mod rss_read;
mod slack_message;
mod sub_workflow;
mod telegram_message;
mod wait_for_input;
mod webhook_send;
mod widget;
