//! Executes the search's requests. Results from earlier lives of the run are read, not executed again.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use engine::RunError;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use store::CaseKey;
use training::calls::Amount;
use training::optimize::{Candidate, JudgedRun, Lab, Phase, Question, Round, SearchEvent, Stop};
use training::{NoReply, ask};
use wire::ErrorCode;

use super::halt::{Halt, Interruption};
use super::progress::ProgressMeter;
use super::reserve::Reservations;
use super::session::{TrainingSession, read_result};
use crate::lanes::WriteError;
use crate::run::whole;
use crate::text::json as text_of;

/// Maximum time for cases in flight after a pause; then they are executed again later.
const PAUSE_GRACE: Duration = Duration::from_secs(10);
/// Maximum time for cases in flight after shutdown has begun.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// Maximum candidate configs in the cache.
const CONFIGS: usize = 16;

/// The key of a result: place and sample.
type Sample = (usize, u32);

/// The next case to execute.
#[derive(Clone, Copy)]
struct Next {
    /// Position in the request order.
    number: usize,
    sample: Sample,
    /// Whether no other case is in flight with it.
    is_alone: bool,
}

pub(super) struct ActorLab<'a> {
    pub(super) session: &'a TrainingSession,
    halt: &'a Halt,
    /// Number of calls recorded in earlier lives.
    recorded: u64,
    known: Mutex<BTreeSet<CaseKey>>,
    pub(super) marks: Mutex<BTreeSet<String>>,
    configs: Mutex<HashMap<u32, Arc<Map<String, Value>>>>,
    pub(super) kept: Mutex<Reservations>,
    /// Counts the search's requests; the numbers are the same in each life.
    steps: AtomicU64,
    pub(super) progress: Mutex<ProgressMeter>,
    /// Published candidates, by number.
    pub(super) candidates: Mutex<HashMap<u32, Candidate>>,
    /// The current epoch.
    pub(super) epoch: AtomicU32,
    interruption: Mutex<Option<Interruption>>,
    pub(super) lost: Mutex<Option<WriteError>>,
    /// The reason why the run cannot be continued.
    pub(super) failed: Mutex<Option<RunError>>,
}

impl<'a> ActorLab<'a> {
    pub(super) fn new(
        session: &'a TrainingSession,
        marks: BTreeSet<String>,
        halt: &'a Halt,
        kept: Reservations,
    ) -> Self {
        let now = session.ports.clock.monotonic();
        let progress =
            ProgressMeter::new(session.results.len(), session.decided.planned, &session.before, now);
        session.calls.keep(kept.for_final + kept.for_demos);
        Self {
            session,
            halt,
            recorded: session.calls.recorded(),
            known: Mutex::new(session.results.clone()),
            marks: Mutex::new(marks),
            configs: Mutex::default(),
            kept: Mutex::new(kept),
            steps: AtomicU64::new(0),
            candidates: Mutex::default(),
            epoch: AtomicU32::new(0),
            progress: Mutex::new(progress),
            interruption: Mutex::default(),
            lost: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// The reason why this life ended without a result.
    pub(super) fn interruption(&self) -> Option<Interruption> {
        *self.interruption.lock()
    }

    pub(super) fn now(&self) -> Duration {
        self.session.ports.clock.monotonic()
    }

    /// Whether a model has answered a request in this life.
    pub(super) fn is_answered(&self) -> bool {
        self.session.calls.recorded() > self.recorded
    }

    /// Numbers the search's next request. Fails if an earlier life ran out of time or budget there.
    fn step(&self) -> Result<u64, Stop> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed);
        let marks = self.marks.lock();
        let has_stopped = |stop: &Stop| marks.contains(&stopped(*stop, step));
        [Stop::MaxSeconds, Stop::Budget].into_iter().find(has_stopped).map_or(Ok(step), Err)
    }

    /// Fails if nothing more may be started.
    fn check(&self) -> Result<(), Stop> {
        if self.halt.stop.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        match self.halt.interruption() {
            Some(interruption) => Err(self.interrupt(interruption)),
            None => Ok(()),
        }
    }

