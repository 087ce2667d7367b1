//! Workflow graphs: parse, check, compile, and execute through a journal; the node catalogue; language models.
//!
//! The engine knows neither HTTP nor a database: its external dependencies are traits in [`ports`]. Format:
//! `graph/1`.

mod addresses;
mod cache;
mod canonical;
mod channel;
mod check;
mod compile;
mod credentials;
mod cut;
mod diff;
mod document;
mod effects;
mod error;
mod execute;
pub mod fenced;
mod functions;
mod graph;
mod inspection;
mod limits;
mod mcp;
mod meter;
pub mod nodes;
mod outbound;
pub mod outbox;
pub mod records;
mod redact;
mod references;
pub mod runnable_config;
mod schema;
pub mod search;
mod tags;
mod template;

pub use ::schema::Schema;
pub use cache::Cache;
pub use canonical::{CanonicalError, digest, identity};
pub use channel::{Channel, Rule};
pub use check::{TEMPLATE_FILTERS, TEMPLATE_TESTS};
pub use compile::{CredentialUse, check, compile, credentials, warnings};
pub use diff::{diff, diff_config};
pub use effects::{CollectionUse, NodeEffect, collection_uses, effects, references};
pub use error::{NodeError, RunError};
pub use execute::{
    Activity, AskingStep, Completed, Effect, FilledInput, Idle, Life, Patch, Plan, PromptUse, RecordedStep,
    RunInfo, RunInput, execute, ports, refill,
};
pub use functions::{Function, modules_named};
pub use graph::fields::Fields;
pub use graph::parse::{parse, without_schema};
pub use graph::{Case, END, EdgeSpec, Graph, NodeSpec, OnError, START, Target};
pub use inspection::{Inspection, inspect};
pub use nodes::{Path, demo_output};
pub use references::Reference;
pub use tags::length as tag_length;

use serde_json::Value;

/// All problems of a graph.
pub type Problems = Vec<wire::FieldError>;

/// Checks an answer against a question's JSON Schema, with pointers below `base`; empty if it matches.
#[must_use]
pub fn check_answer(schema: &Value, answer: &Value, base: &str) -> Problems {
    Schema::problems_of(schema, answer, base)
}

/// Checks that a text parses as a template, regardless of the scope.
///
/// # Errors
/// The parse error.
pub fn check_template(text: &str) -> Result<(), String> {
    template::names_of_template(text).map(drop)
}

/// Lists the config prompts that a template names; `None` for one whose name is not spelled out. Empty if the text
/// does not parse as a template.
#[must_use]
pub fn prompts_named(text: &str) -> Vec<Option<String>> {
    let names = template::names_of_template(text).unwrap_or_default();
    names.iter().filter_map(|name| execute::prompt_named(name)).collect()
}

/// Whether a text inside the value may name `messages`.
#[must_use]
pub fn names_messages(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("messages"),
        Value::Array(items) => items.iter().any(names_messages),
        Value::Object(members) => members.values().any(names_messages),
        _ => false,
    }
}
