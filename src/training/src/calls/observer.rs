//! Every call of a run, in this order: seed, key, journal, permit, budget, request, record.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::NodeError;
use engine::ports::{ModelCall, ModelObserver, Spending};
use kernel::{Clock, Random, backoff, jittered};
use models::{
    EmbedRequest, Embeddings, ModelAnswer, ModelError, ModelErrorKind, ModelRequest, NoPieces, Pieces,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wire::ErrorCode;

use super::budget::{BudgetLimits, Exhausted};
use super::endpoint::Endpoints;
use super::journal::{CallJournal, RecordedCall, Reply};
use super::key::{CallKey, seed_of};
use super::ledger::Ledger;
use super::usage::{Amount, CallUsage, Role, dollars, nanodollars};
use super::waiting::Waiting;

/// Requests of one call, as long as the endpoint is not there or breaks off.
const ATTEMPTS: u32 = 3;
/// Pauses between them.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After so long with nothing but refusals a call is given up.
const REFUSED_FOR: Duration = Duration::from_secs(600);

/// The calls of one run.
pub struct Calls {
    /// The run, in `Idempotency-Key`.
    run: String,
    seed: u64,
    ledger: Ledger,
    permits: Semaphore,
    endpoints: Endpoints,
    journal: CallJournal,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
}

/// What the calls of a run have in common.
pub struct CallSettings {
    /// The run.
    pub run: String,
    /// Its seed.
    pub seed: u64,
    /// Its limits.
    pub limits: BudgetLimits,
    /// Requests of the run at the same time, whatever they are for.
    pub concurrency: usize,
}

impl Calls {
    /// Of a run that has used `usage` before. `random`: for the pauses between requests alone.
    #[must_use]
    pub fn new(
        settings: CallSettings,
        usage: CallUsage,
        journal: CallJournal,
        endpoints: Endpoints,
        (clock, random): (Arc<dyn Clock>, Arc<dyn Random>),
    ) -> Self {
        Self {
            run: settings.run,
            seed: settings.seed,
            ledger: Ledger::new(settings.limits, usage),
            permits: Semaphore::new(settings.concurrency),
            endpoints,
            journal,
            clock,
            random,
        }
    }

    /// What was used so far.
    #[must_use]
    pub fn usage(&self) -> CallUsage {
        self.ledger.usage()
    }

    /// Whether so many requests, each of at most this, are within the budget.
    #[must_use]
    pub fn covers(&self, count: u64, each: &Amount) -> bool {
        self.ledger.covers(count, each)
    }

    /// The calls of one case, or of one proposal.
    #[must_use]
    pub fn scope(&self, role: Role, sample: u32, name: String) -> CallScope<'_> {
        CallScope {
            calls: self,
            role,
            sample,
            name,
            waiting: Waiting::default(),
            exhausted: CancellationToken::new(),
        }
    }
}

/// The calls of one case, or of one proposal.
pub struct CallScope<'a> {
    calls: &'a Calls,
    role: Role,
    sample: u32,
    /// Candidate and case, in `Idempotency-Key`.
    name: String,
    waiting: Waiting,
    exhausted: CancellationToken,
}

