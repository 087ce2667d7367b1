//! One turn of a chat: runs the frozen version and tells its stream what happens, stored before it is sent.

mod driver;
mod message;
mod resume;
pub(crate) mod text;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, Ids, ItemKey, ThreadId};
use store::Store;
use tokio::sync::Semaphore;
use uuid::Uuid;
use wire::chat::Dialect;

pub use driver::{TurnEnd, drive, fail};

use crate::db::Database;
use crate::plans::LoadedVersion;
use crate::publish::Topics;

/// A turn that was accepted.
#[derive(Clone)]
pub struct Turn {
    /// Its run.
    pub run: Uuid,
    /// Its stream.
    pub stream: Uuid,
    /// Its thread.
    pub thread: ThreadId,
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
    /// The database.
    pub store: Store,
    /// The lanes.
    pub db: Database,
    /// Where readers listen.
    pub topics: Topics,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Ids,
    /// How long a turn goes on without a reader; `None`: for ever.
    pub grace: Option<Duration>,
    /// Turns of an earlier life that may read what they had stored at the same time. There may be thousands, and a
    /// new turn wants a connection too.
    pub recovering: Arc<Semaphore>,
}
