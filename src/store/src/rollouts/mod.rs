//! Rollouts: the gate with its evaluations, and the canary, through which versions become live.

mod canary;
mod gates;
mod live;
mod records;
mod settle;

pub use canary::{CanaryEnd, VersionOfCanary};
pub use gates::GateEvaluation;
pub use records::{LiveVersions, StoredCanary, StoredRollout};
pub use settle::GateResult;
