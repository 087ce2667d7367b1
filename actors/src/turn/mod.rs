//! One turn of a chat: runs the frozen version and tells its stream what happens, stored before it is sent.

mod driver;
mod message;
mod resume;
mod teller;
pub(crate) mod text;

use std::sync::Arc;
use std::time::Duration;

use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::Dialect;

pub use driver::{TurnEnd, drive, fail};

use crate::plans::LoadedVersion;
use crate::run::RunPorts;

/// A turn that was accepted.
#[derive(Clone)]
pub struct Turn {
    /// Its run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// Its thread.
    pub thread: ThreadId,
    /// Its workspace.
    pub workspace: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// The version it runs; `None` when it cannot be read any more, and the turn can only be ended.
    pub version: Option<Arc<LoadedVersion>>,
    /// Who its texts are written for.
    pub dialect: Dialect,
    /// The run's inputs, JSON.
    pub inputs: Arc<serde_json::Value>,
    /// What is stored of it.
    pub progress: Progress,
}

/// What is stored of a turn when it is handed to its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Only its start: the next event has this number, and its user message this key.
    New {
        /// Sequence number of the next event.
        next_seq: u64,
        /// The user's message.
        user_item: ItemKey,
    },
    /// An earlier life may have got further; the database knows.
    Recovered,
}

/// What a turn works with.
#[derive(Clone)]
pub struct TurnPorts {
    /// What every run works with.
    pub(crate) run: RunPorts,
    /// How long a turn goes on without a reader; `None`: for ever.
    pub(crate) grace: Option<Duration>,
}
