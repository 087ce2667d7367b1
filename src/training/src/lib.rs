//! What a training decides: which calls it makes, what a case may do, what its results are worth.
//!
//! Nothing here knows HTTP, SQL or actors: what a case needs from outside is a port of the engine.

pub mod calls;
mod case;
mod compare;
mod dataset;
pub mod evaluators;
mod judging;
mod mocks;
mod numbers;
mod policy;
pub mod rewrite;
mod runner;
mod score;
mod splits;

pub use case::Case;
pub use compare::{Comparison, Race, interval, kfold, race};
pub use dataset::{read_cases, read_lines};
pub use judging::judge;
pub use mocks::Mocks;
pub use policy::{Reach, reach};
pub use runner::{CaseError, CaseRun, CaseSettings, CaseStep, run_case};
pub use score::{Aggregate, CaseScore, Judged, Summary, case_score, summary};
pub use splits::{SplitSettings, Splits, TestEstimate, split};
