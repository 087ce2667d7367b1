//! Pending writes of one key.

use bytes::Bytes;
use store::batch::{Batch, EventsRow};
use uuid::Uuid;

use super::WriteError;
use crate::streams::{Published, Topics};

/// Called on the database thread once rows are committed or refused; must be quick.
pub type Then = Box<dyn FnOnce(Result<(), WriteError>) + Send>;

/// Stream events in wire format.
#[derive(Debug, Clone)]
pub struct EventFrames {
    /// The stream.
    pub stream: Uuid,
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event; one less than the first if empty.
    pub last_seq: u64,
    /// The events in SSE format.
    pub frames: String,
    /// Whether the stream ends here.
    pub end: bool,
    /// Whether they are retained as long as their run.
    pub kept: bool,
}

impl EventFrames {
    /// Appends the events that follow.
    #[must_use]
    pub fn followed_by(mut self, more: &Self) -> Self {
        self.frames.push_str(&more.frames);
        self.last_seq = more.last_seq;
        self.end |= more.end;
        self
    }
}

/// Rows, events and callbacks.
#[derive(Default)]
pub(super) struct Buffer {
    batch: Batch,
    events: Option<EventFrames>,
    then: Vec<Then>,
}

impl Buffer {
    /// Appends writes; consecutive events become one row.
    pub(super) fn push(&mut self, batch: Batch, events: Option<EventFrames>, then: Option<Then>) {
        self.batch.append(batch);
        if let Some(new) = events {
            self.events = Some(match self.events.take() {
                Some(old) => old.followed_by(&new),
                None => new,
            });
        }
        self.then.extend(then);
    }

    pub(super) fn weight(&self) -> usize {
        self.batch.weight() + self.events.as_ref().map_or(0, |events| events.frames.len())
    }

    /// Converts the events to a row, so that the whole buffer is a batch.
    pub(super) fn seal(&mut self) {
        if let Some(events) = &mut self.events
            && events.last_seq >= events.first_seq
            && self.batch.events.is_empty()
        {
            self.batch.events.push(EventsRow {
                stream_id: events.stream,
                first_seq: events.first_seq,
                last_seq: events.last_seq,
                frames: std::mem::take(&mut events.frames),
                kept: events.kept,
            });
        }
    }

    pub(super) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// After the commit: publishes the events to readers, and calls the callbacks.
    pub(super) fn committed(mut self, topics: &Topics) {
        // Callbacks first: a new turn is handed over before its first frame is sent.
        for then in self.then {
            then(Ok(()));
        }
        if let Some(events) = self.events {
            let frames = self.batch.events.pop().map_or_else(Bytes::new, |row| Bytes::from(row.frames));
            let EventFrames { first_seq, last_seq, end, .. } = events;
            topics.publish(events.stream, Published { first_seq, last_seq, frames, end });
        }
    }

    /// After a refusal: calls the callbacks with the error.
    pub(super) fn refused(self, error: &WriteError) {
        for then in self.then {
            then(Err(error.clone()));
        }
    }
}
