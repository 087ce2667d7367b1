//! Topics: they pass committed events to the readers of a stream.

mod foreign;
mod reader;
mod recent;
mod topic;

pub(crate) use foreign::ForeignStreams;
pub use reader::{Reader, ReaderError, Readout};
pub use topic::{Published, Topic, Topics};
