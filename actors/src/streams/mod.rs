//! Topics, which pass committed events to a stream's readers.

mod foreign;
mod reader;
mod recent;
mod topic;

pub(crate) use foreign::ForeignStreams;
pub use reader::{Reader, ReaderError, Readout};
pub use topic::{Published, Topic, Topics};
