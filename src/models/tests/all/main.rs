//! Models over a real HTTP server whose responses each test scripts.

#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod anthropic;
mod configured;
mod dialects;
mod endpoint;
mod files;
mod gemini;
mod openai;
mod openai_faults;
mod tape;
mod transcription;
