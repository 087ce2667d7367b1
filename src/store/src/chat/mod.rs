//! Chat threads, their turns, and what readers think of replies.

mod attachments;
mod feedback;
mod owner;
mod threads;
pub(crate) mod turns;
mod usage;

pub use attachments::*;
pub use feedback::*;
pub use owner::*;
pub use threads::*;
pub use turns::*;
pub use usage::*;
