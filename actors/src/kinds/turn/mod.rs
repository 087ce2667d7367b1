//! One turn of a chat: runs the frozen version and tells its stream what happens, stored before it is sent.

mod again;
pub mod chat;
mod driver;
mod events;
mod history;
mod input;
mod message;
mod refill;
mod resume;
pub mod thread;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::Dialect;

pub(crate) use again::{Again, answered_before};
pub(crate) use driver::{drive, fail};
pub(crate) use input::run_input;
pub(crate) use refill::messages as messages_of;

use crate::plans::LoadedVersion;
use crate::run::RunPorts;

/// How long a turn continues without a reader, by the dialect of its stream; `None`: to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For the interface's dialect, whose clients stop a turn with a request.
    pub interface: Option<Duration>,
    /// For ChatKit's dialect, whose clients stop a turn by closing the connection.
    pub chatkit: Option<Duration>,
}

impl Grace {
    fn of(self, dialect: Dialect) -> Option<Duration> {
        match dialect {
            Dialect::Interface => self.interface,
            Dialect::Chatkit => self.chatkit,
        }
    }
}

/// A turn that was accepted.
#[derive(Clone)]
pub(crate) struct Turn {
    /// Its run.
    pub(crate) run: Uuid,
    /// Its stream.
    pub(crate) stream: Uuid,
    /// Its thread.
    pub(crate) thread: ThreadId,
    /// Its workspace.
    pub(crate) workspace: Uuid,
    /// Its workflow.
    pub(crate) workflow: Uuid,
    /// The version it runs; `None` when it cannot be read any more, and the turn can only be ended.
    pub(crate) version: Option<Arc<LoadedVersion>>,
    /// Who its texts are written for.
    pub(crate) dialect: Dialect,
    /// The run's inputs, JSON.
    pub(crate) inputs: Arc<serde_json::Value>,
    /// Its place among the turns of its thread: its run's id, or an id of the moment in which it left the queue.
    pub(crate) order: Uuid,
    /// How often it has gone into the queue.
    pub(crate) parked: i32,
    /// The message that it answers again, if it is no new one.
    pub(crate) again: Option<Again>,
    /// What is stored of it.
    pub(crate) progress: Progress,
}

impl Turn {
    /// When it left the queue, to the millisecond: the first 48 bits of its place.
    fn resumed_at(&self) -> Option<DateTime<Utc>> {
        kernel::time_of(self.order)
    }

    /// Whether its start has made the thread, in this life.
    fn is_first(&self) -> bool {
        matches!(self.progress, Progress::New { first: true, .. })
    }
}

/// What is stored of a turn when it is handed to its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Only its start.
    New {
        /// Sequence number of the next event.
        next_seq: u64,
        /// The user's message.
        user_item: ItemKey,
        /// Whether its start has made the thread.
        first: bool,
    },
    /// An earlier life may have got further; the database knows.
    Recovered {
        /// Whether that life was cut off, and did not put the turn into the queue.
        cut_off: bool,
    },
}

/// What a turn works with.
#[derive(Clone)]
pub(crate) struct TurnPorts {
    /// What every run works with.
    pub(crate) run: RunPorts,
    /// How long a turn continues without a reader.
    pub(crate) grace: Grace,
}
