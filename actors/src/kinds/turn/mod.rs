//! Chat turns: each executes the frozen version of a workflow and streams what happens, stored before it is sent.

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

/// The trigger of a turn's run.
const TRIGGER: &str = "chat";

/// The turns of chats.
pub(crate) struct Turns {
    /// How long a turn continues without a reader.
    pub(crate) grace: Grace,
}

/// A turn.
pub(crate) type TurnOf = Run<Turns>;

/// What a turn has beside what every run has.
pub(crate) struct Turn {
    thread: ThreadId,
    /// Who its texts are written for.
    dialect: Dialect,
    /// Its place among the turns of its thread: its run's id, or an id of the moment when it left the queue.
    order: Uuid,
    /// The message that it answers again, if it answers no new one.
    again: Option<Again>,
    /// The session whose limits apply to its models.
    session: Option<String>,
    /// Where clients reach the service, if it is not configured.
    base: Option<String>,
    /// The run whose turn it continues with an answer.
    continues: Option<Uuid>,
    /// The user's message of a new turn.
    user_item: Option<ItemKey>,
    /// The message of a turn whose start has created the thread, in this life: the thread has nothing else.
    first: Option<ThreadItem>,
    /// Whether a model has written the title of the thread, in this life.
    retitled: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Turn {
    /// When it left the queue, to the millisecond: the first 48 bits of its place.
    fn resumed_at(&self) -> Option<DateTime<Utc>> {
        kernel::time_of(self.order)
    }
}
