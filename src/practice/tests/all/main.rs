//! The built-in model.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

#[path = "../../../models/tests/all/endpoint.rs"]
#[allow(dead_code, reason = "shared with other tests")]
mod endpoint;
mod files;
mod learning;
mod skills;
