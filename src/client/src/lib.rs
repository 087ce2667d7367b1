//! Typed HTTP and SSE client that the command line and the integration tests use.
//!
//! [`Client`] makes one request per call. [`ChatStream`] reads one chat response as it arrives, and [`RunStream`] the
//! events of a run; [`ResumingChat`], [`ResumingRun`] and [`ResumingTraining`] resume after broken connections until
//! the stream ends. [`Client::send`] bypasses all types.
//!
//! Every failure is a [`ClientError`]. Waits and timeouts use [`kernel::Clock`].

mod admin;
mod answer;
mod apps;
mod builder;
mod call;
mod chat;
mod client;
mod complete;
mod cookies;
mod credentials;
mod datasets;
mod error;
mod events;
mod follow;
mod indexes;
mod runs;
mod sign_in;
mod sse;
mod stream;
mod threads;
mod trainings;
mod triggers;
mod turn;
mod upload;
mod visitors;
mod workflows;
mod workspaces;

pub use admin::AuditFilter;
pub use answer::Answer;
pub use apps::{AppRunsFilter, Archive};
pub use builder::ClientBuilder;
pub use chat::ChatOptions;
pub use client::{Client, Exchange};
pub use error::{ClientError, ErrorKind, TransportFault};
pub use follow::{Resuming, ResumingChat, ResumingRun, ResumingTraining};
pub use reqwest::header::HeaderMap;
pub use runs::{RunOptions, RunsFilter, StartedRun};
pub use stream::{ChatStream, EventStream, RunStream, StreamEvent, TrainingStream};
pub use trainings::CasesFilter;
pub use turn::{Turn, TurnError};
pub use visitors::{ThreadsFilter, VisitorExport};
pub use workflows::Part;
