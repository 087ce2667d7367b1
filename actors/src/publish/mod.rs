//! Topics: where committed events are handed to whoever reads a stream.

mod reader;
mod recent;
mod topic;

pub use reader::{Reader, ReaderError, Readout};
pub use topic::{Published, Topic, Topics};