    pub(super) fn interrupt(&self, interruption: Interruption) -> Stop {
        *self.interruption.lock() = Some(interruption);
        Stop::Lost
    }

    /// Stores that the run's time ended at a step, before that takes effect.
    async fn end_of_time(&self, step: u64) -> Stop {
        self.ends(step, Stop::MaxSeconds).await
    }

    /// Stores how a step ended, because another life might have more time, or other calls in flight.
    async fn ends(&self, step: u64, stop: Stop) -> Stop {
        match self.commit(|events| events.mark(stopped(stop, step))).await {
            Ok(()) => stop,
            Err(lost) => lost,
        }
    }

    /// Maximum cases in flight: one if the budget might not cover more, so that the last case does not depend on
    /// timing.
    fn width(&self) -> usize {
        let session = self.session;
        let most = session.settings.concurrency;
        let each = self.progress.lock().dearest(session.decided.calls_of_case.max(1));
        let covered = session.calls.covers(u64::try_from(most).unwrap_or(u64::MAX), &each);
        if covered { most } else { 1 }
    }

    fn config(&self, candidate: &Candidate) -> Arc<Map<String, Value>> {
        let mut configs = self.configs.lock();
        if configs.len() >= CONFIGS && !configs.contains_key(&candidate.number) {
            configs.clear();
        }
        let make = || Arc::new(self.session.config_of(candidate));
        Arc::clone(configs.entry(candidate.number).or_insert_with(make))
    }

    /// Returns those of these results that are stored.
    async fn stored(&self, candidate: u32, wanted: &[Sample]) -> Result<BTreeMap<Sample, JudgedRun>, Stop> {
        let cases: Vec<i32> = {
            let known = self.known.lock();
            let is_known = |(place, sample): &&Sample| known.contains(&key(candidate, *place, *sample));
            let mut cases: Vec<i32> = wanted
                .iter()
                .filter(is_known)
                .map(|(place, _)| i32::try_from(*place).unwrap_or(i32::MAX))
                .collect();
            cases.dedup();
            cases
        };
        if cases.is_empty() {
            return Ok(BTreeMap::new());
        }
        let number = i32::try_from(candidate).unwrap_or(i32::MAX);
        let (session, store) = (self.session, &self.session.ports.store);
        let read = || store.case_results(session.run, number, &cases, false);
        let rows = session.writer.ask("results of cases", read).await;
        let wanted: HashSet<Sample> = wanted.iter().copied().collect();
        let mut found = BTreeMap::new();
        for row in rows {
            let (Ok(place), Ok(sample)) = (usize::try_from(row.case_index), u32::try_from(row.sample)) else {
                continue;
            };
            if !wanted.contains(&(place, sample)) {
                continue;
            }
            let Some(result) = read_result(&row.result) else { return Err(self.unreadable()) };
            self.progress.lock().used(&Amount::from(result.spent));
            let (run, verdicts) = result.into_parts();
            found.insert((place, sample), JudgedRun { run: Arc::new(run), verdicts });
        }
        Ok(found)
    }

    fn unreadable(&self) -> Stop {
        tracing::error!(run = %self.session.run, "failed to read a stored case result");
        Stop::Lost
    }

    /// Ends the run if a candidate's prompts or demos differ from those in its first execution: stored results would
    /// not match. A newer version of the service may search differently.
    async fn check_prompts(&self, candidate: &Candidate) -> Result<(), Stop> {
        let prefix = format!("prompts {} ", candidate.number);
        let mut told = text_of(&*candidate.prompts);
        if candidate.demos.values().any(|demos| !demos.is_empty()) {
            told.push_str(&text_of(&*candidate.demos));
        }
        let mark = prefix.clone() + &hex::encode(digest(&SHA256, told.as_bytes()));
        let known = self.marks.lock().range(prefix.clone()..).next().cloned();
        match known.filter(|known| known.starts_with(&prefix)) {
            None => self.once(mark, |_| {}).await,
            Some(known) if known == mark => Ok(()),
            Some(_) => {
                let message =
                    "the search has diverged from its path before the interruption; start the run again";
                *self.failed.lock() =
                    Some(RunError { message: message.to_owned(), ..whole(ErrorCode::Internal) });
                Err(Stop::Lost)
            }
        }
    }

