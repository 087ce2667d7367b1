//! User code, safely: Python (on Monty) and JavaScript (on QuickJS) in worker processes of the same binary. Documents and
//! images of strangers are read there, too.
//!
//! [`Sandbox`] is the service's side: a pool of workers. A worker is this binary again, started with
//! [`WORKER_ARGUMENT`], which calls [`work`] before anything else. Nothing of a user's code is parsed or run in the
//! service's own process. See docs/adr/0011-sandbox.md.

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
pub use memory::Limiter;
pub use pool::{Options, Sandbox};
pub use worker::work;

/// The first argument of a worker.
pub const WORKER_ARGUMENT: &str = "sandbox-worker";
