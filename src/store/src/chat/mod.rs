//! Chat threads, their turns, and reader feedback on replies.

mod attachments;
mod erasures;
mod feedback;
mod owner;
mod retention;
mod threads;
pub(crate) mod turns;
mod usage;
mod visitors;

pub use attachments::*;
pub use erasures::Erasure;
pub use feedback::*;
pub use owner::*;
pub use retention::{CONTENT_USE, ChatRetention};
pub use threads::*;
pub use turns::*;
pub use usage::*;
pub use visitors::*;
