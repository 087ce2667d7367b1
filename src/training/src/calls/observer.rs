//! Observes every model call of a run, in this order: seed, key, journal, permit, budget, request, record.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{ModelCall, ModelObserver, Spending};
use kernel::{Clock, Random, jittered};
use models::{EmbedRequest, Embeddings, ModelAnswer, ModelError, ModelRequest, Pieces};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;

use super::attempts::Attempts;
use super::budget::{BudgetLimits, Exhausted};
use super::endpoint::Endpoints;
use super::journal::{CallJournal, RecordedCall, Reply};
use super::key::{CallKey, seed_of};
use super::ledger::Ledger;
use super::outgoing::{OutgoingCall, is_refusal, of_another_kind, spending};
use super::prices::RunPrices;
use super::usage::{Amount, CallUsage, Role, Spent};
use super::waiting::WaitTime;

/// A request in flight for longer is stored as such, so that it is known after a crash.
const LONG: Duration = Duration::from_millis(100);

/// The calls of one run.
pub struct Calls {
    /// The run id, for `Idempotency-Key`.
    run: String,
    seed: u64,
    ledger: Ledger,
    permits: Semaphore,
    endpoints: Endpoints,
    journal: CallJournal,
    prices: RunPrices,
    shares_answers: bool,
    /// Whether a call was given up because its endpoint only refused.
    is_refused: AtomicBool,
    is_closed: AtomicBool,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// The settings that all calls of a run share.
pub struct CallSettings {
    /// The run id.
    pub run: String,
    /// The run's seed.
    pub seed: u64,
    /// The run's limits.
    pub limits: BudgetLimits,
    /// Maximum concurrent requests of the run, for all purposes.
    pub concurrency: usize,
    /// Calls that the run answered before a crash, with or without a request, and that are not repeated.
    pub answered: u64,
    /// The run's prices.
    pub prices: RunPrices,
    /// Whether equal requests of the run share an answer. If not, an answer is only reused at its own place, after a
    /// crash.
    pub shares_answers: bool,
}

impl Calls {
    /// Creates the calls of a run that has already used `usage`. `random`: only for backoff jitter.
    #[must_use]
    pub fn new(
        settings: CallSettings,
        usage: CallUsage,
        journal: CallJournal,
        endpoints: Endpoints,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        Self {
            run: settings.run,
            seed: settings.seed,
            ledger: Ledger::new(settings.limits, usage, settings.answered, journal.sent()),
            permits: Semaphore::new(settings.concurrency),
            endpoints,
            journal,
            prices: settings.prices,
            shares_answers: settings.shares_answers,
            is_refused: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            clock,
            random,
        }
    }

    /// The usage so far.
    #[must_use]
    pub fn usage(&self) -> CallUsage {
        self.ledger.usage()
    }

    /// The remaining budget.
    #[must_use]
    pub fn budget_left(&self) -> BudgetLimits {
        self.ledger.left()
    }

    /// Keeps this part of the budget for later, in thousandths; 0: nothing.
    pub fn keep(&self, thousandths: u64) {
        self.ledger.keep(thousandths);
    }

    /// Stops or allows requests: while closed, only recorded answers are returned.
    pub fn close(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::Relaxed);
    }

    /// Distinct calls answered by a request, including those before a crash.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.journal.sent()
    }

    /// Whether a call was given up after ten minutes in which its endpoint refused all requests. Then no result is
    /// stored, and the run is retried later.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Whether `count` requests with at most `each` fit into the budget.
    #[must_use]
    pub fn covers(&self, count: u64, each: &Amount) -> bool {
        self.ledger.covers(count, each)
    }

    /// The calls of one case or one proposal.
    #[must_use]
    pub fn scope(&self, role: Role, sample: u32, name: String) -> CallScope<'_> {
        CallScope {
            calls: self,
            role,
            sample,
            name,
            waiting: WaitTime::default(),
            exhausted: CancellationToken::new(),
            spent: Arc::default(),
            replayed: Mutex::default(),
        }
    }
}

