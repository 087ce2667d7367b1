//! Types by content, and safe names.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod accepted;
mod names;
mod random;
mod refused;
mod samples;
