//! Nodes that call other services.

pub(crate) mod discord_message;
pub(crate) mod email_send;
pub(crate) mod http_request;
pub(crate) mod mcp_call;
pub(crate) mod messaging;
pub(crate) mod postgres_query;
pub(crate) mod rss_read;
pub(crate) mod slack_message;
pub(crate) mod telegram_message;
pub(crate) mod webhook_send;
