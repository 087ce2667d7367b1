//! Signed tokens from outside: accepted ones, rejected ones and their errors, and key sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod chat;
mod claims;
mod differential;
mod fetching;
mod forged;
mod key_sets;
mod paddings;
mod purposes;
mod rsa;
mod support;
mod times;
