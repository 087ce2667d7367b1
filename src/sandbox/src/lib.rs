//! Runs untrusted code: Python (on Monty) and JavaScript (on QuickJS) in worker processes. Workers also read untrusted
//! documents and images.
//!
//! [`Sandbox`] is the service's interface: a pool of workers. A worker is the same binary, started with
//! [`WORKER_ARGUMENT`], which calls [`work`] first. The service process never parses or runs user code. See
//! docs/adr/0011-sandbox.md.

mod call;
mod document;
mod feed;
mod frame;
mod image;
mod memory;
mod places;
mod pool;
mod process;
mod worker;

pub use call::{
    Call, Entry, Language, Limits, Modules, Outcome, SandboxError, Source, Surveyed, SyntaxProblem,
};
pub use document::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText};
pub use feed::{Feed, FeedItem, FeedText};
pub use image::{ImageFacts, ImageKind, ImageLimits, LARGEST_IMAGE};
pub use memory::{Limiter, release_free_memory};
pub use pool::{Options, Sandbox};
pub use worker::work;

/// The first argument of a worker process.
pub const WORKER_ARGUMENT: &str = "sandbox-worker";
