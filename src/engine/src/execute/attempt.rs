//! The attempts of one visit to a node, and their journal rows.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, Utc};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, OptionFuture};
use kernel::jittered;
use serde_json::Value;
use wire::ErrorCode;

use super::aside::aside;
use super::limit::timed_out;
use super::ports::{JournalError, Ports, StepOutcome, StepRecord};
use super::reads::PromptReads;
use super::recorded::RecordedStep;
use super::visit::{Finished, Visit};
use super::{Effect, Failure};
use crate::graph::{OnUnknown, Retry};
use crate::{NodeError, limits};

/// Longest wait that a called service may request.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// Text bytes above which redaction runs outside the actors.
const LONG: usize = 64 << 10;

/// Resolves when the last submitted row is durable.
pub(super) type Receipt = BoxFuture<'static, Result<(), JournalError>>;

/// The action after a failed attempt.
pub(super) enum Next {
    /// None: it was the last attempt.
    None,
    /// Another attempt.
    Attempt,
    /// None: the enclosing node or graph has failed, and the wait was cut short.
    Halted,
}

/// The outcome of a visit.
pub(super) struct Visited {
    pub(super) result: Result<Value, Failure>,
    pub(super) receipt: Option<Receipt>,
    /// End of its last attempt, as recorded in the journal.
    pub(super) ended_at: Option<DateTime<Utc>>,
}

impl Visited {
    pub(super) fn known(result: Result<Value, Failure>) -> Self {
        Self { result, receipt: None, ended_at: None }
    }
}

