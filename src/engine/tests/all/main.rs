//! The engine from outside: what is refused, how a run goes, and how it goes on after a crash.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod big;
mod catalogue;
mod checking;
mod common;
mod diffing;
mod examples;
mod functions;
mod limits;
mod models_anthropic;
mod models_configured;
mod models_dialects;
mod models_endpoint;
mod models_gemini;
mod models_openai;
mod models_openai_faults;
mod models_practice;
mod models_practice_learning;
mod models_tape;
mod nodes;
mod panics;
mod ports;
mod prompts;
mod random;
mod refill;
mod reply;
mod resume;
mod running;
mod state;
mod world;
