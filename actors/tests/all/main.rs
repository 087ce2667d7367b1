//! Tests the package against a real PostgreSQL, with a separate database per test. Every test covers one failure that
//! section 3 of the architecture rules out.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::indexing_slicing, clippy::as_conversions, reason = "tests")]

mod guardian;
mod handle;
mod lanes;
mod mail;
mod publish;
mod recovery;
mod runs;
mod support;
mod turns;
