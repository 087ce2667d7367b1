//! `TestService`: the whole service in this process, with its own database and an optional manual clock; and helpers
//! for the scenarios in `tests/all`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::mem_forget,
    reason = "only tests are built with this"
)]

mod answer;
pub mod apps;
mod balancer;
mod bearer;
mod browser;
mod builder;
mod cable;
mod cdn;
pub mod chat;
mod described;
mod echo;
mod endpoint;
pub mod graphs;
mod mail_server;
mod process;
mod provider;
mod raw;
mod rows;
mod second_instance;
mod service;
mod socket;
mod tcp_server;
mod tidy;
mod usage;
mod waiting;
mod workflow;

pub use answer::{AnswerExt, shown, shown_alike};
pub use balancer::Balancer;
pub use bearer::{BOOTSTRAP, Bearer, JSON};
pub use browser::Browser;
pub use builder::Builder;
pub use cable::Cable;
pub use cdn::Cdn;
pub use client::{Answer, Client};
pub use described::misfits;
pub use echo::Echo;
pub use endpoint::Endpoint;
pub use mail_server::{Mail, MailServer};
pub use process::Stopping;
pub use provider::{CLIENT_SECRET, Knobs, Provider, Signing, Way};
pub use raw::{Raw, RawAnswer};
pub use service::{TestService, owner_of_all_databases};
pub use socket::{Closed, Socket};
pub use tcp_server::{ReceivedRequest, TcpServer};
pub use tidy::{events, last_event, thread_of, tidy, tidy_json, without_mark};
pub use usage::noise;
pub use waiting::{pause, until, within};
pub use workflow::{Workflow, WorkflowBuilder};