/// What one kind of call sends.
#[async_trait]
trait Sending: Sync {
    async fn send(&self, call: &ModelCall<'_>, key: String) -> Result<Reply, ModelError>;
}

#[async_trait]
impl Sending for ModelRequest {
    async fn send(&self, call: &ModelCall<'_>, key: String) -> Result<Reply, ModelError> {
        let request = Self { idempotency_key: Some(key), ..self.clone() };
        // A request may be repeated: text is handed over once it is complete.
        call.provider.call(&request, &NoPieces).await.map(Reply::Answer)
    }
}

#[async_trait]
impl Sending for EmbedRequest {
    async fn send(&self, call: &ModelCall<'_>, key: String) -> Result<Reply, ModelError> {
        let request = Self { idempotency_key: Some(key), ..self.clone() };
        call.provider.embed(&request).await.map(Reply::Embeddings)
    }
}

impl CallScope<'_> {
    /// The time that passes while the calls are made.
    #[must_use]
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.calls.clock
    }

    /// How long calls have waited for a permit or for the endpoint's pace. That is not the case's time.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waiting.total(&*self.calls.clock)
    }

    /// Ends when the budget has refused a call: the case has no result then.
    #[must_use]
    pub fn exhausted(&self) -> &CancellationToken {
        &self.exhausted
    }

    /// The recorded answer of an equal request, or that of a new one.
    async fn reply(&self, request: Request<'_>) -> Result<Arc<RecordedCall>, NodeError> {
        let lock = self.calls.journal.lock_of(request.key);
        let waits = self.waiting.begin(&*self.calls.clock);
        let _locked = lock.lock().await;
        drop(waits);
        if let Some(recorded) = self.calls.journal.find(&request.key) {
            self.calls.ledger.cached();
            return Ok(recorded);
        }
        let mut all = Amount::default();
        let answered = self.answered(&request, &mut all).await;
        request.call.spend(&spending(&all));
        Ok(self.calls.journal.record(answered?))
    }

    /// Sends the request until it is answered or given up. `all`: what its requests have used.
    async fn answered(&self, request: &Request<'_>, all: &mut Amount) -> Result<RecordedCall, NodeError> {
        let calls = self.calls;
        let begun = calls.clock.monotonic();
        let idempotency_key =
            format!("{}-{}-{}-{}", calls.run, self.name, self.sample, hex::encode(request.key.0));
        let (mut sent, mut failures, mut refused_since) = (0_u32, 0_u32, None);
        loop {
            let waits = self.waiting.begin(&*calls.clock);
            // The endpoint first: a call that waits for one endpoint keeps no permit from calls of another.
            let in_flight = match calls.endpoints.of(&request.call) {
                Some(endpoint) => Some(endpoint.enter(&*calls.clock).await),
                None => None,
            };
            let permit = calls.permits.acquire().await;
            drop(waits);
            // After both: a call that waits reserves nothing.
            let reserved = calls.ledger.reserve(request.expected).map_err(|error| self.refused(error))?;
            let reserved = reserved.sent(request.role, sent > 0, request.input);
            sent = sent.saturating_add(1);
            let error = match request.sending.send(&request.call, idempotency_key.clone()).await {
                Ok(reply) => {
                    if let Some(in_flight) = &in_flight {
                        in_flight.answered();
                    }
                    let (used, estimated) = request.used(&reply);
                    reserved.answered(used, estimated);
                    *all = all.plus(&used);
                    let duration = calls.clock.monotonic().saturating_sub(begun);
                    return Ok(request.recorded(reply, (*all, estimated), sent, duration));
                }
                Err(error) => error,
            };
            // Refused or broken off, it was a request all the same.
            *all = all.plus(&Amount { calls: 1, ..Amount::default() });
            reserved.failed();
            let now = calls.clock.monotonic();
            let is_over = match in_flight.filter(|_| is_refusal(&error)) {
                Some(in_flight) => {
                    in_flight.refused(now, error.retry_after, &*calls.random);
                    now.saturating_sub(*refused_since.get_or_insert(now)) >= REFUSED_FOR
                }
                None => {
                    failures = failures.saturating_add(1);
                    !error.kind.is_retryable() || failures >= ATTEMPTS
                }
            };
            if is_over {
                // More attempts of the node would only repeat those of the call.
                return Err(NodeError { retryable: false, retry_after: None, ..NodeError::from(error) });
            }
            drop(permit);
            if failures > 0 && refused_since.is_none() {
                let pause = backoff(PAUSE, failures, LONGEST_PAUSE);
                calls.clock.sleep(jittered(pause, &*calls.random)).await;
            }
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
        // A node's own seed takes the place of the run's.
        let seed = seed_of(request.seed.unwrap_or(self.calls.seed), self.role, self.sample, &call);
        let request = ModelRequest { seed: Some(seed), ..request.clone() };
        let key = CallKey::of(&call, &request, self.sample);
        let expected = Spending::expected(call.model, &request);
        let asked = Request::new(call, key, self.role, expected, &request);
        let recorded = self.reply(asked).await?;
        let Reply::Answer(answer) = &recorded.reply else { return Err(of_another_kind()) };
        pieces.piece(&answer.text).await;
        Ok(answer.clone())
    }

    async fn embed(&self, call: ModelCall<'_>, request: &EmbedRequest) -> Result<Embeddings, NodeError> {
        let key = CallKey::of(&call, request, self.sample);
        let expected = Spending::expected_of_texts(call.model, &request.texts);
        let asked = Request::new(call, key, Role::Embedding, expected, request);
        let recorded = self.reply(asked).await?;
        let Reply::Embeddings(made) = &recorded.reply else { return Err(of_another_kind()) };
        Ok(made.clone())
    }
}

/// A call that is to be answered.
struct Request<'a> {
    call: ModelCall<'a>,
    key: CallKey,
    role: Role,
    expected: Amount,
    /// What it uses if it is given up.
    input: Amount,
    sending: &'a dyn Sending,
}

impl<'a> Request<'a> {
    fn new(
        call: ModelCall<'a>,
        key: CallKey,
        role: Role,
        expected: Spending,
        sending: &'a dyn Sending,
    ) -> Self {
        let input = amount(&Spending::of(call.model, expected.input_tokens, 0));
        Self { call, key, role, expected: amount(&expected), input, sending }
    }

    /// What an answered request has used, and whether that is estimated.
    fn used(&self, reply: &Reply) -> (Amount, bool) {
        let expected = spending(&self.expected);
        match reply {
            Reply::Answer(answer) => {
                let used = Spending::answered(self.call.model, answer, &expected);
                (amount(&used), answer.usage.is_none())
            }
            Reply::Embeddings(made) => {
                let used = Spending::used(self.call.model, made.usage, &expected, 0);
                (amount(&used), made.usage.is_none())
            }
        }
    }

    fn recorded(
        &self,
        reply: Reply,
        (used, estimated): (Amount, bool),
        attempts: u32,
        duration: Duration,
    ) -> RecordedCall {
        let (key, role, model) = (self.key, self.role, self.call.model.to_owned());
        RecordedCall { key, role, model, reply, used, estimated, attempts, duration }
    }
}

fn amount(spending: &Spending) -> Amount {
    Amount {
        calls: spending.calls,
        input_tokens: spending.input_tokens,
        output_tokens: spending.output_tokens,
        nanodollars: nanodollars(spending.dollars),
    }
}

fn spending(amount: &Amount) -> Spending {
    Spending {
        calls: amount.calls,
        input_tokens: amount.input_tokens,
        output_tokens: amount.output_tokens,
        dollars: dollars(amount.nanodollars),
    }
}

fn of_another_kind() -> NodeError {
    NodeError::new(ErrorCode::Internal, "the recorded answer is of another kind")
}

/// Whether the endpoint takes fewer requests than it gets.
fn is_refusal(error: &ModelError) -> bool {
    match error.kind {
        ModelErrorKind::RateLimited => true,
        // 503 says when to come again; other failures do not.
        ModelErrorKind::Unavailable => error.retry_after.is_some(),
        _ => false,
    }
}
