//! The calls that a run has recorded: an equal request is answered from here, also after a crash.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
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

/// Takes the calls of a run. `in_flight`: how many requests that have been in flight for long are in flight now, if that has changed; it is
/// stored together with the call, so that a later life knows which requests were lost.
pub trait CallSink: Send + Sync {
    /// Hands a call over. Nothing waits until it is durable; the case's result is committed after it.
    fn record(&self, call: &RecordedCall, in_flight: Option<u32>);

    /// Hands over a call that was given up: its requests count all the same.
    fn record_unanswered(&self, call: &UnansweredCall, in_flight: Option<u32>);

    /// Hands over how many requests are in flight.
    fn in_flight(&self, requests: u32);
}

/// The answers that earlier runs have recorded.
#[async_trait]
pub trait EarlierCalls: Send + Sync {
    /// The answer of an equal request of another run; `attempts` is 0.
    async fn find(&self, key: &CallKey) -> Option<RecordedCall>;
}

/// The recorded calls of one run, and which are in flight.
pub struct CallJournal {
    answered: Mutex<HashMap<CallKey, Arc<RecordedCall>>>,
    /// Of equal requests at the same time one is sent.
    locks: Mutex<HashMap<CallKey, Arc<Lock<()>>>>,
    /// Answers that a request of this run has led to.
    sent: AtomicU64,
    /// Requests that have been in flight for long.
    in_flight: Mutex<u32>,
    sink: Box<dyn CallSink>,
    earlier: Option<Box<dyn EarlierCalls>>,
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
        let sent = answered.values().filter(|call| call.attempts > 0).count();
        Self {
            sent: AtomicU64::new(u64::try_from(sent).unwrap_or(u64::MAX)),
            answered: Mutex::new(answered),
            locks: Mutex::default(),
            in_flight: Mutex::default(),
            sink,
            earlier: None,
        }
    }

    /// The same, which also has the answers of earlier runs.
    #[must_use]
    pub fn with_earlier(self, earlier: Box<dyn EarlierCalls>) -> Self {
        Self { earlier: Some(earlier), ..self }
    }

    /// How many different calls were answered by a request of this run.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// The answer of an earlier run, recorded as one of this run.
    pub(super) async fn take_earlier(&self, key: &CallKey) -> Option<Arc<RecordedCall>> {
        let found = self.earlier.as_ref()?.find(key).await?;
        let call = RecordedCall { attempts: 0, ..found };
        self.sink.record(&call, None);
        Some(self.keep(call))
    }

    /// A request has been in flight for long.
    pub(super) fn long_in_flight(&self) {
        let mut requests = self.in_flight.lock();
        *requests = requests.saturating_add(1);
        self.sink.in_flight(*requests);
    }

    /// Such a request has failed, and is sent again.
    pub(super) fn landed(&self) {
        let mut requests = self.in_flight.lock();
        *requests = requests.saturating_sub(1);
        self.sink.in_flight(*requests);
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

    /// `was_long`: whether its last request was in flight for long.
    pub(super) fn record_unanswered(&self, call: &UnansweredCall, was_long: bool) {
        self.end(was_long, |in_flight| self.sink.record_unanswered(call, in_flight));
    }

    /// As [`Self::record_unanswered`].
    pub(super) fn record(&self, call: RecordedCall, was_long: bool) -> Arc<RecordedCall> {
        self.end(was_long, |in_flight| self.sink.record(&call, in_flight));
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.keep(call)
    }

    /// In the order in which numbers change.
    fn end(&self, was_long: bool, record: impl FnOnce(Option<u32>)) {
        let mut requests = self.in_flight.lock();
        if was_long {
            *requests = requests.saturating_sub(1);
        }
        record(was_long.then_some(*requests));
    }

    fn keep(&self, call: RecordedCall) -> Arc<RecordedCall> {
        let call = Arc::new(call);
        self.answered.lock().insert(call.key, Arc::clone(&call));
        call
    }
}
