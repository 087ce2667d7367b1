//! The engine's public behaviour: refused graphs, runs, and resumption after a crash.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod attachments;
mod big;
mod catalogue;
mod check_limits;
mod checking;
mod collections;
mod common;
mod diffing;
#[path = "../../../models/tests/all/endpoint.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod endpoint;
mod exact;
mod examples;
mod functions;
mod joins;
mod limits;
mod module_functions;
mod nodes;
mod output;
mod panics;
mod ports;
mod prompts;
mod random;
mod refill;
mod rehearsal;
mod reply;
mod resume;
mod running;
mod signed_post;
mod state;
mod template_limits;
mod world;