    /// Notes that a case's result is stored.
    pub(super) fn stored_now(&self, candidate: u32, place: usize, sample: u32) {
        self.known.lock().insert(key(candidate, place, sample));
    }

    /// Executes these cases.
    async fn execute(
        &self,
        candidate: &Candidate,
        round: Round,
        step: u64,
        missing: Vec<Sample>,
        found: &mut BTreeMap<Sample, JudgedRun>,
    ) -> Result<(), Stop> {
        let config = self.config(candidate);
        let is_final = matches!(round.phase, Phase::Final | Phase::Test);
        let mut missing: BTreeMap<usize, Sample> = missing.into_iter().enumerate().collect();
        // Whether cases are executed one by one.
        let mut is_narrow = false;
        let mut in_flight = FuturesUnordered::new();
        let mut ended: Option<Stop> = None;
        let mut over = std::pin::pin!(self.time_is_over(is_final));
        let mut grace = std::pin::pin!(self.grace());
        loop {
            while ended.is_none() {
                let width = if is_narrow { 1 } else { self.width() };
                if in_flight.len() >= width {
                    break;
                }
                let Some((number, sample)) = missing.pop_first() else { break };
                let next = Next { number, sample, is_alone: width == 1 };
                match self.check() {
                    Ok(()) => in_flight.push(self.next(candidate, &config, next, round)),
                    Err(stop) => ended = Some(stop),
                }
            }
            if in_flight.is_empty() {
                return match ended {
                    Some(Stop::Budget) => Err(self.ends(step, Stop::Budget).await),
                    ended => ended.map_or(Ok(()), Err),
                };
            }
            tokio::select! {
                biased;
                () = self.halt.stop.cancelled() => return Err(Stop::Cancelled),
                () = &mut over => return Err(self.end_of_time(step).await),
                interruption = &mut grace => return Err(self.interrupt(interruption)),
                done = in_flight.next() => match done {
                    Some((next, Ok(judged))) => _ = found.insert(next.sample, judged),
                    // Another life continues; waiting for cases in flight would only delay it.
                    Some((_, Err(Stop::Lost))) => return Err(Stop::Lost),
                    // Reservations released by other cases may cover this one later; its replies are recorded.
                    Some((next, Err(Stop::Budget))) if !next.is_alone => {
                        missing.insert(next.number, next.sample);
                        is_narrow = true;
                    }
                    // Cases in flight are already paid for.
                    Some((_, Err(stop))) => ended = Some(stop),
                    None => {}
                },
            }
        }
    }

    async fn next(
        &self,
        candidate: &Candidate,
        config: &Map<String, Value>,
        next: Next,
        round: Round,
    ) -> (Next, Result<JudgedRun, Stop>) {
        let (place, sample) = next.sample;
        (next, self.case(candidate, config, place, sample, round).await)
    }

    /// Ends after the grace period that follows an interruption.
    async fn grace(&self) -> Interruption {
        self.halt.interrupted().await;
        let interruption = self.halt.interruption().unwrap_or(Interruption::Shutdown);
        let grace = match interruption {
            Interruption::Pause => PAUSE_GRACE,
            Interruption::Shutdown | Interruption::RateLimited => SHUTDOWN_GRACE,
        };
        self.session.ports.clock.sleep(grace).await;
        interruption
    }
}

fn key(candidate: u32, place: usize, sample: u32) -> CaseKey {
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    (number(candidate), i32::try_from(place).unwrap_or(i32::MAX), number(sample))
}

/// The mark of a step whose question was not answered.
fn no_reply(step: u64) -> String {
    format!("no_reply {step}")
}

/// The mark of a step that time or budget did not allow.
fn stopped(stop: Stop, step: u64) -> String {
    format!("{stop:?} {step}")
}