impl Visit<'_> {
    /// Makes attempts until one is final.
    pub(super) async fn run(mut self) -> Visited {
        if let Some(refill) = &self.env.refill {
            return self.refilled(refill).await;
        }
        if let Some(result) = self.mock() {
            return self.mocked(result).await;
        }
        let rows = self.env.recorded.attempts(&self.path, self.number);
        if let Some(visited) = self.recorded_outcome(rows).await {
            return visited;
        }
        let retry = self.node.common.retry.unwrap_or_else(|| self.node.node.retry());
        self.finished = (retry.max_attempts > 1).then(Finished::default);
        let (mut attempt, mut begun) = match rows.last() {
            None => (1, None),
            Some(last) => match self.resume(last, &retry).await {
                Ok(resumed) => resumed,
                Err(stopped) => return stopped,
            },
        };
        loop {
            let mut visited = self.attempt(attempt, begun.take()).await;
            let Err(Failure::Failed(error)) = &visited.result else { return visited };
            // The text of a failed attempt is withdrawn.
            self.output.restart(self.slot, &self.path).await;
            match self.next(error, attempt, &retry, Duration::ZERO).await {
                Next::None => return visited,
                Next::Halted => return Visited { result: Err(Failure::Halted), ..visited },
                Next::Attempt => {}
            }
            // The next attempt depends on this one's row.
            if let Some(Err(error)) = OptionFuture::from(visited.receipt.take()).await {
                return Visited::known(Err(Failure::Lost(error.to_string())));
            }
            attempt += 1;
        }
    }

    /// Waits for the next attempt, if there is one.
    pub(super) async fn next(
        &self,
        error: &NodeError,
        attempt: u32,
        retry: &Retry,
        passed: Duration,
    ) -> Next {
        if !error.retryable || attempt >= retry.max_attempts {
            return Next::None;
        }
        let asked = error.retry_after.unwrap_or_default().min(RETRY_AFTER_MAX);
        let pause = self.pause(retry, attempt).max(asked).saturating_sub(passed);
        let Ports { clock, activity, .. } = self.env.ports;
        let _waits = activity.waits(Some(clock.now() + pause));
        tokio::select! {
            biased;
            () = self.halt.cancelled() => Next::Halted,
            () = clock.sleep(pause) => Next::Attempt,
        }
    }

    fn pause(&self, retry: &Retry, attempt: u32) -> Duration {
        let pause = retry.pause(attempt);
        if retry.jitter { jittered(pause, self.env.ports.random) } else { pause }
    }

    /// The current time in microseconds, as the journal stores it.
    pub(super) fn time(&self) -> DateTime<Utc> {
        self.env.ports.clock.now().trunc_subsecs(6)
    }

    pub(super) fn record(&self, attempt: u32) -> StepRecord {
        StepRecord {
            step: self.step,
            node: self.path.clone(),
            visit: self.number,
            attempt,
            begun: false,
            input_digest: [0; 32],
            prompts_read: Vec::new(),
            example: None,
            seen: self.seen(),
            started_at: self.env.ports.clock.now(),
            note: None,
            question: None,
            spending: None,
            delivery: None,
            outcome: StepOutcome::Started,
        }
    }

    /// Makes one attempt and writes its row. A panic counts as its failure.
    async fn attempt(&self, attempt: u32, begun: Option<&RecordedStep>) -> Visited {
        // Yields, so that a run with thousands of ready nodes does not starve others.
        tokio::task::consume_budget().await;
        if let Some(room) = self.env.ports.journal.room() {
            room.await;
        }
        if let Err(stopped) = self.env.budget.step(&self.path) {
            return Visited::known(Err(stopped));
        }
        let mut record = self.record(attempt);
        if let Some(row) = begun {
            record.begun = true;
            // If the clock was ahead and was set back, an attempt from the future counts as just begun for its waits.
            record.started_at = row.started_at.min(record.started_at);
            record.note.clone_from(&row.note);
        }
        self.env.ports.journal.begins(&record);
        let started = self.env.ports.clock.monotonic();
        let worked = AssertUnwindSafe(self.work(&mut record)).catch_unwind().await;
        let worked = worked.unwrap_or_else(|_| {
            kernel::warn_once_a_minute!("step.panicked", node = %self.path, "step panicked");
            Err(NodeError::new(ErrorCode::Internal, "the step panicked").into())
        });
        let finished_at = self.time();
        self.finish_seen(&mut record, started).await;
        // Everything that a node returns passes here. A called service may have repeated a secret.
        let worked = match worked {
            Ok(value) => self.redacted(value).await.map_err(Failure::Failed),
            Err(Failure::Failed(error)) => Err(Failure::Failed(self.env.redactor.error(error))),
            Err(stopped) => Err(stopped),
        };
        let result = match worked {
            Ok(value) => match limits::json(&value) {
                Ok(result) => {
                    if let Err(stopped) = self.env.budget.store(&self.path, result.len()) {
                        return Visited::known(Err(stopped));
                    }
                    record.outcome = StepOutcome::Succeeded { result, finished_at };
                    self.keep_finished(&record, Ok(&value), finished_at);
                    Ok(value)
                }
                Err(error) => Err(error),
            },
            Err(Failure::Failed(error)) => Err(error),
            Err(stopped) => return Visited::known(Err(stopped)),
        };
        if let Err(error) = &result {
            record.delivery = None;
            self.keep_finished(&record, Err(error), finished_at);
            record.outcome = StepOutcome::Failed { error: error.clone(), finished_at };
        }
        let receipt = Some(self.env.ports.journal.record(record));
        Visited { result: result.map_err(Failure::Failed), receipt, ended_at: Some(finished_at) }
    }

    pub(super) async fn redacted(&self, value: Value) -> Result<Value, NodeError> {
        let known = self.env.redactor.known();
        if known.is_empty() {
            return Ok(value);
        }
        aside(limits::is_longer(&value, LONG), move || Ok(known.value(value))).await
    }

    async fn work(&self, record: &mut StepRecord) -> Result<Value, Failure> {
        let node = &self.node.node;
        self.may_run()?;
        let reads = PromptReads::default();
        let filling = self.env.ports.clock.monotonic();
        let input = self.input_in_time(&reads).await;
        let filling = self.env.ports.clock.monotonic().saturating_sub(filling);
        record.prompts_read = reads.names();
        let input = input?;
        record.example = self.example(&reads, &input);
        let (budget, (digest, bytes)) = (&self.env.budget, crate::canonical::text_digest(&input));
        record.input_digest = digest;
        record.note_inputs(&input, bytes);
        let _input = budget.input(&self.path, bytes)?;
        if let Some(kept) = self.kept(record) {
            return Ok(kept);
        }
        // Comes first: a recorded start means that the node may have had an effect, and its time limit counts from
        // the start.
        let (_inside, _working) = match self.node.effect {
            Effect::Nested => (Some(budget.container(&self.path)?), None),
            Effect::Wait => (None, None),
            _ => (None, Some(budget.permit(self.halt).await?)),
        };
        if !record.begun {
            record.started_at = self.env.ports.clock.now();
        }
        let resumed = record.begun.then_some(record.started_at);
        self.record_start(record, &input).await?;
        // An image can be stored only for an existing thread.
        let is_outside = node.shows_images()
            || matches!(self.node.effect, Effect::Reads | Effect::Model | Effect::Outbound);
        if is_outside && let Some(started) = self.env.ports.journal.started() {
            started.await.map_err(|error| Failure::Lost(error.to_string()))?;
        }
        let call = self.call(record);
        // If the start survived a restart, the elapsed time counts toward the limit.
        let passed = resumed.map(|at| (self.env.ports.clock.now() - at).to_std().unwrap_or_default());
        let running = self.within_limit(passed.unwrap_or(filling), node.run(input, &call));
        let result = if self.node.effect == Effect::Wait {
            tokio::select! {
                biased;
                result = running => result,
                () = self.halt.cancelled() => Err(Failure::Halted),
            }
        } else {
            running.await
        };
        record.note_calls(&call);
        record.spending = Some(*call.spending.lock()).filter(|spending| spending.calls > 0);
        let result = match result {
            Err(Failure::Failed(mut error)) => {
                error.usage = call.usage.lock().take().map(Box::new);
                return Err(Failure::Failed(error));
            }
            other => other?,
        };
        record.delivery = call.delivery.lock().take();
        call.keep_warning(record);
        self.keep(record, &result);
        Ok(result)
    }

    /// Records the start durably, if the node needs that, with what a resumed attempt continues from.
    async fn record_start(&self, record: &mut StepRecord, input: &Value) -> Result<(), Failure> {
        let node = &self.node.node;
        // For nodes that may wait inside, the time limit counts from the first start.
        let limited = self.node.effect == Effect::Nested && self.limit().is_some();
        let keeps_start = node.records_start() || limited || self.on_unknown() != OnUnknown::Retry;
        if !keeps_start || record.begun {
            return Ok(());
        }
        record.note = node.begin(input, &self.call(record)).await?;
        record.question = node.question(input, record.started_at)?;
        if let Some(question) = &mut record.question {
            question.continues_without = self.continues_after_failure();
        }
        let stored = self.env.ports.journal.record(StepRecord { seen: None, ..record.clone() }).await;
        stored.map_err(|error| Failure::Lost(error.to_string()))?;
        record.begun = true;
        Ok(())
    }

    /// Runs a node's work within the time limit of the attempt, of which `passed` is used up.
    async fn within_limit(
        &self,
        passed: Duration,
        work: impl Future<Output = Result<Value, Failure>>,
    ) -> Result<Value, Failure> {
        let clock = self.env.ports.clock;
        if self.node.node.keeps_time() {
            return work.await;
        }
        let Some(limit) = self.limit() else { return work.await };
        let left = limit.saturating_sub(passed);
        let _bound = self.env.ports.activity.bound(clock.now() + left);
        let over = || Err(timed_out(limit).into());
        // The restart took longer than the limit: nothing new begins, and a wait that is over now ended too late.
        // Work inside a container may all have ended in time.
        if left.is_zero() && self.node.effect != Effect::Nested {
            return over();
        }
        self.in_time(left, work).await.unwrap_or_else(over)
    }

    fn limit(&self) -> Option<Duration> {
        self.node.common.timeout.or_else(|| self.node.node.timeout())
    }

    fn cache_key(&self, record: &StepRecord) -> Option<([u8; 32], Duration)> {
        let kept_for = self.node.common.cache?;
        Some((crate::canonical::sha256(&[&self.node.identity, &record.input_digest]), kept_for))
    }

    fn kept(&self, record: &StepRecord) -> Option<Value> {
        let (key, _) = self.cache_key(record)?;
        let kept = self.env.ports.cache.get(&key, self.env.ports.clock.monotonic())?;
        serde_json::from_str(&kept).ok()
    }

    fn keep(&self, record: &StepRecord, result: &Value) {
        if let Some((key, kept_for)) = self.cache_key(record) {
            let until = self.env.ports.clock.monotonic() + kept_for;
            self.env.ports.cache.put(key, &result.to_string(), until);
        }
    }
}
