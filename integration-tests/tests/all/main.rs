//! The scenarios, one module per part of the service.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::large_futures,
    reason = "tests"
)]

mod access;
mod action_limits;
mod actions;
mod again;
mod again_queued;
mod again_races;
mod alias_hosts;
mod answers;
mod apps;
mod attachments;
mod auth;
mod bad_http;
mod bad_input;
mod body_budget;
mod budget_days;
mod budgets;
mod busy_actions;
mod busy_thread;
mod canary;
mod changes;
mod chat_bad_input;
mod chat_retention;
mod chat_retention_turns;
mod chatkit_models;
mod client_tools;
mod clock;
mod code;
mod command_line;
mod continuing_turns;
mod crash;
mod database;
mod deploy;
mod diagnosis;
mod diagram;
mod dictation;
mod dictation_timeout;
mod diff;
mod email_send;
mod errors;
mod examples;
mod feedback;
mod feedback_limits;
mod hosts;
mod idempotency;
mod instances;
mod item_limits;
mod joins;
mod live_version;
mod log_lines;
mod members;
mod models;
mod nodes;
mod nul;
mod once;
mod openapi;
mod order;
mod pages;
mod parked_turns;
mod pipelining;
mod postgres_query;
mod question_ends;
mod question_fields;
mod question_order;
mod question_replays;
mod questions;
mod quota;
mod removed_items;
mod requests;
mod rerun;
mod resume;
mod rights;
mod run_limits;
mod run_list;
mod runs;
mod search;
mod shutdown;
mod shutdown_limits;
mod sign_in;
mod stalls;
mod start;
mod stop;
mod streams;
mod thread_changes;
mod thread_ids;
mod thread_status;
mod thread_stream;
mod thread_titles;
mod threads;
mod trace;
mod training;
mod triggers;
mod turn;
mod typed;
mod unreadable;
mod vault;
mod versions;
mod visitor_data;
mod visitors;
mod waiting_runs;
mod websocket;
mod widget_script;
mod workflows;
mod workspaces;
