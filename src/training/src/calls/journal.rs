//! The recorded calls of a run: an equal request is answered from here, also after a crash.

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

/// From this number on, unused key locks are dropped.
const MOST_LOCKS: usize = 256;

/// An endpoint's answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A text, or tool calls.
    Answer(ModelAnswer),
    /// Vectors.
    Embeddings(Embeddings),
}

/// An answered call.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// The lookup key.
    pub key: CallKey,
    /// The purpose of the call.
    pub role: Role,
    /// `<provider>/<model>`.
    pub model: String,
    /// The endpoint's answer.
    pub reply: Reply,
    /// Usage of all its requests.
    pub used: Amount,
    /// Whether tokens are estimated because the endpoint did not count them.
    pub estimated: bool,
    /// Requests sent; 0 if the answer is from an earlier run.
    pub attempts: u32,
    /// Time from the first request to the answer.
    pub duration: Duration,
}

/// A call that was given up.
#[derive(Debug, Clone, PartialEq)]
pub struct UnansweredCall {
    /// The lookup key for equal calls.
    pub key: CallKey,
    /// The purpose of the call.
    pub role: Role,
    /// `<provider>/<model>`.
    pub model: String,
    /// Usage of its requests.
    pub used: Amount,
    /// Whether a request was given up before the endpoint counted its tokens.
    pub estimated: bool,
    /// Requests sent.
    pub attempts: u32,
    /// Time from the first request to the end.
    pub duration: Duration,
}

/// Receives the calls of a run. `in_flight`: the number of long-running requests, if it has changed. It is stored
/// together with the call, so that after a crash the run knows which requests were lost.
pub trait CallSink: Send + Sync {
    /// Hands over an answered call without waiting until it is durable; the case's result is committed after it.
    fn record(&self, call: &RecordedCall, in_flight: Option<u32>);

    /// Hands over a call that was given up: its requests count all the same.
    fn record_unanswered(&self, call: &UnansweredCall, in_flight: Option<u32>);

    /// Hands over the number of requests in flight.
    fn in_flight(&self, requests: u32);
}

/// Looks up answers that earlier runs recorded.
#[async_trait]
pub trait EarlierCalls: Send + Sync {
    /// The answer to an equal request in another run; `attempts` is 0.
    async fn find(&self, key: &CallKey) -> Option<RecordedCall>;
}

/// The recorded calls of one run, and its long-running requests.
pub struct CallJournal {
    answered: Mutex<HashMap<CallKey, Arc<RecordedCall>>>,
    /// Locks per key: only one of several concurrent equal requests is sent.
    locks: Mutex<HashMap<CallKey, Arc<Lock<()>>>>,
    /// The number of answers to requests of this run.
    sent: AtomicU64,
    /// The number of long-running requests in flight.
    in_flight: Mutex<u32>,
    sink: Box<dyn CallSink>,
    earlier: Option<Box<dyn EarlierCalls>>,
}

impl CallJournal {
    /// Creates the journal of a run that has already recorded these calls.
    #[must_use]
    pub fn new(recorded: Vec<RecordedCall>, sink: Box<dyn CallSink>) -> Self {
        let mut answered = HashMap::with_capacity(recorded.len());
        for call in recorded {
            // Among equal requests, the first answer counts.
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

    /// Also uses the answers of earlier runs.
    #[must_use]
    pub fn with_earlier(self, earlier: Box<dyn EarlierCalls>) -> Self {
        Self { earlier: Some(earlier), ..self }
    }

    /// The number of distinct calls that requests of this run answered.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Takes an answer from an earlier run and records it in this run.
    pub(super) async fn take_earlier(&self, key: &CallKey) -> Option<Arc<RecordedCall>> {
        let found = self.earlier.as_ref()?.find(key).await?;
        let call = RecordedCall { attempts: 0, ..found };
        self.sink.record(&call, None);
        Some(self.keep(call))
    }

    /// Counts a request that has been in flight for long.
    pub(super) fn long_in_flight(&self) {
        let mut requests = self.in_flight.lock();
        *requests = requests.saturating_add(1);
        self.sink.in_flight(*requests);
    }

    /// Removes a long-running request that failed and is sent again.
    pub(super) fn landed(&self) {
        let mut requests = self.in_flight.lock();
        *requests = requests.saturating_sub(1);
        self.sink.in_flight(*requests);
    }

    pub(super) fn find(&self, key: &CallKey) -> Option<Arc<RecordedCall>> {
        self.answered.lock().get(key).cloned()
    }

    /// The lock of a key; waiters find the first caller's answer.
    pub(super) fn lock_of(&self, key: CallKey) -> Arc<Lock<()>> {
        let mut locks = self.locks.lock();
        if locks.len() >= MOST_LOCKS {
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
        }
        Arc::clone(locks.entry(key).or_default())
    }

    /// `was_long`: whether its last request was long-running.
    pub(super) fn record_unanswered(&self, call: &UnansweredCall, was_long: bool) {
        self.end(was_long, |in_flight| self.sink.record_unanswered(call, in_flight));
    }

    /// Records an answered call; `was_long` as in [`Self::record_unanswered`].
    pub(super) fn record(&self, call: RecordedCall, was_long: bool) -> Arc<RecordedCall> {
        self.end(was_long, |in_flight| self.sink.record(&call, in_flight));
        self.sent.fetch_add(1, Ordering::Relaxed);
        self.keep(call)
    }

    /// Records while holding the lock, so the sink receives counts in order.
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