#[async_trait]
impl Lab for ActorLab<'_> {
    async fn evaluate(
        &self,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<Vec<Vec<JudgedRun>>, Stop> {
        let step = self.step()?;
        self.epoch.store(round.epoch, Ordering::Relaxed);
        if matches!(round.phase, Phase::Final | Phase::Test) {
            self.session.calls.keep(0);
        }
        self.check_prompts(candidate).await?;
        let wanted = self.samples(places, round);
        let mut found = self.stored(candidate.number, &wanted).await?;
        let missing: Vec<Sample> =
            wanted.iter().copied().filter(|sample| !found.contains_key(sample)).collect();
        if !missing.is_empty() {
            self.execute(candidate, round, step, missing, &mut found).await?;
        }
        Ok(self.in_order(places, round, found))
    }

    async fn recall(
        &self,
        candidate: &Candidate,
        places: &[usize],
        round: Round,
    ) -> Result<Vec<Vec<JudgedRun>>, Stop> {
        let found = self.stored(candidate.number, &self.samples(places, round)).await?;
        Ok(self.in_order(places, round, found))
    }

    async fn reuse(&self, candidate: &Candidate, places: &[usize], round: Round) -> Result<(), Stop> {
        self.announce(candidate, places, round).await
    }

    async fn ask(&self, question: Question) -> Result<Option<String>, Stop> {
        let step = self.step()?;
        if self.marks.lock().contains(&no_reply(step)) {
            return Ok(None);
        }
        let session = self.session;
        let checked = self.check();
        if checked.is_err_and(|stop| stop != Stop::Cancelled) {
            checked?;
        }
        let is_late = self.time_left(false).is_some_and(|left| left.is_zero());
        // Recorded replies still count towards the result so far, even without new requests.
        session.calls.close(checked.is_err() || is_late);
        let place = session.prompts.iter().position(|prompt| prompt.name == question.prompt);
        let place = place.unwrap_or_default();
        let model = &session.decided.optimizer_model;
        let asked = self.with_ports(async |ports| {
            ask(&session.calls, &session.case_settings, ports, model, &question, place).await
        });
        let replied = tokio::select! {
            biased;
            () = self.halt.stop.cancelled(), if checked.is_ok() => return Err(Stop::Cancelled),
            () = self.time_is_over(false), if !is_late => return Err(self.end_of_time(step).await),
            interruption = self.grace() => return Err(self.interrupt(interruption)),
            replied = asked => replied,
        };
        session.calls.close(false);
        match replied {
            Ok(reply) => Ok(Some(reply)),
            Err(_) if self.halt.stop.is_cancelled() => Err(Stop::Cancelled),
            Err(_) if is_late => Err(self.end_of_time(step).await),
            Err(NoReply::Exhausted) => Err(self.ends(step, Stop::Budget).await),
            Err(NoReply::Failed(_)) if session.calls.is_refused() => {
                Err(self.interrupt(Interruption::RateLimited))
            }
            Err(NoReply::Failed(error)) => {
                // The search continues without the reply, in each life.
                self.once(no_reply(step), |_| {}).await?;
                let message = format!("the model that writes proposals does not answer: {error}");
                self.warn("endpoint_failing", &message).await?;
                Ok(None)
            }
        }
    }

    fn release_demos(&self) {
        self.release_kept_for_demos();
    }

    async fn publish(&self, event: SearchEvent<'_>) -> Result<(), Stop> {
        self.publish_event(event).await
    }
}

impl ActorLab<'_> {
    /// All samples of these cases.
    fn samples(&self, places: &[usize], round: Round) -> Vec<Sample> {
        let samples = self.samples_of(round);
        places.iter().flat_map(|place| samples.clone().map(|sample| (*place, sample))).collect()
    }

    /// Results ordered by place, then sample.
    fn in_order(
        &self,
        places: &[usize],
        round: Round,
        mut found: BTreeMap<Sample, JudgedRun>,
    ) -> Vec<Vec<JudgedRun>> {
        let samples = self.samples_of(round);
        let of =
            |place: &usize| samples.clone().filter_map(|sample| found.remove(&(*place, sample))).collect();
        places.iter().map(of).collect()
    }
}
