//! The binary as a terminal user sees it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod command_line;
mod demo_answers;
mod doctor;
#[cfg(target_os = "linux")]
mod memory;
mod practice;
mod support;
mod tls;
