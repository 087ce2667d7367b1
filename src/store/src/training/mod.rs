//! Trainings and evaluations: their rows, datasets and checkpoints.

mod calls;
mod candidates;
mod cases;
mod checkpoints;
mod datasets;
mod list;
mod report;
mod runs;

pub use calls::StoredCall;
pub use cases::{CaseFilter, CaseKey, StoredCase};
pub use checkpoints::{NewCheckpoint, StoredCheckpoint};
pub(crate) use datasets::find_dataset;
pub use datasets::{AddedVersion, DatasetOfRun, KeptCase, MadeDataset, NewCase, NewDataset, StoredDataset};
pub use list::TrainingFilter;
pub use report::NamesOfTraining;
pub use runs::StoredTraining;
