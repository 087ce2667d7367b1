//! The calls that a run has recorded: an equal request is answered from here, also after a crash.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use models::{Embeddings, ModelAnswer};
use parking_lot::Mutex;
use tokio::sync::Mutex as Lock;

use super::key::CallKey;
use super::usage::{Amount, Role};

/// Locks of keys that are kept although they may not be used any more.
const MOST_LOCKS: usize = 256;

/// What an endpoint has answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A text, or calls of tools.
    Answer(ModelAnswer),
    /// Vectors.
    Embeddings(Embeddings),
}

/// A call that was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// By which it is found.
    pub key: CallKey,
    /// For what it was made.
    pub role: Role,
    /// `<provider>/<model>`.
    pub model: String,
    /// What came.
    pub reply: Reply,
    /// What all of its requests have used.
    pub used: Amount,
    /// Whether the endpoint did not count tokens.
    pub estimated: bool,
    /// Requests that were sent; 0 if an earlier run has the answer.
    pub attempts: u32,
    /// From the first request to the answer.
    pub duration: Duration,
}

/// A call that was given up.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredCall {
    /// By which an equal one is found.
    pub key: CallKey,
    /// For what it was made.
    pub role: Role,
    /// `<provider>/<model>`.
    pub model: String,
    /// What its requests have used.
    pub used: Amount,
    /// Whether a request was given up before the endpoint has counted its tokens.
    pub estimated: bool,
    /// Requests that were sent.
    pub attempts: u32,
    /// From the first request to the end.
    pub duration: Duration,
}

/// Takes the calls of a run.
pub trait CallSink: Send + Sync {
    /// Hands a call over. Nothing waits until it is durable; the case's result is committed after it.
    fn record(&self, call: &RecordedCall);

    /// Hands over a call that was given up: its requests count all the same.
    fn record_unanswered(&self, call: &UnansweredCall);
}

/// The recorded calls of one run, and which are in flight.
pub struct CallJournal {
    answered: Mutex<HashMap<CallKey, Arc<RecordedCall>>>,
    /// Of equal requests at the same time one is sent.
    locks: Mutex<HashMap<CallKey, Arc<Lock<()>>>>,
    sink: Box<dyn CallSink>,
}

impl CallJournal {
    /// Of a run that has recorded these calls before.
    #[must_use]
    pub fn new(recorded: Vec<RecordedCall>, sink: Box<dyn CallSink>) -> Self {
        let mut answered = HashMap::with_capacity(recorded.len());
        for call in recorded {
            // Of equal requests the first answer counts.
            answered.entry(call.key).or_insert_with(|| Arc::new(call));
        }
        Self { answered: Mutex::new(answered), locks: Mutex::default(), sink }
    }

    /// How many different calls were answered.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.answered.lock().len()).unwrap_or(u64::MAX)
    }

    pub(super) fn find(&self, key: &CallKey) -> Option<Arc<RecordedCall>> {
        self.answered.lock().get(key).cloned()
    }

    /// The lock of a key; those who wait for it find the answer of the first one.
    pub(super) fn lock_of(&self, key: CallKey) -> Arc<Lock<()>> {
        let mut locks = self.locks.lock();
        if locks.len() >= MOST_LOCKS {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Arc::clone(locks.entry(key).or_default())
    }

    pub(super) fn record_unanswered(&self, call: &UnansweredCall) {
        self.sink.record_unanswered(call);
    }

    pub(super) fn record(&self, call: RecordedCall) -> Arc<RecordedCall> {
        self.sink.record(&call);
        let call = Arc::new(call);
        self.answered.lock().insert(call.key, Arc::clone(&call));
        call
    }
}
