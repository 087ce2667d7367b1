//! Training decisions: the calls to make, the actions that a case may take, and the value that its results have.
//!
//! This package knows no HTTP, SQL or actors: a case reaches the outside through ports of the engine.

mod calibration;
pub mod calls;
mod canary;
mod case;
mod compare;
mod course;
mod dataset;
mod estimate;
mod evaluation;
pub mod evaluators;
mod forecast;
mod judging;
mod mocks;
mod node_texts;
mod numbers;
pub mod optimize;
mod pins;
mod planning;
mod policy;
mod preflight;
mod prices;
mod prompts;
mod regression;
pub mod report;
pub mod request;
pub mod rewrite;
mod runner;
mod score;
mod splits;
mod stored;
mod warning;

pub use calibration::{RECORDED, calibration_places, calibrations};
pub use canary::{CanaryRecord, CanaryVerdict, Share, fisher, judge_canary, uses_canary};
pub use case::{Case, LARGEST as LARGEST_CASE, is_erased, read_stored_case};
pub use compare::{Comparison, Race, WeightedScore, interval, kfold, race};
pub use dataset::{read_cases, read_csv, read_lines, weaknesses};
pub use estimate::{CallRange, calls_of_graph};
pub use evaluation::{Evaluated, evaluate};
pub use forecast::{AskedModels, Estimate};
pub use judging::{CaseContext, judge, judge_recorded};
pub use mocks::Mocks;
pub use pins::{FoundVersion, Pin, PinnedWorkflows, Pins, Resolution, Versions, resolve};
pub use policy::{Reach, outside, reach};
pub use preflight::{DefaultModels, Start};
pub use prompts::{Demo, TrainablePrompt, read_demos, trainable_prompts};
pub use regression::recorded_mocks;
pub use runner::{
    CaseBench, CaseError, CaseRun, CaseSettings, CaseStep, NoReply, ask, optimizer_problem, run_case,
};
pub use score::{Aggregate, CaseScore, Judged, Summary, case_score, summary};
pub use splits::{SplitSettings, Splits, TestEstimate, split};
pub use stored::{StepDetails, StoredResult, StoredSpent, details_json, read_reply, reply_json};
pub use warning::Warning;
