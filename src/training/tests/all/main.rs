//! Cases and their calls, with real engine plans and test models.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod asking;
mod calls;
mod canary;
mod cases;
mod evaluators;
mod fewshot;
mod foreign;
mod optimize;
mod planned;
mod practice;
mod preflight;
mod rewrite;
mod settings;
mod simulated;
mod words;
mod world;
