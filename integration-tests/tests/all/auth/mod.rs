//! Authentication and authorization.

mod audit;
mod canary;
mod chat_limits;
mod chat_sessions;
mod failures;
mod jwt;
mod limiter;
mod matrix;
mod modes;
mod order;
mod service_tokens;
pub(crate) mod support;
mod workspaces;