/// The calls of one case or one proposal.
pub struct CallScope<'a> {
    calls: &'a Calls,
    role: Role,
    sample: u32,
    /// Candidate and case, for `Idempotency-Key`.
    name: String,
    waiting: WaitTime,
    exhausted: CancellationToken,
    spent: Arc<Mutex<Spent>>,
    /// Total original duration of replayed calls.
    replayed: Mutex<Duration>,
}

impl CallScope<'_> {
    /// The clock that measures the calls.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.calls.clock
    }

    /// Total time in which calls waited for a permit or the endpoint's pace. It does not count as the case's time.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waiting.total(&*self.calls.clock)
    }

    /// Total original duration of the calls that were answered without a request. It counts as the case's time, so
    /// that a score does not depend on the order of cases.
    #[must_use]
    pub fn replayed(&self) -> Duration {
        *self.replayed.lock()
    }

    /// Usage of the calls so far.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent.lock().clone()
    }

    /// Adds the usage of its calls to `spent`.
    #[must_use]
    pub fn counted_in(mut self, spent: &Arc<Mutex<Spent>>) -> Self {
        self.spent = Arc::clone(spent);
        self
    }

    /// Cancelled when the budget refuses a call: the case then has no result.
    #[must_use]
    pub fn exhausted(&self) -> &CancellationToken {
        &self.exhausted
    }

    /// Returns the recorded answer to an equal request, or sends a new one.
    async fn reply(&self, request: OutgoingCall<'_>) -> Result<Arc<RecordedCall>, NodeError> {
        let lock = self.calls.journal.lock_of(request.key);
        let waits = self.waiting.begin(&*self.calls.clock);
        let _locked = lock.lock().await;
        drop(waits);
        if let Some(recorded) = self.calls.journal.find(&request.key) {
            return Ok(self.replay(&request, recorded));
        }
        if self.calls.is_closed.load(Ordering::Relaxed) {
            self.exhausted.cancel();
            return Err(NodeError::new(ErrorCode::NodeFailed, "the run makes no further calls"));
        }
        let waits = self.waiting.begin(&*self.calls.clock);
        let earlier = self.calls.journal.take_earlier(&request.key).await;
        drop(waits);
        if let Some(recorded) = earlier {
            return Ok(self.replay(&request, recorded));
        }
        let mut attempts = Attempts::new(&self.calls.journal, &*self.calls.clock, &request);
        let answered = self.answered(&request, &mut attempts).await;
        request.call.spend(&spending(attempts.used()));
        let answered = answered.inspect_err(|_| self.spent.lock().add(attempts.used(), 0))?;
        self.count(&request, attempts.used(), true);
        Ok(self.calls.journal.record(answered, attempts.is_long()))
    }

    /// Counts an answer without a request.
    fn replay(&self, request: &OutgoingCall<'_>, recorded: Arc<RecordedCall>) -> Arc<RecordedCall> {
        self.count(request, &recorded.used, false);
        let mut replayed = self.replayed.lock();
        *replayed = replayed.saturating_add(recorded.duration);
        recorded
    }

    /// Counts an answered call. A replayed call costs the case as much as a new one, so that a score does not depend
    /// on the order of cases.
    fn count(&self, request: &OutgoingCall<'_>, used: &Amount, is_new: bool) {
        self.calls.ledger.answered(is_new);
        let mut spent = self.spent.lock();
        spent.add(used, 1);
        spent.is_unpriced |= request.price.is_none();
    }

    /// Sends a request once.
    async fn send(
        &self,
        request: &OutgoingCall<'_>,
        attempts: &mut Attempts<'_>,
        key: String,
    ) -> Result<Reply, ModelError> {
        let calls = self.calls;
        let mut sent = request.sending.send(&request.call, key);
        tokio::select! {
            biased;
            sent = &mut sent => return sent,
            () = calls.clock.sleep(LONG) => {}
        }
        attempts.set_long();
        sent.await
    }

    /// Sends the request until it is answered or given up.
    async fn answered(
        &self,
        request: &OutgoingCall<'_>,
        attempts: &mut Attempts<'_>,
    ) -> Result<RecordedCall, NodeError> {
        let calls = self.calls;
        let idempotency_key =
            format!("{}-{}-{}-{}", calls.run, self.name, self.sample, hex::encode(request.key.0));
        loop {
            let waits = self.waiting.begin(&*calls.clock);
            // The run's own permit comes first: a call that waits for it takes no endpoint slot from other runs.
            let permit = calls.permits.acquire().await;
            let in_flight = match calls.endpoints.for_call(&request.call) {
                Some(endpoint) => Some(endpoint.enter(&*calls.clock).await),
                None => None,
            };
            drop(waits);
            // After both, so that a waiting call reserves nothing.
            let reserved = calls.ledger.reserve(request.expected).map_err(|error| self.refused(error))?;
            let reserved = reserved.sent(request.role, attempts.is_repeated(), request.input);
            attempts.begin();
            let error = match self.send(request, attempts, idempotency_key.clone()).await {
                Ok(reply) => {
                    if let Some(in_flight) = &in_flight {
                        in_flight.answered();
                    }
                    let (used, estimated) = request.used(&reply);
                    reserved.answered(used, estimated);
                    return Ok(attempts.answered(reply, &used, estimated));
                }
                Err(error) => error,
            };
            attempts.failed();
            reserved.failed();
            let is_refused = in_flight.is_some() && is_refusal(&error);
            let is_over = match in_flight.filter(|_| is_refused) {
                Some(in_flight) => {
                    let is_over = attempts.record_refusal(&in_flight, &error, &*calls.random);
                    if is_over {
                        calls.is_refused.store(true, Ordering::Relaxed);
                    }
                    is_over
                }
                None => attempts.record_failure(&error),
            };
            if is_over {
                // Retries of the node would only repeat those of the call.
                return Err(NodeError { retryable: false, retry_after: None, ..NodeError::from(error) });
            }
            drop(permit);
            if !is_refused {
                calls.clock.sleep(jittered(attempts.pause(), &*calls.random)).await;
            }
        }
    }

    /// The lookup key of the answer: shared within the run, or for this place only.
    fn key(&self, call: &ModelCall<'_>, request: &impl Serialize) -> CallKey {
        let key = CallKey::for_request(call, request, self.sample);
        if self.calls.shares_answers {
            return key;
        }
        let alone = key.at(&self.name, call, 0);
        match self.spent.lock().ask(alone) {
            0 => alone,
            repetition => key.at(&self.name, call, repetition),
        }
    }

    fn refused(&self, error: Exhausted) -> NodeError {
        self.exhausted.cancel();
        NodeError::new(ErrorCode::NodeFailed, error.to_string())
    }
}

