//! The search for better prompts. It decides from stored results alone: the same results and replies lead to the same
//! end, in any process and after any crash.

mod board;
mod ending;
mod fewshot;
mod gepa;
mod lab;
mod problem;
mod proposal;
mod racing;
mod search;
mod textgrad;

pub(crate) use ending::FINALISTS;
pub use ending::{Finding, Outcome, SeedAndBest, StopReason};
pub(crate) use fewshot::{AT_ONCE, SETS};
pub use lab::{
    Candidate, Decision, JudgedRun, Lab, Phase, Question, Round, SamplesResult, SearchEvent, Stop,
};
pub use problem::Problem;
pub(crate) use problem::{KEPT_FOR_DEMOS, LEAST_KEPT, kept_of, reserved_cases};
pub(crate) use proposal::ATTEMPTS;
pub(crate) use search::HEADROOM;
pub use search::search;
