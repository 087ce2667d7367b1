//! The node catalogue: one file per type, one folder per group.

mod build;
mod catalogue;
mod chat;
mod code;
mod data;
pub(crate) mod fields;
mod logic;
mod models;
mod network;
mod questions;
mod table;

pub(crate) use build::plan_body;
pub use catalogue::{Unknown, find};
pub(crate) use data::collection::is_name as is_collection_name;
pub use logic::path::Path;
pub(crate) use models::agent::{UPDATE, tools_of_verb};
pub use models::demos::demo_output;
pub use table::{FieldRow, Needed, common_fields};

pub use crate::execute::{Effect, NodeType};

/// All node types, in documentation order.
pub static CATALOGUE: &[NodeType] = &[
    logic::set::TYPE,
    logic::template::TYPE,
    logic::transform::TYPE,
    logic::filter::TYPE,
    logic::merge::TYPE,
    logic::json::TYPE,
    logic::for_each::TYPE,
    logic::sub_workflow::TYPE,
    logic::delay::TYPE,
    logic::wait_for_input::TYPE,
    logic::assert::TYPE,
    logic::log::TYPE,
    code::TYPE,
    models::llm::TYPE,
    models::agent::TYPE,
    models::embed::TYPE,
    models::classify::TYPE,
    models::extract::TYPE,
    models::judge::TYPE,
    network::mcp_call::TYPE,
    network::http_request::TYPE,
    network::rss_read::TYPE,
    network::slack_message::TYPE,
    network::discord_message::TYPE,
    network::telegram_message::TYPE,
    network::webhook_send::TYPE,
    network::email_send::TYPE,
    network::postgres_query::TYPE,
    data::document_read::TYPE,
    data::chunk::TYPE,
    data::index_upsert::TYPE,
    data::index_search::TYPE,
    data::collection_get::TYPE,
    data::collection_query::TYPE,
    data::collection_put::TYPE,
    chat::reply::TYPE,
    chat::progress::TYPE,
    chat::notice::TYPE,
    chat::widget::TYPE,
    chat::show::TYPE,
    chat::hidden::TYPE,
    chat::thread::TYPE,
    chat::ask::TYPE,
    chat::client_tool::TYPE,
    chat::client_effect::TYPE,
];
