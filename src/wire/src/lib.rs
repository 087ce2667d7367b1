//! The wire format: requests, answers, events in both chat dialects, and the table of error codes.
//!
//! Source: `interface.md` and, for the chat, the public ChatKit protocol (openai-chatkit 1.6.5).

mod admin;
mod app;
mod app_data;
mod app_run;
mod audit;
pub mod chat;
mod chat_session;
mod chat_settings;
mod credential;
mod dataset;
mod deployment;
mod diff;
mod error;
mod error_code;
mod feedback;
mod health;
mod index;
mod locate;
mod near;
mod node;
pub mod operation;
pub mod operations;
mod release;
mod rollout;
mod run;
#[cfg(feature = "schema")]
mod schema;
pub mod scope;
mod sign_in;
mod socket;
pub mod sse;
mod training;
mod trigger;
mod unique_json;
mod visitor;
mod waits;
mod workflow;
mod workspace;

pub use admin::*;
pub use app::*;
pub use app_data::*;
pub use app_run::*;
pub use audit::*;
pub use chat_session::*;
pub use chat_settings::*;
pub use credential::*;
pub use dataset::*;
pub use deployment::*;
pub use diff::*;
pub use error::*;
pub use error_code::ErrorCode;
pub use feedback::*;
pub use health::*;
pub use index::*;
pub use locate::{Lines, line_of};
pub use near::*;
pub use node::*;
pub use release::*;
pub use rollout::*;
pub use run::*;
pub use scope::Scope;
pub use sign_in::*;
pub use socket::*;
pub use training::*;
pub use trigger::*;
pub use unique_json::UniqueJson;
pub use visitor::*;
pub use waits::*;
pub use workflow::*;

pub use workspace::*;

/// An instant on the wire: RFC 3339, UTC, with `Z`.
pub type Timestamp = String;
