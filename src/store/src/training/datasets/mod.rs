//! Datasets: versioned lists of cases; each case is stored by its content.

mod entries;
mod named;
mod of_runs;
mod read;

pub use entries::NewCase;
pub(crate) use named::find_dataset;
pub use named::{AddedVersion, KeptCase, MadeDataset, NewDataset, StoredDataset};
pub use of_runs::DatasetOfRun;
