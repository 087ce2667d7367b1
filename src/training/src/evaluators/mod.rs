//! Evaluators: score case results.

mod asking;
mod bench;
mod builtin;
mod combine;
mod config;
mod json;
mod judge;
mod measures;
mod overlap;
mod request;
mod subject;
mod text;
mod verdict;
mod versions;

pub use asking::{FunctionName, PostTarget, check_functions, check_workflows};
pub use bench::{Bench, BenchError, Executed, NoBench};
pub use builtin::{BUILTINS, BuiltinType};
pub use request::{Evaluator, EvaluatorRole, read_evaluators};
pub use subject::{Measured, Subject};
pub use verdict::{Verdict, normalized};
pub use versions::{named_workflows, with_versions};
