//! Chat turns: each executes a frozen workflow version and streams its events, stored before they are sent.

mod again;
pub mod chat;
mod continuing;
mod ending;
mod events;
mod grace;
mod history;
mod images;
mod input;
mod kind;
mod message;
mod order;
mod refill;
mod resume;
mod sent;
pub mod thread;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;
use wire::chat::{Dialect, ThreadItem};

use again::{Again, answered_before};
pub(crate) use continuing::continuation;
pub use grace::Grace;
pub(crate) use history::before as history_of;
pub(crate) use input::run_input;

use crate::run::kind::Run;

/// The trigger of turn runs.
const TRIGGER: &str = "chat";

/// The chat turn kind.
pub(crate) struct Turns {
    /// Grace period of a turn without a reader.
    pub(crate) grace: Grace,
}

/// A turn's run.
pub(crate) type TurnOf = Run<Turns>;

/// Turn-specific data of a run.
pub(crate) struct Turn {
    thread: ThreadId,
    /// Dialect for its texts.
    dialect: Dialect,
    /// Its order among the thread's turns: its run's id, or an id created when it left the queue.
    order: Uuid,
    /// The message that it answers again, if this is a retry.
    again: Option<Again>,
    /// The session whose limits apply to its models.
    session: Option<String>,
    /// The public base URL as seen by the client, if none is configured.
    base: Option<String>,
    /// The run whose turn it continues with an answer.
    continues: Option<Uuid>,
    /// A new turn's user message.
    user_item: Option<ItemKey>,
    /// The message if the turn's start created the thread in this life: the thread has no other items.
    first: Option<ThreadItem>,
    /// Signals that a model has written the thread's title, in this life.
    retitled: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Turn {
    /// The time when it left the queue, in milliseconds: the first 48 bits of its order.
    fn resumed_at(&self) -> Option<DateTime<Utc>> {
        kernel::time_of(self.order)
    }
}