#[async_trait]
impl ModelObserver for CallScope<'_> {
    fn waited(&self) -> Duration {
        Self::waited(self)
    }

    async fn call(
        &self,
        call: ModelCall<'_>,
        request: &ModelRequest,
        pieces: &dyn Pieces,
    ) -> Result<ModelAnswer, NodeError> {
        // A node's own seed overrides the run's seed.
        let seed = seed_of(request.seed.unwrap_or(self.calls.seed), self.role, self.sample, &call);
        let request = ModelRequest { seed: Some(seed), ..request.clone() };
        let key = self.key(&call, &request);
        let expected = Spending::expected(call.model, &request);
        let price = self.calls.prices.of_call(call.model, call.endpoint);
        let asked = OutgoingCall::new(call, key, self.role, price, expected, &request);
        let recorded = self.reply(asked).await?;
        let Reply::Answer(answer) = &recorded.reply else { return Err(of_another_kind()) };
        pieces.piece(&answer.text).await;
        Ok(answer.clone())
    }

    async fn embed(&self, call: ModelCall<'_>, request: &EmbedRequest) -> Result<Embeddings, NodeError> {
        let key = self.key(&call, request);
        let expected = Spending::expected_of_texts(call.model, &request.texts);
        let price = self.calls.prices.of_call(call.model, call.endpoint);
        let asked = OutgoingCall::new(call, key, Role::Embedding, price, expected, request);
        let recorded = self.reply(asked).await?;
        let Reply::Embeddings(made) = &recorded.reply else { return Err(of_another_kind()) };
        Ok(made.clone())
    }
}
