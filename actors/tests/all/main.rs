//! The package against a real PostgreSQL: each test has a database of its own. Every test shows one failure that
//! section 3 of the architecture promises away.
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
