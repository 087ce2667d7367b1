//! The kinds of run, one folder each: what differs between them. What they share is in [`crate::run`].

pub mod turn;
pub mod workflow;
