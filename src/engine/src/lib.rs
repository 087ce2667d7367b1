//! Workflow graphs: parse, compile, execute through a journal; the node catalogue.
//!
//! The engine knows neither HTTP nor a database: what it needs from outside is a trait in [`ports`].
//! Source of the format: `graph/1`.

mod canonical;
mod compile;
mod error;
mod execute;
mod fields;
mod graph;
pub mod nodes;
mod output;
mod parse;
pub mod ports;
mod tags;
mod template;

pub use canonical::{CanonicalError, digest, identity};
pub use compile::{Plan, check, compile};
pub use error::{NodeError, RunError};
pub use execute::{RecordedStep, RunInfo, RunInput, execute};
pub use graph::{Case, EdgeSpec, Graph, NodeSpec, Target};
pub use parse::parse;

/// Everything that is wrong with a graph.
pub type Problems = Vec<wire::FieldError>;
