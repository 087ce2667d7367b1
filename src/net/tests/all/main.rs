//! The client and its guard against real servers on this machine.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::as_conversions,
    reason = "tests"
)]

mod guard;
mod limits;
mod literals;
mod redirects;
mod support;
