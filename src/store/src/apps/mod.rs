//! Hosted apps and their deployments.

mod admission;
mod applied;
mod collection_retention;
mod collections;
mod deployments;
mod drafts;
mod encodings;
mod records;
mod releases;
mod retention;
mod run_list;
mod runs;
mod served;
mod sign_in;

pub use admission::*;
pub use applied::*;
pub use collections::*;
pub use deployments::*;
pub use drafts::*;
pub use encodings::{EncodedContent, UnencodedFile};
pub use records::*;
pub use releases::*;
pub use retention::{ALIAS_HELD, EARLIER_SERVED};
pub use run_list::*;
pub use runs::*;
pub use served::ServedFile;
pub use sign_in::*;

/// The use kind by which deployments keep their files.
const FILE_USE: &str = "app_file";
