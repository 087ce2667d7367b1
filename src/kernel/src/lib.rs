//! Ids, clock, randomness, secrets and text: the base of every other package.
//!
//! This package does no I/O. Time, randomness and ids are traits, so that tests can control them.

mod backoff;
mod clock;
mod counter;
mod ids;
pub mod json;
mod random;
mod secret;
pub mod text;
mod warnings;

pub use backoff::{backoff, jittered};
#[cfg(feature = "test-util")]
pub use clock::ManualClock;
pub use clock::{Clock, Sleep, SystemClock, timeout, timestamp};
pub use counter::{Counter, Purpose, fifty_three_bits};
pub use ids::{AttachmentId, IdError, Ids, ItemKey, ThreadId, first_id_at, time_of};
#[cfg(feature = "test-util")]
pub use random::SeededRandom;
pub use random::{Random, RandomError, SystemRandom};
pub use secret::{Secret, mask};
pub use warnings::{WARNINGS, WarningLimiter};
